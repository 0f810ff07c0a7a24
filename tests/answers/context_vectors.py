"""Answers to the exercises of notebook 03."""

import math

import torch
from torch.nn import functional as F

from answers import right


@right("softmax")
def softmax_library(scores, dim=-1):
    return F.softmax(scores, dim=dim)


@right("softmax")
def softmax_formula(scores, dim=-1):
    exps = torch.exp(scores - scores.max(dim=dim, keepdim=True).values)
    return exps / exps.sum(dim=dim, keepdim=True)


@right("softmax")
def softmax_logsumexp(scores, dim=-1):
    return (scores - torch.logsumexp(scores, dim, keepdim=True)).exp()


@right("softmax")
def softmax_rows_in_a_loop(scores, dim=-1):
    moved = scores.transpose(dim, -1).double()
    rows = []
    for row in moved.reshape(-1, moved.shape[-1]):
        exps = [math.exp(score - max(row.tolist())) for score in row.tolist()]
        rows.append([value / sum(exps) for value in exps])
    return torch.tensor(rows).reshape(moved.shape).transpose(dim, -1)


# --- 3.2 --------------------------------------------------------------------------


@right("attention_weights")
def weights_matrix_product(x):
    return torch.softmax(x @ x.T, dim=-1)


@right("attention_weights")
def weights_einsum(x):
    scores = torch.einsum("id,jd->ij", x, x)
    exps = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    return exps / exps.sum(dim=1, keepdim=True)


@right("attention_weights")
def weights_loop(x):
    rows = []
    for query in x:
        scores = torch.tensor([torch.dot(query, token).item() for token in x])
        rows.append(F.softmax(scores, dim=0))
    return torch.stack(rows)


@right("attention_weights")
def weights_filled_in(x):
    num_tokens = len(x)
    weights = torch.empty(num_tokens, num_tokens)
    for i in range(num_tokens):
        weights[i] = (x @ x[i]).softmax(0)
    return weights


# --- 3.3 --------------------------------------------------------------------------


@right("context_vectors")
def context_two_products(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


@right("context_vectors")
def context_library(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)


@right("context_vectors")
def context_loop(x):
    contexts = torch.zeros_like(x)
    for i, query in enumerate(x):
        weights = torch.softmax(x @ query, dim=-1)
        for weight, token in zip(weights, x):
            contexts[i] = contexts[i] + weight * token
    return contexts


@right("context_vectors")
def context_einsum(x):
    weights = torch.einsum("id,jd->ij", x, x).softmax(dim=1)
    return torch.einsum("ij,jd->id", weights, x)
