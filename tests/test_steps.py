"""The steps of attention: one wrong, two wrong, and what is said where neither fits."""

import random
from contextlib import suppress

import pytest
import torch
from exercises import EXERCISES, answer_from

from utils.checks import check
from utils.checks.guard import quietly
from utils.checks.steps import DoesNotFit, Mistake
from utils.checks.values import agrees


def trials_of(exercise):
    """Return the right answer on every case."""
    answer, memory = answer_from(exercise, exercise.oracle), {}
    trials = [exercise.observe(answer, case, memory) for case in exercise.cases]
    return [trial for trial in trials if trial.comparable]


def outcome(exercise, trial, forms):
    """Return what the steps with these forms give on a case."""

    def compute(*args):
        return exercise.pipeline.run(args, *forms)

    return quietly(trial.through(compute), trial.args)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_steps_and_harmless_ones_are_right(exercise):
    harmless = [(one,) for one in exercise.pipeline.harmless if one.slug is None]
    for trial in trials_of(exercise):
        if trial.case.settings.get("special"):
            continue  # some are right for moderate scores alone
        for forms in [(), *harmless]:
            result = outcome(exercise, trial, forms)
            assert agrees(result.value, trial.expected.value), forms


UNDONE = {"softmax-missing", "softmax-twice"}  # none, then one more: that is right


def two_wrong(exercise, count):
    """Return some pairs of wrong forms of different steps, always the same."""
    draw, forms = random.Random(exercise.id), exercise.pipeline.forms
    found = []
    while len(found) < count:
        one, other = draw.sample(forms, 2)
        apart = one.slug != other.slug and {one.slug, other.slug} != UNDONE
        if apart and not one.ways.keys() & other.ways.keys():
            found.append((one, other))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_of_two_wrong_steps_at_least_one_is_named(exercise):
    pairs, named = two_wrong(exercise, 8), 0
    for forms in pairs:
        answer = answer_from(exercise, Mistake(exercise.pipeline, forms).compute)
        result = check(exercise.id, answer)
        assert not result.passed, [one.slug for one in forms]
        slugs = {one.slug for one in forms}
        named += bool(slugs & {result.diagnosis, result.also})
    assert named >= 6


def test_two_wrong_steps_are_both_said():
    def unscaled_columns(query, key, value):
        weights = torch.softmax(query @ key.mT, dim=-2)
        return weights @ value, weights

    result = check("4.1", unscaled_columns)
    assert (result.diagnosis, result.also) == ("scale-missing", "softmax-over-queries")
    assert "not divided by √d_k" in result.message
    assert "runs over the queries" in result.message


def test_what_fits_one_input_alone_is_said_to():
    def unscaled_without_batch(query, key, value):
        scale = 1 if query.dim() == 2 else query.shape[-1] ** -0.5
        weights = torch.softmax(scale * query @ key.mT, dim=-1)
        return weights @ value, weights

    result = check("4.1", unscaled_without_batch)
    assert result.diagnosis == "scale-missing"
    assert "On this input, though not on all" in result.message


def test_what_is_like_a_mistake_on_few_of_its_inputs_is_not_named():
    def merge(ids, pair, new_id):
        merged, skip = [], False
        for i, symbol in enumerate(ids):
            if not skip:
                skip = tuple(ids[i : i + 2]) == pair
                merged.append(new_id if skip else symbol)
        return merged

    result = check("1.1", merge)  # [9] for [1, 2, 3, 1, 2]: a return in the loop?
    assert not result.passed and result.diagnosis is None


def test_an_ordinary_input_is_shown_before_a_special_one():
    def weights(x):
        exps = torch.exp(x @ x.T)
        return exps / (exps.sum(-1, keepdim=True) + 0.5)

    result = check("3.2", weights)
    assert result.diagnosis is None
    assert "large scores" not in result.message
    assert "A row of the weights sums to" in result.message


def test_an_own_token_only_is_told_with_its_other_cause():
    def own_token(x):
        weights = torch.softmax(x @ x.T, dim=-1)
        return (weights[:, :, None] * x[:, None, :]).sum(1)

    result = check("3.3", own_token)
    assert result.diagnosis == "no-attention"
    assert "multiplies its own token" in result.message


# ---- the texts ----------------------------------------------------------------------


def first_wrong(exercise, one, trials):
    """Return the first case on which a form does not give the right result, or None."""
    for trial in trials:
        if not agrees(outcome(exercise, trial, (one,)).value, trial.expected.value):
            return trial
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_each_form_is_explained_with_all_its_words(exercise):
    trials = trials_of(exercise)
    for one in exercise.pipeline.forms:
        trial = first_wrong(exercise, one, trials)
        if trial:
            with suppress(DoesNotFit):
                assert exercise.pipeline.explain(trial.args, (one,), one)


# ---- the order of the house ---------------------------------------------------------


# ---- what is wrong as a whole -------------------------------------------------------


def test_a_factor_on_all_of_a_result_is_named_with_its_size():
    result = check("3.1", lambda scores, dim=-1: 3 * torch.softmax(scores, dim))
    assert result.diagnosis == "constant-factor"
    assert "each number is 3.0 times what it should be" in result.message


def test_a_factor_on_one_part_of_a_result_is_named_with_the_part():
    def attention(query, key, value):
        output, weights = EXERCISES["4.1"].oracle(query, key, value)
        return output, weights / 2

    result = check("4.1", attention)
    assert result.diagnosis == "constant-factor"
    assert "each number of the weights is 0.5 times" in result.message


def test_a_reshape_in_the_place_of_a_transpose_is_named():
    def attention(query, key, value):
        output, weights = EXERCISES["4.1"].oracle(query, key, value)
        return output.mT.reshape(output.shape), weights

    result = check("4.1", attention)
    assert result.diagnosis == "reshape-for-transpose"


def test_samples_that_mix_are_named_where_each_alone_is_right():
    def attention(query, key, value):
        return EXERCISES["4.1"].oracle(query, key + 0.1 * (key - key[:1]), value)

    def mixed(query, key, value):
        return (
            attention(query, key, value)
            if query.dim() > 2
            else (EXERCISES["4.1"].oracle(query, key, value))
        )

    assert check("4.1", mixed).diagnosis == "samples-mixed"


def test_a_branch_that_returns_nothing_is_named_with_its_input():
    def repeat_kv(x, n_rep):
        if n_rep > 1:
            return x.repeat_interleave(n_rep, dim=1)

    result = check("10.2", repeat_kv)
    assert result.diagnosis == "returns-nothing"
    assert "n_rep = 1" in result.message
