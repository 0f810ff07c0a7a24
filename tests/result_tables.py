"""The table of tests/seeds/README.md, which ends before a comment."""

from pathlib import Path

PAGE = Path(__file__).resolve().parent / "seeds" / "README.md"
END = "<!-- end of the last seeds -->"


def cells(row):
    """Return the texts in the columns of a row."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def rows(count):
    """Return the first `count` cells of each row, without the head."""
    return [cells(row)[:count] for row in _parts()[1]]


def store(new_rows, order):
    """Write rows into the table, in the order of their first cells.

    A new row replaces those with the same first cell.
    """
    before, lines, after = _parts()
    replaced = {cells(row)[0] for row in new_rows}
    lines = [row for row in lines if cells(row)[0] in {*order} - replaced] + new_rows
    lines.sort(key=lambda row: order.index(cells(row)[0]))
    text = before + "".join(lines) + after
    PAGE.write_text(text, encoding="utf-8", newline="\n")


def _parts():
    """Return what a page has before the rows of a table, the rows, and the rest."""
    page = PAGE.read_text(encoding="utf-8")
    before, end, after = page.partition(END)
    before, rule, lines = before.rpartition("|---|\n")
    return before + rule, lines.splitlines(keepends=True), end + after
