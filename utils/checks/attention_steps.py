"""The steps of attention, once: the right way of each, and what goes wrong in it.

An exercise takes the steps that it has, and of the wrong forms those of its steps
(`attention`). The order of the forms matters: where two give the same on every case of
an exercise, the first is named, and the other belongs to its `without`.

Texts are data. In braces stand the exercise's words (`root`, `width`, `value` …) and
facts measured on the wrong form itself (`FACTS`).
"""

import math
from dataclasses import replace
from functools import cache
from itertools import chain
from operator import attrgetter

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.draw import said_sum, worst_sum
from utils.checks.steps import Form, Forms, Pipeline, State, texts_of
from utils.checks.values import number

TEXTS = texts_of(__file__)
INF = torch.inf


def fill(s, value, mask=None, of=None):
    """Return the scores, or others, with `value` where the mask is False, if any is."""
    mask = s.mask if mask is None else mask
    of = s.scores if of is None else of
    return of if mask is None else of.masked_fill(~mask, value)


def zeroed(s):
    """Return the weights with 0 at the hidden places."""
    return fill(s, 0.0, of=s.soft)


def allowed(s):
    """Return the mask as 1 and 0; 1 everywhere where there is none."""
    return torch.ones(()) if s.mask is None else s.mask.float()


STEPS = {  # in order: what each stores in the state, and how, where all do it alike
    "out_weight": ("out_weight", None),
    "out_bias": ("out_bias", None),
    "query": ("query", None),
    "key": ("key", None),
    "value": ("value", None),
    "split": (("query", "key", "value"), None),
    "score": ("products", lambda s: s.query @ s.key.mT),
    "width": ("width", lambda s: s.query.shape[-1]),
    "scale": ("scores", lambda s: s.products / s.width**0.5),
    "mask": ("mask", lambda s: None),
    "hide": ("hidden", lambda s: fill(s, -INF)),
    "axis": ("dim", lambda s: -1),
    "maximum": ("maximum", lambda s: s.hidden.amax(s.dim, keepdim=True)),
    "shift": ("shifted", lambda s: s.hidden - s.maximum),
    "exp": ("exps", lambda s: s.shifted.exp()),
    "total": ("total", lambda s: s.exps.sum(s.dim, keepdim=True)),
    "divide": ("soft", lambda s: s.exps / s.total),
    "clear": ("cleared", lambda s: s.soft),
    "drop": ("weights", lambda s: s.cleared),
    "average": ("output", lambda s: s.weights @ s.value),
    "merge": ("merged", lambda s: s.output),
    "project_out": ("projected", lambda s: s.merged),
    "give": ("result", lambda s: s.projected),
}
GIVES = {name: gives for name, (gives, _) in STEPS.items()}
RIGHT = {name: way for name, (_, way) in STEPS.items() if way}


def steps(leaving_out=(), **own):
    """Return the right steps in order, with those of an exercise's own."""
    known = {name: way for name, way in RIGHT.items() if name not in leaving_out} | own
    return {name: known[name] for name in STEPS if name in known}


def attention(start, steps, *groups, without=(), renamed=(), words=(), harmless=()):
    """Return the pipeline of these steps, and of the wrong forms of groups those in it.

    `without` names slugs (or holds forms) that an exercise cannot tell apart or does
    not ask for, and `renamed` gives a slug another name.
    """
    without, names = {*without}, dict(renamed)
    forms = [
        replace(one, slug=names.get(one.slug, one.slug))
        for one in chain(*groups)
        if not {one, one.slug} & without and one.ways.keys() <= steps.keys()
    ]
    return Pipeline(start, steps, forms, GIVES, harmless, FACTS | dict(words))


def by_torch(query, key, value, mask=None):
    """Return PyTorch's output and weights, 0 where nothing may be attended to."""
    eye = torch.eye(key.shape[-2]).expand(*key.shape[:-1], -1)
    values = torch.cat((value, eye), -1).double()
    made = F.scaled_dot_product_attention(query.double(), key.double(), values, mask)
    return made.nan_to_num(0.0).float().tensor_split([-key.shape[-2]], -1)


# --- facts that a text may ask for -------------------------------------------------


def rows(s):
    """Return the rows of weights in which something is allowed."""
    if getattr(s, "mask", None) is None:
        return s.weights
    return s.weights[s.mask.expand_as(s.weights).any(-1)]


def leaked(weights, mask):
    """Return the weight that hidden places of a row get at most."""
    hidden = weights.double().nan_to_num(0.0) * ~mask
    return hidden.sum(-1).max().item()


