"""What a check says of one mistake, of two, and if neither fits."""

import itertools
import random

import pytest
import torch

from tests.exercises import EXERCISES, answer_from
from utils.checks import check
from utils.checks.engine import Case, Exercise
from utils.checks.examine import examine
from utils.checks.pipeline import variants
from utils.checks.steps.returned import RETURNED

VARIANTS = [
    (exercise, variant)
    for exercise in EXERCISES.values()
    for variant in exercise.pipeline.variants
    if variant not in RETURNED
]
pytestmark = pytest.mark.filterwarnings("ignore")


def made_by(exercise, *variants):
    """Return an answer with these mistakes."""
    return answer_from(exercise, lambda *args: exercise.pipeline.run(args, *variants))


@pytest.mark.parametrize(
    ("exercise", "variant"), VARIANTS, ids=[f"{e.id}-{v.name}" for e, v in VARIANTS]
)
def test_every_mistake_is_told_apart_and_explained(exercise, variant):
    """Its own answer gets its own name, so the order of variants doesn't matter."""
    result = check(exercise.id, made_by(exercise, variant))
    assert result.diagnosis == variant.name, (
        f"{variant.name} and {result.diagnosis} give the same in all cases of "
        f"{exercise.id}: add a case that tells them apart, or one of both to `without`"
    )
    assert "SimpleNamespace" not in result.message, "the variant names an unknown step"
    assert 2 < len(result.message.splitlines()) < 12


def two_wrong(exercise, count):
    """Return some pairs of variants of different steps, always the same."""
    variants = [v for v in exercise.pipeline.variants if v not in RETURNED]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(variants, 2)
        if one.name != other.name and one.overrides.keys().isdisjoint(other.overrides)
    ]
    return random.Random(exercise.id).sample(pairs, min(count, len(pairs)))


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_of_two_wrong_steps_at_least_one_is_named(exercise):
    named, pairs = 0, two_wrong(exercise, 4)
    for pair in pairs:
        result = check(exercise.id, made_by(exercise, *pair))
        names = {one.name for one in pair}
        assert not result.passed, names
        named += bool(names & {result.diagnosis, result.also})
    assert named >= len(pairs) / 2


def unscaled_columns(query, key, value):
    weights = torch.softmax(query @ key.mT, dim=-2)
    return weights @ value, weights


def test_what_is_seen_beside_a_mistake_is_said_too():
    result = check("4.1", unscaled_columns)
    assert (result.diagnosis, result.also) == ("scale-missing", "softmax-over-queries")
    assert "Two things are wrong. " in result.message
    assert " And" in " ".join(result.message.split())


TOY = Exercise(  # two steps, each of which may give 1 or 2 too much
    id="0.1",
    signature="double(x)",
    returns="2x",
    cases=[Case(3.0), Case(5.0)],
    steps={
        "first": lambda s: s.x,
        "second": lambda s: s.x,
        "result": lambda s: s.first + s.second,
    },
    variants=variants(
        "first-one-more: Your first term is 1 too large.",
        dict(first=lambda s: s.x + 1),
        "second-one-more: Your second term is 1 too large.",
        dict(second=lambda s: s.x + 1),
        "first-two-more: Your first term is 2 too large.",
        dict(first=lambda s: s.x + 2),
        "second-two-more: Your second term is 2 too large.",
        dict(second=lambda s: s.x + 2),
        "halved: You halved x.",
        dict(x=lambda s: s.x / 2),
    ),
)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (lambda x: 2 * x + 1, ("first-one-more", None)),  # of equal ones the first
        (lambda x: 2 * x + 4, ("first-two-more", "second-two-more")),
        (lambda x: 2 * x + 3, (None, None)),  # two pairs without a name in common
        (lambda x: x + 2, ("first-two-more", "halved")),  # or second-two-more
        (lambda x: x, ("halved", None)),  # an input may be replaced, too
    ],
)
def test_of_variants_that_give_the_same_results_the_first_is_named(answer, names):
    result = examine(TOY, answer)
    assert (result.diagnosis, result.also) == names, result.message
