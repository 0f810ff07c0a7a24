"""Each test pins one sentence about the diagnosis, and the notebook's own ones."""

import itertools
import json
import re

import nbformat
import pytest
import torch
from clinic_cases import NOTEBOOK, ONE_OF_EACH

from utils import clinic
from utils.checks import Result, progress, records
from utils.checks.course import CASES
from utils.clinic import diagnose, patient, suspects
from utils.clinic.instruments import measured
from utils.clinic.patients import SUSPECTS

# ---- the diagnosis ------------------------------------------------------------------


def test_the_right_slugs_pass_with_the_evidence_and_are_kept(capsys):
    for number in (*ONE_OF_EACH, *CASES, 307, 407, 507):
        layer = patient(number)
        result = diagnose(layer, *layer._wrong)
        assert isinstance(result, Result)
        assert result.passed and result.diagnosis is None
        assert result.message == capsys.readouterr().out.strip()
        assert result.message.startswith(f"Patient {number}: right.")
        assert f"patient {number}" in records.load()
        for slug in layer._wrong:
            assert f"{slug}: {SUSPECTS[slug].line}." in " ".join(result.message.split())
            assert re.search(r"\d\.\d+ here", " ".join(result.message.split()))


@pytest.mark.parametrize("number", [1, 2, 108, 112, 200, 203, 307, 413, 509])
def test_every_other_set_of_slugs_is_refused_with_a_number(number):
    layer = patient(number)
    known = [*suspects(layer)]
    sets = [(), *((s,) for s in known), *itertools.combinations(known[:6], 2)]
    for slugs in sets:
        if {*slugs} == layer._wrong:
            continue
        result = diagnose(layer, *slugs)
        assert not result.passed
        assert result.diagnosis in ("wrong", "half-right"), slugs
        assert re.search(r"\d here, \d+\.\d+ ", result.message), slugs
    assert records.load() == set()


def test_half_right_is_said_to_be_half_right():
    result = diagnose(patient(413), "scale-missing")
    assert result.diagnosis == "half-right"
    assert "scale-missing is right. Something else is wrong, too." in result.message
    result = diagnose(patient(413), "scale-missing", "keys-for-values")
    assert result.diagnosis == "half-right"
    result = diagnose(patient(2), "softmax-twice", "scale-missing")
    assert "softmax-twice is right. The rest is not." in result.message


@pytest.mark.parametrize("slug", ["scale-mising", "mask-not-used", 7, None, ["a"]])
def test_an_unknown_slug_is_told_which_there_are(slug):
    result = diagnose(patient(7), slug)
    assert result.diagnosis == "no-such-suspect" and not result.passed
    said = " ".join(result.message.split())
    meant = " Did you mean scale-missing?" if slug == "scale-mising" else ""
    assert said == (
        f"Patient 7: not understood. {slug!r} is no suspect here.{meant} "
        f"Expected some of {', '.join(suspects(patient(7)))}."
    )


def test_progress_counts_the_cases_of_the_notebook(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "utils.plots.course_map", lambda status, title: drawn.append((status, title))
    )
    diagnose(patient(10), "keys-times-queries")
    diagnose(patient(2), "softmax-twice")  # not among the cases
    assert progress() == ["patient 10", "patient 2"]
    row = next(row for row in drawn[0][0] if row[0] == 12)
    assert row[1:2] + row[3:] == ("The clinic", 1, 2, [6])
    assert drawn[0][1].startswith("1 of ")


# ---- the notebook -------------------------------------------------------------------


def test_the_cases_are_solved_in_their_folded_answers():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    calls = re.findall(r"`diagnose\(patient\((\d+)\)((?:, \"[\w-]+\")*)\)`", text)
    assert [int(number) for number, _ in calls] == [*CASES]
    for number, slugs in calls:
        slugs = json.loads(f"[{slugs[2:]}]")
        assert diagnose(patient(int(number)), *slugs).passed, number


def test_a_call_that_the_reader_makes_is_answered_in_the_fold_below_it():
    cells, called, number = nbformat.read(NOTEBOOK, as_version=4).cells, [], None
    for cell, below in zip(cells, cells[1:]):
        found = re.search(r"^layer = patient\((\d+)\)$", cell.source, re.M)
        number = int(found[1]) if found else number
        if cell.source == "diagnose(layer, ...)":
            said = re.search(r"`diagnose\(layer, (.*?)\)`", below.source)[1]
            assert diagnose(patient(number), *json.loads(f"[{said}]")).passed, number
            called.append(number)
    assert called == [108, 200, 509]


def test_the_numbers_in_the_folded_answers_are_measured():
    text = "\n".join(cell.source for cell in nbformat.read(NOTEBOOK, 4).cells)
    moved = measured(patient(10), "permute_tokens")["keys and values in reverse order"]
    assert f"`permute_tokens`: outputs move by {moved:.2f}." in text
    least = measured(patient(108), "row_sums")["smallest row"]
    assert f"one row sums to {least:.2f}." in text
    layer, x = patient(200), torch.randn(1, 8, 64)
    mean = 'twin(layer, "heads-share-weights")'
    assert f"`(layer(x) - {mean}(x)).abs().max()` is 0." in text
    assert torch.equal(layer(x), clinic.twin(layer, "heads-share-weights")(x))
