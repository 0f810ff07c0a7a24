"""Exercises of notebook 03: softmax, attention weights, context vectors."""

import torch
from torch.nn import functional as F

from utils.checks import attention_steps as of_attention
from utils.checks.attention_steps import (
    FACTS,
    GIVES,
    INF,
    RIGHT,
    angles,
    every_axis,
    lower,
    max_without_keepdim,
    steps,
    unshifted,
    without_keepdim,
)
from utils.checks.draw import draws, rows_sum_to_one, worst_sum
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(3)


# --- 3.1 --------------------------------------------------------------------------


def right_softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim).to(scores.dtype)


def hardmax(s):
    winner = s.hidden.argmax(s.dim, keepdim=True)
    return torch.zeros_like(s.hidden).scatter(s.dim, winner, 1.0)


def shares(numerators):
    """Return the step that divides these by their sum along `dim`."""
    return lambda s: numerators(s) / numerators(s).sum(s.dim, keepdim=True)


def minus(subtracted):
    """Return the step that subtracts this, taken along `dim`, from the scores."""
    return lambda s: s.hidden - subtracted(s.hidden, s.dim, keepdim=True)


def from_this(minuend):
    """Return the step that subtracts the scores from this."""
    return lambda s: minuend(s.hidden, s.dim, keepdim=True) - s.hidden


def divided_along(axis):
    return lambda s: s.exps / s.exps.sum(axis, keepdim=True)


def maximum_along(axis):
    return lambda s: s.hidden - s.hidden.amax(axis, keepdim=True)


SOFT = Forms(TEXTS["SOFT"])
SOFT.wrong("softmax-over-everything", axis=every_axis)
SOFT.wrong("dim-ignored", axis=lambda s: -1)
for axis, name in ((-1, "the last axis"), (0, "axis 0")):
    SOFT.wrong("dim-ignored 2", {"axis": name}, divide=divided_along(axis))
    SOFT.wrong("dim-ignored 3", {"axis": name}, shift=maximum_along(axis))
SOFT.wrong("max-is-a-pair", shift=minus(torch.max))
SOFT.wrong("wrong-axis", axis=lambda s: 0)
SOFT.wrong("wrong-axis 2", axis=lambda s: s.asked or 0)
SOFT.wrong("softmax-over-everything 2", divide=lambda s: s.exps / s.exps.sum())
SOFT.wrong("maximum-not-subtracted", shift=unshifted)
SOFT.wrong("global-maximum-subtracted", shift=lambda s: s.hidden - s.hidden.max())
SOFT.wrong("minimum-subtracted", shift=minus(torch.amin))
SOFT.wrong("mean-subtracted", shift=minus(torch.mean))
SOFT.wrong("keepdim-missing", divide=without_keepdim)
SOFT.wrong("keepdim-missing 2", shift=max_without_keepdim)
SOFT.wrong("keepdim-missing 3", shift=max_without_keepdim, divide=without_keepdim)
SOFT.wrong("log-softmax", drop=lambda s: torch.log_softmax(s.hidden, s.dim))
SOFT.wrong("not-normalised", divide=lambda s: s.exps)
SOFT.wrong("not-normalised", shift=unshifted, divide=lambda s: s.exps)
SOFT.wrong("not-normalised 2", divide=lambda s: s.exps / s.exps.mean(s.dim, True))
SOFT.wrong("not-normalised 3", divide=lambda s: s.exps / s.exps.shape[s.dim])
SOFT.wrong("exponential-missing", divide=shares(lambda s: s.hidden))
SOFT.wrong("exponential-missing", exp=lambda s: s.shifted)
SOFT.wrong("exponential-missing 2", divide=shares(lambda s: s.hidden.abs()))
SOFT.wrong("softmax-twice", drop=lambda s: torch.softmax(s.cleared, s.dim))
SOFT.wrong("hardmax", divide=hardmax)
SOFT.wrong("sign-flipped", shift=from_this(torch.amin))
SOFT.wrong("sign-flipped 2", shift=from_this(torch.amax))
SOFT.wrong("base-two", exp=lambda s: s.shifted.exp2())
SOFT.wrong("sigmoid", divide=lambda s: torch.sigmoid(s.hidden))
SOFTMAX = {
    "axis": lambda s: -1 if s.asked is None else s.asked,
    **{name: RIGHT[name] for name in ("shift", "exp", "divide", "clear", "drop")},
    "give": lambda s: s.weights,
}
of_softmax = Pipeline(
    start=lambda scores, dim=None: {"scores": scores, "hidden": scores, "asked": dim},
    steps=SOFTMAX,
    gives=GIVES,
    forms=SOFT,
    words=FACTS | {"count": lambda s: s.hidden.numel()},
)


