"""What the README says of the checks: how they judge answers that they do not know."""

import re
from pathlib import Path

import pytest
from repository import ROOT

from bank import second

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what every answer was told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_PROGRESS", str(tmp_path_factory.mktemp("progress")))
        patch.setattr("utils.checks.steps.LIMIT", 10.0)  # a slow machine says the same
        return second.judged()


pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_bank_is_as_it_was_written():
    sizes = [len(entry.mistakes) for entry in second.answers()]
    assert [sizes.count(number) for number in range(3)] == [153, 255, 227]


def test_right_answers_pass_and_wrong_ones_do_not(found):
    for exercise, mistakes, verdict, message in found:
        assert (verdict == "passed") == (not mistakes), f"{exercise} {message}"


def test_the_readme_states_the_score(found):
    one, two = second.counts(found, 1), second.counts(found, 2)
    both, misleading = two["both named"], one["misleading"] + two["misleading"]
    expected = one["named"] + one["both named"], both + two["named"], both, misleading
    text = " ".join(README.read_text(encoding="utf-8").split())
    said = re.search(
        r"Of 255 answers with one mistake, (\d+) .* of 227 with two, (\d+) .* at least"
        r".*, (\d+) of both.* and (\d+) were told",
        text,
    )
    assert said and tuple(map(int, said.groups())) == expected, f"state {expected}"
