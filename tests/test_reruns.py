"""A cell that is run again shows what it showed, whatever has been run after it."""

import nbformat
import pytest

from tests.notebooks import run_cells
from tests.reruns import CHEAP, printed
from tests.tolerance import agree


def figures(cell):
    """Return the figures of a cell, unless its numbers may move."""
    is_exact = printed(cell) and "tolerance" not in cell.metadata
    return [o.get("data", {}).get("image/png") for o in cell.outputs if is_exact]


@pytest.mark.sample(CHEAP)
def test_each_cell_run_again_from_the_last_to_the_first_shows_the_same(path):
    new, cells = nbformat.v4.new_code_cell, nbformat.read(path, as_version=4).cells
    sources = [(c.source, c.metadata) for c in cells if c.cell_type == "code"]
    first = [new(source, metadata=metadata) for source, metadata in sources]
    again = [new(source, metadata=metadata) for source, metadata in sources]
    for cell in again:  # an error is one of the differences
        cell.metadata.tags = [*cell.metadata.get("tags", []), "raises-exception"]
    both = nbformat.v4.new_notebook(cells=first + again[::-1])
    run_cells(both, path.parent)
    different = []
    for cell, repeated in zip(first, again):
        texts = printed(repeated), printed(cell)
        errors = [out.evalue for out in repeated.outputs if "evalue" in out]
        is_same = agree(*texts, cell.metadata.get("tolerance")) and not errors
        if not (is_same and figures(repeated) == figures(cell)):
            different.append("\n-- ".join([cell.source, *texts, *errors]))
    assert not different, "\n\n".join(different)
