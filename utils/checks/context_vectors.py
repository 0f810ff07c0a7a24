"""Exercises of notebook 03: softmax, attention weights, context vectors."""

import math
from types import SimpleNamespace

import torch
from torch.nn import functional as F

from utils.checks.draw import draws, rows_sum_to_one, worst_sum
from utils.checks.engine import Exercise, Mistake, case

draw = draws(3)


# --- 3.1 --------------------------------------------------------------------------


def right_softmax(scores, dim=-1):
    return torch.softmax(scores.double(), dim).to(scores.dtype)


def without_keepdim(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(dim, keepdim=True))
    return exps / exps.sum(dim)


def max_without_keepdim(scores, dim=-1):
    exps = torch.exp(scores - scores.max(dim).values)
    return exps / exps.sum(dim, keepdim=True)


def shifted(shift):
    """Return the softmax that subtracts `shift(scores, dim)` and may overflow."""

    def compute(scores, dim=-1):
        exps = (scores - shift(scores, dim)).exp()
        return exps / exps.sum(dim, keepdim=True)

    return compute


def sum_over_the_last_axis(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(dim, keepdim=True))
    return exps / exps.sum(-1, keepdim=True)


def hardmax(scores, dim=-1):
    winner = scores.argmax(dim, keepdim=True)
    return torch.zeros_like(scores).scatter(dim, winner, 1.0)


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
        case(draw(3, 5, scale=400.0), note="large scores"),
        case(draw(3, 5, shift=-300.0), note="very negative scores"),
        case(torch.tensor([[0.7]]), note="one score"),
    ],
    properties=[sums_along_dim],
    mistakes=[
        Mistake(
            "softmax-over-everything",
            lambda scores, dim=-1: right_softmax(scores.flatten(), 0).view_as(scores),
            lambda e: (
                f"All {e.got.numel()} entries together sum to 1: the sum runs over "
                "everything. Sum along `dim` alone, with `keepdim=True`."
            ),
        ),
        Mistake(
            "dim-ignored",
            lambda scores, dim=-1: right_softmax(scores, -1),
            "The entries along the last axis sum to 1 although `dim` asks for another "
            "axis: pass `dim` on to the maximum and to the sum.",
        ),
        Mistake(
            "dim-ignored",
            sum_over_the_last_axis,
            "The maximum is taken along `dim`, the sum along the last axis: both run "
            "along `dim`.",
        ),
        Mistake(
            "max-is-a-pair",
            lambda scores, dim=-1: scores - scores.max(dim, keepdim=True),
            "max() with a dim returns two things, values and positions: use amax(), or "
            "max(…).values.",
        ),
        Mistake(
            "wrong-axis",
            lambda scores, dim=-1: right_softmax(scores, 0),
            "The entries along axis 0 sum to 1 whatever `dim` is: pass `dim` on to the "
            "maximum and to the sum; the default, -1, is the last axis.",
        ),
        Mistake(
            "maximum-not-subtracted",
            shifted(lambda scores, dim: 0.0),
            "exp() of a score above 88 is infinite in float32 and inf / inf is NaN; of "
            "scores below -104 it is 0, and 0 / 0 is NaN. Subtract the maximum along "
            "`dim` first: the result stays the same and nothing overflows.",
        ),
        Mistake(
            "global-maximum-subtracted",
            shifted(lambda scores, dim: scores.max()),
            "One maximum is subtracted from all rows: a row far below it becomes 0/0, "
            "NaN. Subtract the maximum along `dim`, with `keepdim=True`.",
        ),
        Mistake(
            "minimum-subtracted",
            shifted(lambda scores, dim: scores.amin(dim, keepdim=True)),
            "The minimum is subtracted, so large scores still overflow: subtract the "
            "maximum, and the largest exponential is exp(0) = 1.",
        ),
        Mistake(
            "mean-subtracted",
            shifted(lambda scores, dim: scores.mean(dim, keepdim=True)),
            "The mean is subtracted, so a score far above it still overflows: subtract "
            "the maximum, and the largest exponential is exp(0) = 1.",
        ),
        Mistake(
            "keepdim-missing",
            without_keepdim,
            "The sums have lost their axis, so they line up with the wrong one: add "
            "`keepdim=True` to the sum.",
        ),
        Mistake(
            "keepdim-missing",
            max_without_keepdim,
            "The maxima have lost their axis, so they line up with the wrong one: add "
            "`keepdim=True` to the maximum.",
        ),
        Mistake(
            "log-softmax",
            lambda scores, dim=-1: torch.log_softmax(scores, dim),
            "These are the logarithms of the right values, log_softmax for softmax.",
        ),
        Mistake(
            "not-normalised",
            lambda scores, dim=-1: (scores - scores.amax(dim, keepdim=True)).exp(),
            lambda e: (
                f"The entries sum to {worst_sum(e.got)} instead of 1: divide the "
                "exponentials by their sum along `dim`."
            ),
        ),
        Mistake(
            "not-normalised",
            lambda scores, dim=-1: scores.exp(),
            lambda e: (
                f"The entries sum to {worst_sum(e.got)} instead of 1: divide the "
                "exponentials by their sum along `dim`."
            ),
        ),
        Mistake(
            "exponential-missing",
            lambda scores, dim=-1: scores / scores.sum(dim, keepdim=True),
            "The scores are divided by their sum without the exponential: a negative "
            "score gives a negative weight.",
        ),
        Mistake(
            "exponential-missing",
            lambda scores, dim=-1: scores.abs() / scores.abs().sum(dim, keepdim=True),
            "The magnitudes are divided by their sum without the exponential: a score "
            "far below zero gets a large weight.",
        ),
        Mistake(
            "softmax-twice",
            lambda scores, dim=-1: right_softmax(right_softmax(scores, dim), dim),
            "The softmax is taken twice, which makes the weights nearly equal: once is "
            "enough.",
        ),
        Mistake(
            "hardmax",
            hardmax,
            "The largest score takes the whole weight: a softmax leaves every score a "
            "share, exp(score) / sum.",
        ),
        Mistake(
            "sign-flipped",
            lambda scores, dim=-1: right_softmax(-scores, dim),
            "The largest score gets the smallest weight: the exponent's sign is wrong.",
        ),
        Mistake(
            "sign-flipped",
            lambda scores, dim=-1: (scores.amax(dim, keepdim=True) - scores).exp()
            / (scores.amax(dim, keepdim=True) - scores).exp().sum(dim, keepdim=True),
            "The scores are subtracted from the maximum, so the largest gets the "
            "smallest weight: subtract the maximum from the scores.",
        ),
        Mistake(
            "base-two",
            lambda scores, dim=-1: right_softmax(scores * math.log(2), dim),
            "The weights are powers of 2, not of e: use torch.exp.",
        ),
        Mistake(
            "sigmoid",
            lambda scores, dim=-1: torch.sigmoid(scores),
            "Each score went through a sigmoid of its own; a softmax divides by the "
            "sum over all scores along `dim`.",
        ),
    ],
)


