"""Answers to the exercises of notebook 10."""

import math

import torch
from torch.nn import functional as F

from answers import right

# --- 10.1 -------------------------------------------------------------------------


@right("online_softmax_attention")
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


@right("online_softmax_attention")
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


@right("online_softmax_attention")
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


@right("online_softmax_attention")
def online_in_two_passes(query, key, value, block_size):
    blocks = key.split(block_size, -2)
    scores = [query @ k.mT / query.shape[-1] ** 0.5 for k in blocks]
    m = torch.stack([s.amax(-1, keepdim=True) for s in scores]).amax(0)
    den = sum(torch.exp(s - m).sum(-1, keepdim=True) for s in scores)
    values = value.split(block_size, -2)
    return sum(torch.exp(s - m) @ v for s, v in zip(scores, values)) / den


@right("online_softmax_attention")
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


# --- 10.3 -------------------------------------------------------------------------


@right("repeat_kv")
def repeat_interleaved(x, n_rep):
    return x.repeat_interleave(n_rep, dim=1)


@right("repeat_kv")
def repeat_expanded(x, n_rep):
    B, H, T, K = x.shape
    return x[:, :, None, :, :].expand(B, H, n_rep, T, K).reshape(B, H * n_rep, T, K)


@right("repeat_kv")
def repeat_by_loop(x, n_rep):
    return torch.stack([x[:, h // n_rep] for h in range(x.shape[1] * n_rep)], dim=1)


@right("repeat_kv")
def repeat_stacked(x, n_rep):
    return torch.stack([x] * n_rep, dim=2).flatten(1, 2)


@right("repeat_kv")
def repeat_by_index(x, n_rep):
    heads = torch.arange(x.size(1) * n_rep) // n_rep
    return x.index_select(1, heads)


# --- 10.2 -------------------------------------------------------------------------


@right("attend_with_cache")
def cached_concatenated(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    mask = torch.ones(S, S, dtype=torch.bool).tril()[S - T :]
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value, (key, value)


@right("attend_with_cache")
def cached_by_the_library(query, key, value, cache):
    keys, values = cache if cache else (key[..., :0, :], value[..., :0, :])
    keys, values = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    offset = keys.size(-2) - query.size(-2)
    mask = torch.ones(query.size(-2), keys.size(-2)).bool().tril(offset)
    output = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
    return output, (keys, values)


@right("attend_with_cache")
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


@right("attend_with_cache")
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


@right("attend_with_cache")
def cached_with_added_mask(query, key, value, cache):
    old_keys, old_values = cache or (None, None)
    keys = key if old_keys is None else torch.cat([old_keys, key], -2)
    values = value if old_values is None else torch.cat([old_values, value], -2)
    T, S = query.shape[-2], keys.shape[-2]
    hidden = torch.full((T, S), -math.inf, dtype=query.dtype).triu(S - T + 1)
    scores = query @ keys.mT * query.shape[-1] ** -0.5 + hidden
    return torch.softmax(scores, -1) @ values, (keys, values)


@right("attend_with_cache")
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
