"""The steps of attention, once: the right way of each, and what goes wrong in it.

An exercise takes the steps that it has, and of the wrong forms those of its steps
(`forms_of`). The order of the forms matters: where two give the same on every case of
an exercise, the first is named, and the other belongs to its `without`.

Texts are data. In braces stand the exercise's words (`root`, `width`, `value` …) and
facts measured on the wrong form itself (`FACTS`).
"""

import math
from dataclasses import replace
from functools import cache

import torch
from torch.nn import functional as F

from utils.checks.draw import worst_sum
from utils.checks.steps import Form, Forms, Pipeline, texts_of
from utils.checks.values import number

TEXTS = texts_of(__file__)
INF = torch.inf

GIVES = {  # what each step leaves in the state, in the order of the steps
    "query": "query",
    "key": "key",
    "value": "value",
    "split": ("query", "key", "value"),
    "score": "products",
    "width": "width",
    "scale": "scores",
    "mask": "mask",
    "hide": "hidden",
    "axis": "dim",
    "shift": "shifted",
    "exp": "exps",
    "divide": "soft",
    "clear": "cleared",
    "drop": "weights",
    "average": "output",
    "merge": "merged",
    "project_out": "projected",
    "give": "result",
}


def fill(s, value, mask=None):
    """Return the scores with `value` where the mask, given or made, is False."""
    mask = s.mask if mask is None else mask
    return s.scores if mask is None else s.scores.masked_fill(~mask, value)


def zeroed(s):
    """Return the weights with 0 at the hidden places."""
    return s.soft if s.mask is None else s.soft.masked_fill(~s.mask, 0.0)


def allowed(s):
    """Return the mask as 1 and 0; 1 everywhere where there is none."""
    return torch.ones(()) if s.mask is None else s.mask.float()


RIGHT = {  # the right way of the steps that every exercise takes alike
    "score": lambda s: s.query @ s.key.mT,
    "width": lambda s: s.query.shape[-1],
    "scale": lambda s: s.products / s.width**0.5,
    "mask": lambda s: None,
    "hide": lambda s: fill(s, -INF),
    "axis": lambda s: -1,
    "shift": lambda s: s.hidden - s.hidden.amax(s.dim, keepdim=True),
    "exp": lambda s: s.shifted.exp(),
    "divide": lambda s: s.exps / s.exps.sum(s.dim, keepdim=True),
    "clear": lambda s: s.soft,
    "drop": lambda s: s.cleared,
    "average": lambda s: s.weights @ s.value,
    "merge": lambda s: s.output,
    "project_out": lambda s: s.merged,
    "give": lambda s: s.projected,
}


def steps(leaving_out=(), **own):
    """Return the right steps in order, with those of an exercise's own."""
    known = {name: way for name, way in RIGHT.items() if name not in leaving_out} | own
    return {name: known[name] for name in GIVES if name in known}


def forms_of(steps, *groups, without=(), renamed=()):
    """Return the wrong forms of these steps from groups of forms.

    `without` names slugs (or holds forms) that an exercise cannot tell apart or does
    not ask for, and `renamed` gives a slug another name.
    """
    renamed = dict(renamed)
    return [
        replace(one, slug=renamed.get(one.slug, one.slug))
        for group in groups
        for one in group
        if not {one, one.slug} & {*without} and one.ways.keys() <= steps.keys()
    ]


def attention(start, steps, *groups, words=(), harmless=(), **chosen):
    """Return the pipeline of these steps of attention, `chosen` as in `forms_of`."""
    forms = forms_of(steps, *groups, **chosen)
    return Pipeline(start, steps, forms, GIVES, harmless, FACTS | dict(words))


# --- facts that a text may ask for -------------------------------------------------


def right_mask(s):
    """Return the mask that is right: given at the start, or the causal one."""
    return s.allowed if hasattr(s, "allowed") else triangle(s)


def row_sum(s):
    """Return the sum of a row of weights that is furthest from 1, as text."""
    sums = s.weights.double().sum(-1)
    some = sums.isfinite()
    if getattr(s, "mask", None) is not None:
        some = some & s.mask.expand_as(s.weights).any(-1)
    return worst_sum(s.weights[some]) if some.any() else "NaN"


def leak(s):
    """Return the weight that hidden places of a row get at most, as text."""
    hidden = s.weights.double().nan_to_num(0.0) * ~right_mask(s)
    return number(hidden.sum(-1).max().item())


def future(s):
    """Return how much of the weight of token 0 goes to later ones, as text."""
    rows = s.weights.double().nan_to_num(0.0)
    return number(rows[..., 0, 1:].sum(-1).flatten()[0].item())


FACTS = {
    "d": lambda s: s.query.shape[-1],
    "n": lambda s: s.width,
    "d_v": lambda s: s.value.shape[-1],
    "T": lambda s: s.query.shape[-2],
    "S": lambda s: s.key.shape[-2],
    "isqrt": lambda s: math.isqrt(s.width),
    "row_sum": row_sum,
    "leak": leak,
    "future": future,
}


# --- the scale ---------------------------------------------------------------------

