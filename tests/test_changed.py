"""What `tests.changed` runs after a change, and which stored outputs stay."""

import re

import nbformat
import pytest

from tests import changed, dependencies
from tests.notebooks import keep_stored

# A file that is new, and a part of what runs for it.
ROWS = """
data/story.txt | everything
conftest.py | everything
notebooks/deleted.ipynb | everything
notebooks/08_tiny_gpt.ipynb | store 08_tiny_gpt, compare copying_heads, test_seeds
utils/data.py | compare search_and_summary, more 08_tiny_gpt, test_borders
utils/plots/theme.py | store 10_positions, store 00_start_here, test_plots
utils/checks/shared/masks.py | test_mistakes, test_checks
utils/checks/exercises/embeddings.py | store 00_start_here, compare 02_embeddings
tests/small_layers.py | test_layers, test_latent
.ci/site.py | test_site
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_a_changed_file_selects_what_it_concerns(row, monkeypatch):
    monkeypatch.setattr(changed, "git", lambda *words: "")  # no file was there before
    file, expected = row.split(" | ")
    plan = changed.Plan([file], "HEAD")
    selected = " ".join(w for run in plan.pytest_runs() for w in run or ["everything"])
    for verb in ("store", "compare", "more"):
        selected += " ".join(f"{verb} {path.stem}" for path in getattr(plan, verb))
    assert all(words in selected for words in expected.split(", "))
    assert ("everything" in expected) == ("everything" in selected)
    assert len(plan.compare) <= 3


def test_what_other_files_draw_with_a_changed_one_is_redrawn(monkeypatch):
    monkeypatch.setattr(changed, "git", lambda *words: "")
    plan = changed.Plan(["utils/plots/chart.py"], "HEAD")
    # Of the module itself, of a module of `utils`, and of a notebook.
    assert plan.redrawn >= {"heat", "replace_tokens", "draw_stream"}


def test_only_notebooks_with_a_figure_of_the_changed_function_are_stored(monkeypatch):
    path = changed.ROOT / "utils/plots/scenes.py"
    before = path.read_text(encoding="utf-8").replace(
        "0.75, words, query", "0.7, words, query"
    )
    monkeypatch.setattr(changed, "git", lambda *words: before)
    plan = changed.Plan(["utils/plots/scenes.py"], "HEAD")
    assert {page.stem for page in plan.store} == {"attention_in_an_hour"}


BEFORE = 'def f(a):\n    """Do."""\n    b = [c for c in a] + x\n    return b\n'


@pytest.mark.parametrize("old", ["b", "Do", "a", "x"])
@pytest.mark.parametrize("new", ["c", "other"])
def test_only_another_local_variable_or_docstring_is_no_change(old, new, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(re.sub(rf"\b{old}\b", new, BEFORE))
    assert dependencies.differ(path, BEFORE) is (old in ("a", "x"))


def test_a_magic_is_code_and_what_is_no_python_a_change(tmp_path):
    path = tmp_path / "page.ipynb"
    cells = [nbformat.v4.new_code_cell(line) for line in ("%time f()", "!ls")]
    text = nbformat.writes(nbformat.v4.new_notebook(cells=cells))
    path.write_text(text)
    assert dependencies.used_by(path) == set() and not dependencies.differ(path, text)
    assert dependencies.differ(path, text.replace("!ls", "f("))


def notebook(text):
    output = nbformat.v4.new_output("stream", text=text)
    cell = nbformat.v4.new_code_cell("print(f())", outputs=[output])
    cell.metadata["tolerance"] = 0.05
    return nbformat.v4.new_notebook(cells=[cell])


# What f() gave before is 1.00; is that kept, and if not, is there a reason?
@pytest.mark.parametrize(
    "new, names, kept, explained",
    [("1.02", [], True, True), ("1.2", [], False, False), ("1.2", ["f"], False, True)],
)
def test_a_stored_output_stays_if_the_new_one_agrees(new, names, kept, explained):
    ran, stored = notebook(new), notebook("1.00")
    assert (keep_stored(ran, stored, names) == []) is explained
    assert (ran.cells[0].outputs == stored.cells[0].outputs) is kept