# --- 3.2 and 3.3 ------------------------------------------------------------------


def scores_of(x):
    return x.double() @ x.double().mT


def right_weights(x, factor=1.0, dim=-1):
    return torch.softmax(factor * scores_of(x), dim).to(x.dtype)


def right_context(x):
    x64 = x.double()
    return F.scaled_dot_product_attention(x64, x64, x64, scale=1.0).to(x.dtype)


def exponentials(x):
    """Return exp of the scores without any care, so that large ones overflow."""
    return torch.exp(x @ x.mT)


def without_itself(x):
    itself = torch.eye(len(x), dtype=torch.bool)
    weights = torch.softmax(scores_of(x).masked_fill(itself, float("-inf")), -1)
    return weights.to(x.dtype)


def hidden_future(x):
    past = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    return torch.softmax(scores_of(x).masked_fill(~past, float("-inf")), -1).to(x.dtype)


def weights_without_keepdim(x):
    exps = torch.exp(scores_of(x) - scores_of(x).amax(-1, keepdim=True))
    return (exps / exps.sum(-1)).to(x.dtype)


# What may be wrong with the weights, as the answer itself or on the way to it: a slug,
# the weights of `x`, and an explanation whose evidence holds these weights.
WRONG_WEIGHTS = [
    (
        "scaled",
        lambda x: right_weights(x, x.shape[-1] ** -0.5),
        lambda e: f"The scores are divided by √D = √{e.args[0].shape[-1]}: that comes "
        "in notebook 04. Here they are the plain dot products.",
    ),
    (
        "divided-by-width",
        lambda x: right_weights(x, 1 / x.shape[-1]),
        lambda e: f"The scores are divided by D = {e.args[0].shape[-1]}: here they are "
        "the plain dot products.",
    ),
    (
        "softmax-over-queries",
        lambda x: right_weights(x, dim=0),
        lambda e: f"A row of the weights sums to {worst_sum(e.got)} while every column "
        "sums to 1: the softmax runs over the queries, or the weights are transposed. "
        "Row i belongs to query i: dim=-1.",
    ),
    (
        "softmax-over-everything",
        lambda x: torch.softmax(scores_of(x).flatten(), 0).view(len(x), -1).to(x.dtype),
        lambda e: f"A row of the weights sums to {worst_sum(e.got)}: the softmax runs "
        "over all scores at once. Each query has a softmax of its own: dim=-1.",
    ),
    (
        "softmax-missing",
        lambda x: scores_of(x).to(x.dtype),
        lambda e: f"A row of the weights sums to {worst_sum(e.got)}: these are the "
        "scores. A softmax over each row turns them into weights.",
    ),
    (
        "maximum-not-subtracted",
        lambda x: exponentials(x) / exponentials(x).sum(-1, keepdim=True),
        "exp() of a score above 88 is infinite in float32, and inf / inf is NaN: use a "
        "softmax that subtracts each row's maximum first.",
    ),
    (
        "keepdim-missing",
        weights_without_keepdim,
        lambda e: f"A row of the weights sums to {worst_sum(e.got)}: the sums have "
        "lost their axis, so they line up with the columns. Sum with keepdim=True.",
    ),
    (
        "not-normalised",
        lambda x: scores_of(x).exp().to(x.dtype),
        lambda e: f"A row of the weights sums to {worst_sum(e.got)}: divide the "
        "exponentials by the sum of their row.",
    ),
    (
        "exponential-missing",
        lambda x: x @ x.mT / (x @ x.mT).sum(-1, keepdim=True),
        "The scores are divided by their sum without the exponential: a negative score "
        "gives a negative weight.",
    ),
    (
        "log-softmax",
        lambda x: torch.log_softmax(scores_of(x), -1).to(x.dtype),
        "These are the logarithms of the weights, log_softmax for softmax.",
    ),
    (
        "sigmoid",
        lambda x: torch.sigmoid(scores_of(x)).to(x.dtype),
        "Each score went through a sigmoid of its own, so a row does not sum to 1: use "
        "a softmax over the row.",
    ),
    (
        "sign-flipped",
        lambda x: right_weights(x, -1.0),
        "The token that fits best gets the smallest weight: the scores have the wrong "
        "sign.",
    ),
    (
        "cosine",
        lambda x: right_weights(F.normalize(x, dim=-1)),
        "The vectors are brought to length 1 first, so these are cosines: the scores "
        "are dot products of the tokens as they are.",
    ),
    (
        "distance",
        lambda x: torch.softmax(-torch.cdist(x.double(), x.double()), -1).to(x.dtype),
        "The scores are distances: use the dot product of the two tokens.",
    ),
    (
        "future-hidden",
        hidden_future,
        "No token attends to those behind it: that is the causal mask of notebook 05. "
        "Here every token attends to all.",
    ),
    (
        "hardmax",
        lambda x: hardmax(scores_of(x)).to(x.dtype),
        "The token that fits best gets the whole weight: a softmax leaves every token "
        "a share.",
    ),
    (
        "itself-excluded",
        without_itself,
        "No token attends to itself: in self-attention it does, so the diagonal stays.",
    ),
    (
        "uniform-weights",
        lambda x: torch.full((len(x), len(x)), 1 / len(x), dtype=x.dtype),
        "Every token gets the same weight: the scores play no part.",
    ),
]


