"""The steps of attention: the right way of each, and what goes wrong in it.

An exercise takes the steps that it has (`steps`) and groups of variants. Where two
variants give the same on every case of an exercise, the first is named, and the other
belongs to the exercise's `without`.

The texts use `WORDS`, some of which an exercise may replace by its own: `width_name`,
and `source`, what is projected to keys and values.
"""

import math
from functools import cache
from operator import attrgetter

import torch
from torch.nn import functional as F

from utils.checks.pipeline import Variant, variants
from utils.checks.properties import row_sum, worst_sum
from utils.checks.values import number

INF = torch.inf


def allowed(s):
    """Return the mask as 1 and 0; 1 everywhere where there is none."""
    return torch.ones(()) if s.mask is None else s.mask.float()


def fill(s, value):
    """Return the scores with `value` where the mask is False, if any is."""
    return s.scores.masked_fill(allowed(s) == 0, value)


def zeroed(s):
    """Return the weights with 0 at the hidden positions."""
    return s.soft.masked_fill(allowed(s) == 0, 0.0)


ATTENTION_STEPS = {  # in order; those that are None belong to an exercise
    **dict.fromkeys(("query", "key", "value", "query, key, value")),
    "products": lambda s: s.query @ s.key.mT,
    "width": lambda s: s.query.shape[-1],
    "scores": lambda s: s.products / s.width**0.5,
    "mask": lambda s: None,
    "hidden": lambda s: fill(s, -INF),
    "dim": lambda s: -1,
    "maximum": lambda s: s.hidden.amax(s.dim, keepdim=True),
    "shifted": lambda s: s.hidden - s.maximum,
    "exps": lambda s: s.shifted.exp(),
    "total": lambda s: s.exps.sum(s.dim, keepdim=True),
    "soft": lambda s: s.exps / s.total,
    "cleared": lambda s: s.soft,
    "weights": lambda s: s.cleared,
    "output": lambda s: s.weights @ s.value,
    "merged": lambda s: s.output,
    "projected": lambda s: s.merged,
    "result": lambda s: s.projected,
}
SOFTMAX_NAMES = ("dim", "maximum", "shifted", "exps", "total", "soft", "cleared")
SOFTMAX_STEPS = {name: ATTENTION_STEPS[name] for name in (*SOFTMAX_NAMES, "weights")}
WORDS = {  # for the texts, unless an exercise has its own
    "width_name": "d_k",
    "source": "x",
    "d": lambda s: s.query.shape[-1],
    "S": lambda s: s.key.shape[-2],
    "isqrt": lambda s: math.isqrt(s.width),
    "row_sum": lambda s: row_sum(filled_rows(s.weights, getattr(s, "mask", None))),
}


def steps(**own):
    """Return the right steps in order, after those that an exercise adds to them."""
    first = {name: own[name] for name in own if name not in ATTENTION_STEPS}
    known = (first | ATTENTION_STEPS | own).items()
    return {name: step for name, step in known if step}


def by_torch(query, key, value, mask=None):
    """Return PyTorch's output and weights, 0 where nothing may be attended to."""
    eye = torch.eye(key.shape[-2]).double().expand(*key.shape[:-1], -1)
    attend = F.scaled_dot_product_attention  # the average of unit vectors: the weights
    weights = attend(query.double(), key.double(), eye, mask).nan_to_num(0.0)
    return (weights @ value.double()).float(), weights.float()


# --- what the texts and properties say about weights ----------------------------------


def filled_rows(weights, mask):
    """Return the rows of weights in which something is allowed."""
    return weights if mask is None else weights[mask.expand_as(weights).any(-1)]


def hidden_and_allowed(weights, mask):
    """Say that hidden positions get a weight, or that the others do not sum to 1."""
    leak = (weights.double().nan_to_num(0.0) * ~mask).sum(-1).max().item()
    if leak > 1e-6:
        return f"Your hidden positions get a weight of up to {number(leak)}, not 0."
    total = worst_sum(filled_rows(weights, mask))
    text = f"Your weights in a row sum to {number(total)} instead of 1."
    return None if abs(total - 1) < 1e-3 else text


