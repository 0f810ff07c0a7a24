"""The softmax over a vocabulary: its steps, and what goes wrong in them.

`s.ready` are the logits that it is given, and `s.probs` comes out.
"""

import torch

from utils.checks.draw import worst_sum
from utils.checks.steps import Forms, texts_of

LOW, LOW_ROW = torch.tensor([[300.0], [0.0]]), "a row of low logits"
STEPS = {
    "dim": lambda s: -1,
    "shifted": lambda s: s.ready - s.ready.amax(s.dim, keepdim=True),
    "exps": lambda s: s.shifted.exp(),
    "probs": lambda s: s.exps / s.exps.sum(s.dim, keepdim=True),
}
BARE = {"shifted": lambda s: s.ready}
OVER_ALL = {"probs": lambda s: s.exps / s.exps.sum()}
UNDIVIDED = {"probs": lambda s: s.exps}

SOFTMAX = Forms(texts_of(__file__)["SOFTMAX"])
wrong = SOFTMAX.wrong
wrong("softmax-over-batch", dim=lambda s: 0)
wrong("axis-left-open", dim=lambda s: 0 if s.ready.dim() in (1, 3) else 1)
wrong("fixed-axis", dim=lambda s: 1)
wrong("softmax-over-everything", dim=lambda s: [*range(s.ready.dim())])
wrong("softmax-over-everything 2", **OVER_ALL)
wrong("softmax-over-everything 2", **BARE, **OVER_ALL)
wrong("overflow", **BARE)
wrong("global-maximum-subtracted", shifted=lambda s: s.ready - s.ready.max())
wrong("keepdim-missing", probs=lambda s: s.exps / s.exps.sum(s.dim))
wrong("keepdim-missing 2", shifted=lambda s: s.ready - s.ready.amax(s.dim))
wrong("not-normalised", **BARE, **UNDIVIDED)
wrong("not-normalised", **UNDIVIDED)
wrong("exponential-missing", **BARE, exps=lambda s: s.ready)
wrong("softmax-missing", probs=lambda s: s.ready)
wrong("sigmoid", probs=lambda s: s.ready.sigmoid())
wrong("logarithm", probs=lambda s: s.ready.log_softmax(s.dim))
wrong("softmax-twice", probs=lambda s: s.ready.softmax(s.dim).softmax(s.dim))


def row_sum(probs):
    """Return the sum of a row that is furthest from 1, as text."""
    finite = probs[probs.double().sum(-1).isfinite()]
    return worst_sum(finite) if len(finite) else "NaN"


WORDS = {
    "prob_sum": lambda s: row_sum(s.probs),
    "row_sum": lambda s: row_sum(s.result),
}
