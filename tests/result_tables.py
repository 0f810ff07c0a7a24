"""The tables that commands write into pages, each between two comments."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGES = {  # table: its page
    "the last seeds": TESTS / "seeds" / "README.md",
    "the last benchmarks": TESTS / "benchmarks.md",
}


def cells(row):
    """Return the texts in the columns of a row."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def rows(table, count):
    """Return the first `count` cells of each row of a table, without its head."""
    page = PAGES[table].read_text(encoding="utf-8")
    [_, lines] = page.partition(f"<!-- end of {table} -->")[0].split("|---|\n")
    return [cells(line)[:count] for line in lines.splitlines()]


def store(table, head, new_rows, order):
    """Write rows into a table of its page, in the order of their first cells.

    A new row replaces those with the same first cell. Other rows stay if the head,
    which may name versions, is still the same.
    """
    page = PAGES[table]
    begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->\n"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    old, after = rest.split(end)
    replaced = {cells(row)[0] for row in new_rows}
    lines = re.findall(r"^\| .*\n", old.removeprefix(head), re.MULTILINE)
    lines = [row for row in lines if old.startswith(head)]
    lines = [row for row in lines if cells(row)[0] in {*order} - replaced] + new_rows
    lines.sort(key=lambda row: order.index(cells(row)[0]))
    text = before + begin + head + "".join(lines) + end + after
    page.write_text(text, encoding="utf-8", newline="\n")
