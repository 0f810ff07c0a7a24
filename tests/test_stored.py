"""Each test pins one claim about how `tests.notebooks` stores notebooks."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests import notebooks
from tests.tolerance import settled


def test_digits_stay_as_stored_within_their_tolerance_and_times_always():
    def notebook(*texts):
        cells = [new_code_cell("train()") for _ in texts]
        for cell, text in zip(cells, texts):
            cell.outputs = [new_output("stream", text=text)]
            cell.metadata = {"tolerance": 0.1} if "loss" in text else {}
            if text.endswith(" s"):
                cell.metadata = {"tags": ["nbval-ignore-output"]}
        return new_notebook(cells=cells)

    new = notebook("loss 1.52", "loss 1.71", "rate 1.52", "2 s")
    notebooks.keep_stored(new, notebook("loss 1.50", "loss 1.50", "rate 1.50", "3 s"))
    texts = [cell.outputs[0].text for cell in new.cells]
    assert texts == ["loss 1.50", "loss 1.71", "rate 1.52", "3 s"]


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
