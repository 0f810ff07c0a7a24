"""Answers to the exercises of notebook 08."""

import math

import torch
from torch.nn import functional as F

from answers import right


@right("cross_attention")
def cross_formula(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if context_mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        mask = context_mask[..., None, :]
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


@right("cross_attention")
def cross_einsum(x, context, W_query, W_key, W_value, context_mask=None):
    query = torch.einsum("...td,dk->...tk", x, W_query)
    key = torch.einsum("...sd,dk->...sk", context, W_key)
    value = torch.einsum("...sd,dv->...sv", context, W_value)
    scores = torch.einsum("...tk,...sk->...ts", query, key) * key.shape[-1] ** -0.5
    if context_mask is not None:
        scores = scores.where(context_mask.unsqueeze(-2), -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("cross_attention")
def cross_library(x, context, W_query, W_key, W_value, context_mask=None):
    mask = None if context_mask is None else context_mask.unsqueeze(-2)
    query, key = x @ W_query, context @ W_key
    eye = torch.eye(key.shape[-2]).expand(*key.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(query, key, eye, attn_mask=mask)
    return weights @ (context @ W_value), weights


@right("greedy_translate")
def greedy_while(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@right("greedy_translate")
def greedy_for(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        logits = next_logits([start_id] + written)
        best = int(torch.argmax(logits, dim=-1))
        if best == end_id:
            return written
        written += [best]
    return written


@right("greedy_translate")
def greedy_end_removed(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(int(next_logits(ids).max(dim=0).indices))
        if ids[-1] == end_id:
            ids.pop()
            break
    return ids[1:]
