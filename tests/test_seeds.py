"""The claims of `tests/seeds/README.md`."""

from tests import result_tables
from utils.pages import read_cells


def test_every_sentence_that_is_measured_is_in_its_notebook():
    for _, notebook, sentence in result_tables.rows(3):
        cells = read_cells(f"{notebook}.ipynb")
        text = "\n".join("".join(cell["source"]) for cell in cells)
        assert sentence in text, f"{notebook}: {sentence}"
