"""Answers to the exercises of notebook 03."""

import math

import torch
from torch.nn import functional as F

from bank import right, wrong


@right("3.3")
def softmax_library(scores, dim=-1):
    return F.softmax(scores, dim=dim)


@right("3.3")
def softmax_formula(scores, dim=-1):
    exps = torch.exp(scores - scores.max(dim=dim, keepdim=True).values)
    return exps / exps.sum(dim=dim, keepdim=True)


@right("3.3")
def softmax_logsumexp(scores, dim=-1):
    return (scores - torch.logsumexp(scores, dim, keepdim=True)).exp()


@right("3.3")
def softmax_rows_in_a_loop(scores, dim=-1):
    moved = scores.transpose(dim, -1).double()
    rows = []
    for row in moved.reshape(-1, moved.shape[-1]):
        exps = [math.exp(score - max(row.tolist())) for score in row.tolist()]
        rows.append([value / sum(exps) for value in exps])
    return torch.tensor(rows).reshape(moved.shape).transpose(dim, -1)


@wrong("3.3", "softmax-over-everything")
def softmax_one_sum(scores, dim=-1):
    exps = torch.exp(scores - scores.max())
    return exps / exps.sum()


@wrong("3.3", "dim-ignored")
def softmax_dim_fixed(scores, dim=-1):
    return F.softmax(scores, dim=-1)


@wrong("3.3", "wrong-axis")
def softmax_first_axis(scores, dim=-1):
    return F.softmax(scores, dim=0)


@wrong("3.3", "maximum-not-subtracted")
def softmax_naive(scores, dim=-1):
    return torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)


@wrong("3.3", "keepdim-missing")
def softmax_no_keepdim(scores, dim=-1):
    shifted = scores - scores.max(dim, keepdim=True)[0]
    return shifted.exp() / shifted.exp().sum(dim)


@wrong("3.3", "log-softmax")
def softmax_log(scores, dim=-1):
    return F.log_softmax(scores, dim)


@wrong("3.3", "input-changed")
def softmax_in_place(scores, dim=-1):
    scores -= scores.amax(dim, keepdim=True)
    exps = scores.exp()
    return exps / exps.sum(dim, keepdim=True)


@wrong("3.3", "not-normalised")
def softmax_exponentials(scores, dim=-1):
    return torch.exp(scores - scores.amax(dim, keepdim=True))


@wrong("3.3", "returns-nothing")
def softmax_print(scores, dim=-1):
    print(F.softmax(scores, dim))


@wrong("3.3", "wrong-signature")
def softmax_three_arguments(scores, dim, temperature):
    return F.softmax(scores / temperature, dim)


@wrong("3.3", "global-maximum-subtracted")
def softmax_one_maximum(scores, dim=-1):
    exps = torch.exp(scores - scores.max())
    return exps / exps.sum(dim=dim, keepdim=True)


@wrong("3.3", "mean-subtracted")
def softmax_centred(scores, dim=-1):
    exps = torch.exp(scores - scores.mean(dim, keepdim=True))
    return exps / exps.sum(dim, keepdim=True)


@wrong("3.3", "exponential-missing")
def softmax_plain_shares(scores, dim=-1):
    return scores / scores.sum(dim=dim, keepdim=True)


@wrong("3.3", "sigmoid")
def softmax_sigmoid(scores, dim=-1):
    return 1 / (1 + torch.exp(-scores))


@wrong("3.3", "softmax-twice")
def softmax_of_softmax(scores, dim=-1):
    weights = torch.softmax(scores, dim)
    return torch.softmax(weights, dim)


@wrong("3.3", "hardmax")
def softmax_winner(scores, dim=-1):
    winner = scores.argmax(dim, keepdim=True)
    return torch.zeros_like(scores).scatter(dim, winner, 1.0)


@wrong("3.3", "sign-flipped")
def softmax_maximum_minus(scores, dim=-1):
    exps = torch.exp(scores.amax(dim, keepdim=True) - scores)
    return exps / exps.sum(dim, keepdim=True)


