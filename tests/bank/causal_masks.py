"""Answers to the exercises of notebook 05."""

import math
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong

# --- 5.1 --------------------------------------------------------------------------


@right("5.1")
def mask_tril(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@right("5.1")
def mask_compared(num_tokens):
    positions = torch.arange(num_tokens)
    return positions[None, :] <= positions[:, None]


@right("5.1")
def mask_loop(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        mask[i, : i + 1] = True
    return mask


@right("5.1")
def mask_not_triu(num_tokens):
    blocked = torch.ones(num_tokens, num_tokens).triu(diagonal=1)
    return blocked == 0


@right("5.1")
def mask_nested_lists(num_tokens):
    rows = [[key <= query for key in range(num_tokens)] for query in range(num_tokens)]
    return torch.tensor(rows, dtype=torch.bool).view(num_tokens, num_tokens)


@right("5.1")
def mask_from_library(num_tokens):
    return nn.Transformer.generate_square_subsequent_mask(num_tokens) == 0


@wrong("5.1", "upper-for-lower")
def mask_triu(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@wrong("5.1", "polarity-inverted")
def mask_of_blocked(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1).bool()


@wrong("5.1", "polarity-inverted")
def mask_tril_is_zero(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens)) == 0


@wrong("5.1", "diagonal-masked")
def mask_strictly_before(num_tokens):
    i = torch.arange(num_tokens)
    return i < i.unsqueeze(1)


@wrong("5.1", "diagonal-masked")
def mask_loop_too_short(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        for j in range(i):
            mask[i, j] = True
    return mask


@wrong("5.1", "one-step-leaked")
def mask_diagonal_one(num_tokens):
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).tril(diagonal=1)


@wrong("5.1", "everything-allowed")
def mask_tril_lost(num_tokens):
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    mask.tril()
    return mask


@wrong("5.1", "nothing-allowed")
def mask_of_zeros(num_tokens):
    return torch.tril(torch.zeros(num_tokens, num_tokens, dtype=torch.bool))


@wrong("5.1", "diagonal-alone")
def mask_eye(num_tokens):
    return torch.eye(num_tokens, dtype=torch.bool)


@wrong("5.1", "numbers-for-booleans")
def mask_float(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens))


@wrong("5.1", "numbers-for-booleans")
def mask_integer_loop(num_tokens):
    rows = []
    for i in range(num_tokens):
        rows.append([1 if j <= i else 0 for j in range(num_tokens)])
    return torch.tensor(rows)


@wrong("5.1", "numbers-for-booleans")
def mask_float_of_blocked(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), 1)


@wrong("5.1", "additive-mask")
def mask_minus_infinity(num_tokens):
    return torch.triu(torch.full((num_tokens, num_tokens), float("-inf")), diagonal=1)


@wrong("5.1", "zero-times-infinity")
def mask_times_infinity(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1) * float("-inf")


@wrong("5.1", "leading-axes")
def mask_of_a_batch(num_tokens):
    mask = torch.tril(torch.ones(num_tokens, num_tokens)).bool()
    return mask.view(1, 1, num_tokens, num_tokens)


@wrong("5.1", "list-for-tensor")
def mask_lists(num_tokens):
    return [[j <= i for j in range(num_tokens)] for i in range(num_tokens)]


@wrong("5.1", "array-for-tensor")
def mask_numpy(num_tokens):
    return np.tril(np.ones((num_tokens, num_tokens), dtype=bool))


@wrong("5.1", "size-of-a-number")
def mask_of_scores(scores):
    num_tokens = scores.shape[-1]
    return torch.ones(num_tokens, num_tokens).tril().bool()


@wrong("5.1", "uniform-weights")
def mask_averaged(num_tokens):
    mask = torch.tril(torch.ones(num_tokens, num_tokens))
    return mask / mask.sum(1, keepdim=True)


@wrong("5.1", "no-token-fails")
def mask_nested_lists_of_none(num_tokens):
    places = range(num_tokens)
    return torch.tensor([[key <= query for key in places] for query in places])


@wrong("5.1", "returns-nothing")
def mask_printed(num_tokens):
    print(torch.ones(num_tokens, num_tokens).tril().bool())