def sums_along_dim(evidence):
    """Say in words that the weights along `dim` do not sum to 1, or order is lost."""
    scores, dim = (*evidence.args, -1)[:2]
    if ((evidence.got.double().sum(dim) - 1).abs() > 1e-4).any():
        return f"The entries along `dim` sum to {worst_sum(evidence.got, dim)}, not 1."
    if not torch.equal(evidence.got.argmax(dim), scores.argmax(dim)):
        return "The largest score along `dim` does not get the largest weight."
    return None


softmax = Exercise(
    id="3.1",
    signature="softmax(scores, dim=-1)",
    returns="a tensor of the shape of `scores` whose entries along `dim` sum to 1",
    oracle=right_softmax,
    cases=[
        case(torch.tensor([1.0, 2.0, 3.0])),
        case(draw(3, 5)),
        case(draw(3, 5), 0),
        case(draw(2, 3, 5)),
        case(draw(2, 3, 5), 1),
        case(draw(5, 5)),
        case(draw(3, 5, scale=400.0), note="large scores", special=True),
        case(draw(3, 5, shift=-300.0), note="very negative scores", special=True),
        case(torch.tensor([[0.7]]), note="one score", special=True),
    ],
    properties=[sums_along_dim],
    pipeline=of_softmax,
)


# --- 3.2 and 3.3 ------------------------------------------------------------------


def right_weights(x):
    return torch.softmax(x.double() @ x.double().mT, -1).to(x.dtype)


def right_context(x):
    x64 = x.double()
    return F.scaled_dot_product_attention(x64, x64, x64, scale=1.0).to(x.dtype)


def itself(s):
    return torch.eye(len(s.x), dtype=torch.bool)


# What may be wrong with the weights, as the answer itself or on the way to it.
WEIGHTS = Forms(TEXTS["WEIGHTS"])
WEIGHTS.wrong("scaled", scale=lambda s: s.products / s.x.shape[-1] ** 0.5)
WEIGHTS.wrong("divided-by-width", scale=lambda s: s.products / s.x.shape[-1])
WEIGHTS.wrong("divided-by-width 2", scale=lambda s: s.products / s.x.shape[-1] / 2)
WEIGHTS.wrong("scale-of-tokens", scale=lambda s: s.products / len(s.x) ** 0.5)
WEIGHTS.wrong("softmax-over-queries", axis=lambda s: 0)
WEIGHTS.wrong("softmax-over-everything", axis=every_axis)
WEIGHTS.wrong("softmax-missing", divide=lambda s: s.hidden)
WEIGHTS.wrong("sign-flipped", score=lambda s: -(s.query @ s.key.mT))
WEIGHTS.wrong("cosine", score=angles)
WEIGHTS.wrong("distance", score=lambda s: -torch.cdist(s.query, s.key))
WEIGHTS.wrong(
    "future-hidden", hide=lambda s: s.scores.masked_fill(~lower(*s.scores.shape), -INF)
)
WEIGHTS.wrong("itself-excluded", hide=lambda s: s.scores.masked_fill(itself(s), -INF))
WEIGHTS.wrong("future-hidden 2", clear=lambda s: s.soft.tril())
WEIGHTS.wrong("itself-excluded 2", clear=lambda s: s.soft.masked_fill(itself(s), 0.0))
WEIGHTS.wrong("uniform-weights", scale=lambda s: torch.zeros_like(s.products))
WEIGHTS.wrong("transpose-missing", score=lambda s: s.x @ s.x)
RETURN_WEIGHTS = Forms(TEXTS["RETURN_WEIGHTS"])
RETURN_WEIGHTS.wrong("features-for-tokens", score=lambda s: s.x.mT @ s.x)
RETURN_WEIGHTS.wrong("elementwise-product", score=lambda s: s.x * s.x)
RETURN_WEIGHTS.wrong("one-row-only", give=lambda s: s.weights[0])
RETURN_WEIGHTS.wrong("one-row-only 2", give=lambda s: s.weights[-1])
RETURN_WEIGHTS.wrong("context-returned", give=lambda s: s.weights @ s.x)
RETURN_CONTEXT = Forms(TEXTS["RETURN_CONTEXT"])
RETURN_CONTEXT.wrong("weights-returned", give=lambda s: s.weights)
RETURN_CONTEXT.wrong("scores-for-values", average=lambda s: s.weights @ s.scores)
RETURN_CONTEXT.wrong("weights-for-values", average=lambda s: s.weights @ s.weights)
RETURN_CONTEXT.wrong("one-row-only", give=lambda s: s.output[0])
RETURN_CONTEXT.wrong("one-row-only 2", give=lambda s: s.output[-1])
RETURN_CONTEXT.wrong("one-vector-for-all", give=lambda s: s.x.mean(0))
RETURN_CONTEXT.wrong("one-vector-for-all 2", give=lambda s: s.output.sum(0))
RETURN_CONTEXT.wrong("values-transposed", average=lambda s: s.weights @ s.x.T)
RETURN_CONTEXT.wrong("transposed", give=lambda s: s.output.mT)
RETURN_CONTEXT.wrong("elementwise-product", average=lambda s: s.weights * s.x)
RETURN_CONTEXT.wrong("not-summed", average=lambda s: s.weights[..., None] * s.x)
RETURN_CONTEXT.wrong(
    "summed-over-queries", average=lambda s: (s.weights[..., None] * s.x).sum(0)
)
RETURN_CONTEXT.wrong(
    "last-token-missing", average=lambda s: s.weights[:, :-1] @ s.x[:-1]
)
RETURN_CONTEXT.wrong("divided-by-width", give=lambda s: s.output / s.x.shape[-1])
RETURN_CONTEXT.wrong("tokens-added", give=lambda s: s.x + s.output)
RETURN_CONTEXT.wrong("averaged-twice", average=lambda s: s.weights @ (s.weights @ s.x))
RETURN_CONTEXT.wrong("divided-by-tokens", give=lambda s: s.output / len(s.x))
RETURN_CONTEXT.wrong(
    "values-of-length-one", average=lambda s: s.weights @ F.normalize(s.x, dim=-1)
)
RETURN_CONTEXT.wrong("weights-returned-too", give=lambda s: (s.output, s.weights))
RETURN_CONTEXT.wrong("no-attention", average=lambda s: s.x)
RETURN_CONTEXT.wrong(
    "features-for-tokens",
    score=lambda s: s.x.mT @ s.x,
    average=lambda s: s.x @ s.weights,
)


