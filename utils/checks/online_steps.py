"""The steps that join parts of a softmax, once: blocks in 10.1, machines in 13.1.

A part knows, for each query, the maximum that its exponentials are counted from, their
sum, and its output, the values weighted with them and not divided yet. The parts come
first: `maxima` and `sums` are (P, …, T, 1), `outputs` (P, …, T, d_v). The words are
`part`, what a part is called, `denominator`, what divides in the end, and `anew`.
"""

import torch

from utils.checks.steps import Forms, texts_of

TEXTS = texts_of(__file__)
RIGHT = {
    "each": lambda s: s.outputs / s.sums,  # divided alone, which is seldom what helps
    "best": lambda s: s.maxima.argmax(0, keepdim=True),  # the part, for each query
    "top": lambda s: s.maxima.amax(0),
    "base": lambda s: finite(s.top),  # from which all exponentials count in the end
    "factors": lambda s: torch.exp(s.maxima - s.base),
    "total": lambda s: (s.factors * s.sums).sum(0),
    "terms": lambda s: s.outputs,
    "joined": lambda s: (s.factors * s.terms).sum(0),
    "divided": lambda s: s.joined / s.total,
    "filled": lambda s: s.divided,
    "result": lambda s: s.filled,
}


def finite(top):
    """Replace a maximum of -inf by 0, so that nothing is subtracted from -inf."""
    return top.masked_fill(top == -torch.inf, 0.0)


def ones(s):
    return torch.ones_like(s.maxima)


JOIN = Forms(TEXTS["JOIN"])
wrong = JOIN.wrong
wrong("not-divided", divided=lambda s: s.joined)
for key, way in {  # parts, most divided alone, that are put together somehow
    "averaged": lambda s: s.each.mean(0),
    "parts-added": lambda s: s.each.sum(0),
    "unnormalised-averaged": lambda s: s.outputs.mean(0),
    "unnormalised-added": lambda s: s.outputs.sum(0),
    "first-part-alone": lambda s: s.each[0],
    "last-part-alone": lambda s: s.each[-1],
    "best-part-alone": lambda s: s.each.take_along_dim(s.best, 0)[0],
}.items():
    wrong(key, divided=way, filled=lambda s: s.divided)
wrong("divided-twice", terms=lambda s: s.each)
wrong("softmax-of-the-maxima", total=lambda s: s.factors.sum(0), terms=lambda s: s.each)
wrong("sums-ignored", total=lambda s: s.factors.sum(0))
wrong("weighted-by-the-sums", factors=ones, terms=lambda s: s.sums * s.outputs)
wrong("outputs-taken-as-normalised", terms=lambda s: s.sums * s.outputs)
wrong("axis-missing-in-the-division", divided=lambda s: s.joined / s.total[..., 0])
