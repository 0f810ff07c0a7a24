"""What goes wrong with a mask: which positions it allows, how scores are hidden by it.

The right way: `mask` is True where a query may attend, `hidden` are the scores with
-inf elsewhere, and `cleared` the weights with 0 in rows in which nothing is allowed.
"""

from utils.checks.pipeline import variants
from utils.checks.steps.attention import INF, fill, lower

UNCLEARED = {"cleared": lambda s: s.soft}
LEFT_ALONE = UNCLEARED | {"hidden": lambda s: s.scores}


def past(s):
    """Return True where a query may attend: the last query to the last key."""
    rows, columns = s.scores.shape[-2:]
    return lower(rows, columns, columns - rows + s.diagonal)


# --- which positions a causal mask allows ---------------------------------------------

CAUSAL = variants(
    "mask-not-used: You let tokens see later ones, because no mask reaches your scores: hide the scores of later keys. (If you call masked_fill, use what it returns, a new tensor.)",
    LEFT_ALONE,
    "diagonal-masked: You hid each token from itself: it may see itself too.",
    dict(diagonal=lambda s: -1),
    "one-step-leaked: You let each token see the next one: the last that a token may see is itself.",
    dict(diagonal=lambda s: 1),
    "upper-for-lower: You allowed the upper triangle, each token and those after it: a token should see itself and those before it.",
    dict(diagonal=lambda s: -1, mask=lambda s: ~past(s)),
    "polarity-inverted: You hid the past and showed the future: swap True and False. (Here True means that a key may be seen, but masked_fill hides where it is given True.)",
    dict(mask=lambda s: ~past(s)),
)

CUT = variants(
    "mask-not-sliced: You used the whole mask on a shorter input: cut it in forward, mask[:T, :T] with T = x.shape[1].",
    dict(mask=lambda s: lower(s.learned.build[2])),
)


# --- how the scores are hidden -------------------------------------------------------

HIDE = variants(
    "zero-times-infinity: You multiplied the mask by -inf, and 0 times infinity is NaN: put -inf at the hidden positions only, scores.masked_fill(~mask, float('-inf')).",
    UNCLEARED | dict(hidden=lambda s: s.scores + ~s.mask * -INF),
    "zero-for-minus-infinity: You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so hidden positions get a weight: use -inf, before the softmax.",
    UNCLEARED | dict(hidden=lambda s: fill(s, 0.0)),
    "mask-added: You added the mask to the scores as 1 and 0, so hidden positions get a weight: use scores.masked_fill(~mask, float('-inf')).",
    UNCLEARED | dict(hidden=lambda s: s.scores + s.mask.float()),
    "mask-after-softmax: You masked after the softmax, so the weights that stay don't sum to 1: divide by their new sum where it isn't 0, or fill the scores with -inf before the softmax.",
    LEFT_ALONE | {"cleared": lambda s: s.soft * s.mask},
)
ZEROS = "such a row must be all zeros, so set hidden weights to 0 after the softmax."
EMPTY_ROWS = variants(
    f"empty-row-nan: You get NaN where nothing may be attended to, because all scores are -inf: {ZEROS}",
    UNCLEARED,
    f"empty-row-uniform: Your large negative number makes a row uniform where nothing may be attended to: {ZEROS}",
    UNCLEARED | dict(hidden=lambda s: fill(s, -1e9)),
)
