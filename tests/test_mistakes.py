"""What a check says of one mistake, of two, and if neither fits."""

import re
from dataclasses import replace

import pytest
import torch
from torch import softmax

from tests.every_exercise import EXERCISES, answer_from
from utils.checks import check
from utils.checks.definition import Case, Exercise
from utils.checks.engine.forms import FORM_VARIANTS
from utils.checks.engine.mistakes import Mistake, apply_variants
from utils.checks.examine import examine

VARIANTS = [
    (e, v) for e in EXERCISES.values() for v in e.variants if v not in FORM_VARIANTS
]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("exercise", "variant"), VARIANTS, ids=[f"{e.id}-{v.name}" for e, v in VARIANTS]
)
def test_every_mistake_is_told_apart_and_explained(exercise, variant):
    """Its own answer gets its own name, so the order of mistakes doesn't matter.

    This shows that mistakes are distinct, not that a reader's mistake is recognised,
    because the answer is made of the mistake's own lines: `test_answers` shows that.
    """
    mistaken, _ = apply_variants(exercise.right, variant)
    answer = answer_from(exercise, mistaken)
    result = check(exercise.id, answer)
    assert result.diagnosis == variant.name, (
        f"{variant.name} and {result.diagnosis} give the same in all cases of "
        f"{exercise.id}: add a case that tells them apart, or one to `skip_mistakes`"
    )
    opening = variant.mistake.text.partition("{")[0]
    assert opening in " ".join(result.message.split()), "another of this name hides it"
    assert "NameError" not in result.message, "a line uses a name that is unknown there"
    assert 2 < len(result.message.splitlines()) < 12


def divided(query, key, value):
    weights = torch.softmax(query @ key.mT / key.shape[-1], dim=-1)
    return weights @ value, weights


RIGHT, MERGED = EXERCISES["4.1"].right, EXERCISES["1.1"].right


@pytest.mark.parametrize(
    ("id", "answer", "names", "words"),
    [
        ("4.1", lambda *x: [*RIGHT(*x)], "list-for-tuple None", "got [float tensor of"),
        ("4.1", lambda *x: [*divided(*x)], "divided-by-width list-for-tuple", "Two th"),
        ("4.1", lambda *x: RIGHT(*x)[::-1], "parts-swapped None", "one weight per key"),
        ("1.1", lambda *x: (*MERGED(*x),), "tuple-returned None", "returned a tuple: "),
        ("3.1", lambda x: [*softmax(x @ x.T, -1)], "list-for-tensor None", "right."),
    ],
)
def test_a_wrong_form_is_named_and_what_it_holds_is_compared(id, answer, names, words):
    result = check(id, answer)
    assert f"{result.diagnosis} {result.also}" == names
    assert words in " ".join(result.message.split())


def double(x):
    first = x
    second = x
    return first + second


TOY = Exercise(  # two lines, each of which may give 1 or 2 too much
    id="0.1",
    right=double,
    returns="2x",
    cases=[Case(3.0), Case(5.0)],
    mistakes=[
        Mistake("first-one-more", "Your first term is 1 too large.", "first = x + 1"),
        Mistake("second-one-more", "The second term is 1 too large.", "second = x + 1"),
        Mistake("first-two-more", "Your first term is 2 too large.", "first = x + 2"),
        Mistake("second-two-more", "The second term is 2 too large.", "second = x + 2"),
        Mistake("halved", "You halved x.", "x = x / 2"),
    ],
)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (lambda x: 2 * x + 1, ("first-one-more", None)),  # of equal ones the first
        (lambda x: 2 * x + 4, ("first-two-more", "second-two-more")),
        (lambda x: 2 * x + 3, (None, None)),  # two pairs without a name in common
        (lambda x: x + 2, ("first-two-more", "halved")),  # or second-two-more
        (lambda x: x, ("halved", None)),  # an argument may be replaced, too
    ],
)
def test_of_mistakes_that_give_the_same_results_the_first_is_named(answer, names):
    result = examine(TOY, answer)
    assert (result.diagnosis, result.also) == names, result.message


def larger(x, least=4.0):
    parts = x  # a line of `forms.as_is` assigns this name, too
    output = max(
        parts,
        least,
    )
    if parts > least:
        output = parts + 1
        return parts, output
    else:
        parts = parts + 2
    return parts, output


@pytest.mark.parametrize(
    ("line", "case", "got"),
    [
        ("output = parts - 1", 5.0, (5.0, 4.0)),
        ("output = parts - 1", 3.0, (5.0, 2.0)),
        ("parts = x + 7", -9.0, (-2.0, 4.0)),
        ("least = 6.0", 5.0, (7.0, 6.0)),
        ("return [y for y in (parts, least)]", 5.0, [5.0, 4.0]),
    ],
)
def test_a_right_answer_may_have_statements_and_names_of_any_kind(line, case, got):
    toy = {"right": larger, "cases": [Case(case)], "parts": ("x", "larger")}
    toy = replace(TOY, mistakes=[Mistake("m", "text", line)], **toy)
    assert apply_variants(larger, toy.variants[0])[0](case) == got
    assert examine(toy, lambda x: got).diagnosis == "m"
    if type(got) is tuple:
        result = examine(toy, lambda x: [*got])
        assert (result.diagnosis, result.also) == ("m", "list-for-tuple")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("frist = x + 1", "expected a name of double, got `frist`"),
        ("first += 1", "expected `name = …` or `return …`, got `first += 1`"),
    ],
)
def test_a_wrong_line_that_replaces_none_of_the_right_answer_is_named(line, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(TOY, mistakes=[Mistake("first-one-more", "text", line)])
