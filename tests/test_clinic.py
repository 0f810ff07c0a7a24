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

from utils import attention, clinic
from utils.checks import Result, progress, records
from utils.checks.course import CASES
from utils.clinic import diagnose, patient, suspects, twin
from utils.clinic.diagnosis import apart
from utils.clinic.instruments import INSTRUMENTS, measured
from utils.clinic.patients import KINDS, RIVALS, SUSPECTS, Layer, causes, even

NUMBERS = range(1, 600)
KIND_OF = {kind.letter: kind for kind in KINDS}
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads


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


def some(generator, layer, tokens=5):
    """Return random inputs of a layer."""
    count = 1 if layer.kind.masked else 3
    shape = 2, tokens, layer.kind.build[0]
    return [torch.randn(*shape, generator=generator) for _ in range(count)]


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


@pytest.mark.parametrize("number", [0, -1, 1.5, "7", True, None])
def test_another_number_is_refused(number):
    with pytest.raises(ValueError, match="expected a number of 1 or more, got"):
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


# ---- what a healthy layer is --------------------------------------------------------


def test_the_healthy_function_is_that_of_the_course():
    healthy = twin(patient(7))
    inputs = some(torch.Generator().manual_seed(0), healthy)
    expected = attention.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(healthy(*inputs), expected)


@pytest.mark.parametrize(
    "number, build",
    [
        (107, lambda: attention.CausalAttention(16, 16, 16, 0.2)),
        (207, lambda: attention.MultiHeadAttention(64, 64, 16, 0.2, 4)),
    ],
)
def test_a_healthy_layer_is_that_of_the_course(number, build):
    healthy, course = twin(patient(number)), build()
    course.load_state_dict(healthy.state_dict())
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    expected = course.eval()(x, need_weights=True)
    torch.testing.assert_close(healthy(x, need_weights=True), expected)
    torch.testing.assert_close(healthy(x), expected[0])


def test_a_healthy_layer_hides_padding_and_leaves_empty_rows_zero():
    healthy = twin(patient(207))
    course = attention.MultiHeadAttention(64, 64, 16, 0.2, 4).eval()
    course.load_state_dict(healthy.state_dict())
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    real = torch.tensor([[False, False, True, True, True], [True] * 5])
    got = healthy(x, padding_mask=real, need_weights=True)
    expected = course(x, padding_mask=real, need_weights=True)
    torch.testing.assert_close(got, expected)
    assert got[1][0, :, :2].abs().max() == 0


def test_a_healthy_layer_drops_weights_in_training_alone():
    healthy = twin(patient(107))
    (x,) = some(torch.Generator().manual_seed(0), healthy)
    torch.testing.assert_close(healthy(x), healthy(x), rtol=0, atol=0)
    healthy.train()
    assert not torch.equal(healthy(x), healthy(x))


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


@pytest.mark.parametrize(
    "number, shapes, got",
    [
        (7, [(5, 16)], r"\(5, 16\)"),
        (7, [(5, 16), (5, 16), (6, 16)], r"\(5, 16\), \(5, 16\), \(6, 16\)"),
        (7, [(5, 15)] * 3, r"\(5, 15\)"),
        (107, [(5, 16)], r"\(5, 16\)"),
        (107, [(2, 17, 16)], r"\(2, 17, 16\)"),
        (207, [(2, 5, 16)], r"\(2, 5, 16\)"),
        (207, [], "nothing"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(number, shapes, got):
    with pytest.raises(ValueError, match=f"expected .*; got {got}"):
        patient(number)(*map(torch.zeros, shapes))


@pytest.mark.parametrize(
    "mask", [torch.ones(2, 5), torch.ones(5, dtype=torch.bool)], ids=["float", "(5,)"]
)
def test_a_padding_mask_that_does_not_fit_is_refused(mask):
    with pytest.raises(ValueError, match="padding_mask .* of torch"):
        patient(107)(torch.zeros(2, 5, 16), padding_mask=mask)


# ---- suspects -----------------------------------------------------------------------


def test_suspects_are_named_in_plain_words_for_each_kind():
    assert {slug for n in ONE_OF_EACH for slug in suspects(patient(n))} == {*SUSPECTS}
    assert all(15 < len(known.line) < 50 for known in SUSPECTS.values())


def test_a_twin_has_the_same_weights_and_the_steps_asked_for():
    sick, healthy = twin(patient(107), "mask-not-used"), twin(patient(107))
    torch.testing.assert_close(sick.state_dict(), healthy.state_dict())
    assert sick._wrong == {"mask-not-used"} and not healthy._wrong


def test_a_twin_with_what_cannot_be_wrong_is_refused():
    with pytest.raises(ValueError, match="expected suspects among .*mask-not-used"):
        twin(patient(7), "mask-not-used")


@pytest.mark.parametrize(
    "function",
    [suspects, twin, diagnose, clinic.train_on_words, clinic.training_curve]
    + [getattr(clinic, name) for name in INSTRUMENTS],
)
def test_what_is_no_patient_is_refused(function):
    with pytest.raises(ValueError, match="expected a patient, such as patient"):
        function(torch.nn.Linear(3, 2))


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
def test_an_instrument_says_the_same_again_and_changes_nothing(name, capsys):
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
    with pytest.raises(ValueError, match=f"{name} expects a layer with a mask"):
        getattr(clinic, name)(patient(7))


def test_an_unknown_instrument_is_told_which_there_are():
    with pytest.raises(ValueError, match="expected one of bisect, .*; got 'row_sum'"):
        measured(patient(7), "row_sum")


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


# ---- training -----------------------------------------------------------------------


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
    clinic.training_curve(patient(107), steps=25)
    said = capsys.readouterr().out
    assert "last 20 steps" in said and "lowest honest loss" in said


def test_a_function_has_nothing_to_train():
    with pytest.raises(ValueError, match="expected a layer with weights; got a func"):
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
    assert result.passed and "no instrument finds a difference" in result.message


@pytest.mark.parametrize("slug", ["scale-mising", "mask-not-used", 7, None, ["a"]])
def test_an_unknown_slug_is_told_which_there_are(slug):
    result = diagnose(patient(7), slug)
    assert result.diagnosis == "no-such-suspect" and not result.passed
    said = " ".join(result.message.split())
    assert repr(slug) in said and ", ".join(suspects(patient(7))) in said


def test_a_slug_with_a_slip_is_guessed():
    assert "Did you mean scale-missing?" in diagnose(patient(7), "scale-mising").message


def test_dots_are_no_diagnosis_yet():
    result = diagnose(patient(7), ...)
    assert result.diagnosis == "not-attempted" and not result.passed
    assert result.message.startswith("Patient 7: no diagnosis yet.")
    assert records.load() == set()


def test_a_twin_is_nobody_to_be_diagnosed():
    with pytest.raises(ValueError, match="expected a patient, such as patient"):
        diagnose(twin(patient(7)))


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

NOTEBOOK = ROOT / "notebooks/12_the_clinic.ipynb"


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


def test_even_numbers_have_mean_0_and_variance_1():
    drawn = even(torch.Generator().manual_seed(0), 20_000)
    assert drawn.mean().item() == pytest.approx(0, abs=0.02)
    assert drawn.var().item() == pytest.approx(1, abs=0.02)
