"""Answers to the exercises of notebook 10."""

import math

import torch
from torch.nn import functional as F

from bank import right, wrong

# --- 10.1 -------------------------------------------------------------------------


@right("10.1")
def online_blocks(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    denominator = torch.zeros_like(m)
    out = torch.zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        k = key[..., start : start + block_size, :]
        v = value[..., start : start + block_size, :]
        scores = query @ k.transpose(-2, -1) / math.sqrt(query.shape[-1])
        m_new = torch.maximum(m, scores.max(dim=-1, keepdim=True).values)
        correction = torch.exp(m - m_new)
        p = torch.exp(scores - m_new)
        denominator = denominator * correction + p.sum(-1, keepdim=True)
        out = out * correction + p @ v
        m = m_new
    return out / denominator


@right("10.1")
def online_in_place_on_own_tensors(query, key, value, block_size):
    query = query * query.shape[-1] ** -0.5
    m = query.new_full(query.shape[:-1], -torch.inf)
    bottom = torch.zeros_like(m)
    top = query.new_zeros((*m.shape, value.shape[-1]))
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        s = torch.einsum("...td,...sd->...ts", query, k)
        new = torch.maximum(m, s.amax(-1))
        w = (s - new[..., None]).exp()
        bottom *= (m - new).exp()
        bottom += w.sum(-1)
        top *= (m - new).exp()[..., None]
        top += w @ v
        m = new
    return top / bottom[..., None]


@right("10.1")
def online_merging_normalised_blocks(query, key, value, block_size):
    """Keep the normalised output and the logarithm of the denominator."""
    out, log_sum = 0.0, torch.tensor(-math.inf)
    i = 0
    while i < key.size(-2):
        s = query @ key[..., i : i + block_size, :].mT / query.size(-1) ** 0.5
        own = torch.logsumexp(s, dim=-1, keepdim=True)
        both = torch.logaddexp(log_sum, own)
        part = torch.softmax(s, -1) @ value[..., i : i + block_size, :]
        out = out * torch.exp(log_sum - both) + part * torch.exp(own - both)
        log_sum = both
        i += block_size
    return out


@right("10.1")
def online_in_two_passes(query, key, value, block_size):
    blocks = key.split(block_size, -2)
    scores = [query @ k.mT / query.shape[-1] ** 0.5 for k in blocks]
    m = torch.stack([s.amax(-1, keepdim=True) for s in scores]).amax(0)
    den = sum(torch.exp(s - m).sum(-1, keepdim=True) for s in scores)
    values = value.split(block_size, -2)
    return sum(torch.exp(s - m) @ v for s, v in zip(scores, values)) / den


@right("10.1")
def online_by_a_query_at_a_time(query, key, value, block_size):
    """Take one query after the other, and for each one block after the other."""
    rows = []
    for q in query.double().unbind(-2):
        m, bottom, top = -math.inf, 0.0, 0.0
        for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
            s = (k.double() * q[..., None, :]).sum(-1) / math.sqrt(q.shape[-1])
            new = s.amax(-1).clamp(min=m)
            old, p = torch.exp(m - new), torch.exp(s - new[..., None])
            bottom = bottom * old + p.sum(-1)
            top = top * old[..., None] + (p[..., None] * v).sum(-2)
            m = new
        rows.append(top / bottom[..., None])
    return torch.stack(rows, -2).float()


@wrong("10.1", "whole-matrix")
def online_by_the_library(query, key, value, block_size):
    return F.scaled_dot_product_attention(query, key, value)


@wrong("10.1", "whole-matrix")
def online_all_at_once(query, key, value, block_size):
    return torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1) @ value


@wrong("10.1", "whole-matrix")
def online_blocks_of_the_whole(query, key, value, block_size):
    scores = torch.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for s, v in zip(scores.split(block_size, -1), value.split(block_size, -2)):
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ v
        m = new
    return out / total


