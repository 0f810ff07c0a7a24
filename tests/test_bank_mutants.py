"""Right answers with one operator changed: the tool, and one exercise of all."""

import ast

import pytest

from tests import bank_mutants
from utils.checks import limit
from utils.checks.course import exercises


def test_each_mutant_changes_one_operator_or_number():
    tree = ast.parse("def f(x):\n    return not x[0] < 2 * 3.5 and True")
    lines = [line.split(" -> ")[1] for line in bank_mutants.mutants(tree)]
    assert sorted(line.removeprefix("return ") for line in lines) == [
        "not x[-1] < 2 * 3.5 and True",
        "not x[0] < 1 * 3.5 and True",
        "not x[0] < 2 * 2.5 and True",
        "not x[0] < 2 * 3.5 and False",
        "not x[0] < 2 * 3.5 or True",
        "not x[0] < 2 * 4.5 and True",
        "not x[0] < 2 / 3.5 and True",
        "not x[0] < 3 * 3.5 and True",
        "not x[0] <= 2 * 3.5 and True",
        "not x[0] > 2 * 3.5 and True",
        "not x[1] < 2 * 3.5 and True",
        "x[0] < 2 * 3.5 and True",
    ]
    assert ast.unparse(tree).endswith("return not x[0] < 2 * 3.5 and True")


@pytest.mark.filterwarnings("ignore")
def test_the_mutants_of_an_exercise_are_refused_or_listed(capsys, monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.3)  # and back
    assert bank_mutants.main(("1.2",)) == []
    assert " mutants, 1 pass in " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_a_missing_case_and_a_needless_line_are_told(monkeypatch, capsys):
    monkeypatch.setattr(limit, "SECONDS", 0.3)
    monkeypatch.setattr(bank_mutants, "known", lambda: ["1.2 no such answer"])
    names = [line.split(":")[0] for line in bank_mutants.main(("1.2",))]
    assert names == ["1.2 windows_unfold", "1.2 no such answer"]
    said = capsys.readouterr().out
    assert "passes: 1.2 windows_unfold: rows = " in said
    assert "listed, but refused: 1.2 no such answer" in said


def test_what_is_listed_belongs_to_an_exercise():
    ids = {exercise.id for exercise in exercises()}
    assert {line.split()[0] for line in bank_mutants.known()} <= ids
