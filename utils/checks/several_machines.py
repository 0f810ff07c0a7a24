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


def running(s):
    """Return the largest maximum of each part and those before it, (P, T, 1)."""
    return s.maxima.cummax(0).values


def filled(s, value=0.0):
    """Return the output, with this value where a token may attend to nothing."""
    return s.divided.masked_fill((s.sums == 0).all(0), value)


FORMS = Forms(TEXTS["FORMS"])
FORMS.wrong("sums-returned", result=lambda s: (s.filled, s.top.mT[0], s.total.mT[0]))
FORMS.wrong("empty-row-nan", filled=lambda s: filled(s, torch.nan))
FORMS.wrong("maxima-ignored", factors=ones)
FORMS.wrong("factor-inverted", factors=lambda s: torch.exp(s.base - s.maxima))
FORMS.wrong("outputs-without-factor", joined=lambda s: s.terms.sum(0))
FORMS.wrong("sums-without-factor", total=lambda s: s.sums.sum(0))
FORMS.wrong("maximum-over-the-tokens", top=lambda s: s.maxima.amax(1, keepdim=True))
FORMS.wrong("one-maximum-for-all", top=lambda s: s.maxima.amax())
FORMS.wrong(
    "empty-part-as-zero",
    top=lambda s: finite(s.maxima).amax(0),
    filled=lambda s: s.divided.nan_to_num(0.0),
)
FORMS.wrong("maximum-missing", factors=lambda s: torch.exp(s.maxima))
FORMS.wrong("max-is-a-pair", factors=lambda s: s.maxima - s.maxima.max(0))
FORMS.wrong("minimum-for-maximum", top=lambda s: s.maxima.amin(0))
FORMS.wrong("minimum-for-maximum", base=lambda s: s.maxima.amin(0))
FORMS.wrong("past-not-rescaled", base=lambda s: finite(running(s)))
FORMS.wrong("new-part-not-rescaled", factors=lambda s: torch.exp(running(s) - s.base))
FORMS.wrong("parts-not-added", joined=lambda s: s.factors * s.terms)
FORMS.wrong("axis-left", result=lambda s: s.filled[None])
FORMS.wrong("axis-missing", joined=lambda s: (s.factors[..., 0] * s.terms).sum(0))
FORMS.wrong("axis-missing", joined=lambda s: (s.terms * s.factors[..., 0]).sum(0))

CASES = [
    parts(
        *(torch.tensor([[1.0, 2, 4]]).log(), torch.tensor([[6.0], [12], [3]]), [2, 1]),
        note="the three keys of notebook 10",
    ),
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
    drawn(3, 2, [2, 2], shift=-900.0, note="all scores very negative", special=True),
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
        start=lambda outputs, maxima, sums: {
            "outputs": outputs,
            "maxima": maxima[..., None],
            "sums": sums[..., None],
        },
        steps=RIGHT | {"filled": filled},
        forms=[*FORMS, *JOIN],
        harmless=[form(None, each=lambda s: (s.outputs / s.sums).nan_to_num())],
        words=TEXTS["WORDS"],
    ),
)

EXERCISES = [combine_partial_attention]
