"""The clinic: the same patients everywhere, told apart by the instruments alone."""

import itertools
import json
import re

import nbformat
import pytest
import torch

from tests.repository import ROOT
from utils import attention, clinic
from utils.checks import Result, records
from utils.checks.catalogue import PATIENTS
from utils.clinic import diagnose, patient, suspects, twin
from utils.clinic.instruments import measured
from utils.clinic.patients import KINDS, causes

NOTEBOOK = ROOT / "notebooks/07_the_clinic.ipynb"
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads


@pytest.mark.parametrize("number", [0, 1.5, "7", None])
def test_another_number_is_refused(number):
    with pytest.raises(ValueError, match=f"number of 1 or more, got {number!r}"):
        patient(number)


def test_a_layer_takes_no_more_tokens_than_it_says():
    assert patient(107)(torch.zeros(1, 16, 16)).shape == (1, 16, 16)
    with pytest.raises(ValueError, match=r"T up to 16; got .* shape \(1, 17, 16\)"):
        patient(107)(torch.zeros(1, 17, 16))


def test_every_suspect_occurs_and_now_and_then_somebody_is_healthy():
    for first, kind in zip((1, 100, 200), KINDS):
        found = {patient(number)._wrong for number in range(first, first + 30)}
        assert found == {frozenset(slugs) for slugs in causes(kind, two=False)}


def inputs_of(layer):
    count = 1 if layer.kind.masked else 3
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 2, 5, layer.kind.width, generator=generator)


def test_the_healthy_function_is_that_of_the_course():
    healthy = twin(patient(7))
    inputs = inputs_of(healthy)
    expected = attention.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(healthy(*inputs), expected)
    output, weights = healthy(*(part[1] for part in inputs))  # without a batch
    torch.testing.assert_close((output, weights), (expected[0][1], expected[1][1]))


OURS = {
    107: attention.CausalAttention(16, 16, 16, 0.0),
    207: attention.MultiHeadAttention(64, 64, 16, 0.0, 4),
}


@pytest.mark.parametrize("number", OURS)
def test_a_healthy_layer_is_that_of_the_course(number):
    healthy, ours = twin(patient(number)), OURS[number]
    ours.load_state_dict(healthy.state_dict())
    (x,) = inputs_of(healthy)
    expected = ours(x, need_weights=True)
    torch.testing.assert_close(healthy(x, need_weights=True), expected)
    torch.testing.assert_close(healthy(x), expected[0])


def test_the_right_slugs_pass_with_the_evidence_and_are_kept(capsys):
    for number in (*ONE_OF_EACH, *PATIENTS, 307, 407, 507):
        layer = patient(number)
        result = diagnose(layer, *layer._wrong)
        assert isinstance(result, Result)
        assert result.passed and result.diagnosis is None
        assert result.message == capsys.readouterr().out.strip()
        assert result.message.startswith(f"Patient {number}: right.")
        assert f"patient {number}" in records.load()
        for slug in layer._wrong:
            assert f"{slug}: {suspects(layer)[slug]}." in " ".join(
                result.message.split()
            )
            assert re.search(r"\d\.\d+ here", " ".join(result.message.split()))


@pytest.mark.parametrize("number", [2, 112, 203, 307, 413])
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


@pytest.mark.parametrize("slug", ["scale-mising", "mask-not-used", 7, ["a"]])
def test_an_unknown_slug_is_told_which_there_are(slug):
    result = diagnose(patient(7), slug)
    assert result.diagnosis == "no-such-suspect" and not result.passed
    said = " ".join(result.message.split())
    assert said == (
        f"Patient 7: not understood. {slug!r} is no suspect here. "
        f"Expected some of {', '.join(suspects(patient(7)))}."
    )


def test_what_the_folded_answers_diagnose_is_right():
    """Each names its patient, or follows a cell that asks about the last one made."""
    cells, number, answered = nbformat.read(NOTEBOOK, as_version=4).cells, None, []
    call = re.compile(r'`diagnose\((?:patient\((\d+)\)|layer)((?:, "[\w-]+")*)\)`')
    for cell in cells:
        made = re.search(r"^layer = patient\((\d+)\)$", cell.source, re.M)
        number = made[1] if made else number
        for named, slugs in call.findall(cell.source):
            slugs, answer = json.loads(f"[{slugs[2:]}]"), int(named or number)
            assert diagnose(patient(answer), *slugs).passed, answer
            answered.append(answer)
    assert sorted(answered) == sorted([*PATIENTS, 108, 200, 509])


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
