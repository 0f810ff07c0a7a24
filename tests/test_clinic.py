"""The clinic: the same patients everywhere, told apart by the instruments alone."""

import itertools
import json
import re

import nbformat
import pytest
import torch

from tests.repository import ROOT
from utils import attention
from utils.checks import records
from utils.checks.catalogue import PATIENTS
from utils.clinic import diagnose, patient, suspects, twin

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


def test_the_right_slugs_pass_and_are_kept():
    for number in (*ONE_OF_EACH, *PATIENTS, 307, 407, 507):
        layer = patient(number)
        result = diagnose(layer, *layer._wrong)
        assert result.passed and result.diagnosis is None
        assert f"patient {number}" in records.load()


@pytest.mark.parametrize("number", [2, 203, 413])
def test_every_other_set_of_slugs_is_refused(number):
    layer = patient(number)
    known = [*suspects(layer)]
    sets = [(), *((s,) for s in known), *itertools.combinations(known[:6], 2)]
    for slugs in sets:
        if {*slugs} != layer._wrong:
            result = diagnose(layer, *slugs)
            assert result.diagnosis in ("wrong", "half-right"), slugs
    assert diagnose(layer, "scale-mising").diagnosis == "no-such-suspect"
    assert records.load() == set()


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
