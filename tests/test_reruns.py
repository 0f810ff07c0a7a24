"""A reader runs cells again; the test pins that they say the same."""

import nbformat
import pytest
from reruns import CHEAP, compare


@pytest.mark.sample(*CHEAP)
def test_every_cell_may_be_run_twice_in_a_row_and_the_whole_notebook_once_more(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    twice = [cell for cell in code for _ in range(2)]
    compare(twice + code, path)
