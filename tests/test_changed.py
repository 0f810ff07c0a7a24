"""What `python -m tests.changed` runs after a change."""

import pytest

from tests import changed
from tests.notebooks import START, find_notebooks
from tests.repository import ROOT


@pytest.fixture
def touched(monkeypatch):
    """Return what a change in a file touches that put `new` in the place of `old`."""

    def touched(name, new="", old=""):
        source = (ROOT / name).read_text(encoding="utf-8")
        assert new in source
        monkeypatch.setattr(changed, "git", lambda *words: source.replace(new, old))
        return changed.Touched([name], "HEAD")

    return touched


def names_of_tests(change):
    return {test.rpartition("/")[2] for test in change.pytest_runs()[0]}


def test_notebooks_and_tests_run_that_use_a_changed_function(touched):
    change = touched("utils/tokenizer.py", "def load_tokenizer(", "def other(")
    pages = find_notebooks()
    users = {page for page in pages if "load_tokenizer(" in page.read_text("utf-8")}
    assert users and users <= change.compare and len(change.compare) < 10
    change = touched("utils/tokenizer.py", "def decode_bpe(", "def other(")
    directly_or_not = {"test_tokenizer.py", "test_training_command.py"}
    assert directly_or_not <= names_of_tests(change)


def test_after_a_change_in_an_exercise_its_solution_and_the_answers_run(touched):
    change = touched("utils/checks/exercises/tokens.py")
    assert change.store == {START} and {"[1.1", "[1.2"} <= change.cases
    names = "notebooks/01_tokens.ipynb", "notebooks/solutions/01_solutions.ipynb"
    assert change.compare == {ROOT / name for name in names}
    assert "test_answers.py" in names_of_tests(change)
    change = touched("utils/checks/exercises/embeddings.py")
    assert ROOT / "notebooks/deeper/who_sat_on_whom.ipynb" in change.compare
