"""Right answers pass, and wrong ones are told what their authors say is wrong."""

import re
from collections import Counter

import pytest
import torch

from tests import answers
from tests.answers import strangers
from tests.exercises import EXERCISES
from tests.repository import ROOT
from utils.checks import check

IDS = {exercise.name: id for id, exercise in EXERCISES.items()}
OURS, THEIRS = answers.answers(answers), answers.answers(strangers)
README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore")


def name_of(entry):
    return f"{IDS[entry.exercise]}-{entry.answer.__name__}"


@pytest.mark.parametrize("entry", OURS, ids=name_of)
def test_a_right_answer_passes(entry):
    result = check(IDS[entry.exercise], entry.answer)
    assert result.passed, result.message


def test_every_exercise_has_right_answers_in_three_styles():
    counts = Counter(entry.exercise for entry in OURS + THEIRS if not entry.mistakes)
    assert all(counts[name] >= 3 for name in IDS), counts


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Return (answer, verdict, message) for each answer of the strangers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_PROGRESS", str(tmp_path_factory.mktemp("progress")))
        return [(entry, *strangers.judge(entry)) for entry in THEIRS]


def test_of_strangers_answers_right_ones_pass_and_wrong_ones_do_not(verdicts):
    for entry, verdict, message in verdicts:
        right = not entry.mistakes
        assert (verdict == "passed") == right, f"{entry.mistakes}: {message}"


def test_as_many_mistakes_are_named_as_the_readme_states_or_more(verdicts, request):
    one, two = strangers.scoreboard(
        [(entry, verdict) for entry, verdict, _ in verdicts]
    )
    both, misleading = two["both named"], one["misleading"] + two["misleading"]
    single, either = one["named"] + one["both named"], two["named"] + both
    summary = (
        f"strangers' answers: of {one.total()} with one mistake {single} named, "
        f"of {two.total()} with two {either} one at least and {both} both, "
        f"{misleading} misled"
    )
    request.node.user_properties.append(("summary", summary))
    rows = (
        rf"wrote ({len(verdicts)}) answers",
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
