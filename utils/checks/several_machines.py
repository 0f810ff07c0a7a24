"""Exercise of notebook 13: parts of an attention, joined into the whole."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.online_steps import JOIN, RIGHT, finite, ones
from utils.checks.steps import Forms, Pipeline, form, texts_of

TEXTS = texts_of(__file__)
draw = draws(13)


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
    return parts(scores, draw(sum(cuts), width), cuts, *hidden, **settings)


STEPS = {
    "maxima": lambda s: s.maxima[..., None],
    "sums": lambda s: s.sums[..., None],
    "running": lambda s: s.maxima.cummax(0).values,
    "empty": lambda s: (s.sums == 0).all(0),  # where a token may attend to nothing
    **RIGHT,
    "filled": lambda s: s.divided.masked_fill(s.empty, 0.0),
}
NAN_AS_ZERO = {"filled": lambda s: s.divided.nan_to_num()}
FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("sums-returned", result=lambda s: (s.filled, s.top.mT[0], s.total.mT[0]))
wrong("empty-row-nan", filled=lambda s: s.divided.masked_fill(s.empty, torch.nan))
wrong("maxima-ignored", factors=ones)
wrong("factor-inverted", factors=lambda s: torch.exp(s.base - s.maxima))
wrong("outputs-without-factor", joined=lambda s: s.terms.sum(0))
wrong("sums-without-factor", total=lambda s: s.sums.sum(0))
wrong("maximum-over-the-tokens", top=lambda s: s.maxima.amax(1, keepdim=True))
wrong("maximum-over-the-tokens", top=lambda s: s.maxima.amax(1)[None])
wrong("one-maximum-for-all", top=lambda s: s.maxima.amax())
wrong("empty-part-as-zero", **NAN_AS_ZERO, top=lambda s: finite(s.maxima).amax(0))
wrong("maximum-missing", factors=lambda s: torch.exp(s.maxima))
wrong("max-is-a-pair", factors=lambda s: s.maxima - s.maxima.max(0))
wrong("minimum-for-maximum", top=lambda s: s.maxima.amin(0))
wrong("minimum-for-maximum", base=lambda s: s.maxima.amin(0))
wrong("past-not-rescaled", base=lambda s: finite(s.running))
wrong("new-part-not-rescaled", factors=lambda s: torch.exp(s.running - s.base))
wrong("parts-not-added", joined=lambda s: s.factors * s.terms)
wrong("axis-left", result=lambda s: s.filled[None])
wrong("axis-missing", joined=lambda s: (s.factors[..., 0] * s.terms).sum(0))
wrong("axis-missing", joined=lambda s: (s.terms * s.factors[..., 0]).sum(0))

THREE_KEYS = torch.tensor([[1.0, 2, 4]]).log(), torch.tensor([[6.0], [12], [3]])
CASES = [
    parts(*THREE_KEYS, [2, 1], note="the three keys of notebook 10"),
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
    **TEXTS["13.1"],
    oracle=right_merge,
    cases=CASES,
    pipeline=Pipeline(
        start=lambda *args: dict(zip(("outputs", "maxima", "sums"), args)),
        steps=STEPS,
        forms=[*FORMS, *JOIN],
        harmless=[form(None, each=lambda s: (s.outputs / s.sums).nan_to_num())],
        words=TEXTS["WORDS"],
    ),
)

EXERCISES = [combine_partial_attention]
