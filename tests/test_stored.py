"""How `tests.notebooks` stores notebooks."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests import notebooks
from tests.tolerance import settled


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


def test_what_answers_a_prediction_is_folded_and_compared_within_its_tolerance():
    outputs = [new_output("stream", text="loss 1.08")]
    cells = [
        new_markdown_cell("# A\n\n**Predict.** It?\n\nAbout 5 minutes"),
        new_code_cell("definition"),
        new_code_cell("loss", outputs=outputs),
        new_code_cell("# @title The same, drawn", outputs=outputs),
        new_markdown_cell("**What to see:** it."),
        new_code_cell("later", outputs=outputs),
        new_markdown_cell("**Predict.** And now?\n"),
        new_markdown_cell("## A new section"),
        new_code_cell("not this", outputs=outputs),
    ]
    for _ in range(2):
        notebooks.prepare(new_notebook(cells=cells), "notebooks/a.ipynb", ("", "main"))
    folded = [c for c in cells if c.metadata.get("jupyter", {}).get("outputs_hidden")]
    assert folded == cells[2:4]
    assert "source_hidden" not in cells[3].metadata.jupyter, "nothing would be seen"
    assert [o.output_type for o in cells[2].outputs] == ["display_data", "stream"]
    new = [new_output("stream", text="loss 1.12")]
    assert settled(new, cells[2].outputs, 0.05) == [cells[2].outputs[1]]
