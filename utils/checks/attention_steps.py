"""The steps of attention, once: the right way of each, and what goes wrong in it.

An exercise takes the steps that it has, and of the wrong forms those of its steps
(`forms_of`). The order of the forms matters: where two give the same on every case of
an exercise, the first is named, and the other belongs to its `without`.

Texts are data. In braces stand the exercise's words (`root`, `width`, `value` …) and
facts measured on the wrong form itself (`FACTS`).
"""

import math

import torch
from torch.nn import functional as F

from utils.checks.draw import worst_sum
from utils.checks.steps import Forms, form
from utils.checks.values import number

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
        form(renamed.get(one.slug, one.slug), one.text, **one.ways)
        for group in groups
        for one in group
        if not {one, one.slug} & {*without} and one.ways.keys() <= steps.keys()
    ]


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

SCALE = Forms()
SCALE.wrong(
    "scale-missing",
    "The scores were not divided by {root} = √{d}: the weights are too peaked.",
    scale=lambda s: s.products,
)
SCALE.wrong(
    "divided-by-width",
    "The scores are divided by {width} = {n}, not by its square root, or twice by the "
    "root: the weights are too even.",
    scale=lambda s: s.products / s.width,
)
SCALE.wrong(
    "scale-multiplied",
    "The scores are multiplied by {root} = √{n} where they should be divided by it: "
    "the weights are far too peaked.",
    scale=lambda s: s.products * s.width**0.5,
)
SCALE.wrong(
    "scale-halves",
    "The scores are divided by {n} and by 2: Python reads `/ {width} ** 1 / 2` from "
    "the left, the power first, then two divisions. Write ** 0.5.",
    scale=lambda s: s.products / s.width / 2,
)
SCALE.wrong(
    "scale-halves",
    "The scores are divided by {n} / 2: in Python {n} ** 1 / 2 takes the power first "
    "and then the half. Write ** 0.5.",
    scale=lambda s: s.products / (s.width / 2),
)
SCALE.wrong(
    "scale-halves",
    "The scores are multiplied by {n} / 2: `** 1 / 2` takes the power first and then "
    "the half, and the scale divides. Write / {width} ** 0.5.",
    scale=lambda s: s.products * s.width / 2,
)
SCALE.wrong(
    "scale-squared",
    "The scores are divided by {width} squared, {n} ** 2: divide by the root, {width} "
    "** 0.5.",
    scale=lambda s: s.products / s.width**2,
)
SCALE.wrong(
    "scale-fixed",
    "The scores are divided by 8 whatever the width: that is √64, and here {width} = "
    "{n}.",
    scale=lambda s: s.products / 8,
)
SCALE.wrong(
    "root-rounded",
    "The scores are divided by {isqrt}, which is √{n} rounded down: leave the root as "
    "it is.",
    scale=lambda s: s.products / math.isqrt(s.width),
)
SCALE.wrong(
    "scores-rounded",
    "The quotients are rounded down, // where / is meant: scores keep their fractions.",
    scale=lambda s: s.products // s.width**0.5,
)
SCALE.wrong(
    "scale-after-softmax",
    "A row of the weights sums to {row_sum}: the division by {root} comes after the "
    "softmax. Divide the scores, before it.",
    scale=lambda s: s.products,
    drop=lambda s: s.cleared / s.width**0.5,
)
SCALE.wrong(
    "scale-after-softmax",
    "The output is divided by {root} = √{d}, the scores are not: the scale belongs "
    "before the softmax.",
    scale=lambda s: s.products,
    average=lambda s: s.weights @ s.value / s.width**0.5,
)


def size(slug, name, of, what=""):
    """Return the form that takes another size for the width of the queries."""
    return form(
        slug,
        f"The scores are divided by √{name} = √{{n}}{what}: the width that counts is "
        "that of queries and keys, {width} = {d}.",
        width=of,
    )


# --- the scores --------------------------------------------------------------------


def turned(first, second):
    """Return the scores of keys with two fixed axes transposed."""
    return lambda s: s.query @ s.key.transpose(first, second)


def angles(s):
    """Return the cosines of queries and keys."""
    return F.normalize(s.query, dim=-1) @ F.normalize(s.key, dim=-1).mT