SCALE = Forms(TEXTS["SCALE"])
SCALE.wrong("scale-missing", scale=lambda s: s.products)
SCALE.wrong("divided-by-width", scale=lambda s: s.products / s.width)
SCALE.wrong("scale-multiplied", scale=lambda s: s.products * s.width**0.5)
SCALE.wrong("scale-halves", scale=lambda s: s.products / s.width / 2)
SCALE.wrong("scale-halves 2", scale=lambda s: s.products / (s.width / 2))
SCALE.wrong("scale-halves 3", scale=lambda s: s.products * s.width / 2)
SCALE.wrong("scale-squared", scale=lambda s: s.products / s.width**2)
SCALE.wrong("scale-fixed", scale=lambda s: s.products / 8)
SCALE.wrong("root-rounded", scale=lambda s: s.products / math.isqrt(s.width))
SCALE.wrong("scores-rounded", scale=lambda s: s.products // s.width**0.5)
SCALE.wrong(
    "scale-after-softmax",
    scale=lambda s: s.products,
    drop=lambda s: s.cleared / s.width**0.5,
)
SCALE.wrong(
    "scale-after-softmax 2",
    scale=lambda s: s.products,
    average=lambda s: s.weights @ s.value / s.width**0.5,
)


def size(slug, name, of, what=""):
    """Return the form that takes another size for the width of the queries."""
    words = {"name": name, "what": what}
    return Form(slug, TEXTS["SIZE"]["another-size"], {"width": of}, words)


# --- the scores --------------------------------------------------------------------


def turned(first, second):
    """Return the scores of keys with two fixed axes transposed."""
    return lambda s: s.query @ s.key.transpose(first, second)


def angles(s):
    """Return the cosines of queries and keys."""
    return F.normalize(s.query, dim=-1) @ F.normalize(s.key, dim=-1).mT


SCORE = Forms(TEXTS["SCORE"])
SCORE.wrong("keys-times-queries", score=lambda s: s.key @ s.query.mT)
SCORE.wrong("compares-angles", score=angles, scale=lambda s: s.products)
SCORE.wrong("compares-angles", score=angles)
SCORE.wrong("fixed-axes", score=turned(0, 1))
SCORE.wrong("fixed-axes 2", score=turned(1, 2))
SCORE.wrong("fixed-axes 3", score=turned(2, 3))
ONE_LEADING_AXIS, TWO_LEADING_AXES = SCORE[-2:]
SCORE.wrong("transpose-missing", score=lambda s: s.query @ s.key)
SCORE.wrong("transpose-of-all-axes", score=lambda s: s.query @ s.key.T)
SCORE.wrong("distance", score=lambda s: -torch.cdist(s.query, s.key))
SCORE.wrong("sign-flipped", score=lambda s: -(s.query @ s.key.mT))


# --- the softmax -------------------------------------------------------------------


def default_axis(s):
    """Return the axis that a softmax without `dim` takes, by the number of axes."""
    return 0 if s.scores.dim() in (0, 1, 3) else 1


def every_axis(s):
    return tuple(range(s.scores.dim()))


AXIS = Forms(TEXTS["AXIS"])
AXIS.wrong("softmax-over-queries", axis=lambda s: -2)
AXIS.wrong("axis-left-open", axis=default_axis)
for axis in (0, 1, 2):
    AXIS.wrong("fixed-axis", {"axis": axis}, axis=lambda s, axis=axis: axis)
AXIS.wrong("softmax-over-everything", axis=every_axis)


def without_keepdim(s):
    return s.exps / s.exps.sum(s.dim)


def max_without_keepdim(s):
    return s.hidden - s.hidden.amax(s.dim)


def unshifted(s):
    return s.hidden


SOFTMAX = Forms(TEXTS["SOFTMAX"])
SOFTMAX.wrong("maximum-not-subtracted", shift=unshifted)
SOFTMAX.wrong("global-maximum-subtracted", shift=lambda s: s.hidden - s.hidden.max())
SOFTMAX.wrong("keepdim-missing", divide=without_keepdim)
SOFTMAX.wrong("keepdim-missing 2", shift=max_without_keepdim)
SOFTMAX.wrong("keepdim-missing 3", shift=max_without_keepdim, divide=without_keepdim)
SOFTMAX.wrong("not-normalised", divide=lambda s: s.exps)
SOFTMAX.wrong("not-normalised", shift=unshifted, divide=lambda s: s.exps)
SOFTMAX.wrong("exponential-missing", shift=unshifted, exp=lambda s: s.shifted)
SOFTMAX.wrong("softmax-missing", divide=lambda s: s.hidden)
SOFTMAX.wrong("softmax-twice", drop=lambda s: s.cleared.softmax(-1))
SOFTMAX.wrong("log-softmax", drop=lambda s: torch.log_softmax(s.hidden, s.dim))
SOFTMAX.wrong("sigmoid", divide=lambda s: s.hidden.sigmoid())
SOFTMAX.wrong(
    "hardmax",
    drop=lambda s: F.one_hot(s.cleared.argmax(-1), s.cleared.shape[-1]).float(),
)
SOFTMAX.wrong("weights-squared", drop=lambda s: s.cleared.square())
UNIFORM = Forms(TEXTS["UNIFORM"])
UNIFORM.wrong("uniform-weights", scale=lambda s: torch.zeros_like(s.products))
UNIFORM.wrong(
    "uniform-weights", score=lambda s: torch.zeros(*s.query.shape[:-1], s.key.shape[-2])
)


# --- the mask ----------------------------------------------------------------------


@cache
def lower(rows, columns=None, diagonal=0):
    """Return the causal mask, True where a query may attend."""
    return torch.ones(rows, columns or rows, dtype=torch.bool).tril(diagonal)


def triangle(s):
    return lower(*s.scores.shape[-2:])


NO_MASK = Forms(TEXTS["NO_MASK"])
NO_MASK.wrong("future-hidden", mask=triangle)


# --- the projections -----------------------------------------------------------------


def project(weights, x):
    """Return the queries, keys and values of a module."""
    return x @ weights.W_query, x @ weights.W_key, x @ weights.W_value


PROJECTED = {  # the right steps where matrices are learned
    "query": lambda s: s.x @ s.learned.W_query,
    "key": lambda s: s.context @ s.learned.W_key,
    "value": lambda s: s.context @ s.learned.W_value,
}


def of_module(weights, x):
    """Start from a module's weights and its input, which asks and is asked."""
    return {"learned": weights, "x": x, "context": x}


def parameter_called(s):
    raise TypeError("'Parameter' object is not callable")


PROJECT = Forms(TEXTS["PROJECT"])
PROJECT.wrong("parameter-called", query=parameter_called)
PROJECT.wrong("queries-for-keys", key=lambda s: s.context @ s.learned.W_query)
PROJECT.wrong("keys-for-queries", query=lambda s: s.x @ s.learned.W_key)
PROJECT.wrong("keys-for-values", value=lambda s: s.context @ s.learned.W_key)
PROJECT.wrong("queries-for-values", value=lambda s: s.context @ s.learned.W_query)
PROJECT.wrong(
    "keys-times-queries",
    query=lambda s: s.x @ s.learned.W_key,
    key=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong(
    "keys-and-values-exchanged",
    key=lambda s: s.context @ s.learned.W_value,
    value=lambda s: s.context @ s.learned.W_key,
)
PROJECT.wrong(
    "queries-and-values-exchanged",
    query=lambda s: s.x @ s.learned.W_value,
    value=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong("values-for-keys", key=lambda s: s.context @ s.learned.W_value)
PROJECT.wrong("values-not-projected", value=lambda s: s.context)
PROJECT.wrong("keys-not-projected", key=lambda s: s.context)
PROJECT.wrong("queries-not-projected", query=lambda s: s.x)
PROJECT.wrong(
    "weight-not-transposed",
    query=lambda s: s.x @ s.learned.W_query.mT,
    key=lambda s: s.context @ s.learned.W_key.mT,
    value=lambda s: s.context @ s.learned.W_value.mT,
)
PROJECT.wrong("no-attention", average=lambda s: s.value)


# --- the average and what is returned ------------------------------------------------

AVERAGE = Forms(TEXTS["AVERAGE"])
AVERAGE.wrong("keys-for-values", average=lambda s: s.weights @ s.key)
AVERAGE.wrong("queries-for-values", average=lambda s: s.weights @ s.query)
AVERAGE.wrong("weights-transposed", average=lambda s: s.weights.mT @ s.value)
AVERAGE.wrong("elementwise-product", average=lambda s: s.weights * s.value)
AVERAGE.wrong("values-transposed", average=lambda s: s.weights @ s.value.mT)
AVERAGE.wrong("averaged-twice", average=lambda s: s.weights @ (s.weights @ s.value))
AVERAGE.wrong(
    "divided-by-tokens", average=lambda s: s.weights @ s.value / s.key.shape[-2]
)
RETURN_BOTH = Forms(TEXTS["RETURN_BOTH"])
RETURN_BOTH.wrong("weights-missing", give=lambda s: s.output)
RETURN_BOTH.wrong("output-and-weights-swapped", give=lambda s: (s.weights, s.output))
RETURN_BOTH.wrong("output-missing", give=lambda s: s.weights)
RETURN_BOTH.wrong("scores-for-weights", give=lambda s: (s.output, s.scores))
RETURN_BOTH.wrong("weights-turned", give=lambda s: (s.output, s.weights.mT))
RETURN_OUTPUT = Forms(TEXTS["RETURN_OUTPUT"])
RETURN_OUTPUT.wrong("weights-returned", give=lambda s: s.weights)
RETURN_OUTPUT.wrong("value-added", give=lambda s: s.projected + s.x @ s.learned.W_value)
RETURN_OUTPUT.wrong("last-token-only", give=lambda s: s.projected[..., -1, :])
RETURN_OUTPUT.wrong("last-token-only", give=lambda s: s.projected[..., -1:, :])
RETURN_OUTPUT.wrong("size-one-axes-dropped", give=lambda s: s.projected.squeeze())
