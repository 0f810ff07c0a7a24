"""Exercise of the notebook on several machines: parts of an attention, joined."""

import torch

from utils.checks.engine import Exercise, case
from utils.checks.inputs import draw
from utils.checks.pipeline import Pipeline, variants
from utils.checks.steps.joining import JOIN, RIGHT, finite, ones


def right_merge(outputs, maxima, sums):
    outputs, maxima, sums = outputs.double(), maxima.double(), sums.double()
    logs = maxima + sums.log()  # of each part's sum of exponentials, (P, T)
    shares = torch.softmax(logs, dim=0).nan_to_num()[..., None]
    each = (outputs / sums[..., None]).nan_to_num()  # normalised; nothing is zero
    return (shares * each).sum(0).float()


def parts(scores, values, cuts, *hidden, **settings):
    """Return the case of attention that is cut into parts with so many keys each.

    `hidden` are keys that a token may not see: (token, slice of the keys).
    """
    scores, found = scores.double(), []
    for place in hidden:
        scores[place] = -torch.inf
    for s, v in zip(scores.split(cuts, 1), values.double().split(cuts)):
        maxima = s.amax(1)
        weights = torch.exp(s - finite(maxima)[:, None])
        found.append((weights @ v, maxima, weights.sum(1)))
    return case(*(torch.stack(part).float() for part in zip(*found)), **settings)


def drawn(num_tokens, width, cuts, *hidden, scale=1.0, shift=0.0, **settings):
    """Return such a case of scores and values that are drawn."""
    scores = draw(num_tokens, sum(cuts), scale=scale, shift=shift)
    values = draw(sum(cuts), width, seed=1)
    return parts(scores, values, cuts, *hidden, **settings)


STEPS = {
    "maxima": lambda s: s.maxima[..., None],
    "sums": lambda s: s.sums[..., None],
    "running": lambda s: s.maxima.cummax(0).values,
    "empty": lambda s: (s.sums == 0).all(0),  # where a token may attend to nothing
    **RIGHT,
    "filled": lambda s: s.divided.masked_fill(s.empty, 0.0),
}
NAN_AS_ZERO = {"filled": lambda s: s.divided.nan_to_num()}
FORMS = variants(
    "sums-returned: You returned more than the output: return the output only.",
    dict(result=lambda s: (s.filled, s.top.mT[0], s.total.mT[0])),
    "empty-row-nan: You get NaN for a token with nothing to attend to in any part, from −∞ − (−∞) or 0 / 0: its output is zero.",
    dict(filled=lambda s: s.divided.masked_fill(s.empty, torch.nan)),
    "maxima-ignored: You added outputs and sums as they are: each part has subtracted its own maximum, so multiply both by exp(its maximum − the largest) first.",
    dict(factors=ones),
    "factor-inverted: You used exp(largest − own), so the part with the lowest scores counts most: use exp(own − largest).",
    dict(factors=lambda s: torch.exp(s.base - s.maxima)),
    "outputs-without-factor: You rescaled the sums only: the outputs need the factor too.",
    dict(joined=lambda s: s.terms.sum(0)),
    "sums-without-factor: You rescaled the outputs only: the sums need the factor too.",
    dict(total=lambda s: s.sums.sum(0)),
    "maximum-over-the-tokens: You took the maximum over the tokens of each part: take it over the parts for each token, maxima.amax(dim=0).",
    dict(top=lambda s: s.maxima.amax(1, keepdim=True)),
    dict(top=lambda s: s.maxima.amax(1)[None]),
    "one-maximum-for-all: You used one maximum for all tokens, so the factors of some tokens vanish: use maxima.amax(dim=0).",
    dict(top=lambda s: s.maxima.amax()),
    "empty-part-as-zero: You put 0 in place of the maximum −∞ before taking the largest, so other factors vanish: take the largest first.",
    NAN_AS_ZERO | dict(top=lambda s: finite(s.maxima).amax(0)),
    "maximum-missing: You used exp(maximum), which overflows or vanishes for scores far from 0: subtract the largest maximum first.",
    dict(factors=lambda s: torch.exp(s.maxima)),
    "max-is-a-pair: You used max() with a dim, which returns values and positions: use amax(), or max(…).values.",
    dict(factors=lambda s: s.maxima - s.maxima.max(0)),
    "minimum-for-maximum: You subtracted the smallest of the maxima, so factors grow without limit: subtract the largest.",
    dict(base=lambda s: s.maxima.amin(0)),
    "past-not-rescaled: You joined parts one after the other and left the past at its old maximum: multiply it by exp(old − new), before the old one is overwritten.",
    dict(base=lambda s: finite(s.running)),
    "new-part-not-rescaled: You joined parts one after the other and left the new part at its own maximum: multiply it by exp(its maximum − the largest so far).",
    dict(factors=lambda s: torch.exp(s.running - s.base)),
    "parts-not-added: You left the parts apart: add them up over the first axis.",
    dict(joined=lambda s: s.factors * s.terms),
    "mean-for-sum: You took the mean of the parts: add them up over the first axis.",
    dict(joined=lambda s: (s.factors * s.terms).mean(0)),
    "axis-missing: You multiplied outputs (P, T, d_v) by factors (P, T): give the factors a last axis, factors[..., None].",
    dict(joined=lambda s: (s.factors[..., 0] * s.terms).sum(0)),
    dict(joined=lambda s: (s.terms * s.factors[..., 0]).sum(0)),
)

THREE_KEYS = torch.tensor([[1.0, 2, 4]]).log(), torch.tensor([[6.0], [12], [3]])
CASES = [
    parts(*THREE_KEYS, [2, 1], note="the three keys of the notebook on speed"),
    drawn(5, 2, [2, 4, 1], scale=2.0),
    drawn(3, 3, [2, 1, 2], scale=2.0, note="P, T and d_v are equal"),
    drawn(3, 3, [1, 5], note="T and d_v are equal"),
    drawn(2, 5, [3], note="one part"),
    drawn(
        *(3, 2, [2, 2, 2], (0, slice(2, 6)), (1, slice(4, 6))),
        note="parts without a key that token 0 or token 1 may see",
    ),
    drawn(2, 3, [2, 3], (0, slice(5)), note="token 0 may see nothing at all"),
    drawn(3, 2, [2, 2, 1], scale=300.0, shift=500.0, note="large scores", special=True),
    drawn(
        *(3, 2, [2, 2], (0, slice(2))),
        shift=-900.0,
        note="a part without a key for token 0, all scores very negative",
        special=True,
    ),
]
combine_partial_attention = Exercise(
    id="13.1",
    signature="combine_partial_attention(outputs, maxima, sums)",
    returns="the attention (T, d_v) over the keys of all parts together",
    oracle=right_merge,
    cases=CASES,
    pipeline=Pipeline(
        start=lambda *args: dict(zip(("outputs", "maxima", "sums"), args)),
        steps=STEPS,
        variants=[*FORMS, *JOIN],
        words={"part": "part"},
    ),
)

EXERCISES = [combine_partial_attention]
