"""Each test pins one claim about `python -m tests.changed`."""

import sys

import pytest

from tests import changed
from tests.notebooks import START, find_notebooks
from tests.repository import ROOT


def test_a_notebook_is_stored_and_its_form_tested():
    name = "notebooks/01_tokens.ipynb"
    assert changed.affected_notebooks([name], "HEAD") == ([ROOT / name], [])
    assert changed.affected_cases([name]) == ["01_tokens"]
    names = {path.name for path in changed.affected_tests([name])}
    assert "test_repository.py" in names and "test_plots.py" not in names


@pytest.mark.parametrize(
    "old, new, name",
    [
        ("def decode_bpe(", "def decode_bpe(*unused, ", "decode_bpe"),
        ("\nimport ", "\n# a comment\nimport ", None),
    ],
)
def test_notebooks_that_use_a_changed_function_are_compared(
    monkeypatch, old, new, name
):
    source = (ROOT / "utils/tokenizer.py").read_text(encoding="utf-8")
    assert old in source
    monkeypatch.setattr(changed, "git", lambda *words: source.replace(old, new))
    store, compare = changed.affected_notebooks(["utils/tokenizer.py"], "HEAD")
    users = [n for n in find_notebooks() if name and name in n.read_text("utf-8")]
    assert (store, compare) == ([], sorted(users))


def names_of_tests(module):
    return {path.name for path in changed.affected_tests([module])}


MODULES = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("utils/**/*.py")]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_tests_that_run_after_a_change(module):
    tests = {name for name in names_of_tests(module) if name.startswith("test_")}
    assert tests - {"test_repository.py", "test_drift.py"}


def test_a_module_runs_its_examples_and_the_tests_of_all_that_imports_it():
    direct = {"validation.py", "test_embeddings.py", "test_attention.py"}
    through_others = {"test_layers.py", "test_training_command.py", "test_clinic.py"}
    assert direct | through_others <= names_of_tests("utils/validation.py")
    assert "test_training_command.py" in names_of_tests("utils/data.py")
    assert "test_answers.py" in names_of_tests("tests/answers/tokens.py")
    assert "test_stored.py" in names_of_tests("tests/notebooks.py")


def test_what_the_quick_run_leaves_out_runs_after_a_change_in_its_part():
    of_checks = {"test_answers.py", "test_checks.py", "test_steps.py"}
    of_notebooks = {"test_lab.py", "test_setup.py", "test_site.py"}
    assert names_of_tests("utils/checks/steps/masks.py") >= of_checks
    assert names_of_tests("tests/notebooks.py") >= of_notebooks
    assert names_of_tests("utils/launch.py") >= {"test_launch.py", "test_parallel.py"}


def test_after_a_change_in_an_exercise_its_solution_is_compared(monkeypatch):
    monkeypatch.setattr(changed, "changed_names", lambda name, base: set())
    file = "utils/checks/exercises/tokens.py"
    assert changed.affected_cases([file]) == ["[1.1", "[1.2"]
    store, compare = changed.affected_notebooks([file], "HEAD")
    assert store == [START]
    names = "notebooks/01_tokens.ipynb", "notebooks/solutions/01_solutions.ipynb"
    assert compare == [ROOT / name for name in names]


@pytest.mark.parametrize("fails", [True, False])
def test_it_says_whether_something_failed(monkeypatch, capsys, fails):
    monkeypatch.setattr(sys, "argv", ["changed", "HEAD"])
    monkeypatch.setattr(changed, "git", lambda *words: "a commit")
    monkeypatch.setattr(changed, "changed_files", lambda base: ["LICENSE"])
    monkeypatch.setattr(changed, "run_pytest", lambda *words: fails)
    assert changed.main() == fails
    ending = "Something failed" if fails else "All that it touches holds"
    assert ending in capsys.readouterr().out
