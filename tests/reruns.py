"""Run cells of a notebook again, and compare what they print with what is stored."""

import nbformat

from tests.notebooks import run_cells
from tests.tolerance import agree

CHEAP = "deeper/my_numbers_differ.ipynb"


def printed(cell):
    """Return what nbval compares of a cell: its texts, without figures."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    texts = [o.get("text", o.get("data", {}).get("text/plain")) for o in cell.outputs]
    return "\n".join(text for text in texts if text is not None)


def assert_prints(cell, stored):
    """Assert that a cell prints the stored text, within its tolerance."""
    assert agree(printed(cell), stored, cell.metadata.get("tolerance")), cell.source


def compare(cells, path):
    """Run cells in one fresh kernel; assert that each prints what is stored."""
    new = nbformat.v4.new_code_cell
    copies = [new(cell.source, metadata=cell.metadata) for cell in cells]
    run_cells(nbformat.v4.new_notebook(cells=copies), path.parent)
    for stored, cell in zip(cells, copies):
        assert_prints(cell, printed(stored))
        assert [o.text for o in cell.outputs if o.get("name") == "stderr"] == []