def leak(s):
    """Return the weight that hidden places get, as text: how much, where it shows.

    The right mask is the one given at the start, or else the causal one.
    """
    got = leaked(s.weights, s.allowed if hasattr(s, "allowed") else triangle(s))
    return f"a weight of up to {number(got)}" if got > 1e-4 else "a weight"


def hidden_and_allowed(weights, mask):
    """Say that hidden places get a weight, or that those of a row do not sum to 1."""
    if leaked(weights, mask) > 1e-6:
        most = number(leaked(weights, mask))
        return TEXTS["SEEN"]["leak"].format(leak=most)
    total = worst_sum(rows(State(weights=weights, mask=mask)))
    if abs(float(total) - 1) < 1e-3:
        return None
    return TEXTS["SEEN"]["sum"].format(sum=total)


def future(s):
    """Return what token 0 gives to later ones, as text: how much, where it shows."""
    given = s.weights.double().nan_to_num(0.0)[..., 0, 1:].sum(-1).flatten()[0].item()
    return f"{number(given)} of its weight" if given > 1e-4 else "a part of its weight"


FACTS = TEXTS["WORDS"] | {
    "d": lambda s: s.query.shape[-1],
    "n": lambda s: s.width,
    "T": lambda s: s.query.shape[-2],
    "S": lambda s: s.key.shape[-2],
    "isqrt": lambda s: math.isqrt(s.width),
    "row_sum": lambda s: said_sum(rows(s)),
    "leak": leak,
    "future": future,
}


# --- the scale ---------------------------------------------------------------------

UNSCALED = {"scale": lambda s: s.products}
SCALE = Forms(TEXTS["SCALE"])
SCALE.wrong("scale-missing", **UNSCALED)
SCALE.wrong("divided-by-width", scale=lambda s: s.products / s.width)
SCALE.wrong("scale-multiplied", scale=lambda s: s.products * s.width**0.5)
SCALE.wrong("scale-halves", scale=lambda s: s.products / s.width / 2)
SCALE.wrong("scale-halves 2", scale=lambda s: s.products / (s.width / 2))
SCALE.wrong("scale-halves 3", scale=lambda s: s.products * s.width / 2)
SCALE.wrong("scale-squared", scale=lambda s: s.products / s.width**2)
SCALE.wrong("scale-fixed", scale=lambda s: s.products / 8)
SCALE.wrong("root-rounded", scale=lambda s: s.products / math.isqrt(s.width))
SCALE.wrong("scores-rounded", scale=lambda s: s.products // s.width**0.5)
SCALE.wrong("scale-after-softmax", **UNSCALED, drop=lambda s: s.cleared / s.width**0.5)
AFTER_ALL = {"average": lambda s: s.weights @ s.value / s.width**0.5}
SCALE.wrong("scale-after-softmax 2", **UNSCALED, **AFTER_ALL)


def size(slug, name, of, what=""):
    """Return the form that takes another size for the width of the queries."""
    words = {"name": name, "what": what}
    return Form(slug, TEXTS["SIZE"]["another-size"], {"width": of}, words)


SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("scale-of-keys", "S", lambda s: s.key.shape[-2], ", the number of keys"),
    size(
        "scale-of-tokens", "T", lambda s: s.query.shape[-2], ", the number of queries"
    ),
]


# --- the scores --------------------------------------------------------------------


def angles(s):
    """Return the cosines of queries and keys."""
    return F.normalize(s.query, dim=-1) @ F.normalize(s.key, dim=-1).mT


def reshaped(x):
    """Return x with the shape that a transpose gives, but its numbers as they lie."""
    return x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])


SCORE = Forms(TEXTS["SCORE"])
SCORE.wrong("reshape-for-transpose", score=lambda s: s.query @ reshaped(s.key))
SCORE.wrong("keys-times-queries", score=lambda s: s.key @ s.query.mT)
SCORE.wrong("compares-angles", score=angles, **UNSCALED)
SCORE.wrong("compares-angles", score=angles)
for i, key in enumerate(("fixed-axes", "fixed-axes 2", "fixed-axes 3")):
    SCORE.wrong(key, score=lambda s, i=i: s.query @ s.key.transpose(i, i + 1))
ONE_LEADING_AXIS, TWO_LEADING_AXES = SCORE[-2:]
SCORE.wrong("transpose-missing", score=lambda s: s.query @ s.key)
SCORE.wrong("transpose-of-all-axes", score=lambda s: s.query @ s.key.T)
SCORE.wrong("distance", score=lambda s: -torch.cdist(s.query, s.key))
SCORE.wrong("sign-flipped", score=lambda s: -(s.query @ s.key.mT))