# --- the scale ---------------------------------------------------------------------

UNSCALED = {"scores": lambda s: s.products}
SCALE = variants(
    "scale-missing: You didn't divide the scores by √{width_name} = √{width}, so the weights are too peaked.",
    UNSCALED,
    "divided-by-width: You divided the scores by {width_name} = {width}, or twice by its root, so the weights are too even: divide once, by the square root.",
    dict(scores=lambda s: s.products / s.width),
    "scale-multiplied: You multiplied the scores by √{width_name}, so the weights are far too peaked: divide by it.",
    dict(scores=lambda s: s.products * s.width**0.5),
    "scale-halves: You divided by {width} and by 2, because Python takes the power first in `{width_name} ** 1 / 2`: write ** 0.5.",
    dict(scores=lambda s: s.products / s.width / 2),
    "root-rounded: You divided by {isqrt}, the rounded root of {width}: don't round it.",
    dict(scores=lambda s: s.products / math.isqrt(s.width)),
    "scale-after-softmax: You divided by √{width_name} after the softmax, so a row {row_sum}: divide the scores, before it.",
    UNSCALED | dict(weights=lambda s: s.cleared / s.width**0.5),
)


def size(name, size_name, of):
    """Return the variant that takes another size for the width of the queries."""
    text = f"You divided the scores by √{size_name} = √{{width}}: divide by "
    return Variant(name, text + "√{width_name} = √{d}, the query width.", {"width": of})


WRONG_SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("scale-of-keys", "S", lambda s: s.key.shape[-2]),
    size("scale-of-tokens", "T", lambda s: s.query.shape[-2]),
]


# --- the scores --------------------------------------------------------------------


def angles(s):
    """Return the cosines of queries and keys."""
    return F.normalize(s.query, dim=-1) @ F.normalize(s.key, dim=-1).mT


SCORE = variants(
    "reshape-for-transpose: You used a reshape or view as a transpose: the shape fits, but the numbers keep their order, so features of several keys get mixed. Use transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.reshape(s.key.mT.shape)),
    "compares-angles: You normalised queries and keys to length 1, which compares angles only: use the plain dot products.",
    UNSCALED | dict(products=angles),
    "transpose-missing: You didn't transpose the keys: a score compares a row of the queries with a row of the keys, so swap the keys' last two axes, transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key),
)
BATCH_SCORE = variants(  # where there are other axes before the tokens
    "keys-times-queries: You computed the scores as K Qᵀ: row i belongs to query i, so write Q Kᵀ.",
    dict(products=lambda s: s.key @ s.query.mT),
    "fixed-axes: You transposed the axes 0 and 1, which fits a single matrix only: count from the end, key.transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.transpose(0, 1)),
    "batch-axes-fixed: You transposed the axes 1 and 2, which fits one leading axis only: count from the end, key.transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.transpose(1, 2)),
    "transpose-of-all-axes: You reversed all axes with `.T`, the batch too: swap only the last two, key.transpose(-2, -1).",
    dict(products=lambda s: s.query @ s.key.T),
)


# --- the softmax -------------------------------------------------------------------

