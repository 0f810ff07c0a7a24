"""The tables that commands write into pages, each between two comments."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGES = {  # table: its page
    "the last full run": TESTS / "README.md",
    "the last seeds": TESTS / "seeds" / "README.md",
}


def cells(row):
    """Return the texts in the columns of a row."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def rows(table, count):
    """Return the first `count` cells of each row of a table, without its head."""
    page = PAGES[table].read_text(encoding="utf-8")
    [_, lines] = page.partition(f"<!-- end of {table} -->")[0].split("|---|\n")
    return [cells(line)[:count] for line in lines.splitlines()]


def updated(text, table, head, new_rows, order):
    """Return the page `text` with new rows in the table between its two comments.

    A new row replaces the one with the same first cell. Other rows stay if the head,
    which may name versions, is still the same. `order` lists all first cells.
    """
    begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->\n"
    before, _, rest = text.partition(begin)
    old, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"expected a line {begin!r} and after it {end!r}")
    replaced = {cells(row)[0] for row in new_rows}
    old_rows = re.findall(r"^\| .*\n", old.removeprefix(head), re.MULTILINE)
    lines = [row for row in old_rows if cells(row)[0] not in replaced]
    lines = [*(lines if old.startswith(head) else []), *new_rows]
    lines = [row for row in lines if cells(row)[0] in order]
    lines.sort(key=lambda row: order.index(cells(row)[0]))
    return before + begin + head + "".join(lines) + end + after


def store(table, head, new_rows, order):
    """Write rows into a table of its page."""
    page = PAGES[table]
    text = updated(page.read_text(encoding="utf-8"), table, head, new_rows, order)
    page.write_text(text, encoding="utf-8", newline="\n")
