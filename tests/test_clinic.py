"""The clinic: the same patients everywhere, told apart by the instruments alone."""

import copy
import itertools
import json
import math
import re

import nbformat
import pytest
import torch
from repository import ROOT

from utils import attention, clinic, plots
from utils.checks import Result, progress, records
from utils.checks.course import CASES
from utils.clinic import (
    diagnose,
    diagnosis,
    instruments,
    patient,
    patients,
    suspects,
    training,
    twin,
)
from utils.clinic.diagnosis import apart
from utils.clinic.instruments import INSTRUMENTS, Instrument, instrument, measured
from utils.clinic.patients import KINDS, RIVALS, SUSPECTS, Layer, causes, even, seeded

NUMBERS = range(1, 600)
KIND_OF = {kind.letter: kind for kind in KINDS}
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads
NOTEBOOK = ROOT / "notebooks/12_the_clinic.ipynb"


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    """Keep the reader's own progress file out of the tests."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path))


def readings(layer):
    """Return what every instrument prints of a layer, training left out."""
    fitting = [n for n, i in INSTRUMENTS.items() if layer.kind.masked or not i.masked]
    return {
        (name, label): value
        for name in fitting
        for label, value in measured(layer, name).items()
    }


def printed(layer):
    return {
        (name, label): INSTRUMENTS[name].text(value)
        for (name, label), value in readings(layer).items()
    }


def code_cells():
    """Return the code cells of the notebook."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def some(generator, layer, tokens=5):
    """Return random inputs of a layer."""
    count = 1 if layer.kind.masked else 3
    shape = 2, tokens, layer.kind.build[0]
    return [torch.randn(*shape, generator=generator) for _ in range(count)]


def of_the_course(layer):
    """Return the course's own layer with the weights of a layer with a mask."""
    if layer.kind is KIND_OF["h"]:
        own = attention.MultiHeadAttention(64, 64, 16, 0.2, 4)
    else:
        own = attention.CausalAttention(16, 16, 16, 0.2)
    own.load_state_dict(layer.state_dict())
    return own.eval()


def scores(layer):
    """Return the scores, without a mask, of the inputs that the instruments take."""
    if layer.kind.masked:
        (x,) = instruments._inputs(layer)
        query, key = layer.W_query(x), layer.W_key(x)
    else:
        query, key, _ = instruments._inputs(layer)
    if layer.kind is KIND_OF["h"]:
        query = attention.split_heads(query, 4)
        key = attention.split_heads(key, 4)
    return (query @ key.mT / 16**0.5).detach()


def table(heading, who, rows):
    """Return the text that an instrument prints."""
    rows = [(heading, who, "healthy"), *rows]
    return "".join(f"{what:52}{here:>14}{there:>10}\n" for what, here, there in rows)


# ---- the patients -------------------------------------------------------------------


@pytest.mark.parametrize("number", ONE_OF_EACH)
def test_a_number_is_always_the_same_patient(number):
    one, again = patient(number), patient(number)
    assert one._wrong == again._wrong
    torch.testing.assert_close(one.state_dict(), again.state_dict(), rtol=0, atol=0)


def test_the_patients_are_those_that_the_notebook_speaks_of():
    named = {n: " ".join(sorted(patient(n)._wrong)) for n in (3, 110, 206, 509)}
    assert named == {
        3: "softmax-twice",
        110: "mask-after-softmax",
        206: "heads-share-weights",
        509: "merge-without-transpose split-by-view",
    }


def test_the_weights_are_the_same_numbers_on_every_machine():
    first = patient(107).W_query.weight[0, :3].tolist()
    assert first == pytest.approx([0.13204, 0.18263, -0.23911], abs=1e-5)


def test_a_number_may_be_large():
    assert patient(10**30)._wrong == patient(10**30)._wrong
    assert measured(patient(10**30), "bisect")
    last_bits = even(seeded(10**30 % 2**32), 3)
    torch.testing.assert_close(even(seeded(10**30), 3), last_bits, rtol=0, atol=0)


@pytest.mark.parametrize("number", [0, -1, 1.5, "7", True, None])
def test_another_number_is_refused(number):
    expected = re.escape(f"expected a number of 1 or more, got {number!r}")
    with pytest.raises(ValueError, match=f"^{expected}$"):
        patient(number)


def test_the_kinds_rise_with_the_hundreds_and_then_take_turns():
    letters = [patient(number).kind.letter for number in (1, 99, 100, 199, 200, 299)]
    assert letters == [*"ffcchh"]
    letters = [patient(number).kind.letter for number in (300, 400, 500, 600, 700)]
    assert letters == [*"fchfc"]


def test_up_to_299_at_most_one_step_is_wrong_and_then_two():
    counts = [len(patient(number)._wrong) for number in NUMBERS]
    assert {*counts[:299]} == {0, 1} and {*counts[299:]} == {2}


def test_every_suspect_occurs_and_now_and_then_somebody_is_healthy():
    for first, kind in zip((1, 100, 200), KINDS):
        found = {patient(number)._wrong for number in range(first, first + 30)}
        assert found == {frozenset(slugs) for slugs in causes(kind, two=False)}


def test_every_pair_occurs():
    for first, kind in zip((300, 400, 500), KINDS):
        found = {patient(number)._wrong for number in range(first, first + 99)}
        assert found == {frozenset(slugs) for slugs in causes(kind, two=True)}


