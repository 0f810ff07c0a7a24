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
