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
    assert [sizes.count(number) for number in range(3)] == [123, 195, 170]


def test_right_answers_pass_and_wrong_ones_do_not(found):
    for exercise, mistakes, verdict, message in found:
        assert (verdict == "passed") == (not mistakes), f"{exercise} {message}"


def test_the_readme_states_the_score(found):
    one, two = second.counts(found, 1), second.counts(found, 2)
    misleading = one.get("misleading", 0) + two.get("misleading", 0)
    text = " ".join(README.read_text(encoding="utf-8").split())
    said = re.search(
        r"Of 195 answers with one mistake, (\d+) .* of 170 with two, (\d+) .* "
        r"and (\d+) were told",
        text,
    )
    expected = one["named"], two["named"], misleading
    assert said, f"state {expected}"
    assert tuple(map(int, said.groups())) == expected
    assert one["named"] >= 0.9 * 195
    assert two["named"] >= 0.7 * 170
