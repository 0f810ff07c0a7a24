"""Answers to the exercises of notebook 04."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from answers import right


@right("scaled_dot_product_attention")
def attention_formula(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@right("scaled_dot_product_attention")
def attention_einsum(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) * key.size(-1) ** -0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("scaled_dot_product_attention")
def attention_library(query, key, value):
    weights = F.softmax(query.double() @ key.double().mT / key.shape[-1] ** 0.5, -1)
    return F.scaled_dot_product_attention(query, key, value), weights.float()


class Linears(nn.Module):
    """Three layers without bias; the answers below add their forward pass."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ value


@right("SelfAttention")
class SelfAttentionLinear(Linears):
    pass


@right("SelfAttention")
class SelfAttentionLibrary(Linears):
    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )


@right("SelfAttention")
class SelfAttentionParameters(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).mT
        return (scores / self.W_key.shape[1] ** 0.5).softmax(-1) @ (x @ self.W_value)