# --- the softmax -------------------------------------------------------------------

AXIS = Forms(TEXTS["AXIS"])
AXIS.wrong("softmax-over-queries", axis=lambda s: -2)
AXIS.wrong("axis-left-open", axis=lambda s: 0 if s.scores.dim() in (0, 1, 3) else 1)
for axis in (0, 1, 2):
    AXIS.wrong("fixed-axis", {"axis": axis}, axis=lambda s, axis=axis: axis)
AXIS.wrong("softmax-over-everything", axis=lambda s: tuple(range(s.scores.dim())))

UNSHIFTED = {"maximum": lambda s: 0}
SOFTMAX = Forms(TEXTS["SOFTMAX"])
wrong = SOFTMAX.wrong
wrong("maximum-not-subtracted", **UNSHIFTED)
wrong("global-maximum-subtracted", maximum=lambda s: s.hidden.max())
wrong("keepdim-missing", total=lambda s: s.exps.sum(s.dim))
wrong("keepdim-missing 2", maximum=lambda s: s.hidden.amax(s.dim))
wrong("keepdim-missing 3", **SOFTMAX[-1].ways, **SOFTMAX[-2].ways)
wrong("not-normalised", total=lambda s: 1)
wrong("not-normalised", **UNSHIFTED, total=lambda s: 1)
wrong("exponential-missing", exp=lambda s: s.hidden)
wrong("exponential-missing", exp=lambda s: s.shifted)
wrong("softmax-missing", divide=lambda s: s.hidden)
wrong("softmax-twice", drop=lambda s: s.cleared.softmax(s.dim))
wrong("log-softmax", drop=lambda s: torch.log_softmax(s.hidden, s.dim))
wrong("sigmoid", divide=lambda s: s.hidden.sigmoid())
wrong("hardmax", drop=lambda s: F.one_hot(s.soft.argmax(-1), s.soft.shape[-1]).float())
wrong("weights-squared", drop=lambda s: s.cleared.square())
wrong("uniform-weights", scale=lambda s: torch.zeros_like(s.products))


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


def projected(**matrices):
    """Return the steps that project by these matrices: with key="query" by W_query."""

    def by(source, matrix):
        return lambda s: getattr(s, source) @ attrgetter(f"W_{matrix}")(s.learned)

    sources = {"query": "x", "key": "context", "value": "context"}
    return {step: by(sources[step], matrix) for step, matrix in matrices.items()}


PROJECTED = projected(query="query", key="key", value="value")


def of_module(weights, x):
    """Start from a module's weights and its input, which asks and is asked."""
    return {"learned": weights, "x": x, "context": x}


PROJECT = Forms(TEXTS["PROJECT"])
PROJECT.wrong("parameter-called", query=lambda s: nn.Parameter(s.learned.W_query)(s.x))
PROJECT.wrong("queries-for-keys", **projected(key="query"))
PROJECT.wrong("keys-for-queries", **projected(query="key"))
PROJECT.wrong("queries-for-values", **projected(value="query"))
PROJECT.wrong("keys-times-queries", **projected(query="key", key="query"))
PROJECT.wrong("keys-and-values-exchanged", **projected(key="value", value="key"))
PROJECT.wrong("queries-and-values-exchanged", **projected(query="value", value="query"))
PROJECT.wrong("values-for-keys", **projected(key="value"))
PROJECT.wrong("values-not-projected", value=lambda s: s.context)
PROJECT.wrong("keys-not-projected", key=lambda s: s.context)
PROJECT.wrong("queries-not-projected", query=lambda s: s.x)
TURNED = projected(query="query.mT", key="key.mT", value="value.mT")
PROJECT.wrong("weight-not-transposed", **TURNED)
PROJECT.wrong("no-attention", average=lambda s: s.value)


# --- the average and what is returned ------------------------------------------------

AVERAGE = Forms(TEXTS["AVERAGE"])
wrong = AVERAGE.wrong
wrong("keys-for-values", average=lambda s: s.weights @ s.key)
wrong("queries-for-values", average=lambda s: s.weights @ s.query)
wrong("weights-transposed", average=lambda s: s.weights.mT @ s.value)
wrong("elementwise-product", average=lambda s: s.weights * s.value)
wrong("values-transposed", average=lambda s: s.weights @ s.value.mT)
wrong("averaged-twice", average=lambda s: s.weights @ (s.weights @ s.value))
wrong("divided-by-tokens", average=lambda s: s.weights @ s.value / s.key.shape[-2])
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
