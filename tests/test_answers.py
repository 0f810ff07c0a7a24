"""Right answers pass, and wrong ones get the diagnoses of the sample in `answers`."""

from collections import Counter

import pytest
import torch

from tests.answers import ANSWERS
from tests.exercises import EXERCISES
from tests.repository import ROOT
from utils.checks import check
from utils.checks.examine import FINDERS

README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore")


def diagnoses(result):
    return {result.diagnosis, result.also} - {None}


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_pass_and_wrong_ones_get_their_diagnoses(exercise):
    for answer, names in ANSWERS:
        if answer.__name__ == exercise.name:
            result = check(exercise.id, answer)
            assert diagnoses(result) == {*names}, result.message
            assert result.passed == (not names), result.message


@pytest.mark.parametrize("finder", FINDERS, ids=lambda finder: finder.__name__)
def test_an_answer_of_the_sample_needs_each_way_to_find_a_mistake(finder, monkeypatch):
    others = [other for other in FINDERS if other is not finder]
    monkeypatch.setattr("utils.checks.examine.FINDERS", others)
    ids = {exercise.name: id for id, exercise in EXERCISES.items()}
    assert any(
        diagnoses(check(ids[answer.__name__], answer)) != {*names}
        for answer, names in ANSWERS
    )


def test_the_readme_counts_the_answers_of_the_sample():
    count = Counter(len(names) for _, names in ANSWERS)
    numbers = f"{count[0]} right ones, {count[1]} with one mistake and {count[2]} with"
    assert f"{len(ANSWERS)} answers: {numbers} two" in " ".join(README.split())


def test_the_readme_shows_what_a_check_prints():
    def attention(query, key, value):
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return weights @ value, weights

    message = check("4.1", attention).message
    assert message in README, message
