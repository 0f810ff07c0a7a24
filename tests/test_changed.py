"""What `tests.changed` runs after a change, and which stored outputs stay."""

import re

import nbformat
import pytest

from tests import changed
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
utils/checks/exercises/embeddings.py | store 00_start_here, compare 02_embeddings, [2.1
tests/small_layers.py | test_layers, test_latent
.ci/site.py | test_site
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_a_changed_file_selects_what_it_concerns(row, monkeypatch):
    monkeypatch.setattr(changed, "git", lambda *words: "")  # no file was there before
    file, expected = row.split(" | ")
    touched = changed.Touched([file], "HEAD")
    runs = touched.pytest_runs()
    selected = " ".join(word for run in runs for word in run or ["everything"])
    selected += " ".join(f"store {path.stem}" for path in touched.store)
    selected += " ".join(f"compare {path.stem}" for path in touched.compare)
    assert all(words in selected for words in expected.split(", "))
    assert ("everything" in expected) == ("everything" in selected)


BEFORE = 'def f(a):\n    """Do."""\n    b = [c for c in a] + x\n    return b\n'


@pytest.mark.parametrize("old", ["b", "Do", "a", "x"])
@pytest.mark.parametrize("new", ["c", "other"])
def test_only_another_local_variable_or_docstring_is_no_change(old, new):
    sources = BEFORE, re.sub(rf"\b{old}\b", new, BEFORE)
    before, after = (changed.code_by_name(source)["f"] for source in sources)
    is_same = changed.bytecode(before) == changed.bytecode(after)
    assert is_same is (old in ("b", "Do"))


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
