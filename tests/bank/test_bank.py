"""Every answer of the bank goes through its check."""

import pytest
from repository import ROOT

import bank
from utils.checks import check
from utils.checks.course import exercises

IDS = [exercise.id for exercise in exercises()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", bank.answers(), ids=lambda entry: entry.label)
def test_answer_is_judged_as_the_bank_says(entry, request, capsys):
    result = check(entry.exercise, entry.answer)
    record = request.node.user_properties.append
    if entry.right:
        record(("bank", "right passed" if result.passed else "right refused"))
        assert result.passed, result.message
        return
    record(("bank", "wrong passed" if result.passed else "wrong refused"))
    if entry.named and result.diagnosis == entry.slug:
        record(("bank", "wrong named"))
    assert not result.passed
    expected = entry.slug if entry.named else result.diagnosis
    assert result.diagnosis == expected, result.message


@pytest.mark.parametrize("id", IDS)
def test_bank_is_large_enough(id):
    mine = [entry for entry in bank.answers() if entry.exercise == id]
    assert sum(entry.right for entry in mine) >= 3
    assert len({entry.slug for entry in mine if not entry.right}) >= 8


README = ROOT / "README.md"


def test_the_readme_says_how_large_the_bank_is():
    assert "Over a thousand other answers" in README.read_text(encoding="utf-8")
    rights, wrongs, named = bank.counts()
    assert rights + wrongs > 1000
    assert named >= 0.95 * wrongs


def test_the_readme_shows_what_a_check_prints():
    unscaled = next(
        a for a in bank.answers() if a.answer.__name__ == "attention_unscaled"
    )
    assert check("4.1", unscaled.answer).message in README.read_text(encoding="utf-8")