@wrong("5.1", "upper-for-lower")
def mask_triu_below(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(diagonal=-1).bool()


@wrong("5.1", "diagonal-masked")
def mask_short_numbers(num_tokens):
    return torch.ones(num_tokens, num_tokens).tril(diagonal=-1)


# --- 5.2 --------------------------------------------------------------------------


@right("5.2")
def softmax_filled_twice(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return weights.masked_fill(~mask, 0.0)


@right("5.2")
def softmax_where(scores, mask):
    scores = torch.where(mask, scores, -torch.inf)
    weights = F.softmax(scores, dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, 0.0)


@right("5.2")
def softmax_nan_to_num(scores, mask):
    return (scores + mask.log()).softmax(-1).nan_to_num(0.0)


@right("5.2")
def softmax_by_hand(scores, mask):
    hidden = scores.double().masked_fill(~mask, -1e300)
    exps = torch.exp(hidden - hidden.amax(dim=-1, keepdim=True)) * mask
    total = exps.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, exps / total, torch.zeros_like(exps)).to(scores.dtype)


@right("5.2")
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


@right("5.2")
def softmax_attends_to_identity(scores, mask):
    keys = torch.eye(scores.shape[-1])
    zeros = torch.zeros(*scores.shape[:-1], 1)
    values = keys.expand(*scores.shape[:-2], -1, -1)
    bias = scores.float().masked_fill(~mask, float("-inf"))
    nothing = torch.zeros(*values.shape[:-1], 1)
    found = F.scaled_dot_product_attention(zeros, nothing, values, attn_mask=bias)
    return found.masked_fill(~mask, 0)


@right("5.2")
def softmax_lowest_number(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(mask.logical_not(), lowest), dim=-1)
    return weights * mask


@wrong("5.2", "mask-not-used")
def softmax_result_lost(scores, mask):
    scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong("5.2", "polarity-inverted")
def softmax_mask_is_blocked(scores, mask):
    scores = scores.masked_fill(mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, dim=-1))


@wrong("5.2", "polarity-inverted")
def softmax_where_swapped(scores, mask):
    return torch.softmax(torch.where(mask, float("-inf"), scores), -1)


@wrong("5.2", "empty-row-nan")
def softmax_filled_once(scores, mask):
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return F.softmax(scores, dim=-1)


@wrong("5.2", "empty-row-uniform")
def softmax_minus_billion(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)


@right("5.2")
def softmax_minus_billion_zeroed(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)
    return weights.masked_fill(~mask, 0)


@wrong("5.2", "empty-row-uniform")
def softmax_penalty_added(scores, mask):
    return torch.softmax(scores + (1.0 - mask.float()) * -1e9, dim=-1)


@wrong("5.2", "empty-row-uniform")
def softmax_finfo(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(torch.where(mask, scores, lowest), dim=-1)


@wrong("5.2", "fill-not-small-enough")
def softmax_minus_hundred(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, -100.0), dim=-1)
    return weights * mask


@wrong("5.2", "zero-for-minus-infinity")
def softmax_multiplied(scores, mask):
    return torch.softmax(scores * mask, dim=-1)


@wrong("5.2", "zero-for-minus-infinity")
def softmax_tiny_fill(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, 1e-9), dim=-1)