ANGLES = (
    "Queries and keys are brought to length 1 first, which compares angles. The dot "
    "product keeps the lengths; divide by {root} alone."
)
ONE_LEADING_AXIS = form(
    "fixed-axes",
    "transpose(1, 2) fits exactly one leading axis: count from the end, "
    "key.transpose(-2, -1), and any number of them will do.",
    score=turned(1, 2),
)
TWO_LEADING_AXES = form(
    "fixed-axes",
    "transpose(2, 3) fits exactly two leading axes: count from the end, "
    "key.transpose(-2, -1), and any number of them will do.",
    score=turned(2, 3),
)
SCORE = Forms()
SCORE.wrong(
    "keys-times-queries",
    "The scores are K Qᵀ instead of Q Kᵀ: row i belongs to query i, so the queries "
    "come first.",
    score=lambda s: s.key @ s.query.mT,
)
SCORE.wrong("compares-angles", ANGLES, score=angles, scale=lambda s: s.products)
SCORE.wrong("compares-angles", ANGLES, score=angles)
SCORE.wrong(
    "fixed-axes",
    "transpose(0, 1) fits a single matrix: with a batch in front, the last two axes "
    "are meant, key.transpose(-2, -1).",
    score=turned(0, 1),
)
SCORE.append(ONE_LEADING_AXIS)
SCORE.append(TWO_LEADING_AXES)
SCORE.wrong(
    "transpose-missing",
    "The keys are not transposed: a score compares a query with a key, row with row, "
    "so the last two axes of the keys change places, key.transpose(-2, -1).",
    score=lambda s: s.query @ s.key,
)
SCORE.wrong(
    "transpose-of-all-axes",
    "`.T` turns round all axes of a tensor, the batch too: transpose the last two "
    "alone, key.transpose(-2, -1).",
    score=lambda s: s.query @ s.key.T,
)
SCORE.wrong(
    "distance",
    "The scores are distances: use the dot product of query and key.",
    score=lambda s: -torch.cdist(s.query, s.key),
)
SCORE.wrong(
    "sign-flipped",
    "The key that fits best gets the smallest weight: the scores have the wrong sign.",
    score=lambda s: -(s.query @ s.key.mT),
)


# --- the softmax -------------------------------------------------------------------


def default_axis(s):
    """Return the axis that a softmax without `dim` takes, by the number of axes."""
    return 0 if s.scores.dim() in (0, 1, 3) else 1


def every_axis(s):
    return tuple(range(s.scores.dim()))


AXIS = Forms()
AXIS.wrong(
    "softmax-over-queries",
    "A row of the weights sums to {row_sum} while every column sums to 1: the softmax "
    "runs over the queries. Use dim=-1.",
    axis=lambda s: -2,
)
AXIS.wrong(
    "axis-left-open",
    "Without `dim` the softmax picks its axis by the number of axes, and with a batch "
    "that is the batch itself: say dim=-1.",
    axis=default_axis,
)
AXIS.extend(
    form(
        "fixed-axis",
        f"dim={axis} is the axis of the keys for one number of axes only: count "
        "from the end, dim=-1.",
        axis=lambda s, axis=axis: axis,
    )
    for axis in (0, 1, 2)
)
AXIS.wrong(
    "softmax-over-everything",
    "All weights together sum to 1, a row of them to {row_sum}: each row has a "
    "softmax of its own, dim=-1.",
    axis=every_axis,
)
OVERFLOW = (
    "exp() of a score above 88 is infinite in float32 and inf / inf is NaN; of scores "
    "below -104 it is 0, and 0 / 0 is NaN. Use a softmax that subtracts each row's "
    "maximum first: the result stays the same and nothing overflows."
)
LOST_SUM = (
    "The sums have lost their axis, so they line up with the columns: sum with "
    "keepdim=True."
)
LOST_MAXIMUM = (
    "The maxima have lost their axis, so they line up with the columns: add "
    "keepdim=True to the maximum."
)
NO_EXPONENTIAL = (
    "The scores are divided by their sum without the exponential: a negative score "
    "gives a negative weight."
)


def without_keepdim(s):
    return s.exps / s.exps.sum(s.dim)


def max_without_keepdim(s):
    return s.hidden - s.hidden.amax(s.dim)


def unshifted(s):
    return s.hidden


