"""Answers to the exercise of notebook 13."""

import math

import torch

from answers import right

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


@right("combine_partial_attention")
def merge_by_loops(outputs, maxima, sums):
    P, T, d_v = outputs.shape
    result = torch.zeros(T, d_v)
    for t in range(T):
        top = max(maxima[p, t].item() for p in range(P))
        if top == -math.inf:
            continue
        factors = [math.exp(maxima[p, t].item() - top) for p in range(P)]
        total = sum(f * sums[p, t].item() for p, f in enumerate(factors))
        for p, f in enumerate(factors):
            result[t] += f * outputs[p, t] / total
    return result


@right("combine_partial_attention")
def merge_by_a_product(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    factors = (maxima - top).exp()
    total = torch.einsum("pt,pt->t", factors, sums)
    result = torch.einsum("pt,ptd->td", factors, outputs)
    return result / (total + (total == 0))[:, None]


@right("combine_partial_attention")
def merge_by_nan_to_num(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amax(dim=0, keepdim=True))
    total = (factors * sums).sum(dim=0, keepdim=True)
    shares = factors / total
    return torch.nan_to_num((shares[..., None] * outputs).sum(dim=0))


@right("combine_partial_attention")
def merge_with_a_very_negative_number(outputs, maxima, sums):
    m = maxima.masked_fill(maxima == -math.inf, -1e30)
    f = torch.softmax(m, dim=0)  # its own denominator cancels
    total = (f * sums).sum(0)[:, None]
    return torch.where(total == 0, 0.0, (f[:, :, None] * outputs).sum(0) / total)
