"""Answers to the exercise of notebook 13."""

import math

import torch

from tests.answers import right

# --- 13.1 -------------------------------------------------------------------------


@right("combine_partial_attention")
def merge_at_once(outputs, maxima, sums):
    top = maxima.max(dim=0).values
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(dim=0)
    result = (factors.unsqueeze(-1) * outputs).sum(dim=0)
    return torch.where(total[:, None] > 0, result / total[:, None], 0.0)


@right("combine_partial_attention")
def merge_one_after_the_other(outputs, maxima, sums):
    top = torch.full_like(maxima[0], -math.inf)
    bottom = torch.zeros_like(top)
    result = torch.zeros_like(outputs[0])
    for o, m, s in zip(outputs, maxima, sums):
        new = torch.maximum(top, m)
        safe = new.clamp(min=torch.finfo(new.dtype).min)
        old_factor, own_factor = torch.exp(top - safe), torch.exp(m - safe)
        bottom = bottom * old_factor + s * own_factor
        result = result * old_factor[:, None] + o * own_factor[:, None]
        top = new
    return result / bottom.clamp(min=1e-30)[:, None]


@right("combine_partial_attention")
def merge_by_logarithms(outputs, maxima, sums):
    """Weigh normalised parts with a softmax of the logarithms of their sums."""
    log_sums = maxima + torch.log(sums)
    weights = torch.exp(log_sums - torch.logsumexp(log_sums, dim=0))
    shares = torch.nan_to_num(weights / sums * torch.ones_like(sums))
    return torch.nan_to_num((shares[..., None] * outputs).sum(0))