def context_mistake(slug, compute, explain):
    """Return the mistake that mixes the tokens with wrong weights."""

    def explained(e):
        if not callable(explain):
            return explain
        return explain(SimpleNamespace(args=e.args, got=compute(e.args[0])))

    return Mistake(slug, lambda x: compute(x) @ x, explained)


TOKENS = [
    case(draw(3, 2)),
    case(draw(5, 3)),
    case(draw(2, 7)),
    case(draw(5, 5), note="as many tokens as features"),
    case(draw(7, 3, scale=20.0).round(), note="large scores"),
    case(torch.cat([draw(3, 5), torch.zeros(2, 5)]), note="two tokens are zero"),
    case(draw(1, 3), note="one token"),
]

weights = Exercise(
    id="3.2",
    signature="attention_weights(x)",
    returns="the weights (T, T): a row for each query, which sums to 1",
    oracle=lambda x: right_weights(x),
    cases=TOKENS,
    properties=[rows_sum_to_one()],
    mistakes=[
        *(Mistake(*entry) for entry in WRONG_WEIGHTS),
        Mistake(
            "features-for-tokens",
            lambda x: torch.softmax(x.double().mT @ x.double(), -1).to(x.dtype),
            lambda e: f"XᵀX compares the {e.args[0].shape[-1]} features, (D, D): to "
            "compare the tokens, (T, T), the transposed matrix stands on the right.",
        ),
        Mistake(
            "transpose-missing",
            lambda x: torch.softmax(x @ x, -1),
            "x @ x multiplies rows with columns of the same matrix: to compare the "
            "tokens with each other the second one is transposed, x @ x.T.",
        ),
        Mistake(
            "elementwise-product",
            lambda x: torch.softmax((x * x).double(), -1).to(x.dtype),
            "x * x multiplies entry by entry, (T, D): the dot product of every token "
            "with every token is a matrix product, x @ x.T.",
        ),
        Mistake(
            "one-row-only",
            lambda x: right_weights(x)[0],
            "These are the weights of the first query alone: every token is a query.",
        ),
        Mistake(
            "one-row-only",
            lambda x: right_weights(x)[-1],
            "These are the weights of the last query alone: every token is a query. In "
            "a loop, keep the row of every pass.",
        ),
        Mistake(
            "context-returned",
            right_context,
            "These are the context vectors (T, D), a step too far: return the weights.",
        ),
    ],
)


