"""A cell that is run again shows what it showed, whatever has been run after it."""

import nbformat
import pytest

from tests.notebooks import run_cells
from tests.tolerance import agree, printed


def figures(cell):
    """Return the figures of a cell, unless its numbers may move."""
    is_exact = printed(cell) and "tolerance" not in cell.metadata
    return [o.get("data", {}).get("image/png") for o in cell.outputs if is_exact]


@pytest.mark.sample("03_context_vectors.ipynb", of="notebooks/*.ipynb")
def test_each_cell_run_again_from_the_last_to_the_first_shows_the_same(path):
    cells = nbformat.read(path, as_version=4).cells
    first = [cell for cell in cells if cell.cell_type == "code"]
    again = []
    for cell in first:  # an error is one of the differences
        tags = [*cell.metadata.get("tags", []), "raises-exception"]
        metadata = cell.metadata | {"tags": tags}
        again.append(nbformat.v4.new_code_cell(cell.source, metadata=metadata))
    twice = nbformat.v4.new_notebook(cells=first + again[::-1])
    run_cells(twice, path.parent)
    different = []
    for cell, repeated in zip(first, again):
        texts = printed(repeated), printed(cell)
        errors = [out.evalue for out in repeated.outputs if "evalue" in out]
        is_same = agree(*texts, cell.metadata.get("tolerance")) and not errors
        if not (is_same and figures(repeated) == figures(cell)):
            different.append("\n-- ".join([cell.source, *texts, *errors]))
    assert not different, "\n\n".join(different)
