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
def online_by_the_library(query, key, value, block_size):
    return F.scaled_dot_product_attention(query, key, value)


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