def written_while_reading(x):
    """Return the loop that replaces tokens which later queries still need."""
    contexts = x.clone()
    for i in range(len(contexts)):
        contexts[i] = right_weights(contexts)[i] @ contexts
    return contexts


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


context = Exercise(
    id="3.3",
    signature="context_vectors(x)",
    returns="the context vectors (T, D), one for each token",
    oracle=right_context,
    cases=TOKENS,
    properties=[stays_among_the_tokens],
    mistakes=[
        *(context_mistake(*entry) for entry in WRONG_WEIGHTS),
        Mistake(
            "weights-returned",
            right_weights,
            "These are the weights (T, T): multiply them with the tokens, weights @ x.",
        ),
        Mistake(
            "scores-for-values",
            lambda x: (right_weights(x).double() @ scores_of(x)).to(x.dtype),
            "The weights are right, but they average the scores (T, T): average the "
            "tokens, weights @ x.",
        ),
        Mistake(
            "weights-for-values",
            lambda x: right_weights(x) @ right_weights(x),
            "The weights are right, but they average the weights: average the tokens, "
            "weights @ x.",
        ),
        Mistake(
            "one-row-only",
            lambda x: right_context(x)[0],
            "This is the context vector of the first token: every token gets one.",
        ),
        Mistake(
            "one-row-only",
            lambda x: right_context(x)[-1],
            "This is the context vector of the last token: every token gets one. In a "
            "loop, keep the vector of every pass.",
        ),
        Mistake(
            "one-vector-for-all",
            lambda x: x.mean(0),
            "This is one plain average for the whole sentence, (D,): every token gets "
            "a vector of its own, with weights of its own.",
        ),
        Mistake(
            "one-vector-for-all",
            lambda x: right_context(x).sum(0),
            "The context vectors are added up, (D,): keep one for every token.",
        ),
        Mistake(
            "transpose-missing",
            lambda x: torch.softmax(x @ x, -1) @ x,
            "x @ x multiplies rows with columns of the same matrix: to compare the "
            "tokens with each other the second one is transposed, x @ x.T.",
        ),
        Mistake(
            "values-transposed",
            lambda x: right_weights(x) @ x.T,
            "The weights (T, T) meet the tokens as they are, (T, D): weights @ x, "
            "without a transpose.",
        ),
        Mistake(
            "transposed",
            lambda x: right_context(x).mT,
            "The numbers are right, the axes turned round: (D, T) for (T, D).",
        ),
        Mistake(
            "elementwise-product",
            lambda x: right_weights(x) * x,
            "The weights are multiplied with the tokens entry by entry: a weighted sum "
            "is a matrix product, weights @ x.",
        ),
        Mistake(
            "not-summed",
            lambda x: right_weights(x)[..., None] * x,
            "The weighted tokens are there, (T, T, D), but not added up: sum over the "
            "keys, dim=1.",
        ),
        Mistake(
            "summed-over-queries",
            lambda x: (right_weights(x)[..., None] * x).sum(0),
            "The weighted tokens are summed over the queries: the sum runs over the "
            "keys, dim=1.",
        ),
        Mistake(
            "tokens-added",
            lambda x: x + right_context(x),
            "The token itself is added to its context vector: its own share is in the "
            "weighted sum already.",
        ),
        Mistake(
            "averaged-twice",
            lambda x: right_weights(x) @ right_context(x),
            "The weights are applied twice: once is enough.",
        ),
        Mistake(
            "divided-by-tokens",
            lambda x: right_context(x) / len(x),
            lambda e: f"The sum is divided by T = {len(e.args[0])}, but the weights "
            "sum to 1 already: leave the division out.",
        ),
        Mistake(
            "values-of-length-one",
            lambda x: right_weights(x) @ F.normalize(x, dim=-1),
            "The weights are right, but they average the tokens brought to length 1: "
            "average the tokens as they are.",
        ),
        Mistake(
            "written-while-reading",
            written_while_reading,
            "A context vector takes its token's place before the next query is read: "
            "write into a new tensor.",
        ),
        Mistake(
            "weights-returned-too",
            lambda x: (right_context(x), right_weights(x)),
            "The context vectors are right: return them alone, without the weights.",
        ),
        Mistake(
            "no-attention",
            lambda x: x,
            "The tokens come back as they were: the weights are not used.",
        ),
        Mistake(
            "features-for-tokens",
            lambda x: x @ torch.softmax(x.double().mT @ x.double(), -1).to(x.dtype),
            "The softmax of XᵀX mixes the features: the weights are the softmax of "
            "X Xᵀ, (T, T), and stand on the left.",
        ),
    ],
)

EXERCISES = [softmax, weights, context]
