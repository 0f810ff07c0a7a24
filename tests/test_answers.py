"""Right answers pass, and wrong ones are told what their authors say is wrong."""

import functools
import itertools
import re
import tomllib
from collections import Counter

import pytest
import torch

from tests.answers import load_answers
from tests.exercises import EXERCISES
from tests.repository import ROOT
from utils.checks import check

ANSWERS = load_answers()
NAMES = tomllib.loads((ROOT / "tests/answers/names.toml").read_text("utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore")


def judge(exercise, answer):
    """Return the verdict on what a check tells an answer, and its message."""
    result = check(exercise.id, answer.answer)
    names = NAMES.get(exercise.name, {}).get(" + ".join(answer.mistakes), [])
    if result.passed:
        return "passed", result.message
    if result.diagnosis is None:
        return "unnamed", result.message
    if result.also is None:  # that the change makes every result right was tried
        names = [*names, "one-change"]
    count = len({result.diagnosis, result.also} & {*names})
    return ("misleading", "named", "both named")[count], result.message


@functools.cache
def verdicts(exercise):
    """Return (answer, verdict, message) for each answer to an exercise."""
    answers = [answer for answer in ANSWERS if answer.exercise == exercise.name]
    return [(answer, *judge(exercise, answer)) for answer in answers]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_pass_and_wrong_ones_do_not(exercise):
    for answer, verdict, message in verdicts(exercise):
        right = not answer.mistakes
        assert (verdict == "passed") == right, f"{answer.mistakes}: {message}"


def test_as_many_mistakes_are_named_as_the_readme_states_or_more(request):
    one, two = Counter(), Counter()
    for answer, verdict, _ in itertools.chain(*map(verdicts, EXERCISES.values())):
        if answer.mistakes:
            (one if len(answer.mistakes) == 1 else two)[verdict] += 1
    both, misleading = two["both named"], one["misleading"] + two["misleading"]
    single, either = one["named"] + one["both named"], two["named"] + both
    summary = (
        f"answers: of {one.total()} with one mistake {single} named, "
        f"of {two.total()} with two {either} one at least and {both} both, "
        f"{misleading} misled"
    )
    request.node.user_properties.append(("summary", summary))
    rows = (
        rf"wrote ({len(ANSWERS)}) answers",
        rf"\| {one.total()} with one mistake \| (\d+) get its name",
        rf"\| {two.total()} with two mistakes \| (\d+) get .* one, (\d+) of both",
        r"\| all \| (\d+) gets? a misleading message",
    )
    found = [re.search(row, README) for row in rows]
    assert all(found), "README.md states other numbers of answers"
    _, *stated = (int(number) for row in found for number in row.groups())
    assert single >= stated[0] and either >= stated[1] and both >= stated[2], summary
    assert misleading <= stated[3], summary


def test_the_readme_shows_what_a_check_prints():
    def attention(query, key, value):
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return weights @ value, weights

    message = check("4.1", attention).message
    assert message in README, message
