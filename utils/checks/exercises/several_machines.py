"""Exercise of the notebook on several machines: parts of an attention, joined."""

import torch

from utils.checks.engine import Exercise, case, draw
from utils.checks.pipeline import variants
from utils.checks.steps.joining import JOIN, JOINING_STEPS, finite


def combine(outputs, maxima, sums):
    outputs, maxima, sums = outputs.double(), maxima.double(), sums.double()
    shares = torch.softmax(maxima + sums.log(), dim=0).nan_to_num()[..., None]
    each = (outputs / sums[..., None]).nan_to_num()  # normalised; nothing is zero
    return (shares * each).sum(0).float()


def parts(scores, values, cuts, *hidden, **settings):
    """Return a case whose keys are split into parts of these sizes.

    `hidden` are keys that a token may not see: (token, slice of the keys).
    """
    scores, made = scores.double(), []
    for place in hidden:
        scores[place] = -torch.inf
    for s, v in zip(scores.split(cuts, 1), values.double().split(cuts)):
        maxima = s.amax(1)
        weights = torch.exp(s - finite(maxima)[:, None])
        made.append((weights @ v, maxima, weights.sum(1)))
    return case(*(torch.stack(part).float() for part in zip(*made)), **settings)


def drawn(num_tokens, width, cuts, *hidden, scale=1.0, shift=0.0, **settings):
    """Return such a case with random scores and values."""
    scores = draw(num_tokens, sum(cuts), scale=scale, shift=shift)
    return parts(scores, draw(sum(cuts), width, seed=1), cuts, *hidden, **settings)


FORMS = variants(
    "mean-for-sum: You took a mean over the parts, of the outputs or of the sums: add them up over the first axis.",
    dict(joined=lambda s: (s.factors * s.outputs).mean(0)),
    "maximum-not-subtracted: You used exp(maximum), which overflows or vanishes for scores far from 0: subtract the largest maximum first.",
    dict(base=lambda s: 0.0, divided=lambda s: s.joined / s.total.clamp(1e-45)),
    "empty-row-nan: You get NaN for a token with nothing to attend to in any part, from −∞ − (−∞) or 0 / 0: its output should be zero.",
    dict(divided=lambda s: s.joined / s.total),
    "maximum-of-each-part: You took the maximum over the tokens of each part: take it over the parts, for each token, maxima.amax(dim=0).",
    dict(top=lambda s: s.maxima.amax(1, keepdim=True)),
    "one-maximum-for-all: You used one maximum for all tokens, so the factors of some tokens vanish: use maxima.amax(dim=0).",
    dict(top=lambda s: s.maxima.amax()),
    "sums-used-twice: You multiplied the outputs by their sums: they aren't divided yet, so they need the factors only.",
    dict(joined=lambda s: (s.factors * s.sums * s.outputs).sum(0)),
)

THREE_KEYS = torch.tensor([[1.0, 2, 4]]).log(), torch.tensor([[6.0], [12], [3]])
FIRST, BOTH = (0, slice(2)), [(0, slice(2, 6)), (1, slice(4, 6))]
combine_partial_attention = Exercise(
    id="15.1",
    signature="combine_partial_attention(outputs, maxima, sums)",
    returns="the attention (T, d_v) over the keys of all parts together",
    oracle=combine,
    cases=[
        parts(*THREE_KEYS, [2, 1], note="the three keys of the notebook on speed"),
        drawn(5, 2, [2, 4, 1], scale=2.0),
        drawn(3, 3, [2, 1, 2], scale=2.0, note="P, T and d_v are equal"),
        drawn(2, 5, [3], note="one part"),
        drawn(3, 2, [2, 2, 2], *BOTH, note="parts without a key for token 0 or 1"),
        drawn(2, 3, [2, 3], (0, slice(5)), note="token 0 may see nothing at all"),
        drawn(3, 2, [2, 2, 1], scale=300.0, note="large scores"),
        drawn(3, 2, [2, 2], FIRST, shift=-900.0, note="very low scores"),
    ],
    steps={
        "maxima": lambda s: s.maxima[..., None],
        "sums": lambda s: s.sums[..., None],
        "empty": lambda s: (s.sums == 0).all(0),  # where a token sees nothing
        **JOINING_STEPS,
        "divided": lambda s: (s.joined / s.total).masked_fill(s.empty, 0.0),
    },
    variants=FORMS + JOIN,
)

EXERCISES = [combine_partial_attention]
