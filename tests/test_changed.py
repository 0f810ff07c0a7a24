"""Each test pins one claim about `python -m tests.changed`."""

import json
import sys

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


def test_a_notebook_is_stored_and_its_form_tested(touched):
    name = "notebooks/01_tokens.ipynb"
    change = touched(name)
    assert (change.store, change.compare) == ({ROOT / name}, set())
    assert change.pytest_runs()[1][-1] == "01_tokens"
    assert "test_plots.py" not in names_of_tests(change)


LOCAL = (
    "heads = x.reshape(*x.shape[:-1], num_heads, width // num_heads)  # (B, T, H, K)"
)
LOCAL += "\n    return heads."


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("\nimport ", "\n# a comment\nimport "),
        ('"""Give each head', '"""Give a head'),
        (LOCAL, LOCAL.replace(" heads", " parts").replace("heads =", "parts =")),
    ],
)
def test_comments_docstrings_and_the_names_of_locals_touch_nothing(touched, new, old):
    change = touched("utils/attention.py", new, old)
    assert (change.store, change.compare) == (set(), set())
    assert names_of_tests(change) == {"attention.py", "test_repository.py"}


@pytest.mark.parametrize(
    ("name", "function", "verb"),
    [
        ("utils/tokenizer.py", "decode_bpe", "compare"),
        ("utils/plots/scenes.py", "looks", "store"),
    ],
)
def test_notebooks_run_that_call_a_changed_function(touched, name, function, verb):
    change = touched(name, f"def {function}(", "def other(")
    called = f"{function}("
    users = {page for page in find_notebooks() if called in page.read_text("utf-8")}
    assert users and users <= getattr(change, verb) and len(change.compare) < 10
    assert change.redrawn >= ({function} if verb == "store" else set())


MODULES = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("utils/**/[!_]*.py")]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_tests_that_run_after_a_change(touched, module, monkeypatch):
    monkeypatch.setattr(changed, "changed_names", changed_everything)
    tests = {name for name in names_of_tests(touched(module)) if "test_" in name}
    assert tests - {"test_repository.py", "test_drift.py"}


def changed_everything(path, before):
    names = changed.definitions(path.read_text(encoding="utf-8"))
    return {changed.qualified(path, name) for name in names if name}


def test_tests_run_that_use_a_changed_name_directly_or_through_others(touched):
    change = touched("utils/validation.py", "def check_divisible(", "def f(")
    of_library = {"validation.py", "test_attention.py", "test_layers.py"}
    assert of_library | {"test_training_command.py"} <= names_of_tests(change)
    change = touched("utils/checks/examine.py", "def examine(", "def f(")
    assert {"test_answers.py", "test_checks.py"} <= names_of_tests(change)


def test_after_a_change_in_an_exercise_its_solution_and_the_answers_run(touched):
    change = touched("utils/checks/exercises/tokens.py")
    assert change.store == {START} and {"[1.1", "[1.2"} <= change.cases
    names = "notebooks/01_tokens.ipynb", "notebooks/solutions/01_solutions.ipynb"
    assert change.compare == {ROOT / name for name in names}
    assert "test_answers.py" in names_of_tests(change)


PAGE = "notebooks/01_tokens.ipynb"


def test_a_call_after_a_failure_repeats_what_failed(monkeypatch, capsys, tmp_path):
    ran, fails = [], ["pytest"]
    monkeypatch.setattr(sys, "argv", ["changed"])
    monkeypatch.setattr(changed, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(changed, "RECORD", tmp_path / "cache/record.json")
    monkeypatch.setattr(changed, "git", lambda *words, **env: "abc")
    monkeypatch.setattr(changed, "files_between", lambda base, tree: ["LICENSE"])
    monkeypatch.setattr(
        changed, "run", lambda *words: ran.append(words) or words[0] in fails
    )
    assert changed.main()
    noted = tmp_path / "cache/v/cache/lastfailed"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({f"{PAGE}::Cell 3": True, f"{PAGE}::Cell 4": True}))
    fails.clear()
    assert not changed.main()
    assert [words[-2:] for words in ran if "--full" in words] == [("--full", PAGE)]
    first, second = capsys.readouterr().out.split("The next call begins with it.\n")
    assert "Something failed" in first and second.endswith(
        "All that it touches holds.\n"
    )
    assert not noted.exists()
