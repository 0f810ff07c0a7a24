"""The tables that commands write into pages, each between two comments."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PAGES = {  # table: the page that has it
    "the last full run": TESTS / "README.md",
    "the last seeds": TESTS / "seeds" / "README.md",
}


def cells(line):
    """Return what stands in the columns of a row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(table, count):
    """Return the first cells, so many, of all rows of a table, without its head."""
    page = PAGES[table].read_text(encoding="utf-8")
    [_, lines] = page.partition(f"<!-- end of {table} -->")[0].split("|---|\n")
    return [cells(line)[:count] for line in lines.splitlines()]


def stored(text, table, head, rows, order):
    """Return `text` with rows in the table that lies between its two comments.

    They take the place of rows with the same first cell; those of others stay, if the
    head, which may name versions, is the same. The first cells come in the order given,
    and what is not named there is left out.
    """
    begin, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->\n"
    before, _, rest = text.partition(begin)
    last, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"expected a line {begin!r} and after it {end!r}")
    new = {cells(row)[0] for row in rows}
    old = re.findall(r"^\| .*\n", last.removeprefix(head), re.MULTILINE)
    old = old if last.startswith(head) else []
    lines = [row for row in old if cells(row)[0] not in new] + list(rows)
    known = [row for row in lines if cells(row)[0] in order]
    known.sort(key=lambda row: order.index(cells(row)[0]))
    return before + begin + head + "".join(known) + end + after


def store(table, head, rows, order):
    """Write rows into a table of its page."""
    page = PAGES[table]
    text = stored(page.read_text(encoding="utf-8"), table, head, rows, order)
    page.write_text(text, encoding="utf-8", newline="\n")
