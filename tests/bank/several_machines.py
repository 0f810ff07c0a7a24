"""Answers to the exercise of notebook 13."""

import math

import torch

from bank import right, wrong

# --- 13.1 -------------------------------------------------------------------------


@right("13.1")
def merge_at_once(outputs, maxima, sums):
    top = maxima.max(dim=0).values
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(dim=0)
    result = (factors.unsqueeze(-1) * outputs).sum(dim=0)
    return torch.where(total[:, None] > 0, result / total[:, None], 0.0)


@right("13.1")
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


@right("13.1")
def merge_by_logarithms(outputs, maxima, sums):
    """Weigh normalised parts with a softmax of the logarithms of their sums."""
    log_sums = maxima + torch.log(sums)
    weights = torch.exp(log_sums - torch.logsumexp(log_sums, dim=0))
    shares = torch.nan_to_num(weights / sums * torch.ones_like(sums))
    return torch.nan_to_num((shares[..., None] * outputs).sum(0))


@right("13.1")
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


@right("13.1")
def merge_by_a_product(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    factors = (maxima - top).exp()
    total = torch.einsum("pt,pt->t", factors, sums)
    result = torch.einsum("pt,ptd->td", factors, outputs)
    return result / (total + (total == 0))[:, None]


@right("13.1")
def merge_by_nan_to_num(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amax(dim=0, keepdim=True))
    total = (factors * sums).sum(dim=0, keepdim=True)
    shares = factors / total
    return torch.nan_to_num((shares[..., None] * outputs).sum(dim=0))


@right("13.1")
def merge_with_a_very_negative_number(outputs, maxima, sums):
    m = maxima.masked_fill(maxima == -math.inf, -1e30)
    f = torch.softmax(m, dim=0)  # its own denominator cancels
    total = (f * sums).sum(0)[:, None]
    return torch.where(total == 0, 0.0, (f[:, :, None] * outputs).sum(0) / total)


@wrong("13.1", "maxima-ignored")
def merge_plain_sums(outputs, maxima, sums):
    return outputs.sum(dim=0) / sums.sum(dim=0)[:, None]


@wrong("13.1", "maxima-ignored")
def merge_plain_sums_safe(outputs, maxima, sums):
    total = sums.sum(0)
    total = torch.where(total == 0, 1.0, total)
    return outputs.sum(0) / total.unsqueeze(1)


@wrong("13.1", "factor-inverted")
def merge_inverted(outputs, maxima, sums):
    top = maxima.amax(dim=0)
    factors = torch.exp(top - maxima)
    total = (factors * sums).sum(dim=0)
    return (factors[..., None] * outputs).sum(dim=0) / total[:, None]


@wrong("13.1", "factor-inverted")
def merge_divided_by_factors(outputs, maxima, sums):
    top = maxima.amax(dim=0).nan_to_num(neginf=0.0)
    factors = torch.exp(maxima - top)
    total = (sums / factors).sum(dim=0)
    return (outputs / factors[..., None]).sum(dim=0) / total[:, None]


@wrong("13.1", "outputs-without-factor")
def merge_sums_alone_rescaled(outputs, maxima, sums):
    top = maxima.amax(dim=0).nan_to_num(neginf=0.0)
    total = (torch.exp(maxima - top) * sums).sum(0)
    total = total + (total == 0)
    return outputs.sum(0) / total[:, None]


@wrong("13.1", "sums-without-factor")
def merge_outputs_alone_rescaled(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.max(dim=0)[0])
    return (factors.unsqueeze(2) * outputs).sum(0) / sums.sum(0).unsqueeze(1)


@wrong("13.1", "averaged")
def merge_mean(outputs, maxima, sums):
    return (outputs / sums[..., None]).mean(dim=0)


@wrong("13.1", "averaged")
def merge_mean_by_loop(outputs, maxima, sums):
    parts = [torch.nan_to_num(o / s[:, None]) for o, s in zip(outputs, sums)]
    return sum(parts) / len(parts)


@wrong("13.1", "parts-added")
def merge_added(outputs, maxima, sums):
    result = 0
    for o, s in zip(outputs, sums):
        result = result + o / s[:, None]
    return result


@wrong("13.1", "unnormalised-averaged")
def merge_mean_of_outputs(outputs, maxima, sums):
    return outputs.mean(dim=0)


@wrong("13.1", "unnormalised-added")
def merge_sum_of_outputs(outputs, maxima, sums):
    return torch.sum(outputs, 0)


@wrong("13.1", "not-divided")
def merge_without_division(outputs, maxima, sums):
    top = maxima.amax(dim=0).nan_to_num(neginf=0.0)
    return (torch.exp(maxima - top)[..., None] * outputs).sum(dim=0)


@wrong("13.1", "divided-twice")
def merge_dividing_each_first(outputs, maxima, sums):
    each = outputs / sums[..., None]
    factors = torch.exp(maxima - maxima.amax(0))
    total = (factors * sums).sum(0)
    return (factors[..., None] * each).sum(0) / total[:, None]


@wrong("13.1", "softmax-of-the-maxima")
def merge_by_softmax(outputs, maxima, sums):
    weights = torch.softmax(maxima, dim=0)
    return (weights[..., None] * (outputs / sums[..., None])).sum(dim=0)


@wrong("13.1", "sums-ignored")
def merge_by_softmax_unnormalised(outputs, maxima, sums):
    return (torch.softmax(maxima, dim=0)[..., None] * outputs).sum(dim=0)


@wrong("13.1", "outputs-taken-as-normalised")
def merge_weighing_twice(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    weights = torch.exp(maxima - top) * sums
    total = weights.sum(0).clamp(min=1e-30)
    return (weights[..., None] * outputs).sum(0) / total[:, None]


@wrong("13.1", "outputs-taken-as-normalised")
def merge_by_log_sums(outputs, maxima, sums):
    weights = torch.softmax(maxima + sums.log(), dim=0)
    return (weights[..., None] * outputs).sum(0)


@wrong("13.1", "weighted-by-the-sums")
def merge_weighted_mean(outputs, maxima, sums):
    return (sums[..., None] * outputs).sum(0) / sums.sum(0)[..., None]


@wrong("13.1", "maximum-over-the-tokens")
def merge_maximum_of_the_last_axis(outputs, maxima, sums):
    top = maxima.max(dim=-1, keepdim=True).values
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total[:, None]


@wrong("13.1", "one-maximum-for-all")
def merge_one_maximum(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.max())
    total = (factors * sums).sum(0)
    result = (factors[..., None] * outputs).sum(0) / total[:, None]
    return torch.where((sums.sum(0) == 0)[:, None], 0.0, result)


@wrong("13.1", "maximum-missing")
def merge_exponentials(outputs, maxima, sums):
    factors = maxima.exp()
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total[:, None]


@wrong("13.1", "maximum-missing")
def merge_exponentials_safe(outputs, maxima, sums):
    factors = torch.exp(maxima)
    total = (factors * sums).sum(0)
    result = (factors[..., None] * outputs).sum(0) / total[:, None]
    return result.masked_fill((sums == 0).all(0)[:, None], 0.0)


@wrong("13.1", "minimum-for-maximum")
def merge_minimum(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amin(dim=0))
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total[:, None]


@wrong("13.1", "empty-row-nan")
def merge_without_the_empty_row(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amax(dim=0))
    total = (factors * sums).sum(dim=0)
    return (factors[..., None] * outputs).sum(dim=0) / total[:, None]


@wrong("13.1", "empty-row-nan")
def merge_dividing_zero_by_zero(outputs, maxima, sums):
    top = maxima.amax(dim=0)
    top = top.masked_fill(top == -math.inf, 0.0)
    factors = torch.exp(maxima - top)
    total = torch.sum(factors * sums, dim=0)
    return torch.sum(factors[..., None] * outputs, dim=0) / total[:, None]


@wrong("13.1", "first-part-alone")
def merge_return_in_the_loop(outputs, maxima, sums):
    for o, s in zip(outputs, sums):
        return o / s[:, None]


@wrong("13.1", "last-part-alone")
def merge_overwritten(outputs, maxima, sums):
    for o, s in zip(outputs, sums):
        result = o / s[:, None]
    return result


@wrong("13.1", "best-part-alone")
def merge_the_best(outputs, maxima, sums):
    best = maxima.argmax(dim=0)
    rows = torch.arange(maxima.shape[1])
    return outputs[best, rows] / sums[best, rows][:, None]


@wrong("13.1", "past-not-rescaled")
def merge_forgetting_the_past(outputs, maxima, sums):
    top = torch.full_like(maxima[0], -math.inf)
    bottom, result = torch.zeros_like(top), torch.zeros_like(outputs[0])
    for o, m, s in zip(outputs, maxima, sums):
        top = torch.maximum(top, m)
        own = torch.exp(m - top.nan_to_num(neginf=0.0))
        bottom = bottom + s * own
        result = result + o * own[:, None]
    return result / torch.where(bottom == 0, 1.0, bottom)[:, None]


@wrong("13.1", "new-part-not-rescaled")
def merge_forgetting_the_new(outputs, maxima, sums):
    top = torch.full_like(maxima[0], -math.inf)
    bottom, result = torch.zeros_like(top), torch.zeros_like(outputs[0])
    for o, m, s in zip(outputs, maxima, sums):
        new = torch.maximum(top, m)
        old = torch.exp(top - new.nan_to_num(neginf=0.0))
        bottom = bottom * old + s
        result = result * old[:, None] + o
        top = new
    return result / torch.where(bottom == 0, 1.0, bottom)[:, None]


@wrong("13.1", "parts-not-added")
def merge_not_summed(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0)
    total = total.masked_fill(total == 0, 1.0)
    return factors[..., None] * outputs / total[:, None]


@wrong("13.1", "axis-left")
def merge_with_keepdim(outputs, maxima, sums):
    top = maxima.amax(0, keepdim=True).nan_to_num(neginf=0.0)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0, keepdim=True)
    total = torch.where(total == 0, 1.0, total)
    result = (factors[..., None] * outputs).sum(0, keepdim=True)
    return result / total[..., None]


@wrong("13.1", "axis-missing")
def merge_factors_without_axis(outputs, maxima, sums):
    top = maxima.amax(0)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0)
    return (factors * outputs).sum(0) / total[:, None]