@wrong("5.2", "mask-after-softmax")
def softmax_then_mask(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


@wrong("5.2", "renormalised-after")
def softmax_then_mask_then_sum(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("5.2", "renormalised-after")
def softmax_clamped_sum(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-6)


@wrong("5.2", "maximum-not-subtracted")
def softmax_bare_exponentials(scores, mask):
    exps = torch.exp(scores) * mask
    return exps / exps.sum(-1, keepdim=True)


@wrong("5.2", "zero-times-infinity")
def softmax_mask_times_infinity(scores, mask):
    scores = scores + (~mask).float() * float("-inf")
    return torch.softmax(scores, dim=-1)


@wrong("5.2", "mask-added")
def softmax_float_mask(scores, mask):
    return torch.softmax(scores + mask.float(), dim=-1)


@wrong("5.2", "softmax-missing")
def softmax_forgotten(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


@wrong("5.2", "softmax-over-queries")
def softmax_columns(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-2)
    return weights.masked_fill(~mask, 0.0)


@wrong("5.2", "fixed-axis")
def softmax_dim_one(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)
    return weights.masked_fill(~mask, 0.0)


@wrong("5.2", "axis-left-open")
def softmax_without_dim(scores, mask):
    weights = F.softmax(scores.masked_fill(~mask, float("-inf")), _stacklevel=5)
    return weights.masked_fill(~mask, 0.0)


@wrong("5.2", "input-changed")
def softmax_in_place_mask(scores, mask):
    scores.masked_fill_(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)


@wrong("5.2", "mask-not-broadcast")
def softmax_indexed(scores, mask):
    scores = scores.clone()
    scores[~mask] = float("-inf")
    weights = torch.softmax(scores, dim=-1)
    weights[torch.isnan(weights)] = 0
    return weights


@wrong("5.2", "selected-scores")
def softmax_of_selected(scores, mask):
    return torch.softmax(scores[mask], dim=-1)


@wrong("5.2", "bool-arithmetic")
def softmax_one_minus_mask(scores, mask):
    weights = torch.softmax(scores + (1 - mask) * -1e9, dim=-1)
    return weights * mask


@wrong("5.2", "bool-arithmetic")
def softmax_not_mask(scores, mask):
    return torch.softmax(scores.masked_fill(not mask, float("-inf")), dim=-1)


@wrong("5.2", "fixed-axis")
def softmax_rows_along_dim_one(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.where(mask.any(dim=1, keepdim=True), weights, 0.0)


@wrong("5.2", "keepdim-missing")
def softmax_sum_without_axis(scores, mask):
    hidden = scores.masked_fill(~mask, float("-inf"))
    exps = torch.exp(hidden - hidden.max(dim=-1, keepdim=True).values)
    return (exps / exps.sum(dim=-1)).nan_to_num(0.0)


@wrong("5.2", "triangle-for-mask")
def softmax_own_triangle(scores, mask):
    size = scores.shape[-2:]
    blocked = torch.triu(torch.ones(size, dtype=torch.bool), diagonal=1)
    return torch.softmax(scores.masked_fill(blocked, float("-inf")), dim=-1)


@wrong("5.2", "maximum-not-subtracted")
def weights_naive_cleared(scores, mask):
    exps = torch.exp(scores) * mask
    return (exps / exps.sum(-1, keepdim=True)).nan_to_num(0.0)


@wrong("5.2", "maximum-not-subtracted")
def weights_naive_keepdim(scores, mask):
    exps = torch.exp(scores) * mask
    return exps / exps.sum(-1)


# --- 5.3 --------------------------------------------------------------------------


@right("5.3")
def padding_compared(lengths, num_tokens):
    return torch.arange(num_tokens) < torch.as_tensor(lengths)[:, None]


@right("5.3")
def padding_on_its_device(lengths, num_tokens):
    lengths = torch.as_tensor(lengths)
    positions = torch.arange(num_tokens, device=lengths.device)
    return positions.expand(len(lengths), num_tokens) < lengths.unsqueeze(1)


@right("5.3")
def padding_loop(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for i, length in enumerate(lengths):
        mask[i, :length] = True
    return mask


@right("5.3")
def padding_lists(lengths, num_tokens):
    return torch.tensor(
        [[True] * n + [False] * (num_tokens - n) for n in map(int, lengths)]
    )


@right("5.3")
def padding_list_times_length(lengths, num_tokens):
    rows = [[1] * length + [0] * (num_tokens - length) for length in lengths]
    return torch.tensor(rows, dtype=torch.bool)


@right("5.3")
def padding_cumsum(lengths, num_tokens):
    ones = torch.ones(len(lengths), num_tokens)
    return ones.cumsum(dim=1) <= torch.as_tensor(lengths).view(-1, 1)


@right("5.3")
def padding_rows_of_a_triangle(lengths, num_tokens):
    table = torch.ones(num_tokens + 1, num_tokens).tril(-1).bool()
    return table[lengths]


@wrong("5.3", "polarity-inverted")
def padding_of_the_filling(lengths, num_tokens):
    return torch.arange(num_tokens) >= lengths[:, None]


@wrong("5.3", "polarity-inverted")
def padding_loop_inverted(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for row, length in zip(mask, lengths):
        row[length:] = True
    return mask


@wrong("5.3", "one-too-many")
def padding_less_or_equal(lengths, num_tokens):
    return torch.arange(num_tokens)[None, :] <= lengths[:, None]


@wrong("5.3", "one-too-few")
def padding_from_one(lengths, num_tokens):
    return torch.arange(1, num_tokens + 1)[None, :] < lengths[:, None]


@wrong("5.3", "left-for-right")
def padding_on_the_left(lengths, num_tokens):
    return torch.arange(num_tokens) >= num_tokens - lengths[:, None]


@wrong("5.3", "axes-swapped")
def padding_columns(lengths, num_tokens):
    return torch.arange(num_tokens)[:, None] < lengths[None, :]


@wrong("5.3", "axes-swapped")
def padding_other_axis(lengths, num_tokens):
    return torch.arange(num_tokens).unsqueeze(1) < lengths


@wrong("5.3", "axis-missing")
def padding_no_axis(lengths, num_tokens):
    return torch.arange(num_tokens) < lengths


@wrong("5.3", "longest-for-num-tokens")
def padding_to_the_longest(lengths, num_tokens):
    num_tokens = max(lengths)
    return torch.arange(num_tokens) < lengths[:, None]


@wrong("5.3", "one-length-for-all")
def padding_longest_length(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for length in lengths:
        mask[:, :length] = True
    return mask


@wrong("5.3", "last-token-alone")
def padding_equal(lengths, num_tokens):
    return F.one_hot(lengths - 1, num_tokens).bool() & (lengths > 0)[:, None]


@wrong("5.3", "last-token-alone")
def padding_one_entry(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for i in range(len(lengths)):
        mask[i, lengths[i]] = True
    return mask


@wrong("5.3", "sliced-by-a-tensor")
def padding_slice_of_all(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens).bool()
    mask[:, :lengths] = True
    return mask


@wrong("5.3", "axis-inserted")
def padding_for_scores(lengths, num_tokens):
    mask = torch.arange(num_tokens)[None, :] < lengths[:, None]
    return mask[:, None, :]


@wrong("5.3", "axis-inserted")
def padding_for_heads(lengths, num_tokens):
    mask = torch.arange(num_tokens)[None, :] < lengths[:, None]
    return mask.unsqueeze(1).unsqueeze(2)


@wrong("5.3", "queries-hidden")
def padding_pairs(lengths, num_tokens):
    real = torch.arange(num_tokens) < lengths[:, None]
    return real.unsqueeze(1) & real.unsqueeze(2)


@wrong("5.3", "causal-mask-too")
def padding_and_causal(lengths, num_tokens):
    real = torch.arange(num_tokens) < lengths[:, None]
    causal = torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))
    return real[:, None, :] & causal


@wrong("5.3", "numbers-for-booleans")
def padding_ones_and_zeros(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens)
    for i, length in enumerate(lengths):
        mask[i, :length] = 1
    return mask


@wrong("5.3", "numbers-for-booleans")
def padding_like_hugging_face(lengths, num_tokens):
    return (torch.arange(num_tokens) < lengths[:, None]).long()


@wrong("5.3", "list-for-tensor")
def padding_python_lists(lengths, num_tokens):
    rows = []
    for length in lengths.tolist():
        rows.append([t < length for t in range(num_tokens)])
    return rows


@wrong("5.3", "minus-zero")
def padding_cut_from_the_end(lengths, num_tokens):
    mask = torch.ones(len(lengths), num_tokens, dtype=torch.bool)
    for i, length in enumerate(lengths.tolist()):
        mask[i, -(num_tokens - length) :] = False
    return mask


@wrong("5.3", "list-not-accepted")
def padding_tensor_alone(lengths, num_tokens):
    positions = torch.arange(num_tokens, device=lengths.device)
    return positions.expand(len(lengths), num_tokens) < lengths.unsqueeze(1)


@wrong("5.3", "tensor-not-accepted")
def padding_list_alone(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        mask[:, i] = torch.tensor([length > i for length in lengths + []])
    return mask


@wrong("5.3", "lengths-for-ids")
def padding_not_zero(lengths, num_tokens):
    return lengths != 0


@wrong("5.3", "one-row-only")
def padding_early_return(lengths, num_tokens):
    for length in lengths:
        return torch.arange(num_tokens) < length


@wrong("5.3", "one-place-short")
def padding_short(lengths, num_tokens):
    return torch.arange(num_tokens - 1) < torch.as_tensor(lengths)[:, None]


@wrong("5.3", "one-place-short")
def padding_one_to_end(lengths, num_tokens):
    return torch.arange(1, num_tokens) <= torch.as_tensor(lengths)[:, None]


@wrong("5.3", "one-too-few")
def padding_slice_short(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for row, length in zip(mask, lengths):
        row[: length - 1] = True
    return mask


@wrong("5.3", "causal-mask-instead")
def padding_tril(lengths, num_tokens):
    return torch.ones(len(lengths), num_tokens).tril().bool()


@wrong("5.3", "one-too-many")
def padding_numbers_to_length(lengths, num_tokens):
    return (torch.arange(num_tokens) <= torch.as_tensor(lengths)[:, None]).int()


# --- 5.4 --------------------------------------------------------------------------


@right("5.4")
def dropout_rand_like(x, p):
    if p == 1:
        return torch.zeros_like(x)
    return x * (torch.rand_like(x) >= p) / (1 - p)


@right("5.4")
def dropout_bernoulli(x, p):
    keep = torch.bernoulli(torch.full_like(x, 1 - p))
    return x * keep / max(1.0 - p, 1e-9)


@right("5.4")
def dropout_library(x, p):
    return F.dropout(x, p=p, training=True)


@right("5.4")
def dropout_module(x, p):
    return nn.Dropout(p)(x)


@right("5.4")
def dropout_where(x, p):
    keep = 1 - p
    coins = torch.rand(x.shape, dtype=x.dtype, device=x.device)
    return torch.where(coins < keep, x / keep, torch.zeros_like(x))


@right("5.4")
def dropout_loop(x, p):
    dropped = []
    for value in x.flatten().tolist():
        dropped.append(0.0 if random.random() < p else value / (1 - p))
    return torch.tensor(dropped).view(x.shape)


@right("5.4")
def dropout_numpy_coins(x, p):
    coins = np.random.default_rng().random(x.shape)
    kept = x.masked_fill(torch.from_numpy(coins < p), 0.0)
    return kept * (1 / (1 - p)) if p < 1 else kept


@wrong("5.4", "p-one-fails")
def dropout_of_all(x, p):
    return x * (torch.rand_like(x) >= p) / (1 - p)


@wrong("5.4", "p-one-fails")
def dropout_of_all_by_a_factor(x, p):
    scale = 1 / (1 - p)
    return x.masked_fill(torch.rand_like(x) < p, 0.0) * scale


@wrong("5.4", "not-rescaled")
def dropout_without_scale(x, p):
    return x * (torch.rand_like(x) > p)


@wrong("5.4", "not-rescaled")
def dropout_filled_without_scale(x, p):
    return x.masked_fill(torch.rand(x.shape) < p, 0.0)


@wrong("5.4", "divided-by-p")
def dropout_over_p(x, p):
    return x * (torch.rand_like(x) >= p) / p


@wrong("5.4", "parentheses-missing")
def dropout_precedence(x, p):
    return x * (torch.rand_like(x) > p) / 1 - p


@wrong("5.4", "multiplied-by-keep")
def dropout_times_keep(x, p):
    return x * (torch.rand_like(x) >= p) * (1 - p)


@wrong("5.4", "keeps-p")
def dropout_keeps_below(x, p):
    return x * (torch.rand_like(x) < p) / (1 - p)


@wrong("5.4", "keeps-p")
def dropout_p_is_keep(x, p):
    return x * torch.bernoulli(torch.full_like(x, p)) / p


@wrong("5.4", "nothing-dropped")
def dropout_in_eval_mode(x, p):
    return nn.Dropout(p).eval()(x)


@wrong("5.4", "nothing-dropped")
def dropout_fill_lost(x, p):
    x.masked_fill(torch.rand_like(x) < p, 0.0)
    return x / (1 - p)


@wrong("5.4", "one-coin-for-all")
def dropout_all_or_nothing(x, p):
    if torch.rand(1).item() < p:
        return torch.zeros_like(x)
    return x / (1 - p)


@wrong("5.4", "whole-rows")
def dropout_of_rows(x, p):
    keep = torch.rand(*x.shape[:-1], 1) >= p
    return x * keep / (1 - p)


@wrong("5.4", "whole-columns")
def dropout_of_columns(x, p):
    keep = (torch.rand(x.shape[-1]) > p).float()
    return x * keep / (1 - p)


@wrong("5.4", "one-mask-for-the-batch")
def dropout_per_place(x, p):
    keep = torch.rand(x.shape[-2:]) > p
    return x * keep / (1 - p)


@wrong("5.4", "same-mask-each-time")
def dropout_seeded(x, p):
    torch.manual_seed(123)
    keep = torch.rand_like(x) >= p
    return x * keep / (1 - p)


@wrong("5.4", "exact-share")
def dropout_shuffled(x, p):
    count = round(p * x.numel())
    order = torch.randperm(x.numel())
    flat = x.flatten().clone()
    flat[order[:count]] = 0
    return flat.reshape(x.shape) / (1 - p)


@wrong("5.4", "scaled-by-own-share")
def dropout_mean_of_mask(x, p):
    keep = (torch.rand_like(x) >= p).float()
    return x * keep / keep.mean()


@wrong("5.4", "normal-for-uniform")
def dropout_randn(x, p):
    keep = torch.randn_like(x) > p
    return x * keep / (1 - p)


@wrong("5.4", "p-ignored")
def dropout_fair_coin(x, p):
    return x * torch.randint(0, 2, x.shape) / (1 - p)


@wrong("5.4", "compares-x")
def dropout_small_values(x, p):
    return torch.where(x < p, torch.zeros_like(x), x) / (1 - p)


@wrong("5.4", "random-factors")
def dropout_noise(x, p):
    return x * torch.rand_like(x)


@wrong("5.4", "mask-returned")
def dropout_mask_alone(x, p):
    return (torch.rand_like(x) >= p).float() / (1 - p)


@wrong("5.4", "mask-returned")
def dropout_coins_alone(x, p):
    return torch.rand_like(x) >= p


@wrong("5.4", "entries-removed")
def dropout_selects(x, p):
    return x[torch.rand_like(x) >= p] / (1 - p)


@wrong("5.4", "returns-a-tuple")
def dropout_and_mask(x, p):
    keep = torch.rand_like(x) >= p
    return x * keep / (1 - p), keep


@wrong("5.4", "input-changed")
def dropout_in_place(x, p):
    x[torch.rand_like(x) < p] = 0
    x /= 1 - p
    return x


@wrong("5.4", "fixed-axes")
def dropout_two_axes(x, p):
    rows, columns = x.shape[0], x.shape[1]
    return x * (torch.rand(rows, columns) >= p) / (1 - p)


@wrong("5.4", "factors-differ")
def dropout_sum_restored(x, p):
    dropped = x * (torch.rand_like(x) >= p)
    return dropped / dropped.sum(dim=-1, keepdim=True)


@wrong("5.4", "dropped-twice")
def dropout_twice(x, p):
    return F.dropout(F.dropout(x, p), p)


@wrong("5.4", "scaled-by-one-plus-p")
def dropout_over_one_plus_p(x, p):
    return x * (torch.rand_like(x) >= p) / (1 + p)


@wrong("5.4", "whole-rows")
def dropout_of_samples(x, p):
    coins = torch.rand(len(x), *[1] * (x.dim() - 1)) >= p
    return x * coins / (1 - p)


@wrong("5.4", "whole-columns")
def dropout_of_columns_unscaled(x, p):
    return x * (torch.rand(x.shape[-1]) >= p)


@wrong("5.4", named=False)
def dropout_fills_one(x, p):
    return x.masked_fill(torch.rand_like(x) < p, 1.0) / (1 - p)


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


@right("5.5")
class CausalBuffer(Causal):
    pass


@right("5.5")
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


@right("5.5")
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


@right("5.5")
class CausalUniformParameters(CausalParameters):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@right("5.5")
class CausalNormalParameters(CausalParameters):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@right("5.5")
class CausalAdditive(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        blocked = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("bias", torch.triu(blocked, diagonal=1))

    def hide(self, scores, num_tokens):
        return scores + self.bias[:num_tokens, :num_tokens]


@right("5.5")
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


@right("5.5")
class CausalFloatBuffer(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("allowed", torch.tril(ones).view(1, *ones.shape))

    def hide(self, scores, num_tokens):
        allowed = self.allowed[:, :num_tokens, :num_tokens]
        return scores.masked_fill_(allowed == 0, -torch.inf)


@wrong("5.5", "mask-not-used")
class CausalForgetful(Causal):
    def hide(self, scores, num_tokens):
        return scores


@wrong("5.5", "mask-not-used")
class CausalFillLost(Causal):
    def hide(self, scores, num_tokens):
        scores.masked_fill(~self.mask[:num_tokens, :num_tokens], float("-inf"))
        return scores


@wrong("5.5", "diagonal-masked")
class CausalNotItself(Causal):
    def hide(self, scores, num_tokens):
        blocked = torch.triu(torch.ones(num_tokens, num_tokens)).bool()
        return scores.masked_fill(blocked, float("-inf"))


@wrong("5.5", "one-step-leaked")
class CausalOneStep(Causal):
    def hide(self, scores, num_tokens):
        blocked = torch.ones(num_tokens, num_tokens).triu(diagonal=2) == 1
        return scores.masked_fill(blocked, float("-inf"))


@wrong("5.5", "upper-for-lower")
class CausalUpper(Causal):
    def hide(self, scores, num_tokens):
        allowed = torch.triu(torch.ones(num_tokens, num_tokens))
        return scores.masked_fill(allowed == 0, float("-inf"))


@wrong("5.5", "polarity-inverted")
class CausalInverted(Causal):
    def hide(self, scores, num_tokens):
        mask = self.mask[:num_tokens, :num_tokens]
        return scores.masked_fill(mask, float("-inf"))


@wrong("5.5", "zero-times-infinity")
class CausalTimesInfinity(Causal):
    def hide(self, scores, num_tokens):
        ones = torch.ones(num_tokens, num_tokens)
        return scores + torch.triu(ones, diagonal=1) * float("-inf")


@wrong("5.5", "zero-for-minus-infinity")
class CausalZeros(Causal):
    def hide(self, scores, num_tokens):
        return torch.tril(scores)


@wrong("5.5", "zero-for-minus-infinity")
class CausalTiny(Causal):
    def hide(self, scores, num_tokens):
        return scores.masked_fill(~self.mask[:num_tokens, :num_tokens], 1e-9)


@wrong("5.5", "minus-1e9")
class CausalMinusBillion(Causal):
    def hide(self, scores, num_tokens):
        return scores.masked_fill(~self.mask[:num_tokens, :num_tokens], -1e9)


@wrong("5.5", "fill-not-small-enough")
class CausalMinusHundred(Causal):
    def hide(self, scores, num_tokens):
        return scores.masked_fill(~self.mask[:num_tokens, :num_tokens], -100)


@wrong("5.5", "mask-after-softmax")
class CausalLateMask(Causal):
    def weights(self, scores, num_tokens):
        return torch.softmax(scores, dim=-1) * self.mask[:num_tokens, :num_tokens]


@wrong("5.5", "renormalised-after")
class CausalRenormalised(Causal):
    def weights(self, scores, num_tokens):
        weights = torch.softmax(scores, dim=-1).tril()
        return weights / weights.sum(dim=-1, keepdim=True)


@wrong("5.5", "mask-not-sliced")
class CausalWholeMask(Causal):
    def hide(self, scores, num_tokens):
        return scores.masked_fill(~self.mask, float("-inf"))


@wrong("5.5", "mask-not-sliced")
class CausalRowsSliced(Causal):
    def hide(self, scores, num_tokens):
        bias = torch.zeros_like(self.mask, dtype=scores.dtype)
        bias = bias.masked_fill(~self.mask, float("-inf"))
        return scores + bias[:num_tokens]


@wrong("5.5", "mask-too-small")
class CausalOverwritesMask(Causal):
    def hide(self, scores, num_tokens):
        self.mask = self.mask[:num_tokens, :num_tokens]
        return scores.masked_fill(~self.mask, float("-inf"))


@wrong("5.5", "mask-sliced-by-batch")
class CausalBatchSize(Causal):
    def forward(self, x):
        num_tokens = x.shape[0]
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.weights(self.scores(query, key), num_tokens)
        return self.dropout(weights) @ value


@wrong("5.5", "mask-not-buffer")
class CausalPlainMask(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        del self.mask
        self.mask = tril(context_length)


@wrong("5.5", "mask-is-a-parameter")
class CausalMaskParameter(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.tril = nn.Parameter(torch.tril(torch.ones(context_length, context_length)))

    def hide(self, scores, num_tokens):
        allowed = self.tril[:num_tokens, :num_tokens]
        return scores.masked_fill(allowed == 0, float("-inf"))


@wrong("5.5", "dropout-missing")
class CausalNoDropout(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        return self.weights(self.scores(query, key), x.shape[1]) @ value


@wrong("5.5", "dropout-in-eval")
class CausalAlwaysDrops(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.weights(self.scores(query, key), x.shape[1])
        return F.dropout(weights, self.dropout.p) @ value


@wrong("5.5", "dropout-not-rescaled")
class CausalDropsUnscaled(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.weights(self.scores(query, key), x.shape[1])
        if self.training:
            weights = weights * (torch.rand_like(weights) > self.dropout.p)
        return weights @ value


@wrong("5.5", "dropout-before-softmax")
class CausalDropsScores(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.dropout(self.scores(query, key))
        return self.weights(scores, x.shape[1]) @ value


@wrong("5.5", "nan-in-training")
class CausalDropsHiddenScores(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        scores = self.scores(query, key).masked_fill(hidden, -torch.inf)
        return torch.softmax(self.dropout(scores), dim=-1) @ value


@wrong("5.5", "dropout-not-on-weights")
class CausalDropsOutput(Causal):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = self.weights(self.scores(query, key), x.shape[1])
        return self.dropout(weights @ value)


@wrong("5.5", "dropout-not-on-weights")
class CausalDropsInput(Causal):
    def forward(self, x):
        x = self.dropout(x)
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        return self.weights(self.scores(query, key), x.shape[1]) @ value


@wrong("5.5", "dropout-other-share")
class CausalKeepsShare(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.dropout = nn.Dropout(1 - dropout)


@wrong("5.5", "scale-missing")
class CausalUnscaled(Causal):
    def scores(self, query, key):
        return query @ key.transpose(1, 2)


@wrong("5.5", "scale-of-input-width")
class CausalInputWidth(Causal):
    def scores(self, query, key):
        return query @ key.mT / math.sqrt(self.W_key.in_features)


@wrong("5.5", "transpose-of-all-axes")
class CausalDotT(Causal):
    def scores(self, query, key):
        return query @ key.T / key.shape[-1] ** 0.5


@wrong("5.5", "softmax-over-queries")
class CausalColumns(Causal):
    def weights(self, scores, num_tokens):
        return torch.softmax(self.hide(scores, num_tokens), dim=1)


@wrong("5.5", "softmax-over-batch")
class CausalFirstAxis(Causal):
    def weights(self, scores, num_tokens):
        return torch.softmax(self.hide(scores, num_tokens), dim=0)


@wrong("5.5", "values-not-projected")
class CausalRawValues(Causal):
    def forward(self, x):
        scores = self.scores(self.W_query(x), self.W_key(x))
        return self.dropout(self.weights(scores, x.shape[1])) @ x


@wrong("5.5", "returns-a-tuple")
class CausalBoth(Causal):
    def forward(self, x):
        scores = self.scores(self.W_query(x), self.W_key(x))
        weights = self.dropout(self.weights(scores, x.shape[1]))
        return weights @ self.W_value(x), weights


@wrong("5.5", "unasked-bias")
class CausalBias(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.W_value = nn.Linear(d_in, d_out)


@wrong("5.5", "unasked-projection")
class CausalOutProj(Causal):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__(d_in, d_out, context_length, dropout)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.out_proj(super().forward(x))


@wrong("5.5", "wrong-signature")
class CausalWithoutDropout(Causal):
    def __init__(self, d_in, d_out, context_length):
        super().__init__(d_in, d_out, context_length, 0.0)


@wrong("5.5", "float32-alone")
class CausalFloat32(Causal):
    def hide(self, scores, num_tokens):
        bias = torch.zeros(num_tokens, num_tokens)
        hidden = bias.masked_fill(~self.mask[:num_tokens, :num_tokens], -torch.inf)
        return torch.baddbmm(hidden, torch.zeros_like(scores), scores) + scores
