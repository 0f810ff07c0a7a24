"""Exercises of the notebook on context vectors: softmax, weights, context vectors."""

from dataclasses import replace

import torch

from utils import attention
from utils.checks import shared
from utils.checks.definition import Case, Exercise, Mistake, draw
from utils.checks.shared import softmax_of

SOFT = [
    Mistake("softmax-over-everything", "You took the maximum and the sum of all entries: both should run along `dim`, with `keepdim=True`.", "dim = (*range(scores.dim()),)"),
    Mistake("softmax-over-everything", "You summed over all entries: sum along `dim` only, with `keepdim=True`.", "total = exps.sum()"),
    Mistake("dim-ignored", "You used the last axis although `dim` asks for another one: maximum and sum should run along `dim`.", "dim = -1", "total = exps.sum(-1, True)"),
    Mistake("wrong-axis", "You used axis 0 where no `dim` is given: the default should be -1.", "dim = 0 if dim == -1 else dim"),
    Mistake("mean-subtracted", "You subtracted the mean, so a score far above it still overflows: subtract the maximum.", "maximum = scores.mean(dim, True)"),
    Mistake(*shared.NO_MAXIMUM, "maximum = 0"),
    Mistake(*shared.ONE_MAXIMUM, "maximum = scores.max()"),
    Mistake(*shared.NO_KEEPDIM, "total = exps.sum(dim)"),
    Mistake(*shared.NOT_DIVIDED, "total = 1"),
    Mistake(*shared.NO_EXPONENTIAL, "exps = scores"),
    Mistake("softmax-missing", "You returned the scores as they are: turn them into weights with a softmax.", "return scores"),
]  # fmt: skip


def softmax(scores, dim=-1):
    maximum = scores.amax(dim, keepdim=True)
    exps = (scores - maximum).exp()
    total = exps.sum(dim, keepdim=True)
    return exps / total


exercise_3_3 = Exercise(
    id="3.3",
    right=softmax,
    course=attention.softmax,
    returns="a tensor of the shape of `scores` whose entries along `dim` sum to 1",
    cases=[
        Case(torch.tensor([1.0, 2.0, 3.0])),
        Case(draw(3, 5)),
        Case(draw(3, 5, seed=1), 0),
        Case(draw(2, 3, 5, 7), 2),
        Case(draw(5, 5).double(), note="float64"),
        Case(draw(3, 5, scale=40000.0), note="large scores"),
        Case(draw(3, 5, shift=-300.0), note="very negative scores"),
    ],
    mistakes=SOFT,
)


# What may be wrong with the weights, as the answer itself or on the way to it.
WEIGHTS = shared.NO_MASK + [
    Mistake("softmax-over-queries", "The weights that you use sum to 1 down each column, and each row should: use dim=-1, and if you divide by a sum, sum(dim=-1, keepdim=True).", "dim = -2"),
    Mistake("scaled", "You divided the scores by a square root: leave that out. Here they are the plain dot products.", "scores = products / x.shape[-1] ** 0.5"),
    Mistake(*shared.BY_ENTRY, "products = query * key"),
    Mistake("diagonal-masked", "You hid each token from itself: it may take from itself too.", "hidden = scores.masked_fill(torch.eye(len(x)) > 0, -torch.inf)"),
]  # fmt: skip
AXIS = [m for m in shared.AXIS if m.name != "softmax-over-queries"]
WEIGHING = AXIS + shared.SOFTMAX + shared.SCORE + WEIGHTS
ONE_ROW = [
    Mistake("one-row-alone", "You returned the row of one word: give every word a row, with `x @ x.T`. (In a loop over the words, the `return` may stand inside it, so that it ends with the first one.)", "return weights[0]", "return weights[1]", "return weights[2]", "return weights[-1]"),
    Mistake("already-mixed", "You returned the context vectors: return the weights, before they mix anything.", "return weights @ x"),
    Mistake("not-transposed", "You multiplied `x` by itself as it is: transpose the second factor, `x @ x.T`.", "products = query @ key"),
]  # fmt: skip
CONTEXT = [Mistake("tokens-added", "You added the token itself to its context vector: its own share is in the weighted sum already.", "return x + output")]  # fmt: skip


def attention_weights(x):
    query, key = x, x
    products = query @ key.mT
    scores = products
    hidden = scores
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    return weights


def context_vectors(x):
    query, key, value = x, x, x
    products = query @ key.mT
    scores = products
    hidden = scores
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output


TOKENS = [Case(draw(*size)) for size in ((3, 2), (2, 7), (5, 5), (7, 3))]
# Only 3.3 asks for a softmax that doesn't overflow.
ANY = ("maximum-not-subtracted", "global-maximum-subtracted")
exercise_3_1 = Exercise(
    id="3.1",
    right=attention_weights,
    course=attention.attention_weights,
    returns="the weights (T, T): a row for each word that looks, which sums to 1",
    cases=TOKENS,
    mistakes=WEIGHING + ONE_ROW,
    skip_mistakes=ANY,
)
exercise_3_2 = Exercise(
    id="3.2",
    right=context_vectors,
    course=attention.context_vectors,
    returns="the context vectors (T, D), one for each token",
    cases=TOKENS,
    mistakes=WEIGHING + shared.AVERAGE + CONTEXT,
    skip_mistakes=(*ANY, "keys-for-values"),  # both are the tokens
)

exercise_0_1 = replace(
    exercise_3_3,
    id="0.1",
    page="00_start_here",
    same_as="3.3",
    counts_as="softmax in 00",
)
exercise_1_in_the_hour = replace(
    exercise_3_1, id="1", page="attention_in_an_hour", same_as="3.1"
)
