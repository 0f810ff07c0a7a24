"""Each test pins one claim about `python -m tests.changed`."""

import sys

import pytest

from tests import changed
from tests.repository import ROOT, tool

TOKENIZER = ROOT / "utils/tokenizer.py"


def test_a_notebook_is_stored_and_its_solutions_and_answers_are_compared():
    path = ROOT / "notebooks/01_tokens.ipynb"
    [solutions] = (ROOT / "notebooks/solutions").glob("01_*.ipynb")
    plan = changed.make_plan([path], "HEAD")
    assert (plan.execute, plan.tests) == ({path}, set())
    assert plan.compare == {solutions}
    assert plan.cases == {path.stem, solutions.stem, "[1.1", "[1.2"}


@pytest.mark.parametrize(
    "old, new, name",
    [
        ("def decode_bpe(", "def decode_bpe(*unused, ", "decode_bpe"),
        ("\nimport ", "\n# a comment\nimport ", None),
    ],
)
def test_a_function_runs_its_examples_its_tests_and_the_notebooks_that_import_it(
    monkeypatch, old, new, name
):
    source = TOKENIZER.read_text(encoding="utf-8")
    assert old in source
    monkeypatch.setattr(changed, "git", lambda *words: source.replace(old, new))
    plan = changed.make_plan([TOKENIZER], "HEAD")
    assert {TOKENIZER, ROOT / "tests/test_tokenizer.py"} <= plan.tests
    assert (plan.execute, plan.cases) == (set(), set())
    for path in tool.find_notebooks():
        text = path.read_text(encoding="utf-8")
        is_user = bool(name) and name in text and "utils.tok" in text
        assert (path in plan.compare) == is_user, path.name


def test_steps_judge_the_answers_of_each_exercise_that_imports_them():
    plan = changed.make_plan([ROOT / "utils/checks/steps/heads.py"], "HEAD")
    assert "[6.1" in plan.cases and "[1.1" not in plan.cases
    assert not plan.execute


@pytest.mark.parametrize("fails", [True, False])
def test_it_says_whether_something_failed(monkeypatch, capsys, fails):
    monkeypatch.setattr(sys, "argv", ["changed", "HEAD"])
    monkeypatch.setattr(changed, "git", lambda *words: "a commit")
    monkeypatch.setattr(changed, "changed_files", lambda base: [ROOT / "LICENSE"])
    monkeypatch.setattr(changed, "run_pytest", lambda *words: fails)
    assert changed.main() == fails
    ending = "Something failed" if fails else "All that it touches holds"
    assert ending in capsys.readouterr().out
