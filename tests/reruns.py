"""Run cells of a notebook again, and compare what they say with what is stored."""

import nbformat
from repository import tool
from tolerance import agree

CHEAP = "deeper/my_numbers_differ.ipynb", "solutions/05_solutions.ipynb"


def said(cell):
    """Return what a cell says, as nbval compares it: texts, and no pictures."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    texts = [o.get("text", o.get("data", {}).get("text/plain")) for o in cell.outputs]
    return "\n".join(text for text in texts if text is not None)


def expect(cell, stored):
    """Expect that a cell says what is stored, within its tolerance."""
    assert agree(said(cell), stored, cell.metadata.get("tolerance")), cell.source


def compare(cells, path):
    """Run cells in one fresh kernel and compare what each says with what is stored."""
    new = nbformat.v4.new_code_cell
    copies = [new(cell.source, metadata=cell.metadata) for cell in cells]
    tool.run_cells(nbformat.v4.new_notebook(cells=copies), path.parent)
    for stored, cell in zip(cells, copies):
        expect(cell, said(stored))
        assert [o.text for o in cell.outputs if o.get("name") == "stderr"] == []
