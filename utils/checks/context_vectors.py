"""Exercises of notebook 03: softmax, attention weights, context vectors."""

import math

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
    forms_of,
    lower,
    max_without_keepdim,
    steps,
    unshifted,
    without_keepdim,
)
from utils.checks.draw import draws, rows_sum_to_one, worst_sum
from utils.checks.engine import Exercise, Mistake, case, mistakes_of
from utils.checks.steps import Forms, Pipeline

draw = draws(3)


# --- 3.1 --------------------------------------------------------------------------


def right_softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim).to(scores.dtype)


def max_minus_scores(s):
    return s.hidden.amax(s.dim, keepdim=True) - s.hidden


def hardmax(s):
    winner = s.hidden.argmax(s.dim, keepdim=True)
    return torch.zeros_like(s.hidden).scatter(s.dim, winner, 1.0)


def shares(numerators):
    """Return the step that divides these by their sum along `dim`."""
    return lambda s: numerators(s) / numerators(s).sum(s.dim, keepdim=True)


STILL_OVERFLOWS = (
    "is subtracted, so a score far above it still overflows: subtract the maximum, "
    "and the largest exponential is exp(0) = 1."
)
NOT_ONE = (
    "The entries sum to {row_sum} instead of 1: divide the exponentials by their sum "
    "along `dim`."
)
FORMS = Forms()
FORMS.wrong(
    "softmax-over-everything",
    "All {count} entries together sum to 1: the sum runs over everything. Sum along "
    "`dim` alone, with `keepdim=True`.",
    axis=every_axis,
)
FORMS.wrong(
    "dim-ignored",
    "The entries along the last axis sum to 1 although `dim` asks for another axis: "
    "pass `dim` on to the maximum and to the sum.",
    axis=lambda s: -1,
)
FORMS.wrong(
    "dim-ignored",
    "The maximum is taken along `dim`, the sum along the last axis: both run along "
    "`dim`.",
    divide=lambda s: s.exps / s.exps.sum(-1, keepdim=True),
)
FORMS.wrong(
    "dim-ignored",
    "The sum runs along `dim`, the maximum along the last axis: both run along `dim`.",
    shift=lambda s: s.hidden - s.hidden.amax(-1, keepdim=True),
)
FORMS.wrong(
    "max-is-a-pair",
    "max() with a dim returns two things, values and positions: use amax(), or "
    "max(…).values.",
    shift=lambda s: s.hidden - s.hidden.max(s.dim, keepdim=True),
)
FORMS.wrong(
    "wrong-axis",
    "The entries along axis 0 sum to 1 whatever `dim` is: pass `dim` on to the "
    "maximum and to the sum; the default, -1, is the last axis.",
    axis=lambda s: 0,
)
FORMS.wrong(
    "softmax-over-everything",
    "The sum runs over everything: sum along `dim` alone, with `keepdim=True`.",
    divide=lambda s: s.exps / s.exps.sum(),
)
FORMS.wrong(
    "maximum-not-subtracted",
    "exp() of a score above 88 is infinite in float32 and inf / inf is NaN; of scores "
    "below -104 it is 0, and 0 / 0 is NaN. Subtract the maximum along `dim` first: "
    "the result stays the same and nothing overflows.",
    shift=unshifted,
)
FORMS.wrong(
    "global-maximum-subtracted",
    "One maximum is subtracted from all rows: a row far below it becomes 0/0, NaN. "
    "Subtract the maximum along `dim`, with `keepdim=True`.",
    shift=lambda s: s.hidden - s.hidden.max(),
)
FORMS.wrong(
    "minimum-subtracted",
    f"The minimum {STILL_OVERFLOWS}",
    shift=lambda s: s.hidden - s.hidden.amin(s.dim, keepdim=True),
)
FORMS.wrong(
    "mean-subtracted",
    f"The mean {STILL_OVERFLOWS}",
    shift=lambda s: s.hidden - s.hidden.mean(s.dim, keepdim=True),
)
FORMS.wrong(
    "keepdim-missing",
    "The sums have lost their axis, so they line up with the wrong one: add "
    "`keepdim=True` to the sum.",
    divide=without_keepdim,
)
FORMS.wrong(
    "keepdim-missing",
    "The maxima have lost their axis, so they line up with the wrong one: add "
    "`keepdim=True` to the maximum.",
    shift=max_without_keepdim,
)
FORMS.wrong(
    "keepdim-missing",
    "Maxima and sums have lost their axis, so they line up with the wrong one: add "
    "`keepdim=True` to both.",
    shift=max_without_keepdim,
    divide=without_keepdim,
)
FORMS.wrong(
    "log-softmax",
    "These are the logarithms of the right values, log_softmax for softmax.",
    drop=lambda s: torch.log_softmax(s.hidden, s.dim),
)
FORMS.wrong("not-normalised", NOT_ONE, divide=lambda s: s.exps)
FORMS.wrong("not-normalised", NOT_ONE, shift=unshifted, divide=lambda s: s.exps)
FORMS.wrong(
    "not-normalised",
    "The exponentials are divided by their mean: divide by their sum along `dim`.",
    divide=lambda s: s.exps / s.exps.mean(s.dim, keepdim=True),
)
FORMS.wrong(
    "exponential-missing",
    of_attention.NO_EXPONENTIAL,
    divide=shares(lambda s: s.hidden),
)
FORMS.wrong(
    "exponential-missing",
    of_attention.NO_EXPONENTIAL,
    exp=lambda s: s.shifted,
)
FORMS.wrong(
    "exponential-missing",
    "The magnitudes are divided by their sum without the exponential: a score far "
    "below zero gets a large weight.",
    divide=shares(lambda s: s.hidden.abs()),
)
FORMS.wrong(
    "softmax-twice",
    "The softmax is taken twice, which makes the weights nearly equal: once is enough.",
    drop=lambda s: torch.softmax(s.cleared, s.dim),
)
FORMS.wrong(
    "hardmax",
    "The largest score takes the whole weight: a softmax leaves every score a share, "
    "exp(score) / sum.",
    divide=hardmax,
)
FORMS.wrong(
    "sign-flipped",
    "The largest score gets the smallest weight: the exponent's sign is wrong.",
    shift=lambda s: s.hidden.amin(s.dim, keepdim=True) - s.hidden,
)
FORMS.wrong(
    "sign-flipped",
    "The scores are subtracted from the maximum, so the largest gets the smallest "
    "weight: subtract the maximum from the scores.",
    shift=max_minus_scores,
)
FORMS.wrong(
    "base-two",
    "The weights are powers of 2, not of e: use torch.exp.",
    exp=lambda s: (s.shifted * math.log(2)).exp(),
)
FORMS.wrong(
    "sigmoid",
    "Each score went through a sigmoid of its own; a softmax divides by the sum over "
    "all scores along `dim`.",
    divide=lambda s: torch.sigmoid(s.hidden),
)
SOFTMAX = {
    "axis": lambda s: s.asked,
    **{name: RIGHT[name] for name in ("shift", "exp", "divide", "clear", "drop")},
    "give": lambda s: s.weights,
}
of_softmax = Pipeline(
    start=lambda scores, dim=-1: {"scores": scores, "hidden": scores, "asked": dim},
    steps=SOFTMAX,
    gives=GIVES,
    forms=FORMS,
    facts=FACTS | {"count": lambda s: s.hidden.numel()},
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
    mistakes=mistakes_of(of_softmax),
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
WEIGHTS = Forms()
WEIGHTS.wrong(
    "scaled",
    "The scores are divided by √D = √{D}: that comes in notebook 04. Here they are "
    "the plain dot products.",
    scale=lambda s: s.products / s.x.shape[-1] ** 0.5,
)
WEIGHTS.wrong(
    "divided-by-width",
    "The scores are divided by D = {D}: here they are the plain dot products.",
    scale=lambda s: s.products / s.x.shape[-1],
)
WEIGHTS.wrong(
    "divided-by-width",
    "The scores are divided by D = {D} and by 2: here they are the plain dot products. "
    "(`/ D ** 1 / 2` is no root either: Python takes the power first.)",
    scale=lambda s: s.products / s.x.shape[-1] / 2,
)
WEIGHTS.wrong(
    "scale-of-tokens",
    "The scores are divided by √T = √{T}: here they are the plain dot products.",
    scale=lambda s: s.products / len(s.x) ** 0.5,
)
WEIGHTS.wrong(
    "softmax-over-queries",
    "A row of the weights sums to {row_sum} while every column sums to 1: the softmax "
    "runs over the queries, the weights are transposed, or their sums have lost their "
    "axis (keepdim=True). Row i belongs to query i: dim=-1.",
    axis=lambda s: 0,
)
WEIGHTS.wrong(
    "softmax-over-everything",
    "A row of the weights sums to {row_sum}: the softmax runs over all scores at "
    "once. Each query has a softmax of its own: dim=-1.",
    axis=every_axis,
)
WEIGHTS.wrong(
    "softmax-missing",
    "A row of the weights sums to {row_sum}: these are the scores. A softmax over "
    "each row turns them into weights.",
    divide=lambda s: s.hidden,
)
WEIGHTS.wrong(
    "sign-flipped",
    "The token that fits best gets the smallest weight: the scores have the wrong "
    "sign.",
    score=lambda s: -(s.query @ s.key.mT),
)
WEIGHTS.wrong(
    "cosine",
    "The vectors are brought to length 1 first, so these are cosines: the scores are "
    "dot products of the tokens as they are.",
    score=angles,
)
WEIGHTS.wrong(
    "distance",
    "The scores are distances: use the dot product of the two tokens.",
    score=lambda s: -torch.cdist(s.query, s.key),
)
WEIGHTS.wrong(
    "future-hidden",
    "No token attends to those behind it: that is the causal mask of notebook 05. "
    "Here every token attends to all.",
    hide=lambda s: s.scores.masked_fill(~lower(*s.scores.shape), -INF),
)
WEIGHTS.wrong(
    "itself-excluded",
    "No token attends to itself: in self-attention it does, so the diagonal stays.",
    hide=lambda s: s.scores.masked_fill(itself(s), -INF),
)
WEIGHTS.wrong(
    "uniform-weights",
    "Every token gets the same weight: the scores play no part.",
    scale=lambda s: torch.zeros_like(s.products),
)
WEIGHTS.wrong(
    "transpose-missing",
    "x @ x multiplies rows with columns of the same matrix: to compare the tokens "
    "with each other the second one is transposed, x @ x.T.",
    score=lambda s: s.x @ s.x,
)
RETURN_WEIGHTS = Forms()
RETURN_WEIGHTS.wrong(
    "features-for-tokens",
    "XᵀX compares the {D} features, (D, D): to compare the tokens, (T, T), the "
    "transposed matrix stands on the right.",
    score=lambda s: s.x.mT @ s.x,
)
RETURN_WEIGHTS.wrong(
    "elementwise-product",
    "x * x multiplies entry by entry, (T, D): the dot product of every token with "
    "every token is a matrix product, x @ x.T.",
    score=lambda s: s.x * s.x,
)
RETURN_WEIGHTS.wrong(
    "one-row-only",
    "These are the weights of the first query alone: every token is a query.",
    give=lambda s: s.weights[0],
)
RETURN_WEIGHTS.wrong(
    "one-row-only",
    "These are the weights of the last query alone: every token is a query. In a "
    "loop, keep the row of every pass.",
    give=lambda s: s.weights[-1],
)
RETURN_WEIGHTS.wrong(
    "context-returned",
    "These are the context vectors (T, D), a step too far: return the weights.",
    give=lambda s: s.weights @ s.x,
)
RETURN_CONTEXT = Forms()
RETURN_CONTEXT.wrong(
    "weights-returned",
    "These are the weights (T, T): multiply them with the tokens, weights @ x.",
    give=lambda s: s.weights,
)
RETURN_CONTEXT.wrong(
    "scores-for-values",
    "The weights are right, but they average the scores (T, T): average the tokens, "
    "weights @ x.",
    average=lambda s: s.weights @ s.scores,
)
RETURN_CONTEXT.wrong(
    "weights-for-values",
    "The weights are right, but they average the weights: average the tokens, weights "
    "@ x.",
    average=lambda s: s.weights @ s.weights,
)
RETURN_CONTEXT.wrong(
    "one-row-only",
    "This is the context vector of the first token: every token gets one.",
    give=lambda s: s.output[0],
)
RETURN_CONTEXT.wrong(
    "one-row-only",
    "This is the context vector of the last token: every token gets one. In a loop, "
    "keep the vector of every pass.",
    give=lambda s: s.output[-1],
)
RETURN_CONTEXT.wrong(
    "one-vector-for-all",
    "This is one plain average for the whole sentence, (D,): every token gets a "
    "vector of its own, with weights of its own.",
    give=lambda s: s.x.mean(0),
)
RETURN_CONTEXT.wrong(
    "one-vector-for-all",
    "The context vectors are added up, (D,): keep one for every token.",
    give=lambda s: s.output.sum(0),
)
RETURN_CONTEXT.wrong(
    "values-transposed",
    "The weights (T, T) meet the tokens as they are, (T, D): weights @ x, without a "
    "transpose.",
    average=lambda s: s.weights @ s.x.T,
)
RETURN_CONTEXT.wrong(
    "transposed",
    "The numbers are right, the axes turned round: (D, T) for (T, D).",
    give=lambda s: s.output.mT,
)
RETURN_CONTEXT.wrong(
    "elementwise-product",
    "The weights are multiplied with the tokens entry by entry: a weighted sum is a "
    "matrix product, weights @ x.",
    average=lambda s: s.weights * s.x,
)
RETURN_CONTEXT.wrong(
    "not-summed",
    "The weighted tokens are there, (T, T, D), but not added up: sum over the keys, "
    "dim=1.",
    average=lambda s: s.weights[..., None] * s.x,
)
RETURN_CONTEXT.wrong(
    "summed-over-queries",
    "The weighted tokens are summed over the queries: the sum runs over the keys, "
    "dim=1.",
    average=lambda s: (s.weights[..., None] * s.x).sum(0),
)
RETURN_CONTEXT.wrong(
    "tokens-added",
    "The token itself is added to its context vector: its own share is in the "
    "weighted sum already.",
    give=lambda s: s.x + s.output,
)
RETURN_CONTEXT.wrong(
    "averaged-twice",
    "The weights are applied twice: once is enough.",
    average=lambda s: s.weights @ (s.weights @ s.x),
)
RETURN_CONTEXT.wrong(
    "divided-by-tokens",
    "The sum is divided by T = {T}, but the weights sum to 1 already: leave the "
    "division out.",
    give=lambda s: s.output / len(s.x),
)
RETURN_CONTEXT.wrong(
    "values-of-length-one",
    "The weights are right, but they average the tokens brought to length 1: average "
    "the tokens as they are.",
    average=lambda s: s.weights @ F.normalize(s.x, dim=-1),
)
RETURN_CONTEXT.wrong(
    "weights-returned-too",
    "The context vectors are right: return them alone, without the weights.",
    give=lambda s: (s.output, s.weights),
)
RETURN_CONTEXT.wrong(
    "no-attention",
    "The tokens come back as they were: the weights are not used, or each row of them "
    "multiplies its own token, and sums to 1. Row i takes a share of every token, "
    "x[j].",
    average=lambda s: s.x,
)
RETURN_CONTEXT.wrong(
    "features-for-tokens",
    "The softmax of XᵀX mixes the features: the weights are the softmax of X Xᵀ, (T, "
    "T), and stand on the left.",
    score=lambda s: s.x.mT @ s.x,
    average=lambda s: s.x @ s.weights,
)


def of_tokens(give, *groups, leaving_out=()):
    """Return the pipeline of unscaled self-attention, with nothing to learn."""
    made = steps(scale=lambda s: s.products, give=give, leaving_out=leaving_out)
    return Pipeline(
        start=lambda x: {"x": x, "query": x, "key": x, "value": x},
        steps=made,
        gives=GIVES,
        forms=forms_of(made, of_attention.SOFTMAX, WEIGHTS, *groups),
        facts=FACTS | {"D": lambda s: s.x.shape[-1]},
    )


def written_while_reading(x):
    """Return the loop that replaces tokens which later queries still need."""
    contexts = x.clone()
    for i in range(len(contexts)):
        contexts[i] = right_weights(contexts)[i] @ contexts
    return contexts


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
    mistakes=mistakes_of(of_weights),
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
    mistakes=mistakes_of(
        of_context,
        Mistake(
            "written-while-reading",
            written_while_reading,
            "A context vector takes its token's place before the next query is read: "
            "write into a new tensor.",
        ),
    ),
)

EXERCISES = [softmax, weights, context]
