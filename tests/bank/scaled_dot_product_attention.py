"""Answers to the exercises of notebook 04."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong


@right("4.1")
def attention_formula(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@right("4.1")
def attention_einsum(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) * key.size(-1) ** -0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("4.1")
def attention_library(query, key, value):
    weights = F.softmax(query.double() @ key.double().mT / key.shape[-1] ** 0.5, -1)
    return F.scaled_dot_product_attention(query, key, value), weights.float()


@right("4.1")
def attention_scaled_queries(query, key, value):
    query = query / torch.tensor(query.shape[-1]).sqrt()
    scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1)
    exps = (scores - scores.max(-1, keepdim=True)[0]).exp()
    weights = exps / exps.sum(-1, keepdim=True)
    return [weights @ value, weights]


@wrong("4.1", "scale-missing")
def attention_unscaled(query, key, value):
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights


@wrong("4.1", "divided-by-width")
def attention_over_d(query, key, value):
    weights = F.softmax(query @ key.transpose(-2, -1) / query.shape[-1], dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-multiplied")
def attention_times_root(query, key, value):
    weights = F.softmax(query @ key.transpose(-2, -1) * key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-keys")
def attention_root_of_keys(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-2]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-values")
def attention_root_of_values(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(value.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-after-softmax")
def attention_late_scale(query, key, value):
    weights = F.softmax(query @ key.mT, dim=-1) / math.sqrt(key.shape[-1])
    return weights @ value, weights


@wrong("4.1", "softmax-over-queries")
def attention_columns(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-2)
    return weights @ value, weights


@wrong("4.1", "transpose-of-all-axes")
def attention_dot_t(query, key, value):
    weights = F.softmax(query @ key.T / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "keys-times-queries")
def attention_turned_round(query, key, value):
    weights = F.softmax(key @ query.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "weights-missing")
def attention_output_alone(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@wrong("4.1", "output-and-weights-swapped")
def attention_swapped(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights, weights @ value


@wrong("4.1", "softmax-missing")
def attention_raw(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    return scores @ value, scores


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


@right("4.2")
class SelfAttentionLinear(Linears):
    pass


@right("4.2")
class SelfAttentionLibrary(Linears):
    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )


@right("4.2")
class SelfAttentionParameters(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).mT
        return (scores / self.W_key.shape[1] ** 0.5).softmax(-1) @ (x @ self.W_value)


@wrong("4.2", "scale-missing")
class SelfAttentionUnscaled(Linears):
    def forward(self, x):
        weights = torch.softmax(self.W_query(x) @ self.W_key(x).transpose(-2, -1), -1)
        return weights @ self.W_value(x)


@wrong("4.2", "scale-of-input-width")
class SelfAttentionInputWidth(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).transpose(-2, -1) / x.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ self.W_value(x)


@wrong("4.2", "values-not-projected")
class SelfAttentionRawValues(Linears):
    def forward(self, x):
        query, key = self.W_query(x), self.W_key(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ x


@wrong("4.2", "weights-not-registered")
class SelfAttentionPlainTensors(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).mT
        return (scores / self.W_key.shape[1] ** 0.5).softmax(-1) @ (x @ self.W_value)


@wrong("4.2", "shared-weights")
class SelfAttentionOneMatrix(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.W_query = self.W_key = self.W_value


@wrong("4.2", "unasked-bias")
class SelfAttentionBias(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.W_query = nn.Linear(d_in, d_out)


@wrong("4.2", "returns-a-tuple")
class SelfAttentionBoth(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        weights = torch.softmax(scores, -1)
        return weights @ self.W_value(x), weights


@wrong("4.2", "transpose-of-all-axes")
class SelfAttentionDotT(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).T / self.W_key.out_features**0.5
        return torch.softmax(scores, -1) @ self.W_value(x)


@wrong("4.2", "softmax-over-queries")
class SelfAttentionColumns(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, -2) @ self.W_value(x)


@wrong("4.2", "super-init-missing")
class SelfAttentionNoSuper(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@wrong("4.2", "projection-missing")
class SelfAttentionOtherNames(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.q = nn.Linear(d_in, d_out, bias=False)
        self.k = nn.Linear(d_in, d_out, bias=False)
        self.v = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))
