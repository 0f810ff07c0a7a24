"""Answers to the exercises of notebook 05."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from answers import right

# --- 5.1 --------------------------------------------------------------------------


@right("causal_mask")
def mask_tril(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@right("causal_mask")
def mask_compared(num_tokens):
    positions = torch.arange(num_tokens)
    return positions[None, :] <= positions[:, None]


@right("causal_mask")
def mask_loop(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        mask[i, : i + 1] = True
    return mask


# --- 5.3 --------------------------------------------------------------------------


@right("masked_softmax")
def softmax_filled_twice(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return weights.masked_fill(~mask, 0.0)


@right("masked_softmax")
def softmax_where(scores, mask):
    scores = torch.where(mask, scores, -torch.inf)
    weights = F.softmax(scores, dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, 0.0)


@right("masked_softmax")
def softmax_nan_to_num(scores, mask):
    return (scores + mask.log()).softmax(-1).nan_to_num(0.0)


# --- 5.4 --------------------------------------------------------------------------


@right("padding_mask")
def padding_compared(lengths, num_tokens):
    return torch.arange(num_tokens) < torch.as_tensor(lengths)[:, None]


@right("padding_mask")
def padding_on_its_device(lengths, num_tokens):
    lengths = torch.as_tensor(lengths)
    positions = torch.arange(num_tokens, device=lengths.device)
    return positions.expand(len(lengths), num_tokens) < lengths.unsqueeze(1)


@right("padding_mask")
def padding_loop(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for i, length in enumerate(lengths):
        mask[i, :length] = True
    return mask


# --- 5.5 --------------------------------------------------------------------------


@right("dropout")
def dropout_rand_like(x, p):
    if p == 1:
        return torch.zeros_like(x)
    return x * (torch.rand_like(x) >= p) / (1 - p)


@right("dropout")
def dropout_bernoulli(x, p):
    keep = torch.bernoulli(torch.full_like(x, 1 - p))
    return x * keep / max(1.0 - p, 1e-9)


@right("dropout")
def dropout_library(x, p):
    return F.dropout(x, p=p, training=True)


# --- 5.2 --------------------------------------------------------------------------


def tril(num_tokens):
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).tril()


class Causal(nn.Module):
    """The parts of a right answer; those below exchange one step of it."""

    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", tril(context_length), persistent=False)

    def scores(self, query, key):
        return query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5

    def hide(self, scores, num_tokens):
        blocked = ~self.mask[:num_tokens, :num_tokens]
        return scores.masked_fill(blocked, float("-inf"))

    def weights(self, scores, num_tokens):
        return torch.softmax(self.hide(scores, num_tokens), dim=-1)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.weights(self.scores(query, key), x.shape[1])
        return self.dropout(weights) @ value


@right("CausalAttention")
class CausalBuffer(Causal):
    pass


@right("CausalAttention")
class CausalLibrary(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.p = dropout

    def forward(self, x):
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            dropout_p=p,
            is_causal=True,
        )


@right("CausalAttention")
class CausalParameters(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out) / d_in**0.5)
        self.W_key = nn.Parameter(torch.randn(d_in, d_out) / d_in**0.5)
        self.W_value = nn.Parameter(torch.randn(d_in, d_out) / d_in**0.5)
        self.p = dropout

    def forward(self, x, need_weights=False):
        query, key, value = x @ self.W_query, x @ self.W_key, x @ self.W_value
        positions = torch.arange(x.shape[1], device=x.device)
        blocked = positions > positions[:, None]
        scores = torch.einsum("btk,bsk->bts", query, key) / math.sqrt(query.shape[-1])
        weights = F.softmax(scores.masked_fill(blocked, float("-inf")), dim=-1)
        weights = F.dropout(weights, self.p, training=self.training)
        output = torch.einsum("bts,bsk->btk", weights, value)
        return (output, weights) if need_weights else output
