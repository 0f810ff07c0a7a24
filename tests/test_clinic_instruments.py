"""The instruments of the clinic tell patients apart, and say nothing untrue of one."""

import copy
import itertools
import math

import pytest
import torch
from clinic_cases import (
    KIND_OF,
    ONE_OF_EACH,
    SUM,
    WEIGHT,
    code_cells,
    of_the_course,
    printed,
    readings,
    scores,
    table,
)

from utils import clinic, plots
from utils.clinic import instruments, patient, suspects, training, twin
from utils.clinic.diagnosis import apart
from utils.clinic.instruments import INSTRUMENTS, Instrument, instrument, measured
from utils.clinic.patients import KINDS, Layer, causes


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
