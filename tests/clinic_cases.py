"""What the tests of the clinic share: its patients and its notebook."""

import nbformat
from repository import ROOT

from utils.clinic.patients import KINDS

KIND_OF = {kind.letter: kind for kind in KINDS}
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads
NOTEBOOK = ROOT / "notebooks/12_the_clinic.ipynb"


def code_cells():
    """Return the code cells of the notebook."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]
