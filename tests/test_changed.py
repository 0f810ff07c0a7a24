"""What `tests.changed` runs after a change, and which stored outputs stay."""

import re

import nbformat
import pytest

from tests import changed, dependencies
from tests.notebooks import keep_stored

# A file that is new, and a part of what runs for it.
ROWS = """
data/story.txt | everything
data/tales/model.safetensors | everything
requirements.txt | everything
conftest.py | everything
.ci/run | everything
notebooks/deleted.ipynb | everything
notebooks/08_tiny_gpt.ipynb | store 08_tiny_gpt, compare copying_heads, test_seeds
utils/data.py | compare 08_tiny_gpt, test_borders, test_tokenizer
utils/plots/chart.py | store 10_positions, test_plots
utils/plots/theme.py | store 10_positions, store 00_start_here
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
    runs = plan.pytest_runs()
    selected = " ".join(word for run in runs for word in run or ["everything"])
    selected += " ".join(f"store {path.stem}" for path in plan.store)
    selected += " ".join(f"compare {path.stem}" for path in plan.compare)
    assert all(words in selected for words in expected.split(", "))
    assert ("everything" in expected) == ("everything" in selected)


def test_what_other_files_draw_with_a_changed_one_is_redrawn(monkeypatch):
    monkeypatch.setattr(changed, "git", lambda *words: "")
    plan = changed.Plan(["utils/plots/chart.py"], "HEAD")
    # Of the module itself, of a module of `utils`, and of a notebook.
    assert plan.redrawn >= {"heat", "instrument", "draw_stream"}


BEFORE = 'def f(a):\n    """Do."""\n    b = [c for c in a] + x\n    return b\n'


@pytest.mark.parametrize("old", ["b", "Do", "a", "x"])
@pytest.mark.parametrize("new", ["c", "other"])
def test_only_another_local_variable_or_docstring_is_no_change(old, new, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(re.sub(rf"\b{old}\b", new, BEFORE))
    assert dependencies.differ(path, BEFORE) is (old in ("a", "x"))


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
