"""Answers that the checks once judged wrongly, and those that show a diagnosis."""

import numpy as np
import torch

from tests.answers import right, wrong


@right  # numbers of NumPy
def merge(ids, pair, new_id):
    rest, merged = [*np.array(ids, dtype=np.int64)], []
    while rest:
        is_match = tuple(rest[:2]) == pair
        merged.append(new_id if is_match else rest[0])
        rest = rest[2 if is_match else 1 :]
    return merged


@wrong("is-for-equal")
def merge(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        is_match = i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]
        merged.append(new_id if is_match else ids[i])
        i += 2 if is_match else 1
    return merged


def windows(ids, length, stride, kind):
    starts = range(0, len(ids) - length, stride)
    rows = torch.tensor([ids[s : s + length + 1] for s in starts], dtype=kind)
    return rows[:, :-1], rows[:, 1:]


@right
def sliding_windows(ids, context_length, stride):
    return windows(ids, context_length, stride, torch.int32)


@wrong("type-too-small")
def sliding_windows(ids, context_length, stride):
    return windows(ids, context_length, stride, torch.int8)


@wrong("type-too-small")
def sliding_windows(ids, context_length, stride):
    both = windows(ids, context_length, stride, torch.int64)
    return tuple(part.to(torch.int16) for part in both)


@wrong("fixed-number-of-blocks")
def gpt_logits(token_ids, embedding, blocks, norm, output):
    x = embedding(token_ids)
    for block in blocks[:3]:
        x = block(x)
    return output(norm(x))


@wrong("slice-size-ignored")
def online_softmax_attention(query, key, value, slice_size):
    rows = query.split(1, dim=-2)  # each with all keys
    weights = [(row @ key.mT / key.shape[-1] ** 0.5).softmax(-1) for row in rows]
    return torch.cat([each @ value for each in weights], dim=-2)


@wrong("slice-size-ignored")
def online_softmax_attention(query, key, value, slice_size):
    top, total, output = torch.tensor(-torch.inf), 0, 0
    for k, v in zip(key.split(3, dim=-2), value.split(3, dim=-2)):
        scores = query @ k.mT / query.shape[-1] ** 0.5
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        factor, weights = (top - higher).exp(), (scores - higher).exp()
        total = factor * total + weights.sum(-1, keepdim=True)
        output = factor * output + weights @ v
        top = higher
    return output / total


@wrong("keepdim-missing")
def attention_weights(x):
    exponentials = torch.exp(x @ x.T)
    return exponentials / exponentials.sum(dim=-1)


@wrong("exponential-missing", "keepdim-missing")
def attention_weights(x):
    scores = x @ x.T
    return scores / scores.sum(dim=-1)


@wrong("softmax-over-queries")
def attention_weights(x):
    exponentials = torch.exp(x @ x.T)
    return exponentials / exponentials.sum(dim=0, keepdim=True)


@wrong("fixed-count")  # the tokens of the page's example
def attention_weights(x):
    rows = [torch.stack([x[i] @ x[j] for j in range(3)]) for i in range(3)]
    return torch.softmax(torch.stack(rows), dim=-1)


@wrong("tril-of-no-matrix")
def causal_mask(num_tokens):
    return torch.tril(True)


@wrong("tril-of-no-matrix")
def causal_mask(num_tokens):
    return torch.ones(num_tokens, dtype=torch.bool).tril()