def written_while_reading(s):
    """Replace tokens which later queries still need."""
    contexts = s.x.clone()
    for i in range(len(contexts)):
        contexts[i] = right_weights(contexts)[i] @ contexts
    return contexts


RETURN_CONTEXT.wrong("written-while-reading", give=written_while_reading)


def of_tokens(give, *groups, leaving_out=()):
    """Return the pipeline of unscaled self-attention, with nothing to learn."""
    return of_attention.attention(
        lambda x: {"x": x, "query": x, "key": x, "value": x},
        steps(scale=lambda s: s.products, give=give, leaving_out=leaving_out),
        of_attention.SOFTMAX,
        WEIGHTS,
        *groups,
        words={"D": lambda s: s.x.shape[-1]},
    )


TOKENS = [
    case(draw(3, 2)),
    case(draw(5, 3)),
    case(draw(2, 7)),
    case(draw(5, 5), note="as many tokens as features"),
    case(draw(7, 3, scale=20.0).round(), note="large scores", special=True),
    case(
        torch.cat([draw(3, 5), torch.zeros(2, 5)]),
        note="two tokens are zero",
        special=True,
    ),
    case(draw(1, 3), note="one token", special=True),
]

of_weights = of_tokens(
    lambda s: s.weights,
    RETURN_WEIGHTS,
    leaving_out=("average", "merge", "project_out"),
)
weights = Exercise(
    id="3.2",
    signature="attention_weights(x)",
    returns="the weights (T, T): a row for each query, which sums to 1",
    oracle=right_weights,
    cases=TOKENS,
    properties=[rows_sum_to_one()],
    pipeline=of_weights,
)


def stays_among_the_tokens(evidence):
    """Say that an average left the range of what it averages."""
    x, got = evidence.args[0].double(), evidence.got.double()
    low, high = x.amin(0) - 1e-4, x.amax(0) + 1e-4
    outside = ((got < low) | (got > high)).nonzero()
    if len(outside):
        row, feature = outside[0].tolist()
        return (
            f"Feature {feature} of row {row} is {got[row, feature]:.4g}; the tokens "
            f"hold {x[:, feature].min():.4g} to {x[:, feature].max():.4g} there: an "
            "average with weights from 0 to 1 cannot leave that range."
        )
    return None


of_context = of_tokens(lambda s: s.output, RETURN_CONTEXT)
context = Exercise(
    id="3.3",
    signature="context_vectors(x)",
    returns="the context vectors (T, D), one for each token",
    oracle=right_context,
    cases=TOKENS,
    properties=[stays_among_the_tokens],
    pipeline=of_context,
)

EXERCISES = [softmax, weights, context]
