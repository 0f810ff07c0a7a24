"""Answers to the exercises of notebook 05."""

import math
import random

import numpy as np
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


@right("causal_mask")
def mask_not_triu(num_tokens):
    blocked = torch.ones(num_tokens, num_tokens).triu(diagonal=1)
    return blocked == 0


@right("causal_mask")
def mask_nested_lists(num_tokens):
    rows = [[key <= query for key in range(num_tokens)] for query in range(num_tokens)]
    return torch.tensor(rows, dtype=torch.bool).view(num_tokens, num_tokens)


@right("causal_mask")
def mask_from_library(num_tokens):
    return nn.Transformer.generate_square_subsequent_mask(num_tokens) == 0


# --- 5.2 --------------------------------------------------------------------------


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


@right("masked_softmax")
def softmax_by_hand(scores, mask):
    hidden = scores.double().masked_fill(~mask, -1e300)
    exps = torch.exp(hidden - hidden.amax(dim=-1, keepdim=True)) * mask
    total = exps.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, exps / total, torch.zeros_like(exps)).to(scores.dtype)


@right("masked_softmax")
def softmax_row_by_row(scores, mask):
    mask = mask.expand(scores.shape)
    weights = torch.zeros_like(scores)
    width = scores.shape[-1]
    rows = zip(scores.reshape(-1, width), mask.reshape(-1, width))
    for n, (row, allowed) in enumerate(rows):
        if allowed.any():
            found = torch.zeros(width, dtype=row.dtype)
            found[allowed] = torch.softmax(row[allowed], dim=0)
            weights.view(-1, width)[n] = found
    return weights


@right("masked_softmax")
def softmax_attends_to_identity(scores, mask):
    keys = torch.eye(scores.shape[-1])
    zeros = torch.zeros(*scores.shape[:-1], 1)
    values = keys.expand(*scores.shape[:-2], -1, -1)
    bias = scores.float().masked_fill(~mask, float("-inf"))
    nothing = torch.zeros(*values.shape[:-1], 1)
    found = F.scaled_dot_product_attention(zeros, nothing, values, attn_mask=bias)
    return found.masked_fill(~mask, 0)


@right("masked_softmax")
def softmax_lowest_number(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(mask.logical_not(), lowest), dim=-1)
    return weights * mask


@right("masked_softmax")
def softmax_minus_billion_zeroed(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
    return weights.masked_fill(~mask, 0)


# --- 5.3 --------------------------------------------------------------------------


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


@right("padding_mask")
def padding_lists(lengths, num_tokens):
    return torch.tensor(
        [[True] * n + [False] * (num_tokens - n) for n in map(int, lengths)]
    )


@right("padding_mask")
def padding_list_times_length(lengths, num_tokens):
    rows = [[1] * length + [0] * (num_tokens - length) for length in lengths]
    return torch.tensor(rows, dtype=torch.bool)


@right("padding_mask")
def padding_cumsum(lengths, num_tokens):
    ones = torch.ones(len(lengths), num_tokens)
    return ones.cumsum(dim=1) <= torch.as_tensor(lengths).view(-1, 1)


@right("padding_mask")
def padding_rows_of_a_triangle(lengths, num_tokens):
    table = torch.ones(num_tokens + 1, num_tokens).tril(-1).bool()
    return table[lengths]


# --- 5.4 --------------------------------------------------------------------------


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


@right("dropout")
def dropout_module(x, p):
    return nn.Dropout(p)(x)


@right("dropout")
def dropout_where(x, p):
    keep = 1 - p
    coins = torch.rand(x.shape, dtype=x.dtype, device=x.device)
    return torch.where(coins < keep, x / keep, torch.zeros_like(x))


@right("dropout")
def dropout_loop(x, p):
    dropped = []
    for value in x.flatten().tolist():
        dropped.append(0.0 if random.random() < p else value / (1 - p))
    return torch.tensor(dropped).view(x.shape)


@right("dropout")
def dropout_numpy_coins(x, p):
    coins = np.random.default_rng().random(x.shape)
    kept = x.masked_fill(torch.from_numpy(coins < p), 0.0)
    return kept * (1 / (1 - p)) if p < 1 else kept


# --- 5.5 --------------------------------------------------------------------------


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


@right("CausalAttention")
class CausalUniformParameters(CausalParameters):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@right("CausalAttention")
class CausalNormalParameters(CausalParameters):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@right("CausalAttention")
class CausalAdditive(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        blocked = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("bias", torch.triu(blocked, diagonal=1))

    def hide(self, scores, num_tokens):
        return scores + self.bias[:num_tokens, :num_tokens]


@right("CausalAttention")
class CausalGrowing(Causal):
    """Run once per query on what it may see; own coins for the dropout."""

    def forward(self, x):
        outputs = []
        for t in range(1, x.shape[1] + 1):
            query, seen = self.W_query(x[:, t - 1 : t]), x[:, :t]
            weights = self.scores(query, self.W_key(seen)).softmax(-1)
            if self.training:
                p = self.dropout.p
                weights = weights * (torch.rand_like(weights) >= p) / (1 - p)
            outputs.append(weights @ self.W_value(seen))
        return torch.cat(outputs, dim=1)


@right("CausalAttention")
class CausalFloatBuffer(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("allowed", torch.tril(ones).view(1, *ones.shape))

    def hide(self, scores, num_tokens):
        allowed = self.allowed[:, :num_tokens, :num_tokens]
        return scores.masked_fill_(allowed == 0, -torch.inf)
