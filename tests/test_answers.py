"""Right answers pass, and wrong ones get the diagnoses of the sample in `answers`."""

import pytest
import torch

from tests.answers import ANSWERS
from tests.every_exercise import EXERCISES
from tests.repository import ROOT
from utils.checks import check

README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_pass_and_wrong_ones_get_their_diagnoses(exercise):
    for answer, names in ANSWERS:
        if answer.__name__ == exercise.name:
            result = check(exercise.id, answer)
            found = {result.diagnosis, result.also} - {None}
            assert found == {*names}, result.message
            assert result.passed == (not names), result.message


def test_the_readme_shows_what_a_check_prints():
    def attention(query, key, value):
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return weights @ value, weights

    message = check("4.1", attention).message
    assert message in README, message