@wrong("10.1", "accumulator-not-rescaled")
def online_only_denominator(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    l = torch.zeros_like(m)  # noqa: E741
    acc = torch.zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        k = key[..., start : start + block_size, :]
        v = value[..., start : start + block_size, :]
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        l = l * torch.exp(m - new) + p.sum(-1, keepdim=True)  # noqa: E741
        acc = acc + p @ v
        m = new
    return acc / l


@wrong("10.1", "denominator-not-rescaled")
def online_only_accumulator(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, acc = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total + p.sum(-1, keepdim=True)
        acc = acc * torch.exp(m - new) + p @ v
        m = new
    return acc / total


@wrong("10.1", "nothing-rescaled")
def online_forgetful(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, acc = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        m = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - m)
        total = total + p.sum(-1, keepdim=True)
        acc = acc + p @ v
    return acc / total


@wrong("10.1", "rescaled-inversely")
def online_grown(query, key, value, block_size):
    m, total, acc = None, None, None
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        best = s.amax(-1, keepdim=True)
        if m is None:
            m = best
            p = torch.exp(s - m)
            total, acc = p.sum(-1, keepdim=True), p @ v
            continue
        new = torch.maximum(m, best)
        p = torch.exp(s - new)
        total = total * torch.exp(new - m) + p.sum(-1, keepdim=True)
        acc = acc * torch.exp(new - m) + p @ v
        m = new
    return acc / total


@wrong("10.1", "no-final-division")
def online_undivided(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    acc = torch.zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        s = query @ key[..., start : start + block_size, :].mT
        s = s / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        acc = acc * torch.exp(m - new)
        acc = acc + torch.exp(s - new) @ value[..., start : start + block_size, :]
        m = new
    return acc


@wrong("10.1", "divided-in-every-block")
def online_divided_inside(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total = torch.zeros_like(m)
    out = torch.zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = (out * torch.exp(m - new) + p @ v) / total
        m = new
    return out


@wrong("10.1", "last-block-lost")
def online_whole_blocks(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total = torch.zeros_like(m)
    out = torch.zeros(*query.shape[:-1], value.shape[-1])
    for i in range(key.shape[-2] // block_size):
        part = slice(i * block_size, (i + 1) * block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "first-block-lost")
def online_from_the_second(query, key, value, block_size):
    first = block_size if block_size < key.shape[-2] else 0
    key, value = key[..., first:, :], value[..., first:, :]
    return F.scaled_dot_product_attention(query, key, value)


@wrong("10.1", "blocks-averaged")
def online_mean_of_blocks(query, key, value, block_size):
    outputs = []
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        weights = torch.softmax(query @ k.mT / query.shape[-1] ** 0.5, dim=-1)
        outputs.append(weights @ v)
    return sum(outputs) / len(outputs)


@wrong("10.1", "blocks-averaged")
def online_weighted_mean_of_blocks(query, key, value, block_size):
    out = 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        part = F.scaled_dot_product_attention(query, k, v)
        out = out + part * k.shape[-2] / key.shape[-2]
    return out


@wrong("10.1", "blocks-summed")
def online_sum_of_blocks(query, key, value, block_size):
    out = torch.zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        out = out + torch.softmax(query @ k.mT / query.shape[-1] ** 0.5, -1) @ v
    return out


@wrong("10.1", "last-block-alone")
def online_reset(query, key, value, block_size):
    for start in range(0, key.shape[-2], block_size):
        k = key[..., start : start + block_size, :]
        s = query @ k.mT / query.shape[-1] ** 0.5
        p = torch.exp(s - s.amax(-1, keepdim=True))
        out = p @ value[..., start : start + block_size, :]
        out = out / p.sum(-1, keepdim=True)
    return out


@wrong("10.1", "first-block-alone")
def online_return_inside(query, key, value, block_size):
    for start in range(0, key.shape[-2], block_size):
        k = key[..., start : start + block_size, :]
        v = value[..., start : start + block_size, :]
        s = query @ k.mT / query.shape[-1] ** 0.5
        return torch.softmax(s, dim=-1) @ v


@wrong("10.1", "maximum-starts-at-zero")
def online_from_zero(query, key, value, block_size):
    m = torch.zeros(*query.shape[:-1], 1)
    total, out = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ v
        m = new
    return out / total


@wrong("10.1", "maximum-missing")
def online_without_maximum(query, key, value, block_size):
    total, out = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        p = torch.exp(query @ k.mT / query.shape[-1] ** 0.5)
        total = total + p.sum(-1, keepdim=True)
        out = out + p @ v
    return out / total


@wrong("10.1", "maximum-of-the-block")
def online_own_maximum(query, key, value, block_size):
    total, out = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        p = torch.exp(s - s.amax(-1, keepdim=True))
        total = total + p.sum(-1, keepdim=True)
        out = out + p @ v
    return out / total


@wrong("10.1", "one-maximum-for-all")
def online_scalar_maximum(query, key, value, block_size):
    m = torch.full((*query.shape[:-2], 1, 1), float("-inf"))
    total, out = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax((-2, -1), keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ v
        m = new
    return out / total


@wrong("10.1", "scale-missing")
def online_unscaled(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ v
        m = new
    return out / total


@wrong("10.1", "divided-by-width")
def online_over_width(query, key, value, block_size):
    d = query.shape[-1]
    return F.scaled_dot_product_attention(query, key, value, scale=1 / d)


@wrong("10.1", "scale-multiplied")
def online_multiplied(query, key, value, block_size):
    return torch.softmax(query @ key.mT * math.sqrt(key.shape[-1]), -1) @ value


@wrong("10.1", "attention-within-blocks")
def online_blocks_among_themselves(query, key, value, block_size):
    outputs = []
    for start in range(0, query.shape[-2], block_size):
        part = slice(start, start + block_size)
        outputs.append(
            F.scaled_dot_product_attention(
                query[..., part, :], key[..., part, :], value[..., part, :]
            )
        )
    return torch.cat(outputs, dim=-2)


@wrong("10.1", "values-of-the-first-block")
def online_same_values(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for k in key.split(block_size, -2):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ value[..., : k.shape[-2], :]
        m = new
    return out / total


@wrong("10.1", "causal")
def online_with_causal_mask(query, key, value, block_size):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong("10.1", "weights-returned")
def online_with_weights(query, key, value, block_size):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("10.1", "number-of-queries")
def online_until_the_queries_end(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, query.shape[-2], block_size):
        end = min(start + block_size, query.shape[-2])
        s = query @ key[..., start:end, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ value[..., start:end, :]
        m = new
    return out / total


@wrong("10.1", "returns-nothing")
def online_without_return(query, key, value, block_size):
    out = F.scaled_dot_product_attention(query, key, value)
    out = out.contiguous()


@wrong("10.1", "input-changed")
def online_scales_the_query(query, key, value, block_size):
    query /= query.shape[-1] ** 0.5
    return torch.softmax(query @ key.mT, dim=-1) @ value


@wrong("10.1", "nothing-rescaled")
def online_replaced_too_early(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        m = new
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ v
        m = new
    return out / total


@wrong("10.1", "rescaled-inversely")
def online_all_nan(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(new - m), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ v
        m = new
    return out / total


@wrong("10.1", "scale-missing")
def online_unscaled_and_undivided(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ v
        m = new
    return out


@wrong("10.1", "axis-missing-in-the-division")
def online_sums_without_axis(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ v
        m = new
    return out / total[..., 0]


@wrong("10.1", "one-maximum-for-all")
def online_maximum_of_all_queries(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax())
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ v
        m = new
    return out / total


@wrong("10.1", "sums-ignored")
def online_adding_ones(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + 1
        out = out * old + p @ v
        m = new
    return out / total


@wrong("10.1", "last-block-lost")
def online_stops_too_early(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = torch.zeros_like(m), torch.zeros(*m.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2] - block_size, block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(m - new) + p.sum(-1, keepdim=True)
        out = out * torch.exp(m - new) + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "keys-miscounted")
def online_until_len(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, len(key), block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "keys-miscounted")
def online_until_axis_one(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, key.shape[1], block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "transpose-missing")
def online_keys_as_they_are(query, key, value, block_size):
    scores = [query @ k for k in key.split(block_size, -2)]
    return torch.cat(scores, -1).softmax(-1) @ value


@wrong("10.1", "transpose-of-all-axes")
def online_keys_turned_round(query, key, value, block_size):
    scores = [query @ k.T / query.shape[-1] ** 0.5 for k in key.split(block_size, -2)]
    m = torch.stack([s.amax(-1, keepdim=True) for s in scores]).amax(0)
    weights = [torch.exp(s - m) for s in scores]
    out = sum(p @ v for p, v in zip(weights, value.split(block_size, -2)))
    return out / sum(p.sum(-1, keepdim=True) for p in weights)


@wrong("10.1", "max-is-a-pair")
def online_pair_of_maxima(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, key.shape[-2], block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.max(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "maximum-not-subtracted")
def online_exponentials_as_they_are(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, key.shape[-2], block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ value[..., part, :]
        m = new
    return out / total


@wrong("10.1", "last-block-alone")
def online_maximum_never_replaced(query, key, value, block_size):
    m = torch.full((*query.shape[:-1], 1), float("-inf"))
    total, out = 0, 0
    for start in range(0, key.shape[-2], block_size):
        part = slice(start, start + block_size)
        s = query @ key[..., part, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        old, p = torch.exp(m - new), torch.exp(s - new)
        total = total * old + p.sum(-1, keepdim=True)
        out = out * old + p @ value[..., part, :]
    return out / total


# --- 10.2 -------------------------------------------------------------------------


@right("10.2")
def repeat_interleaved(x, n_rep):
    return x.repeat_interleave(n_rep, dim=1)


@right("10.2")
def repeat_expanded(x, n_rep):
    B, H, T, K = x.shape
    return x[:, :, None, :, :].expand(B, H, n_rep, T, K).reshape(B, H * n_rep, T, K)


@right("10.2")
def repeat_by_loop(x, n_rep):
    return torch.stack([x[:, h // n_rep] for h in range(x.shape[1] * n_rep)], dim=1)


@right("10.2")
def repeat_stacked(x, n_rep):
    return torch.stack([x] * n_rep, dim=2).flatten(1, 2)


@right("10.2")
def repeat_by_index(x, n_rep):
    heads = torch.arange(x.size(1) * n_rep) // n_rep
    return x.index_select(1, heads)


@wrong("10.2", "tile-for-interleave")
def repeat_tiled(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


@wrong("10.2", "tile-for-interleave")
def repeat_concatenated(x, n_rep):
    return torch.cat([x] * n_rep, dim=1)


@wrong("10.2", "tile-for-interleave")
def repeat_expanded_in_front(x, n_rep):
    B, H, T, K = x.shape
    return x[:, None].expand(B, n_rep, H, T, K).reshape(B, n_rep * H, T, K)


@wrong("10.2", "tile-for-interleave")
def repeat_modulo(x, n_rep):
    heads = [x[:, h % x.shape[1]] for h in range(x.shape[1] * n_rep)]
    return torch.stack(heads, dim=1)


@wrong("10.2", "tile-of-the-batch")
def repeat_batch_tiled(x, n_rep):
    return torch.cat([x for _ in range(n_rep)])


@wrong("10.2", "wrong-axis")
def repeat_batch(x, n_rep):
    return torch.repeat_interleave(x, n_rep, dim=0)


@wrong("10.2", "wrong-axis")
def repeat_tokens(x, n_rep):
    return torch.repeat_interleave(x, n_rep, dim=2)


@wrong("10.2", "wrong-axis")
def repeat_features(x, n_rep):
    return x.repeat_interleave(n_rep, dim=-1)


@wrong("10.2", "axis-missing")
def repeat_flat(x, n_rep):
    return torch.repeat_interleave(x, n_rep)


@wrong("10.2", "axes-not-merged")
def repeat_five_axes(x, n_rep):
    return x.unsqueeze(2).repeat(1, 1, n_rep, 1, 1)


@wrong("10.2", "features-cut-up")
def repeat_features_then_cut(x, n_rep):
    B, H, T, K = x.shape
    return x.repeat_interleave(n_rep, dim=3).view(B, H * n_rep, T, K)


@wrong("10.2", "tokens-cut-up")
def repeat_tokens_then_cut(x, n_rep):
    B, H, T, K = x.shape
    wide = x[:, :, :, None, :].expand(B, H, T, n_rep, K)
    return wide.reshape(B, H * n_rep, T, K)


@wrong("10.2", "first-head-alone")
def repeat_first(x, n_rep):
    return x[:, 0:1].expand(-1, x.shape[1] * n_rep, -1, -1)


@wrong("10.2", "one-repetition-more")
def repeat_once_too_often(x, n_rep):
    heads = []
    for h in range(x.shape[1]):
        heads.append(x[:, h])
        for _ in range(n_rep):
            heads.append(x[:, h])
    return torch.stack(heads, dim=1)


@wrong("10.2", "heads-times-n-rep")
def repeat_by_heads(x, n_rep):
    return x.repeat_interleave(x.size(1), dim=1)


@wrong("10.2", "n-rep-as-total")
def repeat_up_to(x, n_rep):
    return x.repeat_interleave(n_rep // x.shape[1], dim=1)


@wrong("10.2", "two-heads-only")
def repeat_two(x, n_rep):
    return torch.cat([x[:, h : h + 1].repeat(1, n_rep, 1, 1) for h in (0, 1)], dim=1)


@wrong("10.2", "one-repetition-more")
def repeat_tiled_once_too_often(x, n_rep):
    return x.repeat(1, n_rep + 1, 1, 1)


@wrong("10.2", "not-repeated")
def repeat_forgotten(x, n_rep):
    x.repeat_interleave(n_rep, dim=1)
    return x


@wrong("10.2", "reversed")
def repeat_backwards(x, n_rep):
    heads = [x[:, h].unsqueeze(1).expand(-1, n_rep, -1, -1) for h in range(x.size(1))]
    return torch.cat(heads[::-1], dim=1)


@wrong("10.2", "view-of-expanded")
def repeat_view(x, n_rep):
    B, H, T, K = x.shape
    return x[:, :, None].expand(B, H, n_rep, T, K).view(B, H * n_rep, T, K)


@wrong("10.2", "returns-nothing")
def repeat_without_return(x, n_rep):
    x = x.repeat_interleave(n_rep, dim=1)


# --- 10.3 -------------------------------------------------------------------------


@right("10.3")
def cached_concatenated(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value, (key, value)


@right("10.3")
def cached_by_the_library(query, key, value, cache):
    keys, values = cache if cache else (key[..., :0, :], value[..., :0, :])
    keys, values = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    offset = keys.size(-2) - query.size(-2)
    mask = torch.ones(query.size(-2), keys.size(-2)).bool().tril(offset)
    output = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
    return output, (keys, values)


@right("10.3")
def cached_by_positions(query, key, value, cache):
    start = 0
    if cache is not None:
        keys, values = cache
        start = keys.shape[-2]
        key, value = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    rows = torch.arange(query.shape[-2])[:, None] + start
    future = torch.arange(key.shape[-2])[None] > rows
    scores = torch.einsum("...td,...sd->...ts", query, key) / math.sqrt(key.shape[-1])
    scores[..., future] = -torch.inf
    return scores.softmax(-1) @ value, (key, value)


@right("10.3")
def cached_one_by_one(query, key, value, cache):
    """Let the new tokens come one after the other: the newest needs no mask."""
    outputs = []
    for i in range(query.shape[-2]):
        new = key[..., i : i + 1, :], value[..., i : i + 1, :]
        cache = new if cache is None else tuple(map(glue, cache, new))
        one = query[..., i : i + 1, :]
        outputs.append(F.scaled_dot_product_attention(one, *cache))
    return torch.cat(outputs, -2), cache


def glue(old, new):
    return torch.cat((old, new), dim=-2)


@right("10.3")
def cached_with_added_mask(query, key, value, cache):
    old_keys, old_values = cache or (None, None)
    keys = key if old_keys is None else torch.cat([old_keys, key], -2)
    values = value if old_values is None else torch.cat([old_values, value], -2)
    T, S = query.shape[-2], keys.shape[-2]
    hidden = torch.full((T, S), -math.inf, dtype=query.dtype).triu(S - T + 1)
    scores = query @ keys.mT * query.shape[-1] ** -0.5 + hidden
    return torch.softmax(scores, -1) @ values, (keys, values)


@right("10.3")
def cached_preallocated(query, key, value, cache):
    """Write into new room, large enough for old and new."""
    past = 0 if cache is None else cache[0].shape[-2]
    total = past + key.shape[-2]
    keys = key.new_zeros(*key.shape[:-2], total, key.shape[-1])
    values = value.new_zeros(*value.shape[:-2], total, value.shape[-1])
    if cache is not None:
        keys[..., :past, :], values[..., :past, :] = cache
    keys[..., past:, :], values[..., past:, :] = key, value
    mask = torch.arange(total) <= torch.arange(past, total)[:, None]
    output = F.scaled_dot_product_attention(query, keys, values, mask)
    return [output, (keys, values)]


def cached(
    query, key, value, cache, mask=lambda T, S: torch.ones(T, S).tril(S - T).bool()
):
    """Do the right step, but for the mask."""
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    allowed = mask(query.shape[-2], key.shape[-2])
    return F.scaled_dot_product_attention(query, key, value, allowed), (key, value)


@wrong("10.3", "causal-from-the-top-left")
def cached_is_causal(query, key, value, cache):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=-2)
        value = torch.cat((cache[1], value), dim=-2)
    output = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return output, (key, value)


@wrong("10.3", "causal-from-the-top-left")
def cached_causal_but_for_one(query, key, value, cache):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=-2)
        value = torch.cat((cache[1], value), dim=-2)
    causal = query.shape[-2] > 1
    output = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    return output, (key, value)


@wrong("10.3", "causal-from-the-top-left")
def cached_first_rows(query, key, value, cache):
    def first_rows(T, S):
        return torch.ones(S, S, dtype=torch.bool).tril()[:T]

    return cached(query, key, value, cache, first_rows)


@wrong("10.3", "no-causal-mask")
def cached_without_mask(query, key, value, cache):
    return cached(query, key, value, cache, lambda T, S: None)


@wrong("10.3", "diagonal-masked")
def cached_strictly_before(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(T, S).triu(S - T).bool(), -torch.inf)
    return scores.softmax(-1) @ value, (key, value)


@wrong("10.3", "one-step-leaked")
def cached_one_too_far(query, key, value, cache):
    return cached(
        query, key, value, cache, lambda T, S: torch.ones(T, S).tril(S - T + 1).bool()
    )


@wrong("10.3", "offset-of-the-new")
def cached_moved_by_new(query, key, value, cache):
    return cached(
        query, key, value, cache, lambda T, S: torch.ones(T, S).tril(T).bool()
    )


@wrong("10.3", "mask-inverted")
def cached_inverted(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(mask, -torch.inf)
    return scores.softmax(-1) @ value, (key, value)


@wrong("10.3", "mask-inverted")
def cached_inverted_for_the_library(query, key, value, cache):
    return cached(
        query, key, value, cache, lambda T, S: torch.ones(T, S).triu(S - T + 1).bool()
    )


@wrong("10.3", "diagonal-masked")
def cached_before_for_the_library(query, key, value, cache):
    return cached(
        query, key, value, cache, lambda T, S: torch.ones(T, S).tril(S - T - 1).bool()
    )


@wrong("10.3", "upper-for-lower")
def cached_upper(query, key, value, cache):
    return cached(
        query, key, value, cache, lambda T, S: torch.ones(T, S).triu(S - T).bool()
    )


@wrong("10.3", "new-tokens-apart")
def cached_each_new_alone(query, key, value, cache):
    def apart(T, S):
        mask = torch.ones(T, S, dtype=torch.bool)
        mask[:, S - T :] = torch.eye(T, dtype=torch.bool)
        return mask

    return cached(query, key, value, cache, apart)


@wrong("10.3", "cache-not-seen")
def cached_attends_to_the_new(query, key, value, cache):
    output = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    return output, (key, value)


@wrong("10.3", "cache-ignored")
def cached_forgets(query, key, value, cache):
    output = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return output, (key, value)


@wrong("10.3", "new-tokens-not-seen")
def cached_appends_afterwards(query, key, value, cache):
    if cache is None:
        return F.scaled_dot_product_attention(query, key, value), (key, value)
    keys, values = cache
    output = F.scaled_dot_product_attention(query, keys, values)
    return output, (torch.cat((keys, key), -2), torch.cat((values, value), -2))


@wrong("10.3", "new-in-front")
def cached_in_front(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([key, cache[0]], -2), torch.cat([value, cache[1]], -2)
    S, T = key.shape[-2], query.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


@wrong("10.3", "keys-and-values-swapped")
def cached_values_first(query, key, value, cache):
    if cache is not None:
        values, keys = cache
        key, value = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    S, T = key.shape[-2], query.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


@wrong("10.3", "keys-and-values-swapped")
def cached_returns_values_first(query, key, value, cache):
    output, (keys, values) = cached(query, key, value, cache)
    return output, (values, keys)


@wrong("10.3", "keys-as-values")
def cached_averages_keys(query, key, value, cache):
    _, (keys, values) = cached(query, key, value, cache)
    S, T = keys.shape[-2], query.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    return F.scaled_dot_product_attention(query, keys, keys, mask), (keys, values)


@wrong("10.3", "values-not-kept")
def cached_keys_only(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
    S, T = key.shape[-2], query.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    scores = query @ key.mT / key.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    return weights @ value, (key, value)


@wrong("10.3", "only-the-last-appended")
def cached_appends_the_newest(query, key, value, cache):
    if cache is None:
        return cached(query, key, value, None)
    return cached(query, key[..., -1:, :], value[..., -1:, :], cache)


@wrong("10.3", "cache-not-longer")
def cached_returns_the_old(query, key, value, cache):
    output, _ = cached(query, key, value, cache)
    if cache is None:
        return output, (key[..., :0, :], value[..., :0, :])
    return output, cache


@wrong("10.3", "only-the-new-returned")
def cached_returns_the_new(query, key, value, cache):
    return cached(query, key, value, cache)[0], (key, value)


@wrong("10.3", "returns-output-alone")
def cached_output(query, key, value, cache):
    return cached(query, key, value, cache)[0]


@wrong("10.3", "returned-flat")
def cached_flat(query, key, value, cache):
    output, (keys, values) = cached(query, key, value, cache)
    return output, keys, values


@wrong("10.3", "parts-swapped")
def cached_cache_first(query, key, value, cache):
    output, longer = cached(query, key, value, cache)
    return longer, output


@wrong("10.3", "cache-as-a-list")
def cached_list(query, key, value, cache):
    output, longer = cached(query, key, value, cache)
    return output, list(longer)


@wrong("10.3", "weights-returned")
def cached_weights(query, key, value, cache):
    output, (keys, values) = cached(query, key, value, cache)
    mask = torch.ones(query.shape[-2], keys.shape[-2]).bool()
    mask = mask.tril(keys.shape[-2] - query.shape[-2])
    scores = (query @ keys.mT / keys.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return output, scores.softmax(-1), (keys, values)


@wrong("10.3", "last-row-alone")
def cached_newest_output(query, key, value, cache):
    output, longer = cached(query, key, value, cache)
    return output[..., -1:, :], longer


@wrong("10.3", "last-row-alone")
def cached_last_query(query, key, value, cache):
    """The newest token sees everything, so this needs no mask; where are the others?"""
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    newest = query[..., -1:, :]
    return F.scaled_dot_product_attention(newest, key, value), (key, value)


@wrong("10.3", "scale-missing")
def cached_unscaled(query, key, value, cache):
    return cached(query * query.shape[-1] ** 0.5, key, value, cache)


@wrong("10.3", "divided-by-width")
def cached_over_width(query, key, value, cache):
    return cached(query / query.shape[-1] ** 0.5, key, value, cache)


@wrong("10.3", "root-of-tokens")
def cached_over_tokens(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    scores = (query @ key.mT / S**0.5).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ value, (key, value)


@wrong("10.3", "softmax-over-queries")
def cached_softmax_of_columns(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    scores = (query @ key.mT / key.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-2) @ value, (key, value)


@wrong("10.3", "maximum-missing")
def cached_plain_exponentials(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / key.shape[-1] ** 0.5
    future = torch.ones(T, S).triu(S - T + 1) > 0
    scores = torch.exp(scores.masked_fill(future, -torch.inf))
    return scores / scores.sum(-1, keepdim=True) @ value, (key, value)


@wrong("10.3", "scale-missing")
def cached_unscaled_without_mask(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    return torch.softmax(query @ key.mT, -1) @ value, (key, value)


@wrong("10.3", "causal-from-the-top-left")
def cached_is_causal_and_old(query, key, value, cache):
    longer = cached(query, key, value, cache)[1]
    output = F.scaled_dot_product_attention(query, *longer, is_causal=True)
    return output, (key, value)


@wrong("10.3", "mask-of-the-new")
def cached_square_mask(query, key, value, cache):
    return cached(query, key, value, cache, lambda T, S: torch.ones(T, T).tril().bool())


@wrong("10.3", "mask-of-the-new")
def cached_square_mask_filled(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T = query.shape[-2]
    scores = query @ key.mT / key.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
    return scores.softmax(-1) @ value, (key, value)


@wrong("10.3", "none-not-expected")
def cached_never_begins(query, key, value, cache):
    keys, values = cache
    longer = torch.cat([keys, key], -2), torch.cat([values, value], -2)
    mask = torch.ones(query.shape[-2], longer[0].shape[-2])
    mask = mask.tril(keys.shape[-2]).bool()
    return F.scaled_dot_product_attention(query, *longer, mask), longer


@wrong("10.3", "scale-of-values")
def cached_over_the_width_of_values(query, key, value, cache):
    scale = (query.shape[-1] / value.shape[-1]) ** 0.5
    return cached(query * scale, key, value, cache)


@wrong("10.3", "fill-not-small-enough")
def cached_filled_with_minus_1000(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / key.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(T, S).triu(S - T + 1).bool(), -1000)
    return scores.softmax(-1) @ value, (key, value)


@wrong("10.3", "renormalised-after")
def cached_cut_and_shared_out_again(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    weights = torch.softmax(query @ key.mT / key.shape[-1] ** 0.5, -1).tril(S - T)
    return weights / weights.sum(-1, keepdim=True) @ value, (key, value)


@wrong("10.3", "mask-after-softmax")
def cached_masked_late(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    weights = torch.softmax(query @ key.mT / key.shape[-1] ** 0.5, -1)
    return weights.tril(S - T) @ value, (key, value)


@wrong("10.3", "wrong-axis-joined")
def cached_along_axis_two(query, key, value, cache):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=2)
        value = torch.cat((cache[1], value), dim=2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


@wrong("10.3", "wrong-axis-joined")
def cached_along_axis_one(query, key, value, cache):
    if cache is not None:
        key = torch.cat((cache[0], key), dim=1)
        value = torch.cat((cache[1], value), dim=1)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


@wrong("10.3", "wrong-axis-joined")
def cached_along_the_first_axis(query, key, value, cache):
    if cache is not None:
        key, value = torch.cat((cache[0], key)), torch.cat((cache[1], value))
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


@wrong("10.3", "returns-nothing")
def cached_without_return(query, key, value, cache):
    cached(query, key, value, cache)


@wrong("10.3", "input-changed")
def cached_scales_in_place(query, key, value, cache):
    query *= query.shape[-1] ** -0.5
    if cache is not None:
        key, value = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    T, S = query.shape[-2], key.shape[-2]
    scores = (query @ key.mT).masked_fill(torch.ones(T, S).triu(S - T + 1) > 0, -1e9)
    return torch.softmax(scores, -1) @ value, (key, value)


@wrong("10.3", "input-changed")
def cached_grown_in_place(query, key, value, cache):
    """Make the cache's own tensors longer."""
    output, (keys, values) = cached(query, key, value, cache)
    if cache is not None:
        cache[0].data, cache[1].data = keys, values
        return output, cache
    return output, (keys, values)


@wrong("10.3", "keys-and-values-swapped")
def cached_with_the_old_keys_for_values(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[0], value], dim=-2)
    new, every = query.shape[-2], key.shape[-2]
    mask = torch.ones(new, every).tril(every - new).bool()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ value, (key, value)


@wrong("10.2", "returns-nothing")
def repeat_kv_without_one(x, n_rep):
    if n_rep > 1:
        return x.repeat_interleave(n_rep, dim=1)