@wrong("3.3", "dim-ignored")
def softmax_two_axes(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exps / exps.sum(dim=-1, keepdim=True)


@wrong("3.3", "max-is-a-pair")
def softmax_pair(scores, dim=-1):
    exps = torch.exp(scores - scores.max(dim=dim, keepdim=True))
    return exps / exps.sum(dim=dim, keepdim=True)


@wrong("3.3", "dim-ignored")
def softmax_max_of_columns(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(0, keepdim=True))
    return exps / exps.sum(dim, keepdim=True)


@wrong("3.3", "dim-ignored")
def softmax_sum_of_columns(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(dim, keepdim=True))
    return exps / exps.sum(0, keepdim=True)


@wrong("3.3", "wrong-axis")
def softmax_default_zero(scores, dim=0):
    return torch.softmax(scores, dim)


@wrong("3.3", "not-normalised")
def softmax_over_count(scores, dim=-1):
    exps = torch.exp(scores - scores.amax(dim, keepdim=True))
    return exps / scores.shape[dim]


# --- 3.1 --------------------------------------------------------------------------


@right("3.1")
def weights_matrix_product(x):
    return torch.softmax(x @ x.T, dim=-1)


@right("3.1")
def weights_einsum(x):
    scores = torch.einsum("id,jd->ij", x, x)
    exps = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    return exps / exps.sum(dim=1, keepdim=True)


@right("3.1")
def weights_loop(x):
    rows = []
    for query in x:
        scores = torch.tensor([torch.dot(query, token).item() for token in x])
        rows.append(F.softmax(scores, dim=0))
    return torch.stack(rows)


@right("3.1")
def weights_filled_in(x):
    num_tokens = len(x)
    weights = torch.empty(num_tokens, num_tokens)
    for i in range(num_tokens):
        weights[i] = (x @ x[i]).softmax(0)
    return weights


@wrong("3.1", "scaled")
def weights_scaled(x):
    return torch.softmax(x @ x.T / x.shape[-1] ** 0.5, dim=-1)


@wrong("3.1", "softmax-over-queries")
def weights_first_axis(x):
    return torch.softmax(x @ x.T, dim=0)


@wrong("3.1", "softmax-over-queries")
def weights_transposed(x):
    return F.softmax(x @ x.T, dim=-1).T


@wrong("3.1", "softmax-missing")
def weights_scores(x):
    return x @ x.T


@wrong("3.1", "features-for-tokens")
def weights_of_features(x):
    return torch.softmax(x.T @ x, dim=-1)


@wrong("3.1", "maximum-not-subtracted")
def weights_naive(x):
    exps = torch.exp(x @ x.T)
    return exps / exps.sum(dim=-1, keepdim=True)


@wrong("3.1", "softmax-over-everything")
def weights_one_sum(x):
    scores = x @ x.T
    exps = torch.exp(scores - scores.max())
    return exps / exps.sum()


@wrong("3.1", "exponential-missing")
def weights_shares(x):
    scores = x @ x.T
    return scores / scores.sum(dim=-1, keepdim=True)


@wrong("3.1", "transpose-missing")
def weights_without_transpose(x):
    return torch.softmax(x @ x, dim=-1)


@wrong("3.1", "elementwise-product")
def weights_star(x):
    return torch.softmax(x * x, dim=-1)


@wrong("3.1", "one-row-only")
def weights_of_the_last(x):
    for query in x:
        weights = torch.softmax(x @ query, dim=0)
    return weights


@wrong("3.1", "context-returned")
def weights_and_on(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


@wrong("3.1", "cosine")
def weights_of_directions(x):
    unit = F.normalize(x, dim=-1)
    return torch.softmax(unit @ unit.T, dim=-1)


@wrong("3.1", "keepdim-missing")
def weights_no_keepdim(x):
    scores = x @ x.T
    exps = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return exps / exps.sum(dim=-1)


@wrong("3.1", "maximum-not-subtracted")
def weights_naive_without_keepdim(x):
    exps = torch.exp(x @ x.T)
    return exps / exps.sum(dim=-1)


@wrong("3.1", "itself-excluded")
def weights_of_others(x):
    scores = (x @ x.T).fill_diagonal_(float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("3.1", "returns-nothing")
def weights_forgotten(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    print(weights.sum(dim=-1))


@wrong("3.1", "input-changed")
def weights_in_place(x):
    scores = x @ x.T
    x /= x.norm(dim=-1, keepdim=True).clamp(min=1e-9)
    return torch.softmax(scores, dim=-1)


@wrong("3.1", "future-hidden")
def weights_causal(x):
    mask = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), diagonal=1)
    return torch.softmax((x @ x.T).masked_fill(mask, -torch.inf), dim=-1)


@wrong("3.1", "hardmax")
def weights_winner(x):
    return F.one_hot((x @ x.T).argmax(dim=-1), len(x)).float()


@wrong("3.1", "future-hidden")
def weights_cut_after(x):
    return torch.softmax(x @ x.T, dim=-1).tril()


@wrong("3.1", "itself-excluded")
def weights_without_diagonal(x):
    return torch.softmax(x @ x.T, dim=-1).fill_diagonal_(0)


@wrong("3.1", "scaled")
def weights_scaled_without_keepdim(x):
    exps = torch.exp(x @ x.T / x.shape[1] ** 0.5)
    return exps / exps.sum(-1)


# --- 3.2 --------------------------------------------------------------------------


@right("3.2")
def context_two_products(x):
    return torch.softmax(x @ x.T, dim=-1) @ x


@right("3.2")
def context_library(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0)


@right("3.2")
def context_loop(x):
    contexts = torch.zeros_like(x)
    for i, query in enumerate(x):
        weights = torch.softmax(x @ query, dim=-1)
        for weight, token in zip(weights, x):
            contexts[i] = contexts[i] + weight * token
    return contexts


@right("3.2")
def context_einsum(x):
    weights = torch.einsum("id,jd->ij", x, x).softmax(dim=1)
    return torch.einsum("ij,jd->id", weights, x)


@wrong("3.2", "softmax-over-queries")
def context_transposed_weights(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return weights.T @ x


@wrong("3.2", "softmax-over-queries")
def context_columns(x):
    return torch.softmax(x @ x.T, dim=0) @ x


@wrong("3.2", "softmax-missing")
def context_of_scores(x):
    return x @ x.T @ x


@wrong("3.2", "scores-for-values")
def context_scores_mixed(x):
    scores = x @ x.T
    return torch.softmax(scores, dim=-1) @ scores


@wrong("3.2", "one-row-only")
def context_of_one(x):
    weights = torch.softmax(x @ x[0], dim=0)
    return weights @ x


@wrong("3.2", "one-row-only")
def context_last_pass(x):
    for query in x:
        context = torch.softmax(x @ query, dim=0) @ x
    return context


@wrong("3.2", "uniform-weights")
def context_plain_average(x):
    return x.mean(dim=0).expand(x.shape)


@wrong("3.2", "one-vector-for-all")
def context_one_average(x):
    return x.mean(dim=0)


@wrong("3.2", "weights-returned")
def context_stops_early(x):
    return torch.softmax(x @ x.T, dim=-1)


@wrong("3.2", "scaled")
def context_scaled(x):
    return F.scaled_dot_product_attention(x, x, x)


@wrong("3.2", "values-transposed")
def context_values_turned(x):
    return torch.softmax(x @ x.T, dim=-1) @ x.T


@wrong("3.2", "elementwise-product")
def context_star(x):
    return torch.softmax(x @ x.T, dim=-1) * x


@wrong("3.2", "summed-over-queries")
def context_wrong_sum(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return (weights[:, :, None] * x[None, :, :]).sum(dim=0)


@wrong("3.2", "not-summed")
def context_not_summed(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return weights[:, :, None] * x


@wrong("3.2", "not-normalised")
def context_exponentials(x):
    return torch.exp(x @ x.T) @ x


@wrong("3.2", "maximum-not-subtracted")
def context_naive(x):
    exps = torch.exp(x @ x.T)
    return exps / exps.sum(dim=-1, keepdim=True) @ x


@wrong("3.2", "tokens-added")
def context_with_residual(x):
    return x + torch.softmax(x @ x.T, dim=-1) @ x


@wrong("3.2", "features-for-tokens")
def context_of_features(x):
    return x @ torch.softmax(x.T @ x, dim=-1)


@wrong("3.2", "transposed")
def context_turned(x):
    return x.T @ torch.softmax(x @ x.T, dim=-1).T


@wrong("3.2", "returns-nothing")
def context_printed(x):
    print(torch.softmax(x @ x.T, dim=-1) @ x)


@wrong("3.2", "input-changed")
def context_written_over(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    x.copy_(weights @ x)
    return x


@wrong("3.2", "future-hidden")
def context_causal(x):
    return F.scaled_dot_product_attention(x, x, x, scale=1.0, is_causal=True)


@wrong("3.2", "averaged-twice")
def context_of_contexts(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    context = weights @ x
    return weights @ context


@wrong("3.2", "divided-by-tokens")
def context_mean(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return (weights[:, :, None] * x).mean(dim=1)


@wrong("3.2", "written-while-reading")
def context_row_by_row(x):
    x = x.clone()
    for i in range(len(x)):
        x[i] = torch.softmax(x @ x[i], dim=0) @ x
    return x


@wrong("3.2", "weights-returned-too")
def context_and_weights(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return weights @ x, weights


@wrong("3.2", "hardmax")
def context_winner(x):
    return x[(x @ x.T).argmax(dim=-1)]


@wrong("3.2", "last-token-missing")
def context_range_short(x):
    weights, tokens = torch.softmax(x @ x.T, dim=-1), range(len(x) - 1)
    return torch.stack(
        [sum(row[j] * x[j] for j in tokens) + 0 * x[0] for row in weights]
    )


@wrong("3.2", "divided-by-width")
def context_over_width(x):
    return torch.softmax(x @ x.T, dim=-1) @ x / x.shape[1]


@wrong("3.1", "reshape-for-transpose")
def weights_of_a_view(x):
    return torch.softmax(x @ x.view(x.shape[1], x.shape[0]), dim=1)