SOFTMAX = Forms()
SOFTMAX.wrong("maximum-not-subtracted", OVERFLOW, shift=unshifted)
SOFTMAX.wrong(
    "global-maximum-subtracted",
    "One maximum is subtracted from all rows: a row far below it becomes 0/0, NaN. "
    "Subtract each row's own, with dim=-1 and keepdim=True.",
    shift=lambda s: s.hidden - s.hidden.max(),
)
SOFTMAX.wrong("keepdim-missing", LOST_SUM, divide=without_keepdim)
SOFTMAX.wrong("keepdim-missing", LOST_MAXIMUM, shift=max_without_keepdim)
SOFTMAX.wrong(
    "keepdim-missing",
    "Maxima and sums have lost their axis, so they line up with the columns: both "
    "take keepdim=True.",
    shift=max_without_keepdim,
    divide=without_keepdim,
)
SOFTMAX.wrong(
    "not-normalised",
    "A row of the weights sums to {row_sum}: divide the exponentials by the sum of "
    "their row.",
    divide=lambda s: s.exps,
)
SOFTMAX.wrong(
    "not-normalised",
    "A row of the weights sums to {row_sum}: divide the exponentials by the sum of "
    "their row.",
    shift=unshifted,
    divide=lambda s: s.exps,
)
SOFTMAX.wrong(
    "exponential-missing",
    NO_EXPONENTIAL,
    shift=unshifted,
    exp=lambda s: s.shifted,
)
SOFTMAX.wrong(
    "softmax-missing",
    "The scores are used as they are: a softmax over the keys turns them into weights.",
    divide=lambda s: s.hidden,
)
SOFTMAX.wrong(
    "softmax-twice",
    "The softmax is taken twice, which makes the weights nearly equal, and hidden "
    "places get a share again: once is enough.",
    drop=lambda s: s.cleared.softmax(-1),
)
SOFTMAX.wrong(
    "log-softmax",
    "These are the logarithms of the weights, log_softmax for softmax.",
    drop=lambda s: torch.log_softmax(s.hidden, s.dim),
)
SOFTMAX.wrong(
    "sigmoid",
    "Each score went through a sigmoid of its own, so a row does not sum to 1: use a "
    "softmax over the row.",
    divide=lambda s: s.hidden.sigmoid(),
)
SOFTMAX.wrong(
    "hardmax",
    "The key that fits best gets the whole weight: a softmax leaves every key a share.",
    drop=lambda s: F.one_hot(s.cleared.argmax(-1), s.cleared.shape[-1]).float(),
)
SOFTMAX.wrong(
    "weights-squared",
    "The weights are squared after the softmax, so a row sums to {row_sum}: use them "
    "as they come out of it.",
    drop=lambda s: s.cleared.square(),
)
UNIFORM = Forms()
UNIFORM.wrong(
    "uniform-weights",
    "Every key gets the same weight: the scores play no part.",
    scale=lambda s: torch.zeros_like(s.products),
)
UNIFORM.wrong(
    "uniform-weights",
    "Every key gets the same weight: the scores play no part.",
    score=lambda s: torch.zeros(*s.query.shape[:-1], s.key.shape[-2]),
)


# --- the mask ----------------------------------------------------------------------


def lower(rows, columns=None, diagonal=0):
    """Return the causal mask, True where a query may attend."""
    return torch.ones(rows, columns or rows, dtype=torch.bool).tril(diagonal)


def triangle(s):
    return lower(*s.scores.shape[-2:])


NO_MASK = [
    form(
        "future-hidden",
        "The weights above the diagonal are 0: there is a causal mask, and this "
        "exercise asks for none.",
        scale=lambda s: (s.products / s.width**0.5).masked_fill(
            ~lower(*s.products.shape[-2:]), -INF
        ),
    ),
]

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