AXIS = variants(
    "softmax-over-queries: Your weights sum to 1 over the queries instead of the keys, so a row {row_sum}: use dim=-1 in the softmax, and don't transpose its result.",
    dict(dim=lambda s: -2),
    "softmax-over-everything: Your softmax runs over all scores at once, so a row {row_sum}: use dim=-1.",
    dict(dim=lambda s: (*range(s.scores.dim()),)),
)
FIXED_AXIS = variants(
    "softmax-over-batch: Your softmax runs over the first axis, the batch (dim=0, or no `dim`): use dim=-1, the keys.",
    dict(dim=lambda s: 0),
    "fixed-axis: You used dim={dim}, which is the axis of the keys for one number of axes only: count from the end, dim=-1.",
    dict(dim=lambda s: 1),
)
SOFTMAX = variants(
    "maximum-not-subtracted: You didn't subtract the maximum: in float32 exp() of a score above 88 is infinite, and below -104 it is 0, so you get inf/inf or 0/0. Subtract the maximum first, as torch.softmax does.",
    dict(maximum=lambda s: 0),
    "global-maximum-subtracted: You subtracted one maximum from all rows, so a row far below it becomes 0/0, NaN: subtract each row's own, amax(dim, keepdim=True).",
    dict(maximum=lambda s: s.hidden.max()),
    "keepdim-missing: You summed without keepdim=True: sum() removes its axis, so the sums line up with the wrong entries. keepdim=True keeps the axis, with length 1.",
    dict(total=lambda s: s.exps.sum(s.dim)),
    "not-normalised: You didn't divide the exponentials by their sum, so a row {row_sum}: divide by the sum.",
    dict(total=lambda s: 1),
    "exponential-missing: You divided the scores by their sum without the exponential: take exp first, or negative scores give negative weights.",
    dict(exps=lambda s: s.hidden),
    "softmax-missing: You used the scores as they are: turn them into weights with a softmax.",
    dict(soft=lambda s: s.hidden),
    "softmax-twice: You took the softmax twice, which makes the weights nearly equal: take it once.",
    dict(weights=lambda s: s.cleared.softmax(s.dim)),
    "log-softmax: Your weights are logarithms: use softmax rather than log_softmax.",
    dict(weights=lambda s: torch.log_softmax(s.hidden, s.dim)),
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


def project(learned, x):
    """Return the queries, keys and values of a module."""
    return x @ learned.W_query, x @ learned.W_key, x @ learned.W_value


def projected(**matrices):
    """Return the steps that project by these matrices: with key="query" by W_query."""

    def by(source, matrix):
        return lambda s: getattr(s, source) @ attrgetter(f"W_{matrix}")(s.learned)

    sources = {"query": "x", "key": "context", "value": "context"}
    return {step: by(sources[step], matrix) for step, matrix in matrices.items()}


PROJECTED = projected(query="query", key="key", value="value")
SELF_PROJECTED = {"context": lambda s: s.x} | PROJECTED  # in a module


PROJECT = variants(
    "queries-for-keys: You made the keys with W_query: make them with W_key, {source} @ W_key.",
    projected(key="query"),
    "keys-times-queries: You swapped queries and keys, K Qᵀ instead of Q Kᵀ: row i of the scores belongs to the query of token i, x_i @ W_query.",
    projected(query="key", key="query"),
    "values-not-projected: You averaged {source} itself: average the values, {source} @ W_value.",
    dict(value=lambda s: s.context),
    "weight-not-transposed: You used nn.Linear's weight without a transpose, but it is stored as (d_out, d_in): call the layer, self.W_query(x).",
    projected(query="query.mT", key="key.mT", value="value.mT"),
)


# --- the average and what is returned ------------------------------------------------

AVERAGE = variants(
    "keys-for-values: You averaged the keys: average the values.",
    dict(output=lambda s: s.weights @ s.key),
    "weights-transposed: You transposed the weights before the average: row i belongs to query i, so keep weights @ value.",
    dict(output=lambda s: s.weights.mT @ s.value),
    "divided-by-tokens: You divided the sum by {S}, the number of keys: leave that out, because the weights sum to 1 already.",
    dict(output=lambda s: s.weights @ s.value / s.key.shape[-2]),
    "first-token-twice: You counted token 0 twice: if a sum starts with it, the loop should start with token 1.",
    dict(
        output=lambda s: s.weights @ s.value + s.weights[..., :1] * s.value[..., :1, :]
    ),
)
WEIGHING = [*AXIS, *FIXED_AXIS, *SOFTMAX, *SCORE, *BATCH_SCORE, *AVERAGE]
RETURN_BOTH = variants(
    "scores-for-weights: You returned the scores: return the weights, as they come out of the softmax.",
    dict(result=lambda s: (s.output, s.scores)),
)
RETURN_OUTPUT = variants(
    "weights-returned: You returned the weights (…, T, T): multiply them with the values.",
    dict(result=lambda s: s.weights),
    "value-added: You added each token's own value to the output: return the weighted sum only.",
    dict(result=lambda s: s.projected + s.x @ s.learned.W_value),
)
