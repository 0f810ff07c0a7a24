"""The steps of attention: the right way of each, and what goes wrong in it.

An exercise takes the steps that it has (`steps`) and groups of variants. If two give
the same on every case of an exercise, one of them belongs to the exercise's `without`.
"""

from functools import cache

import torch

from utils.checks.pipeline import variants

INF = torch.inf


def fill(s, value):
    """Return the scores with `value` where the mask is False."""
    return s.scores.masked_fill(~s.mask, value)


def zeroed(s):
    """Return the weights with 0 at the hidden positions."""
    return s.soft.masked_fill(~s.mask, 0.0)


ATTENTION_STEPS = {  # from query, key and value on
    "products": lambda s: s.query @ s.key.mT,
    "width": lambda s: s.query.shape[-1],
    "scores": lambda s: s.products / s.width**0.5,
    "diagonal": lambda s: 0,  # of a causal mask, as `tril` counts it
    "mask": lambda s: torch.tensor(True),
    "hidden": lambda s: fill(s, -INF),
    "dim": lambda s: -1,
    "maximum": lambda s: s.hidden.amax(s.dim, keepdim=True),
    "shifted": lambda s: s.hidden - s.maximum,
    "exps": lambda s: s.shifted.exp(),
    "total": lambda s: s.exps.sum(s.dim, keepdim=True),
    "soft": lambda s: s.exps / s.total,
    "cleared": lambda s: s.soft,
    "weights": lambda s: s.cleared,
    "averaged": lambda s: s.value,
    "output": lambda s: s.weights @ s.averaged,
    "merged": lambda s: s.output,
    "projected": lambda s: s.merged,
    "result": lambda s: s.projected,
}
SOFTMAX_NAMES = ("dim", "maximum", "shifted", "exps", "total", "soft", "cleared")
SOFTMAX_STEPS = {name: ATTENTION_STEPS[name] for name in (*SOFTMAX_NAMES, "weights")}


def steps(before=(), **own):
    """Return the right steps, some of them an exercise's own, after those `before`."""
    return dict(before) | ATTENTION_STEPS | own


# --- the scale ---------------------------------------------------------------------

UNSCALED = {"scores": lambda s: s.products}
BY_ROOT = "divide by √d_k, the root of a query's width."
SCALE = variants(
    "scale-missing: You didn't divide the scores by √d_k = √{width}, so the weights are too peaked.",
    UNSCALED,
    "divided-by-width: You divided the scores by d_k = {width}, or twice by its root, so the weights are too even: divide once, by the root.",
    dict(scores=lambda s: s.products / s.width),
    "scale-multiplied: You multiplied the scores by √{width}, so the weights are far too peaked: divide by it.",
    dict(scores=lambda s: s.products * s.width**0.5),
    "scale-halves: You divided by {width} and by 2, because Python takes the power first in `{width} ** 1 / 2`: write ** 0.5.",
    dict(scores=lambda s: s.products / s.width / 2),
    "scale-after-softmax: You divided by √{width} after the softmax, so the weights no longer sum to 1: divide the scores, before it.",
    UNSCALED | dict(weights=lambda s: s.cleared / s.width**0.5),
    f"scale-of-tokens: You divided the scores by √{{width}}, the root of the number of keys: {BY_ROOT}",
    dict(width=lambda s: s.products.shape[-1]),
)
OF_INPUT = variants(
    f"scale-of-input-width: You divided the scores by √{{width}}, the root of x's width: {BY_ROOT}",
    dict(width=lambda s: s.x.shape[-1]),
)
OF_VALUES = variants(
    f"scale-of-values: You divided the scores by √{{width}}, the root of the values' width: {BY_ROOT}",
    dict(width=lambda s: s.value.shape[-1]),
)


# --- the scores --------------------------------------------------------------------


SCORE = variants(
    "reshape-for-transpose: You used a reshape or view as a transpose: the shape fits, but the numbers keep their order, so features of several keys get mixed. Use transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.reshape(s.key.mT.shape)),
)
BATCH_SCORE = variants(  # where there are other axes before the tokens
    "keys-times-queries: You computed the scores as K Qᵀ: row i belongs to query i, so write Q Kᵀ.",
    dict(products=lambda s: s.key @ s.query.mT),
    "fixed-axes: You counted the axes that you transpose from the front, which fits one number of axes only: count from the end, key.transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.transpose(0, 1)),
    "transpose-of-all-axes: You reversed all axes with `.T`, the batch too: swap only the last two, key.transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.T),
)


