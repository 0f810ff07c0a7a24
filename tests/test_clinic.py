"""The clinic: the same patients everywhere, told apart by the instruments alone."""

import re

import pytest
import torch
from clinic_cases import ONE_OF_EACH

from utils import attention, clinic
from utils.clinic import diagnose, patient, suspects, twin
from utils.clinic.instruments import INSTRUMENTS
from utils.clinic.patients import KINDS, SUSPECTS, causes

# ---- the patients -------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, 1.5, "7", True, None])
def test_another_number_is_refused(number):
    expected = re.escape(f"expected a number of 1 or more, got {number!r}")
    with pytest.raises(ValueError, match=f"^{expected}$"):
        patient(number)


def test_every_suspect_occurs_and_now_and_then_somebody_is_healthy():
    for first, kind in zip((1, 100, 200), KINDS):
        found = {patient(number)._wrong for number in range(first, first + 30)}
        assert found == {frozenset(slugs) for slugs in causes(kind, two=False)}


# ---- what a healthy layer is --------------------------------------------------------


def inputs_of(layer, tokens=5):
    """Return random inputs of a layer."""
    count = 1 if layer.kind.masked else 3
    generator = torch.Generator().manual_seed(0)
    return torch.randn(count, 2, tokens, layer.kind.build[0], generator=generator)


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


@pytest.mark.parametrize("number", [*ONE_OF_EACH, 307, 407, 507])
def test_a_patient_runs_on_any_length_and_takes_gradients(number):
    for tokens in (1, 2, 7):
        layer = patient(number)
        inputs = inputs_of(layer, tokens).requires_grad_()
        output = layer(*inputs)
        output = output if layer.kind.masked else output[0]
        assert output.shape == inputs[0].shape
        output.square().sum().backward()
        assert inputs.grad[0].isfinite().all()


@pytest.mark.parametrize(
    "number, shapes, got",
    [
        (7, [(5, 16)], "(5, 16)"),
        (7, [(5, 16), (5, 16), (6, 16)], "(5, 16), (5, 16), (6, 16)"),
        (7, [(2, 5, 16)] * 2, "(2, 5, 16), (2, 5, 16)"),
        (107, [(2, 5, 15)], "(2, 5, 15)"),
        (107, [(2, 17, 16)], "(2, 17, 16)"),
        (207, [], "nothing"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(number, shapes, got):
    layer = patient(number)
    with pytest.raises(ValueError) as error:
        layer(*map(torch.zeros, shapes))
    assert str(error.value) == f"expected {layer.kind.takes}; got {got}"


# ---- suspects -----------------------------------------------------------------------


def test_suspects_are_named_in_plain_words_for_each_kind():
    assert {slug for n in ONE_OF_EACH for slug in suspects(patient(n))} == {*SUSPECTS}
    assert all(15 < len(known.line) < 50 for known in SUSPECTS.values())


def test_a_twin_has_the_same_weights_and_the_steps_asked_for():
    sick, healthy = twin(patient(107), "mask-not-used"), twin(patient(107))
    torch.testing.assert_close(sick.state_dict(), healthy.state_dict())
    assert sick._wrong == {"mask-not-used"} and not healthy._wrong


def test_a_twin_with_what_cannot_be_wrong_is_refused():
    with pytest.raises(ValueError) as error:
        twin(patient(7), "mask-not-used")
    known = "scale-missing, divided-by-width, keys-times-queries, "
    known += "softmax-over-queries, softmax-twice, keys-for-values"
    assert str(error.value) == f"expected suspects among {known}; got mask-not-used"


@pytest.mark.parametrize(
    "function",
    [suspects, twin, diagnose, clinic.train_on_words, clinic.training_curve]
    + [getattr(clinic, name) for name in INSTRUMENTS],
)
def test_what_is_no_patient_is_refused(function):
    with pytest.raises(ValueError) as error:
        function(torch.nn.Linear(3, 2))
    linear = "Linear(in_features=3, out_features=2, bias=True)"
    assert str(error.value) == f"expected a patient, such as patient(7); got {linear}"
