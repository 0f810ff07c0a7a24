"""What `tests.changed` runs after a change, and which stored outputs stay."""

import base64
import io
import subprocess
import sys

import nbformat
import pytest
from PIL import Image

from tests import changed
from tests.notebooks import keep_stored
from tests.repository import ROOT, make_course, make_repository

# A changed file, the notebooks that are stored for it, and the tests that run besides
# (this file, too, where a row names a notebook).
ROWS = """
utils/attention.py | | experiments parallel
conftest.py | |
notebooks/deleted.ipynb | |
notebooks/deeper/llama_itself.ipynb | notebooks/deeper/llama_itself.ipynb | changed
utils/checks/reader.py | | answers checks experiments mistakes parallel
notebooks/07_the_clinic.ipynb | notebooks/07_the_clinic.ipynb | changed clinic
utils/checks/catalogue.py | 00 | answers checks experiments mistakes parallel
tests/test_lab.py | | lab
tests/test_model.py | |
.ci/site.py | | site
CONTRIBUTING.md | | contributing
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_a_changed_file_selects_what_it_concerns(row):
    file, stored, long = (cell.strip() for cell in row.split("|"))
    notebooks, [quick, *others] = changed.plan([file])
    assert notebooks == stored.replace("00", changed.START).split()
    assert others == ([[*map(changed.TEST, long.split())]] if long else [])
    assert bool(quick) == file.endswith((".ipynb", ".md"))


def test_every_row_names_long_tests_and_every_text_test_is_there():
    long = {*map(changed.TEST, " ".join(changed.LONG_FOR.values()).split())}
    assert long <= {*changed.LONG}
    assert [t for t in [*long, *changed.TEXTS] if not (ROOT / t).exists()] == []


def test_what_calls_a_changed_drawing_is_stored_and_a_helper_named(
    tmp_path, monkeypatch
):
    make_repository(tmp_path)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    path = tmp_path / "utils/plots/chart.py"
    text = path.read_text(encoding="utf-8").replace("fig.", "fig .")
    path.write_text(text, encoding="utf-8")
    notebooks, helpers = changed.find_drawings("HEAD")
    assert "notebooks/06_multi_head_attention.ipynb" in notebooks
    assert "_axes_above_samples" in helpers and "heat" not in helpers
    assert "notebooks/01_tokens.ipynb" not in notebooks


def run(folder, *words):
    command = [sys.executable, "-m", "tests.changed", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_without_a_base_or_with_a_wrong_one_it_says_what_to_name(tmp_path):
    make_course(tmp_path)
    for words, reason in (
        ([], "no branch main is here"),
        (["x"], "no commit is named x"),
    ):
        code, text = run(tmp_path, *words)
        assert code == 2 and "for example HEAD" in text and reason in text


def test_nothing_changed_is_not_taken_for_a_change_that_holds(tmp_path):
    make_repository(tmp_path)
    code, text = run(tmp_path)
    assert code == 1 and "Nothing differs" in text and "(all)" in text


def test_a_syntax_error_is_reported_by_ruff_in_a_line_and_nothing_else_runs(tmp_path):
    make_repository(tmp_path)
    (tmp_path / "utils/files.py").write_text("def f(:\n")
    code, text = run(tmp_path)
    assert code == 1 and "utils/files.py:1:7" in text and "Traceback" not in text
    assert text.endswith(
        "Ruff found this; nothing else ran. `ruff format` corrects layout.\n"
    )


def encoded(color):
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), color).save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def notebook(text, color, *before):
    """Return a notebook with a cell that prints and draws, after cells with a code."""
    images = [f"data:image/png;base64,{encoded(state)}" for state in (color, "white")]
    html = f'<img src="{images[1]}"><script>"{images[0]}"</script>'  # as of a slider
    bundle = {"text/plain": "a", "image/png": encoded("white"), "text/html": html}
    cell = nbformat.v4.new_code_cell("draw()", metadata={"tolerance": 0.05})
    cell.outputs = [
        nbformat.v4.new_output("stream", text=text),
        nbformat.v4.new_output("display_data", bundle),
    ]
    cells = [*map(nbformat.v4.new_code_cell, before), cell]
    return nbformat.v4.new_notebook(cells=cells)


# The cell printed 1.00 before, and drew in red. Are its stored outputs kept?
@pytest.mark.parametrize(
    "text, color, before, redraw, is_kept",
    [
        ("1.02", "blue", [], False, True),
        ("1.02", "blue", [], True, False),
        ("1.02", "red", [], True, True),
        ("1.02", "blue", ["new code"], False, False),
        ("1.02", "red", ["new code"], False, True),
        ("1.20", "red", [], False, False),
    ],
)
def test_an_output_stays_if_it_agrees(text, color, before, redraw, is_kept):
    new, stored = notebook(text, color, *before), notebook("1.00", "red")
    renewed = keep_stored(new, stored, redraw)
    assert (new.cells[-1].outputs == stored.cells[0].outputs) is is_kept
    assert renewed == ([] if is_kept else new.cells[-1:])
