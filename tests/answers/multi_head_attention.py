"""Answers to the exercises of notebook 06."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from answers import right

# --- 6.1 --------------------------------------------------------------------------


@right("split_heads")
def split_view(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError(f"{D} features and {num_heads} heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@right("split_heads")
def split_unflatten(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3).contiguous()


@right("split_heads")
def split_slices(x, num_heads):
    head_dim = x.shape[-1] // num_heads
    if head_dim * num_heads != x.shape[-1]:
        raise ValueError("the heads cannot share the features out evenly")
    heads = []
    for h in range(num_heads):
        heads.append(x[:, :, h * head_dim : (h + 1) * head_dim])
    return torch.stack(heads, dim=1)


# --- 6.2 --------------------------------------------------------------------------


@right("merge_heads")
def merge_contiguous(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).contiguous().view(B, T, H * K)


@right("merge_heads")
def merge_flatten(x):
    return x.permute(0, 2, 1, 3).flatten(-2)


@right("merge_heads")
def merge_cat(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


# --- 6.3 --------------------------------------------------------------------------


class Heads(nn.Module):
    """Four layers, a mask and a dropout; the answers below change a step or two."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} does not divide by {num_heads} heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask.bool())

    def split(self, x):
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)

    def scores(self, query, key):
        return query @ key.transpose(-2, -1) / math.sqrt(self.head_dim)

    def hide(self, scores):
        T = scores.shape[-1]
        return scores.masked_fill(self.mask[:T, :T], float("-inf"))

    def weigh(self, scores):
        return torch.softmax(self.hide(scores), dim=-1)

    def merge(self, context):
        B, H, T, K = context.shape
        return context.transpose(1, 2).reshape(B, T, H * K)

    def forward(self, x):
        query = self.split(self.W_query(x))
        key = self.split(self.W_key(x))
        value = self.split(self.W_value(x))
        weights = self.dropout(self.weigh(self.scores(query, key)))
        return self.out_proj(self.merge(weights @ value))


@right("MultiHeadAttention")
class MultiHeadViews(Heads):
    pass


@right("MultiHeadAttention")
class MultiHeadLibrary(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def forward(self, x, need_weights=False):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@right("MultiHeadAttention")
class MultiHeadEinsum(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.K, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} features, {num_heads} heads")
        self.H, self.p = num_heads, dropout
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.out_proj = nn.Parameter(torch.rand(d_out, d_out))

    def forward(self, x):
        def heads(matrix):
            per_head = matrix.view(-1, self.H, self.K)
            return torch.einsum("btd,dhk->bthk", x, per_head)

        q, k, v = heads(self.W_query), heads(self.W_key), heads(self.W_value)
        scores = torch.einsum("bthk,bshk->bhts", q, k) * self.K**-0.5
        allowed = torch.arange(x.shape[1])[:, None] >= torch.arange(x.shape[1])
        weights = scores.where(allowed, -torch.inf).softmax(-1)
        weights = F.dropout(weights, self.p, training=self.training)
        context = torch.einsum("bhts,bshk->bthk", weights, v)
        return context.flatten(2) @ self.out_proj


# the heads


# the widths


# the scale


# the mask


# the softmax


# the dropout


# the projections


# two mistakes at once
