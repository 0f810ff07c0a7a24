"""The steps that join parts of a softmax: slices of keys, or the keys of machines.

A part knows, for each query, the maximum that its exponentials are counted from, their
sum, and its output, the values weighted with them and not divided yet. The parts come
first: `maxima` and `sums` are (P, …, T, 1), `outputs` (P, …, T, d_v).
"""

import torch

from utils.checks.pipeline import variants

JOINING_STEPS = {
    "each": lambda s: s.outputs / s.sums,  # each by itself: used by variants only
    "top": lambda s: s.maxima.amax(0),
    "base": lambda s: finite(s.top),  # from which all exponentials count in the end
    "factors": lambda s: torch.exp(s.maxima - s.base),
    "total": lambda s: (s.factors * s.sums).sum(0),
    "joined": lambda s: (s.factors * s.outputs).sum(0),
    "divided": lambda s: s.joined / s.total,
    "result": lambda s: s.divided,
}


def finite(top):
    """Replace a maximum of -inf by 0, so that nothing is subtracted from -inf."""
    return top.masked_fill(top == -torch.inf, 0.0)


JOIN = variants(
    "averaged: You averaged the parts as if all counted alike: weigh each part by its sum of exponentials, measured from the maximum of all.",
    dict(divided=lambda s: s.each.mean(0)),
    "last-part-alone: You returned the last part only: add to the sums instead of starting anew, and replace the old maximum at the end of each round.",
    dict(divided=lambda s: s.each[-1]),
    "outputs-not-rescaled: You rescaled the sums of exponentials but not the outputs: multiply both by the same factors.",
    dict(joined=lambda s: s.outputs.sum(0)),
    "sums-not-rescaled: You rescaled the outputs but not the sums of exponentials, by which they are divided: multiply both by the same factors.",
    dict(total=lambda s: s.sums.sum(0)),
    "rescaled-inversely: You multiplied by exp(new − old), so what came before grows, or is NaN from the start at −∞: the factor is exp(old − new).",
    dict(factors=lambda s: torch.exp(s.top - s.maxima)),
    dict(factors=lambda s: torch.exp(s.top - s.maxima).masked_fill(s.sums == 0, 0.0)),
    "nothing-rescaled: You added outputs and sums that count from different maxima: multiply both by exp(their maximum − the largest).",
    dict(factors=lambda s: torch.ones_like(s.maxima)),
)