@wrong("13.1", "axis-missing-in-the-division")
def merge_total_without_axis(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    factors = torch.exp(maxima - top)
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total


@wrong("13.1", "sums-returned")
def merge_and_what_else(outputs, maxima, sums):
    top = maxima.amax(0)
    factors = torch.exp(maxima - top.nan_to_num(neginf=0.0))
    total = (factors * sums).sum(0)
    result = (factors[..., None] * outputs).sum(0)
    return result / total.masked_fill(total == 0, 1.0)[:, None], top, total


@wrong("13.1", "input-changed")
def merge_in_place(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    factors = torch.exp(maxima - top)
    outputs *= factors[..., None]
    total = (factors * sums).sum(0)
    return outputs.sum(0) / total.masked_fill(total == 0, 1.0)[:, None]


@wrong("13.1", "returns-nothing")
def merge_without_return(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amax(0))
    (factors[..., None] * outputs).sum(0)


@wrong("13.1", "max-is-a-pair")
def merge_pair_of_maxima(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.max(dim=0))
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total[:, None]


@wrong("13.1", "outputs-without-factor")
def merge_sums_alone_with_an_axis(outputs, maxima, sums):
    top = maxima.amax(0).nan_to_num(neginf=0.0)
    total = (torch.exp(maxima - top) * sums).sum(0)
    total = torch.where(total == 0, 1.0, total)
    return (outputs.sum(0) / total[:, None])[None]


@wrong("13.1", "empty-part-as-zero")
def merge_zero_for_minus_infinity(outputs, maxima, sums):
    finite = torch.where(maxima.isinf(), 0.0, maxima)
    factors = torch.exp(maxima - finite.amax(0))
    total = (factors * sums).sum(0)
    output = (factors[..., None] * outputs).sum(0)
    return output / torch.where(total == 0, 1.0, total)[:, None]


@wrong("13.1", "maximum-over-the-tokens")
def combined_with_maxima_of_rows(outputs, maxima, sums):
    factors = torch.exp(maxima - maxima.amax(dim=1))
    total = (factors * sums).sum(0)
    return (factors[..., None] * outputs).sum(0) / total[:, None]
