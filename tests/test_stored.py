"""How `tests.notebooks` stores notebooks."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests import notebooks


def trained(*cells):
    """Return a notebook of cells (source, text); with a tolerance if it has a loss."""
    new = []
    for source, text in cells:
        outputs = [new_output("stream", text=text)]
        if source.startswith("draw"):
            figure = {"text/plain": text, "image/png": f"drawn with {source}, {text}"}
            outputs = [new_output("display_data", figure)]
        new.append(new_code_cell(source, outputs=outputs))
        new[-1].metadata = {"tolerance": 0.1} if "loss" in text else {}
        if text.endswith(" s"):
            new[-1].metadata = {"tags": ["nbval-ignore-output"]}
    return new_notebook(cells=new)


OLD = [("loss = train()", "loss 1.50"), ("draw(loss)", "loss 1.50"), ("clock()", "3 s")]
NEW = [("loss = train()", "loss 1.52"), ("draw(loss)", "loss 1.52"), ("clock()", "2 s")]
FAR = [("loss = train()", "loss 1.71"), ("draw(loss)", "loss 1.52"), ("clock()", "2 s")]
EDITED = [("loss = train(2)", "loss 1.52"), *NEW[1:]]


@pytest.mark.parametrize(
    ("new", "changed", "stored", "unexplained"),
    [
        (NEW, (), OLD, []),  # text, figure and time stay
        (NEW, {"draw"}, [OLD[0], NEW[1], OLD[2]], []),  # the figure is drawn anew
        (FAR, (), [FAR[0], NEW[1], OLD[2]], [1]),  # and what is computed from it
        (EDITED, (), [EDITED[0], NEW[1], OLD[2]], []),
    ],
)
def test_outputs_stay_that_no_change_reaches_within_their_tolerance(
    new, changed, stored, unexplained
):
    notebook, old = trained(*new), trained(*OLD)
    found = notebooks.keep_stored(notebook, old, changed)
    assert found == [notebook.cells[i - 1] for i in unexplained]
    expected = [cell.outputs for cell in trained(*stored).cells]
    assert [cell.outputs for cell in notebook.cells] == expected
