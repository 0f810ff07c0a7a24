"""The tables that commands write into pages, each before a comment at its end."""

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
    return [cells(row)[:count] for row in _parts(table)[1]]


def store(table, new_rows, order):
    """Write rows into a table of its page, in the order of their first cells.

    A new row replaces those with the same first cell.
    """
    before, lines, after = _parts(table)
    replaced = {cells(row)[0] for row in new_rows}
    lines = [row for row in lines if cells(row)[0] in {*order} - replaced] + new_rows
    lines.sort(key=lambda row: order.index(cells(row)[0]))
    text = before + "".join(lines) + after
    PAGES[table].write_text(text, encoding="utf-8", newline="\n")


def _parts(table):
    """Return what a page has before the rows of a table, the rows, and the rest."""
    page = PAGES[table].read_text(encoding="utf-8")
    before, end, after = page.partition(f"<!-- end of {table} -->")
    before, rule, lines = before.rpartition("|---|\n")
    return before + rule, lines.splitlines(keepends=True), end + after
