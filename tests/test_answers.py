"""Right answers pass, and wrong ones get the diagnoses of the sample in `answers`."""

import pytest

from tests.answers import ANSWERS
from tests.every_exercise import EXERCISES
from utils.checks import check

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_pass_and_wrong_ones_get_their_diagnoses(exercise):
    for answer, names in ANSWERS:
        if answer.__name__ == exercise.name:
            result = check(exercise.id, answer)
            diagnoses = {result.diagnosis, result.also} - {None}
            assert diagnoses == {*names}, result.message
            assert result.passed == (not names), result.message