STORED_TURNED = (
    "nn.Linear stores its weight as (d_out, d_in), ready for x @ weight.T: call the "
    "layer, self.W_query(x), and it does so by itself."
)
PROJECT = Forms()
PROJECT.wrong(
    "parameter-called",
    "An nn.Parameter is a matrix and no function: multiply, x @ self.W_query.",
    query=parameter_called,
)
PROJECT.wrong(
    "queries-for-keys",
    "The keys are {source} @ W_query: W_key is not used.",
    key=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong(
    "keys-for-queries",
    "The queries are x @ W_key: W_query is not used.",
    query=lambda s: s.x @ s.learned.W_key,
)
PROJECT.wrong(
    "keys-for-values",
    "The weights are right, but they average the keys: {average_value}.",
    value=lambda s: s.context @ s.learned.W_key,
)
PROJECT.wrong(
    "queries-for-values",
    "The values are {source} @ W_query: {average_value}.",
    value=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong(
    "keys-times-queries",
    "Queries and keys have changed places, K Qᵀ for Q Kᵀ: row i of the scores belongs "
    "to the query of token i, x_i @ W_query.",
    query=lambda s: s.x @ s.learned.W_key,
    key=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong(
    "keys-and-values-exchanged",
    "W_key makes the values and W_value the keys: exchange the two.",
    key=lambda s: s.context @ s.learned.W_value,
    value=lambda s: s.context @ s.learned.W_key,
)
PROJECT.wrong(
    "queries-and-values-exchanged",
    "W_query makes the values and W_value the queries: exchange the two.",
    query=lambda s: s.x @ s.learned.W_value,
    value=lambda s: s.context @ s.learned.W_query,
)
PROJECT.wrong(
    "values-for-keys",
    "The keys are {source} @ W_value: W_key is not used.",
    key=lambda s: s.context @ s.learned.W_value,
)
PROJECT.wrong(
    "values-not-projected",
    "The weights are right, but they average {source} itself: {average_value}.",
    value=lambda s: s.context,
)
PROJECT.wrong(
    "keys-not-projected",
    "The queries meet {source} itself: the keys are {source} @ W_key.",
    key=lambda s: s.context,
)
PROJECT.wrong(
    "queries-not-projected",
    "x itself meets the keys: the queries are x @ W_query.",
    query=lambda s: s.x,
)
PROJECT.wrong(
    "weight-not-transposed",
    STORED_TURNED,
    query=lambda s: s.x @ s.learned.W_query.mT,
    key=lambda s: s.context @ s.learned.W_key.mT,
    value=lambda s: s.context @ s.learned.W_value.mT,
)
PROJECT.wrong(
    "no-attention",
    "The output is {source} @ W_value: the weights are not used, or each row of them "
    "multiplies its own token.",
    average=lambda s: s.value,
)


# --- the average and what is returned ------------------------------------------------

AVERAGE = Forms()
AVERAGE.wrong(
    "keys-for-values",
    "The weights are right, but they average the keys: {average_value}.",
    average=lambda s: s.weights @ s.key,
)
AVERAGE.wrong(
    "queries-for-values",
    "The weights are right, but they average the queries: {average_value}.",
    average=lambda s: s.weights @ s.query,
)
AVERAGE.wrong(
    "weights-transposed",
    "The values meet the weights with rows and columns exchanged: row i of the "
    "weights belongs to query i and stands on the left as it is.",
    average=lambda s: s.weights.mT @ s.value,
)
AVERAGE.wrong(
    "elementwise-product",
    "The weights are multiplied with the values entry by entry: a weighted sum is a "
    "matrix product, weights @ value.",
    average=lambda s: s.weights * s.value,
)
AVERAGE.wrong(
    "values-transposed",
    "The weights meet the values as they are, without a transpose: weights @ value.",
    average=lambda s: s.weights @ s.value.mT,
)
AVERAGE.wrong(
    "averaged-twice",
    "The weights are applied twice: once is enough.",
    average=lambda s: s.weights @ (s.weights @ s.value),
)
AVERAGE.wrong(
    "divided-by-tokens",
    "The sum is divided by the number of keys, {S}, but the weights sum to 1 already: "
    "leave the division out.",
    average=lambda s: s.weights @ s.value / s.key.shape[-2],
)
RETURN_BOTH = Forms()
RETURN_BOTH.wrong(
    "weights-missing",
    "This is the right output, but the weights are missing: return the output and the "
    "weights.",
    give=lambda s: s.output,
)
RETURN_BOTH.wrong(
    "output-and-weights-swapped",
    "Both are right, in the wrong order: the output comes first.",
    give=lambda s: (s.weights, s.output),
)
RETURN_BOTH.wrong(
    "output-missing",
    "These are the right weights: multiply them with the values; return both.",
    give=lambda s: s.weights,
)
RETURN_BOTH.wrong(
    "scores-for-weights",
    "The output is right, but the second value holds the scores: return the weights, "
    "which come out of the softmax.",
    give=lambda s: (s.output, s.scores),
)
RETURN_BOTH.wrong(
    "weights-turned",
    "The output is right, but the weights are transposed: rows are queries, columns "
    "are keys.",
    give=lambda s: (s.output, s.weights.mT),
)
RETURN_OUTPUT = Forms()
RETURN_OUTPUT.wrong(
    "weights-returned",
    "These are the weights (…, T, T): multiply them with the values.",
    give=lambda s: s.weights,
)
RETURN_OUTPUT.wrong(
    "value-added",
    "The output is the right one plus each token's own value: return the weighted sum "
    "alone.",
    give=lambda s: s.projected + s.x @ s.learned.W_value,
)
RETURN_OUTPUT.wrong(
    "last-token-only",
    "This is the output of the last token alone: every token asks a query and gets "
    "one.",
    give=lambda s: s.projected[..., -1, :],
)
RETURN_OUTPUT.wrong(
    "last-token-only",
    "This is the output of the last token alone: every token asks a query and gets "
    "one.",
    give=lambda s: s.projected[..., -1:, :],
)
RETURN_OUTPUT.wrong(
    "size-one-axes-dropped",
    "squeeze() drops every axis of size 1, so one sentence or one token changes the "
    "shape: leave it out.",
    give=lambda s: s.projected.squeeze(),
)