# --- the softmax -------------------------------------------------------------------

AXIS = variants(
    "softmax-over-queries: The weights that you use sum to 1 over the queries instead of the keys: take the softmax with dim=-1, and don't transpose its result.",
    dict(dim=lambda s: -2),
    "softmax-over-everything: Your softmax runs over all scores at once: use dim=-1, so that each row sums to 1.",
    dict(dim=lambda s: (*range(s.scores.dim()),)),
)
FIXED_AXIS = variants(
    "fixed-axis: You used dim={dim}, which is the axis of the keys for one number of axes only: count from the end, dim=-1.",
    dict(dim=lambda s: 1),
    "softmax-over-first-axis: Your softmax runs along dim=0, which is not the axis of the keys: use dim=-1, so that each row sums to 1.",
    dict(dim=lambda s: 0),
)
SOFTMAX = variants(
    "maximum-not-subtracted: Very large scores break your softmax, because you didn't subtract the maximum: in float32 exp() of a score above 88 is infinite, and below -104 it is 0, so you get inf/inf or 0/0. Subtract the maximum first, or let torch.softmax do it.",
    dict(maximum=lambda s: 0),
    "global-maximum-subtracted: You subtracted one maximum from all rows, so a row far below it becomes 0/0, NaN: subtract each row's own, amax(dim, keepdim=True).",
    dict(maximum=lambda s: s.hidden.max()),
    "keepdim-missing: You summed without keepdim=True: sum() removes its axis, so the sums line up with the wrong entries. keepdim=True keeps the axis, with length 1.",
    dict(total=lambda s: s.exps.sum(s.dim)),
    "not-normalised: You didn't divide the exponentials by their sum: divide, so that each row sums to 1.",
    dict(total=lambda s: 1),
    "exponential-missing: You divided the scores by their sum without the exponential: take exp first, or negative scores give negative weights.",
    dict(exps=lambda s: s.hidden),
    "softmax-missing: You used the scores as they are: turn them into weights with a softmax.",
    dict(soft=lambda s: s.hidden),
)


# --- the mask ----------------------------------------------------------------------


@cache
def lower(rows, columns=None, diagonal=0):
    """Return the causal mask, True where a query may attend."""
    return torch.ones(rows, columns or rows, dtype=torch.bool).tril(diagonal)


def triangle(s):
    return lower(*s.scores.shape[-2:])


NO_MASK = variants(
    "future-hidden: You applied a causal mask, or a loop ends too early: here every query may attend to every key.",
    dict(mask=triangle),
)


# --- the projections -----------------------------------------------------------------


PROJECTED = {
    "query": lambda s: s.x @ s.learned.W_query,
    "key": lambda s: s.context @ s.learned.W_key,
    "value": lambda s: s.context @ s.learned.W_value,
}
SELF_PROJECTED = {"context": lambda s: s.x} | PROJECTED  # in a module
KEY_BY_QUERY = {"key": lambda s: s.context @ s.learned.W_query}
PROJECT = variants(
    "queries-for-keys: You made the keys with W_query: make them with W_key.",
    KEY_BY_QUERY,
    "keys-times-queries: You swapped queries and keys: the query of token i is x_i @ W_query, and row i of the scores, Q Kᵀ, belongs to it.",
    KEY_BY_QUERY | dict(query=lambda s: s.x @ s.learned.W_key),
    "values-not-projected: You averaged the inputs themselves: average the values, which W_value makes of them.",
    dict(value=lambda s: s.context),
)


# --- the average and what is returned ------------------------------------------------

AVERAGE = variants(
    "keys-for-values: You averaged the keys: average the values.",
    dict(averaged=lambda s: s.key),
    "divided-by-tokens: You divided the sum by the number of keys: leave that out, because the weights sum to 1 already.",
    dict(output=lambda s: s.weights @ s.averaged / s.key.shape[-2]),
)
WEIGHING = AXIS + FIXED_AXIS + SOFTMAX + SCORE + BATCH_SCORE + AVERAGE
