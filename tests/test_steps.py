"""What a check says of one mistake, of two, and where neither fits."""

import random

import pytest
import torch
from exercises import EXERCISES, answer_from
from torch import nn

from utils.checks import check
from utils.checks.steps import Mistake

MISTAKES = [(e, mistake) for e in EXERCISES.values() for mistake in e.pipeline.mistakes]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("exercise", "mistake"), MISTAKES, ids=[f"{e.id}-{m.slugs[0]}" for e, m in MISTAKES]
)
def test_every_mistake_is_told_apart_and_explained(exercise, mistake):
    """Its own function gets its own slug, so no mistake hides behind another."""
    result = check(exercise.id, answer_from(exercise, mistake.compute))
    assert result.diagnosis == mistake.slugs[0], result.message
    assert not result.message.endswith(f"\n{mistake.slugs[0]}.")  # its text failed
    assert 2 < len(result.message.splitlines()) < 11


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


def unscaled_columns(query, key, value):
    weights = torch.softmax(query @ key.mT, dim=-2)
    return weights @ value, weights


class Biased(nn.Module):  # and its softmax runs over the queries
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, dim=-2) @ self.W_value(x)


def fixed_axis_in_place(scores, dim=-1):
    return torch.softmax(scores.mul_(1.0).add_(1.0), dim=-1)


def halves(x, num_heads):  # and no ValueError
    width = x.shape[-1] // num_heads
    heads = x[..., : width * num_heads].unflatten(-1, (num_heads, width))
    return heads.transpose(1, 2).flip(1)


def weights_by_absorption(query, latent, W_uk):  # two wrong forms of the last step
    scores = query @ W_uk.mT @ latent[:, None].mT
    return torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1)


@pytest.mark.parametrize(
    ("id", "answer", "slugs"),
    [
        ("4.1", unscaled_columns, ("scale-missing", "softmax-over-queries")),
        ("4.2", Biased, ("unasked-bias", "softmax-over-queries")),
        ("3.3", fixed_axis_in_place, ("dim-ignored", "input-changed")),
        ("6.1", halves, ("heads-reversed", "width-not-divided")),
        ("14.2", weights_by_absorption, ("scaled", "softmax-taken")),
    ],
)
def test_what_is_seen_beside_a_mistake_is_said_too(id, answer, slugs):
    result = check(id, answer)
    assert (result.diagnosis, result.also) == slugs, result.message
    assert "Two things are wrong. " in result.message
    assert " And: " in " ".join(result.message.split())


def right_attention(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


def unscaled_without_batch(query, key, value):
    scale = 1 if query.dim() == 2 else query.shape[-1] ** -0.5
    weights = torch.softmax(scale * query @ key.mT, dim=-1)
    return weights @ value, weights


def doubled(query, key, value):
    output, weights = right_attention(query, key, value)
    return 2 * output, weights


def times_the_tokens(query, key, value):
    return tuple(len(query) * part for part in right_attention(query, key, value))


def nothing_for_a_batch(query, key, value):
    if query.dim() < 3:
        return right_attention(query, key, value)


def mixed_in_a_batch(query, key, value):
    output, weights = right_attention(query, key, value)
    return (output, weights.flip(0)) if weights.dim() > 2 else (output, weights)


@pytest.mark.parametrize(
    ("id", "answer", "slug", "words"),
    [
        ("4.1", unscaled_without_batch, "scale-missing", "At least on this input: "),
        ("4.1", doubled, "multiplied", "2.0 times the right one, on every input"),
        ("4.1", times_the_tokens, "multiplied 2", "elsewhere another multiple"),
        ("4.1", nothing_for_a_batch, "returns-nothing", "Here the answer returns None"),
        ("4.1", mixed_in_a_batch, "samples-mixed", "comes out right alone"),
        (  # the shape alone fits
            *("2.1", lambda ids, table: 2 * table[ids.flatten()]),
            *("shape-flattened", "The shape is that of this mistake"),
        ),
    ],
)
def test_what_fits_in_part_is_said_as_such(id, answer, slug, words):
    result = check(id, answer)
    assert result.diagnosis == slug.split()[0], result.message
    assert words in " ".join(result.message.split())


def skips_for_ever(ids, pair, new_id):
    merged, skip = [], False
    for i, symbol in enumerate(ids):
        if not skip:
            skip = tuple(ids[i : i + 2]) == pair
            merged.append(new_id if skip else symbol)
    return merged


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("3.2", lambda x: torch.softmax(x @ x.T, dim=-1) + 0.125),  # its shape: several
        ("1.1", skips_for_ever),  # like a return in the loop, on few inputs
        ("3.1", lambda x: torch.full((len(x), len(x)), torch.nan)),  # what gives NaN?
    ],
)
def test_better_no_name_than_a_wrong_one(id, answer):
    result = check(id, answer)
    assert not result.passed and result.diagnosis is None


def test_an_ordinary_input_is_shown_before_a_special_one():
    def weights(x):
        exps = torch.exp(x @ x.T)
        return exps / (exps.sum(-1, keepdim=True) + 0.5)

    result = check("3.1", weights)
    assert result.diagnosis is None
    assert "large scores" not in result.message
    assert "A row of the weights sums to" in result.message