def test_a_patient_says_what_it_takes_and_gives_and_not_what_is_wrong():
    for number in (*ONE_OF_EACH, 307, 407, 507):
        said = repr(patient(number))
        assert f"Patient {number}" in said and "takes" in said and "gives" in said
        assert not any(slug in said for slug in SUSPECTS)
    assert repr(patient(299)).startswith("Patient 299, with one wrong step, or none: a")
    assert repr(patient(300)).startswith(
        "Patient 300, with two wrong steps: a function"
    )


# ---- what a healthy layer is --------------------------------------------------------


def test_the_healthy_function_is_that_of_the_course():
    healthy = twin(patient(7))
    inputs = some(torch.Generator().manual_seed(0), healthy)
    expected = attention.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(healthy(*inputs), expected)
    output, weights = healthy(*(part[1] for part in inputs))  # without a batch
    torch.testing.assert_close((output, weights), (expected[0][1], expected[1][1]))


@pytest.mark.parametrize("number", [107, 207])
def test_a_healthy_layer_is_that_of_the_course(number):
    healthy = twin(patient(number))
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    expected = of_the_course(healthy)(x, need_weights=True)
    torch.testing.assert_close(healthy(x, need_weights=True), expected)
    torch.testing.assert_close(healthy(x), expected[0])


def test_a_healthy_layer_hides_padding_and_leaves_empty_rows_zero():
    healthy = twin(patient(207))
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    real = torch.tensor([[False, False, True, True, True], [True] * 5])
    got = healthy(x, padding_mask=real, need_weights=True)
    expected = of_the_course(healthy)(x, padding_mask=real, need_weights=True)
    torch.testing.assert_close(got, expected)
    assert got[1][0, :, :2].abs().max() == 0


def test_a_healthy_layer_drops_weights_in_training_alone():
    healthy = twin(patient(107))
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    torch.testing.assert_close(healthy(x), healthy(x), rtol=0, atol=0)
    kept = healthy(x, need_weights=True)[1]
    left = healthy.train()(x, need_weights=True)[1]
    assert {*(left[kept > 0] / kept[kept > 0]).round(decimals=3).tolist()} == {0, 1.25}


@pytest.mark.parametrize("letter", "ch")
def test_padding_is_hidden_right_after_the_mask(letter):
    layer = Layer(7, KIND_OF[letter])
    right = layer.kind.pipeline
    made = patients._pipeline(right.start, **right.steps)
    assert [*made.steps.items()] == [*right.steps.items()]
    assert [*made.steps][[*made.steps].index("mask") + 1] == "pad"
    (x,) = some(torch.Generator().manual_seed(0), layer)
    real = torch.tensor([[False, False, True, True, True], [True] * 5])
    expected = layer(x, padding_mask=real)
    torch.testing.assert_close(made.run((layer._learned(real), x)), expected)


@pytest.mark.parametrize("number", [*ONE_OF_EACH, 307, 407, 507])
def test_a_patient_runs_on_any_length_and_takes_gradients(number):
    generator = torch.Generator().manual_seed(0)
    for tokens in (1, 2, 7):
        layer = patient(number)
        inputs = [part.requires_grad_() for part in some(generator, layer, tokens)]
        output = layer(*inputs)
        output = output if layer.kind.masked else output[0]
        assert output.shape == inputs[0].shape
        output.square().sum().backward()
        assert all(p.grad is not None for p in inputs[:1])


REAL = torch.ones(2, 5, dtype=torch.bool)


@pytest.mark.parametrize(
    "number, shapes, mask, got",
    [
        (7, [(5, 16)], None, "(5, 16)"),
        (7, [(5, 16), (5, 16), (6, 16)], None, "(5, 16), (5, 16), (6, 16)"),
        (7, [(5, 15), (5, 16), (5, 16)], None, "(5, 15), (5, 16), (5, 16)"),
        (7, [(5, 16), (5, 15), (5, 15)], None, "(5, 16), (5, 15), (5, 15)"),
        (7, [(16,)] * 3, None, "(16,), (16,), (16,)"),
        (7, [(16,), (5, 16), (5, 16)], None, "(16,), (5, 16), (5, 16)"),
        (7, [(2, 5, 16)] * 2, None, "(2, 5, 16), (2, 5, 16)"),
        (107, [(5, 16)], None, "(5, 16)"),
        (107, [(2, 5, 15)], None, "(2, 5, 15)"),
        (107, [(2, 0, 16)], None, "(2, 0, 16)"),
        (107, [(2, 17, 16)], None, "(2, 17, 16)"),
        (107, [(2, 5, 16)] * 2, None, "(2, 5, 16), (2, 5, 16)"),
        (207, [(2, 5, 16)], None, "(2, 5, 16)"),
        (207, [], None, "nothing"),
        (207, [(2, 5, 64, 1)], None, "(2, 5, 64, 1)"),
        (
            107,
            [(2, 5, 16)],
            REAL.float(),
            "(2, 5, 16) and padding_mask (2, 5) of float32",
        ),
        (107, [(2, 5, 16)], REAL[0], "(2, 5, 16) and padding_mask (5,) of bool"),
        (107, [(2, 5, 15)], REAL, "(2, 5, 15) and padding_mask (2, 5) of bool"),
        (
            7,
            [(1, 16)] * 3,
            REAL,
            "(1, 16), (1, 16), (1, 16) and padding_mask (2, 5) of bool",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(number, shapes, mask, got):
    layer = patient(number)
    with pytest.raises(ValueError) as error:
        layer(*map(torch.zeros, shapes), padding_mask=mask)
    got = got.replace(" of ", " of torch.")
    assert str(error.value) == f"expected {layer.kind.takes}; got {got}"


def test_what_is_no_tensor_is_refused_as_well():
    with pytest.raises(ValueError, match=r"; got \(\)$"):
        patient(107)([1.0, 2.0])


@pytest.mark.parametrize("number", [107, 207])
def test_a_layer_takes_as_many_tokens_as_it_says(number):
    layer = patient(number)
    assert "T up to 16" in repr(layer)
    assert layer(torch.zeros(2, 16, layer.kind.build[0])).shape[1] == 16


# ---- suspects -----------------------------------------------------------------------


def test_suspects_are_named_in_plain_words_for_each_kind():
    assert {slug for n in ONE_OF_EACH for slug in suspects(patient(n))} == {*SUSPECTS}
    assert all(15 < len(known.line) < 50 for known in SUSPECTS.values())


def test_a_twin_has_the_same_weights_and_the_steps_asked_for():
    sick, healthy = twin(patient(107), "mask-not-used"), twin(patient(107))
    torch.testing.assert_close(sick.state_dict(), healthy.state_dict())
    assert sick._wrong == {"mask-not-used"} and not healthy._wrong


def test_a_twin_of_a_layer_that_was_trained_has_its_weights_and_its_mode():
    layer = patient(107).train()
    torch.nn.init.ones_(layer.W_key.weight)
    assert twin(layer).W_key.weight.min() == 1 and twin(layer).training


def test_a_twin_with_what_cannot_be_wrong_is_refused():
    with pytest.raises(ValueError) as error:
        twin(patient(7), "mask-not-used")
    known = "scale-missing, divided-by-width, keys-times-queries, "
    known += "softmax-over-queries, softmax-twice, not-normalised, "
    known += "maximum-not-subtracted, keys-for-values"
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


# ---- the instruments ----------------------------------------------------------------


def doctor(layer):
    """Return the slugs of what is wrong: the notebook's table, the first row that fits.

    What is printed as 0.00, or as 1.00, is 0, or 1.
    """
    again, order, *_ = measured(layer, "permute_tokens").values()
    smallest, largest, *columns = measured(layer, "row_sums").values()
    before, after = measured(layer, "bisect").values()
    if again > 0.005:
        return {"dropout-in-eval"}
    if smallest < 0.995 and columns == pytest.approx([1, 1], abs=0.005):
        return {"softmax-over-queries"}
    if smallest > 1.005:
        return {"not-normalised"}
    if smallest < 0.995:
        return hidden(*measured(layer, "leak_test").values())
    if found := scales(layer):
        return found
    if order > 0.005:
        heads = "split-by-view" if before > 0.005 else "merge-without-transpose"
        return {heads if layer.kind.masked else "keys-times-queries"}
    if layer.kind.masked and (found := leaks(layer)):
        return found
    if after > 0.005:
        return after_the_cut(measured(layer, "one_token"))
    if layer.kind.masked and measured(layer, "empty_row")[SUM] > 0.005:
        return {"minus-1e9"}
    return set()


SUM = "largest sum of a row that may see nothing"
WEIGHT = "largest weight in such a row"


def hidden(_, far, own, past):
    """Rows below 1: what is missing?"""
    if max(own, past) < 0.005:
        return {"polarity-inverted"}
    return {"diagonal-masked" if own < 0.005 else "mask-after-softmax"}


def scales(layer):
    """What the two columns of `scale_scores` say: shifted, a ceiling, NaN."""
    here = [*measured(layer, "scale_scores").values()]
    healthy = [*measured(twin(layer), "scale_scores").values()]
    if here[:5] == pytest.approx(healthy[2:7], abs=0.02):
        return {"scale-missing"}
    if here[2:7] == pytest.approx(healthy[:5], abs=0.02):
        return {"divided-by-width"}
    if here[-1] < 0.29:
        return {"softmax-twice"}
    return {"maximum-not-subtracted"} if math.isnan(here[-1]) else set()


def leaks(layer):
    """Later tokens move outputs: one of them, as an equal share, or freely?"""
    soon, late, *_ = measured(layer, "leak_test").values()
    if max(soon, late) < 0.005:
        return set()
    if late < 0.005:
        return {"one-step-leaked"}
    equal = measured(layer, "empty_row")[WEIGHT] == pytest.approx(1 / 8, abs=5e-4)
    return {"zero-for-minus-infinity" if equal else "mask-not-used"}


def after_the_cut(parts):
    """Only the output is wrong: what is it, where a token is alone?"""
    nearest = min(parts, key=parts.get)
    if parts[nearest] > 0.005 or nearest == "out_proj(value)":
        return {"heads-share-weights"}
    if "value" in nearest:
        return {"output-projection-unused"}
    return {"keys-for-values" if "key" in nearest else "values-not-projected"}


def test_a_doctor_who_follows_the_table_is_right_about_the_first_299():
    wrong = [n for n in range(1, 300) if doctor(one := patient(n)) != one._wrong]
    assert wrong == []


@pytest.mark.parametrize("letter", KIND_OF)
def test_the_table_fits_patients_that_nobody_has_seen(letter):
    kind = KIND_OF[letter]
    for number, slugs in itertools.product((1001, 1002), causes(kind, two=False)):
        layer = Layer(number, kind, slugs, is_patient=True)
        assert doctor(layer) == {*slugs}, number


def test_of_two_wrong_steps_the_table_finds_one():
    missed = [n for n in range(300, 600) if not doctor(one := patient(n)) & one._wrong]
    assert missed == []


@pytest.mark.parametrize("letter", KIND_OF)
@pytest.mark.parametrize("number", [11, 12, 13])
def test_no_two_diagnoses_read_alike_in_all_instruments(letter, number):
    kind = KIND_OF[letter]
    layer = Layer(number, kind, is_patient=True)
    sets = [*causes(kind, two=False), *causes(kind, two=True)]
    read = {slugs: readings(twin(layer, *slugs)) for slugs in sets}
    for one, other in itertools.combinations(sets, 2):
        largest = max(apart(read[one][key], read[other][key]) for key in read[one])
        assert largest >= 0.1, (one, other)


def test_two_wrong_steps_differ_from_each_of_them_alone():
    for kind in KINDS:
        layer = Layer(17, kind, is_patient=True)
        for pair in causes(kind, two=True):
            both = printed(twin(layer, *pair))
            assert all(both != printed(twin(layer, slug)) for slug in pair), pair


@pytest.mark.parametrize("name", [*INSTRUMENTS])
def test_an_instrument_says_the_same_again_and_changes_nothing(
    name, capsys, monkeypatch
):
    monkeypatch.setattr(plots, "heatmaps", lambda *of, **how: None)
    layer = patient(213)
    before, state = copy.deepcopy(layer.state_dict()), torch.get_rng_state()
    assert [getattr(clinic, name)(layer) for _ in range(2)] == [None, None]
    first, second = capsys.readouterr().out.split(name + ":")[1:]
    assert first == second
    assert "patient 213" in first and "healthy" in first
    torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in layer.parameters())


def test_instruments_measure_in_eval_mode_whatever_the_mode():
    layer = patient(107)
    assert printed(layer) == printed(layer.train()) and layer.training


@pytest.mark.parametrize("name", ["leak_test", "empty_row"])
def test_a_function_has_no_mask_to_test(name):
    with pytest.raises(ValueError) as error:
        getattr(clinic, name)(patient(7))
    assert str(error.value) == f"{name} expects a layer with a mask; got a function"


def test_an_unknown_instrument_is_told_which_there_are():
    with pytest.raises(ValueError) as error:
        measured(patient(7), "row_sum")
    known = "bisect, row_sums, scale_scores, permute_tokens, leak_test, one_token, "
    known += "empty_row, gradients"
    assert str(error.value) == f"expected one of {known}; got 'row_sum'"


@pytest.fixture
def no_instruments(monkeypatch):
    """Leave the course's instruments out, so that a test may make its own."""
    monkeypatch.setattr(instruments, "INSTRUMENTS", {})
    return instruments.INSTRUMENTS


def test_an_instrument_shows_a_layer_and_its_twin_and_then_draws(
    no_instruments, capsys
):
    def mistakes(layer):
        """Count the wrong steps."""
        return {"wrong steps": len(layer._wrong), "none": math.nan}

    drawn, layer = [], patient(110)
    read = instrument("all of them", True, digits=1, draw=drawn.append)(mistakes)
    assert read(layer) is None
    rows = [("wrong steps", "1.0", "0.0"), ("none", "NaN", "NaN")]
    shown = table("mistakes: all of them", "patient 110", rows)
    assert capsys.readouterr().out == shown and drawn == [layer]
    assert (read.__name__, read.__doc__) == ("mistakes", "Count the wrong steps.")
    assert no_instruments == {"mistakes": Instrument(mistakes, True, 1)}


def test_an_instrument_needs_no_mask_and_has_two_digits(no_instruments, capsys):
    @instrument("one number")
    def one(layer):
        return {"one": 1}

    one(twin(patient(7)))
    shown = table("one: one number", "this layer", [("one", "1.00", "1.00")])
    assert capsys.readouterr().out == shown
    assert not no_instruments["one"].masked


@pytest.mark.parametrize("number", ONE_OF_EACH)
def test_scores_times_a_factor_go_through_the_softmax(number):
    healthy = twin(patient(number))
    last = scores(healthy)[..., -1, :]
    expected = {
        f"scores × {name}": (factor * last).softmax(-1).amax(-1).mean().item()
        for name, factor in instruments.FACTORS.items()
    }
    found = measured(healthy, "scale_scores")
    assert found == pytest.approx(expected, abs=1e-4)


def test_scores_of_keys_and_queries_exchanged_depend_on_the_order():
    layer = twin(patient(7), "keys-times-queries")
    query, key, value = instruments._inputs(layer)
    backwards = [part.flip(1) for part in (query, key, value)]

    def output(query, key, value):
        return (key @ query.mT / 4).softmax(-1) @ value

    before = output(query, key, value)
    keys = output(query, *backwards[1:]) - before
    queries = output(backwards[0], key, value).flip(1) - before
    expected = {
        "the same input again": 0,
        "keys and values in reverse order": keys.abs().max().item(),
        "queries in reverse order, outputs put back": queries.abs().max().item(),
    }
    assert measured(layer, "permute_tokens") == pytest.approx(expected, abs=1e-5)


def test_the_leak_test_asks_beside_the_diagonal_and_on_it(monkeypatch):
    i = torch.arange(8.0)
    monkeypatch.setattr(instruments, "_moves", lambda layer: 10 + i[:, None] - i)
    assert [*measured(patient(107), "leak_test").values()] == [9, 8, 10, 11]


def test_the_moves_of_a_layer_and_of_its_twin_are_drawn_on_one_scale(monkeypatch):
    drawn, layer = [], patient(110)
    monkeypatch.setattr(
        plots, "heatmaps", lambda maps, titles, vmax, **_: drawn.append((maps, vmax))
    )
    instruments._draw_moves(layer)
    ((here, healthy), largest) = drawn[0]
    found, twins = measured(layer, "leak_test"), measured(twin(layer), "leak_test")
    assert here.diagonal().min() == found["its own token replaced, at least"]
    assert healthy.diagonal().min() == twins["its own token replaced, at least"]
    assert largest == max(here.max(), healthy.max())


def test_one_token_gives_its_value():
    healthy = twin(patient(7))
    query, key, value = instruments._inputs(healthy, tokens=1)
    parts = {"query": query, "key": key, "value": value}
    far = {name: (value - part).abs().max().item() for name, part in parts.items()}
    assert measured(healthy, "one_token") == pytest.approx(far, abs=1e-5)

    healthy = twin(patient(107))
    (x,) = instruments._inputs(healthy, tokens=1)
    key, value = healthy.W_key(x), healthy.W_value(x)
    parts = {"x": x, "key": key, "value": value}
    far = {name: (value - part).abs().max().item() for name, part in parts.items()}
    assert measured(healthy, "one_token") == pytest.approx(far, abs=1e-5)


def test_minus_1e9_shares_an_empty_row_equally(capsys):
    clinic.empty_row(twin(patient(107), "minus-1e9"))
    rows = [
        (SUM, "1.000", "0.000"),
        (WEIGHT, "0.125", "0.000"),
        ("largest weight of padding in the other rows", "0.000", "0.000"),
    ]
    heading = "empty_row: with two tokens of padding in front"
    assert capsys.readouterr().out == table(heading, "this layer", rows)


@pytest.mark.parametrize("number", [101, 107, 121])
def test_without_a_mask_padding_is_seen(number):
    layer = twin(patient(number), "mask-not-used")
    weights = scores(layer).softmax(-1)
    expected = 1.0, weights[:, :2].max().item(), weights[:, 2:, :2].max().item()
    found = [*measured(layer, "empty_row").values()]
    assert found == pytest.approx(expected, abs=1e-5)


def test_with_a_mask_one_step_off_the_second_token_sees_the_third():
    found = measured(twin(patient(107), "one-step-leaked"), "empty_row")
    assert [*found.values()] == [1, 1, 0]


def test_measuring_prints_and_draws_nothing(capsys):
    assert [*measured(patient(107), "leak_test")][0].startswith("the next token")
    assert capsys.readouterr().out == ""


def test_row_sums_are_those_of_the_weights():
    layer = twin(patient(8), "softmax-over-queries")
    found = measured(layer, "row_sums")
    assert found["smallest row"] < 0.7 and found["largest row"] > 1.3
    assert found["smallest column"] == pytest.approx(1, abs=1e-5)


def test_a_missing_scale_is_the_healthy_table_two_rows_further_down():
    layer = patient(7)
    healthy = [*measured(twin(layer), "scale_scores").values()]
    missing = [*measured(twin(layer, "scale-missing"), "scale_scores").values()]
    assert missing[:5] == pytest.approx(healthy[2:7], abs=1e-4)


def test_the_second_softmax_has_a_ceiling():
    found = measured(twin(patient(7), "softmax-twice"), "scale_scores")
    e = torch.e
    assert found["scores × 10,000"] == pytest.approx(e / (e + 7), abs=1e-4)


def test_heads_scrambled_twice_do_not_leak_but_miss_tokens():
    layer = twin(patient(509), "split-by-view", "merge-without-transpose")
    found = [*measured(layer, "leak_test").values()]
    assert found[:2] == [0, 0] and found[3] == 0


def test_minus_1e9_is_seen_in_an_empty_row_alone():
    layer = patient(107)
    healthy, filled = printed(twin(layer)), printed(twin(layer, "minus-1e9"))
    differs = {
        name for (name, label) in healthy if healthy[name, label] != filled[name, label]
    }
    assert differs == {"empty_row"}


def test_a_gradient_that_does_not_arrive_names_what_is_not_used():
    found = measured(twin(patient(207), "output-projection-unused"), "gradients")
    assert found["out_proj"] == 0 and found["W_value"] > 1


def test_the_gradient_of_the_values_is_what_the_weights_send_back():
    healthy = twin(patient(7))
    sent = instruments._inputs(healthy)[2].roll(1, dims=1)
    found = measured(healthy, "gradients")
    arrives = scores(healthy).softmax(-1).mT @ sent
    assert found["value"] == pytest.approx(arrives.norm().item(), rel=1e-4)
    assert [*found] == ["query", "key", "value"]

    healthy = twin(patient(107))
    (x,) = instruments._inputs(healthy)
    _, weights = healthy(x, need_weights=True)
    arrives = (weights.mT @ x.roll(1, dims=1)).flatten(0, 1).mT @ x.flatten(0, 1)
    found = measured(healthy, "gradients")
    assert found["W_value"] == pytest.approx(arrives.norm().item(), rel=1e-4)
    assert [*found] == ["W_query", "W_key", "W_value"]


# ---- training -----------------------------------------------------------------------


def test_four_words_in_five_repeat_the_word_three_places_before_them():
    words, again = (
        training._sentences(20_000, torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert torch.equal(words, again) and words.shape == (20_000, 17)
    drawn = torch.randint(6, (20_000, 17), generator=torch.Generator().manual_seed(3))
    assert torch.equal(words[:, :3], drawn[:, :3])  # there is nothing yet to repeat
    repeats = (words[:, 3:] == words[:, :-3]).float().mean(dim=0)
    assert repeats.tolist() == pytest.approx([0.8 + 0.2 / 6] * 14, abs=0.01)
    shares = words.flatten().bincount() / words.numel()
    assert shares.tolist() == pytest.approx([1 / 6] * 6, abs=0.01)


def test_the_lowest_loss_is_the_entropy_of_the_next_word():
    probs = torch.tensor([0.8 + 0.2 / 6] + [0.2 / 6] * 5)
    entropy = torch.distributions.Categorical(probs).entropy().item()
    assert clinic.lowest_loss() == pytest.approx(entropy, abs=1e-6)


@pytest.mark.parametrize("number, width", [(107, 16), (207, 64)])
def test_the_model_adds_the_layer_to_embeddings_with_positions(number, width):
    torch.manual_seed(0)
    healthy = twin(patient(number))
    model, words = training._NextWord(healthy), torch.arange(16)[None] % 6
    assert model.places.shape == (16, width)
    x = model.words.weight[words] + model.places
    expected = model.readout(x + of_the_course(healthy)(x))
    torch.testing.assert_close(model(words), expected)


def test_a_training_takes_200_steps_of_a_model_drawn_from_its_seed(monkeypatch):
    monkeypatch.setattr(training, "_losses", lambda *given: given)
    drawn = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
    model, steps, seed = clinic.train_on_words(patient(107))
    assert (steps, seed) == (200, 0)
    assert torch.equal(model.words.weight, drawn) and model.layer.training
    other, *given = clinic.train_on_words(patient(107), 5, seed=1)
    assert given == [5, 1] and not torch.equal(other.words.weight, drawn)


def test_a_step_takes_32_sentences_and_counts_what_can_be_known():
    torch.manual_seed(0)
    model = training._NextWord(twin(patient(107)))
    before = model.readout.weight.detach().clone()
    words = training._sentences(32, torch.Generator().manual_seed(4))
    found = model(words[:, :16]).log_softmax(-1).gather(2, words[:, 1:, None])[:, 2:]
    assert training._losses(model, 1, 4) == pytest.approx([-found.mean().item()])
    # AdamW moves each weight by the learning rate at first, and shrinks it a little.
    moved = model.readout.weight - (1 - 1e-4) * before
    assert moved.abs().flatten().tolist() == pytest.approx([0.01] * 96, abs=1e-5)


def test_each_step_takes_other_sentences(monkeypatch):
    shown, sentences = [], training._sentences
    monkeypatch.setattr(
        training,
        "_sentences",
        lambda *given: shown.append(sentences(*given)) or shown[-1],
    )
    clinic.train_on_words(patient(107), steps=2)
    assert len(shown) == 2 and not torch.equal(*shown)


def test_a_training_computes_with_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyError), training._one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_curves_are_those_of_a_patient_and_its_twin(monkeypatch, capsys):
    trained, drawn, layer = [], [], patient(107)

    def train(one, steps):
        trained.append((one._wrong, steps))
        return [float(step + 1000 * one.is_patient) for step in range(steps)]

    monkeypatch.setattr(training, "train_on_words", train)
    monkeypatch.setattr(plots, "curves", lambda *of, **how: drawn.append((of, how)))
    clinic.training_curve(layer)
    assert trained == [(layer._wrong, 200), (frozenset(), 200)]
    rows = [
        ("first 20 steps", "1009.50", "9.50"),
        ("last 20 steps", "1189.50", "189.50"),
    ]
    heading = "training_curve: the loss of the next word"
    assert capsys.readouterr().out == table(heading, "patient 107", rows)
    (((series,), how),) = drawn
    assert series == {
        "patient 107": train(layer, 200),
        "healthy": train(twin(layer), 200),
    }
    assert how["reference"] == {"lowest honest loss": clinic.lowest_loss()}
    assert how["smooth"] == 10


def test_a_training_is_repeatable_and_leaves_patient_and_random_state_alone():
    layer, state = patient(107), torch.get_rng_state()
    before, threads = copy.deepcopy(layer.state_dict()), torch.get_num_threads()
    losses = clinic.train_on_words(layer, steps=3)
    assert losses == clinic.train_on_words(layer, steps=3) and len(losses) == 3
    assert torch.get_num_threads() == threads
    torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_every_kind_of_mistake_can_be_trained():
    for number in (107, 207):
        for slug in suspects(patient(number)):
            losses = clinic.train_on_words(twin(patient(number), slug), steps=5)
            assert all(0 < loss < 20 for loss in losses), slug


def test_the_curves_are_drawn_and_their_ends_are_printed(capsys):
    clinic.training_curve(patient(206), steps=25)
    said = capsys.readouterr().out
    (cell,) = (c for c in code_cells() if "clinic.training_curve(layer)" in c.source)
    stored = cell.outputs[-1].data["text/plain"]
    assert stored in said and "last 20 steps" in said


def test_a_function_has_nothing_to_train():
    with pytest.raises(ValueError, match="^expected a layer with weights; got a func"):
        clinic.training_curve(patient(7))


# ---- the diagnosis ------------------------------------------------------------------


def test_the_right_slugs_pass_with_the_evidence_and_are_kept(capsys):
    for number in (*ONE_OF_EACH, *CASES, 307, 407, 507):
        layer = patient(number)
        result = diagnose(layer, *layer._wrong)
        assert isinstance(result, Result)
        assert result.passed and result.diagnosis is None
        assert result.message == capsys.readouterr().out.strip()
        assert result.message.startswith(f"Patient {number}: passed.")
        assert f"patient {number}" in records.load()
        for slug in layer._wrong:
            assert f"{slug}: {SUSPECTS[slug].line}." in " ".join(result.message.split())
            assert re.search(r"(\d\.\d+|NaN) here", " ".join(result.message.split()))


@pytest.mark.parametrize("slug, rival, name, label", RIVALS)
@pytest.mark.parametrize("number", [31, 32, 33])
def test_what_is_told_with_a_right_diagnosis_excludes_the_rival(
    number, slug, rival, name, label
):
    letters = {*SUSPECTS[slug].kinds} & {*SUSPECTS[rival].kinds}
    layer = Layer(number, KIND_OF[max(letters)], [slug], is_patient=True)
    said = " ".join(diagnose(layer, slug).message.split())
    assert diagnose(layer, rival).diagnosis == "wrong"
    found = re.search(rf"{name}, {label}[^.]*?: (\S+) here, (\S+) with", said)
    here, there = map(float, found.groups())
    assert abs(here - there) > 0.1 and min(here, there) < 0.3


@pytest.mark.parametrize("number", [1, 3, 110, 116, 203, 206, 307, 411, 509])
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
        assert re.search(r"(\d|NaN) here, (\d+\.\d+|NaN) ", result.message), slugs
    assert records.load() == set()


def evidence(layer, claimed, name, label, beside):
    """Return the sentence about a number of a patient and of its twin."""
    found = [measured(one, name)[label] for one in (layer, twin(layer, *claimed))]
    here, there = map(INSTRUMENTS[name].text, found)
    return f"{name}, {label}: {here} here, {there} {beside}."


def test_a_right_diagnosis_is_proved_and_its_first_rival_excluded():
    layer = Layer(107, KIND_OF["c"], ["mask-not-used"], is_patient=True)
    of_leak = "leak_test", "the next token replaced, at most"
    rival = "zero-for-minus-infinity"
    lines = [
        "Patient 107: passed.",
        "mask-not-used: no mask reaches the scores.",
        evidence(layer, [], *of_leak, "in a healthy layer"),
        evidence(layer, [rival], "empty_row", WEIGHT, f"with {rival} instead"),
    ]
    assert diagnose(layer, "mask-not-used").message.split() == " ".join(lines).split()


def test_a_slug_too_many_is_answered_with_what_it_would_do():
    layer, slugs = patient(411), ["scale-missing", "mask-not-used", "keys-for-values"]
    joined = "keys-for-values and mask-not-used and scale-missing"
    lines = [
        "Patient 411: half right.",
        "mask-not-used and scale-missing are right. That is one too many.",
        evidence(layer, slugs, "one_token", "key", f"with {joined} alone"),
    ]
    assert diagnose(layer, *slugs).message.split() == " ".join(lines).split()


@pytest.fixture
def told(monkeypatch):
    """Return a function: the evidence on a patient, as if these were its readings.

    Its twins read 0 everywhere, and what is not among the readings reads 0 as well.
    """

    def tell(layer, claimed, readings, default=0.0):
        def measured(one, name):
            assert layer.kind.masked or not INSTRUMENTS[name].masked
            found = readings.get(name, {"any": default})
            return {label: one.is_patient * value for label, value in found.items()}

        monkeypatch.setattr(diagnosis, "measured", measured)
        return diagnosis._evidence(layer, frozenset(claimed), "beside")

    return tell


def test_the_first_reading_that_tells_nearly_as_much_as_any_is_told(told):
    layer = Layer(7, KIND_OF["f"], ["scale-missing"], is_patient=True)
    readings = {"scale_scores": {"a": 0.39, "b": 0.4, "c": 1.0}}
    said = told(layer, [], readings, default=5.0)
    assert said == "scale_scores, b: 0.40 here, 0.00 beside."


def test_a_reading_tells_something_from_a_twentieth_on(told):
    layer = Layer(7, KIND_OF["f"], ["scale-missing"], is_patient=True)
    readings = {"scale_scores": {"a": 0.049}, "gradients": {"b": 0.05}}
    assert told(layer, [], readings) == "gradients, b: 0.05 here, 0.00 beside."
    readings["gradients"] = {"b": 0.049}
    alone = "No instrument tells the patient from softmax-twice."
    assert told(layer, ["softmax-twice"], readings) == alone


def test_what_the_patient_has_is_shown_before_what_it_has_not(told):
    layer = Layer(7, KIND_OF["f"], ["softmax-over-queries"], is_patient=True)
    said = told(layer, ["keys-times-queries"], {}, default=1.0)
    assert said == "row_sums, any: 1.00 here, 0.00 beside."
    readings = {"permute_tokens": {"b": 1.0}, "gradients": {"c": 1.0}}
    said = told(layer, ["keys-times-queries"], readings)
    assert said == "permute_tokens, b: 1.00 here, 0.00 beside."


def test_of_two_wrong_steps_the_first_by_name_is_shown(told):
    for kind in KINDS[:2]:
        for pair in causes(kind, two=True):
            layer = Layer(7, kind, pair, is_patient=True)
            name = SUSPECTS[min(pair)].shown_by
            assert told(layer, [], {}, default=1.0).startswith(f"{name}, any"), pair


def test_what_excludes_a_rival_is_told_first(told):
    layer = Layer(107, KIND_OF["c"], ["mask-not-used"], is_patient=True)
    readings = {"empty_row": {SUM: 9.0, WEIGHT: 0.5}, "leak_test": {"a": 9.0}}
    said = told(layer, ["zero-for-minus-infinity"], readings)
    assert said == f"empty_row, {WEIGHT}: 0.500 here, 0.000 beside."


def test_nan_is_far_from_every_number_and_not_from_nan():
    assert apart(1.0, 3.5) == apart(3.5, 1.0) == 2.5
    assert apart(1.0, math.nan) == apart(math.nan, 1.0) == math.inf
    assert apart(math.nan, math.nan) == 0


def test_half_right_is_said_to_be_half_right():
    result = diagnose(patient(411), "scale-missing")
    assert result.diagnosis == "half-right"
    assert "scale-missing is right. Something else is wrong, too." in result.message
    result = diagnose(patient(411), "scale-missing", "keys-for-values")
    assert result.diagnosis == "half-right"
    result = diagnose(patient(3), "softmax-twice", "scale-missing")
    assert "softmax-twice is right. That is one too many." in result.message


def test_a_slug_too_many_that_nothing_shows_is_still_too_many():
    result = diagnose(patient(106), "mask-not-used", "one-step-leaked")
    assert result.diagnosis == "half-right"
    said = " ".join(result.message.split())
    assert "mask-not-used is right. That is one too many." in said
    assert "No instrument tells the patient from" in said


def test_the_order_of_slugs_does_not_matter_nor_does_saying_one_twice():
    assert diagnose(patient(411), "scale-missing", "mask-not-used").passed
    assert diagnose(patient(411), "mask-not-used", "scale-missing").passed
    assert diagnose(patient(3), "softmax-twice", "softmax-twice").passed


def test_a_healthy_patient_is_diagnosed_with_nothing():
    result = diagnose(patient(116))
    lines = result.message.splitlines()
    assert result.passed and lines[0] == "Patient 116: passed."
    assert lines[1:] == ["It is healthy: no instrument finds a difference."]


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


@pytest.mark.parametrize("slugs", [[...], ["softmax-twice", ...], [..., "unknown"]])
def test_dots_are_no_diagnosis_yet(slugs):
    result = diagnose(patient(7), *slugs)
    assert result.diagnosis == "not-attempted" and not result.passed
    assert result.message.startswith("Patient 7: no diagnosis yet.")
    assert records.load() == set()


def test_a_twin_is_nobody_to_be_diagnosed():
    other = twin(patient(7))
    with pytest.raises(ValueError) as error:
        diagnose(other)
    assert str(error.value) == f"expected a patient, such as patient(7); got {other!r}"


def test_progress_counts_the_cases_of_the_notebook(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "utils.plots.course_map", lambda status, title: drawn.append((status, title))
    )
    diagnose(patient(8), "softmax-over-queries")
    diagnose(patient(3), "softmax-twice")  # not among the twelve
    assert progress() == ["patient 3", "patient 8"]
    row = next(row for row in drawn[0][0] if row[0] == 12)
    assert row[1:2] + row[3:] == ("The clinic", 1, 12, [6])
    assert drawn[0][1].startswith("1 of ")


# ---- the notebook -------------------------------------------------------------------


def test_the_twelve_cases_are_solved_in_their_folded_answers():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    asked = [
        re.search(r"^diagnose\(patient\((\d+)\), \.\.\.\)$", c.source, re.M)
        for c in cells
    ]
    assert [int(found[1]) for found in asked if found] == [*CASES]
    answers = {}
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("### Case "):
            hint, answer = re.findall(r"<details>.*?</details>", cell.source, re.S)
            assert "<summary>Hint</summary>" in hint and "diagnose" not in hint
            call = re.search(
                r"`diagnose\(patient\((\d+)\)((?:, \"[\w-]+\")*)\)`", answer
            )
            answers[int(call[1])] = json.loads(f"[{call[2][2:]}]")
    assert [*answers] == [*CASES]
    for number, slugs in answers.items():
        assert diagnose(patient(number), *slugs).passed, number


def first_looks():
    """Yield the cells that run instruments and diagnoses alone, and on whom.

    What comes is the cell's count, the patient's number and the cell.
    """
    calls = r"layer = patient\(\d+\)|clinic\.\w+\(.*\)|diagnose\(.*\)"
    number = None
    for cell in code_cells():
        found = re.search(r"^layer = patient\((\d+)\)$", cell.source, re.M)
        number = int(found[1]) if found else number
        if all(re.fullmatch(calls, line) for line in cell.source.splitlines()):
            yield pytest.param(number, cell, id=f"cell {cell.execution_count}")


@pytest.mark.parametrize("number, cell", [*first_looks()])
def test_the_notebook_shows_what_is_printed(number, cell, capsys):
    exec(cell.source, vars(clinic) | {"clinic": clinic, "layer": patient(number)})
    stored = [o.get("text") or o.data["text/plain"] + "\n" for o in cell.outputs]
    assert capsys.readouterr().out == "".join(stored)


@pytest.mark.parametrize(
    "number, name, label, text",
    [
        (8, "row_sums", "smallest row", "0.47"),
        (8, "row_sums", "largest row", "1.71"),
        (13, "permute_tokens", "keys and values in reverse order", "1.48"),
        (101, "empty_row", WEIGHT, "0.125"),
        (121, "permute_tokens", "the same input again", "3.03"),
        (207, "gradients", "out_proj", "0.00"),
    ],
)
def test_the_numbers_in_the_folded_answers_are_measured(number, name, label, text):
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    (case,) = (
        c for c in cells if re.match(rf"### Case .*patient {number}$", c.source, re.M)
    )
    assert text in case.source.partition("<summary>Answer</summary>")[2]
    assert INSTRUMENTS[name].text(measured(patient(number), name)[label]) == text


def test_even_numbers_have_mean_0_and_variance_1():
    drawn = even(torch.Generator().manual_seed(0), 20_000)
    assert drawn.mean().item() == pytest.approx(0, abs=0.02)
    assert drawn.var().item() == pytest.approx(1, abs=0.02)
