"""Answers to the exercise of notebook 08."""

import math

import torch
from torch.nn import functional as F

from bank import right, wrong


@right("8.1")
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


@right("8.1")
def cross_einsum(x, context, W_query, W_key, W_value, context_mask=None):
    query = torch.einsum("...td,dk->...tk", x, W_query)
    key = torch.einsum("...sd,dk->...sk", context, W_key)
    value = torch.einsum("...sd,dv->...sv", context, W_value)
    scores = torch.einsum("...tk,...sk->...ts", query, key) * key.shape[-1] ** -0.5
    if context_mask is not None:
        scores = scores.where(context_mask.unsqueeze(-2), -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("8.1")
def cross_library(x, context, W_query, W_key, W_value, context_mask=None):
    mask = None if context_mask is None else context_mask.unsqueeze(-2)
    query, key = x @ W_query, context @ W_key
    eye = torch.eye(key.shape[-2]).expand(*key.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(query, key, eye, attn_mask=mask)
    return weights @ (context @ W_value), weights


@right("8.1")
def cross_with_bias_mask(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    exps = (scores - scores.max(-1, keepdim=True).values).exp()
    if context_mask is not None:
        shifted = scores.masked_fill(~context_mask[..., None, :], -1e9)
        exps = (shifted - shifted.max(-1, keepdim=True).values).exp()
        exps = exps * context_mask[..., None, :]
    weights = exps / exps.sum(-1, keepdim=True).clamp(min=1e-30)
    return [weights @ (context @ W_value), weights]


@wrong("8.1", "returns-nothing")
def cross_without_return(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    scores.softmax(-1) @ (context @ W_value)


@wrong("8.1", "wrong-signature")
def cross_without_mask_argument(x, context, W_query, W_key, W_value):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "weights-missing")
def cross_output_alone(x, context, W_query, W_key, W_value, context_mask=None):
    mask = None if context_mask is None else context_mask[..., None, :]
    return F.scaled_dot_product_attention(
        x @ W_query, context @ W_key, context @ W_value, attn_mask=mask
    )


@wrong("8.1", "output-and-weights-swapped")
def cross_swapped_results(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(x, context, W_query, W_key, W_value, context_mask)[::-1]


@wrong("8.1", "roles-swapped")
def cross_roles_swapped(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = context @ W_query, x @ W_key, x @ W_value
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("8.1", "roles-swapped")
def cross_arguments_swapped(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(context, x, W_query, W_key, W_value)


@wrong("8.1", "values-from-x")
def cross_values_of_x(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, x @ W_value
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("8.1", "values-from-x")
def cross_values_of_x_einsum(x, context, W_query, W_key, W_value, context_mask=None):
    weights = cross_formula(x, context, W_query, W_key, W_value, context_mask)[1]
    return torch.einsum("...ts,...sv->...tv", weights, x @ W_value), weights


@wrong("8.1", "keys-from-x")
def cross_keys_of_x(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (x @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "context-not-used")
def cross_self(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, x @ W_key, x @ W_value
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights


@wrong("8.1", "x-not-used")
def cross_context_alone(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(context, context, W_query, W_key, W_value, context_mask)


@wrong("8.1", "mask-ignored")
def cross_mask_ignored(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(x, context, W_query, W_key, W_value)


@wrong("8.1", "mask-ignored")
def cross_mask_result_unused(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-causal")
def cross_causal(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    mask = torch.tril(torch.ones(x.shape[-2], context.shape[-2])).bool()
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-causal")
def cross_causal_and_padding(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if context_mask is not None:
        mask = mask & context_mask[..., None, :]
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-inverted")
def cross_mask_inverted(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-inverted")
def cross_mask_inverted_zeros(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(
        *(x, context, W_query, W_key, W_value),
        None if context_mask is None else ~context_mask,
    )


@wrong("8.1", "mask-on-queries")
def cross_mask_on_queries(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-axis-missing")
def cross_mask_as_it_is(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-axis-missing")
def cross_mask_as_it_is_zeros(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(context_mask == 0, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(dim=-1))
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-axis-fixed")
def cross_mask_for_a_batch(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[:, None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-axis-fixed")
def cross_mask_unsqueezed(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask.unsqueeze(1), float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-after-softmax")
def cross_mask_late(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    weights = scores.softmax(dim=-1)
    if context_mask is not None:
        weights = weights * context_mask[..., None, :]
    return weights @ (context @ W_value), weights


@wrong("8.1", "values-hidden-alone")
def cross_values_hidden(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    if context_mask is not None:
        value = value.masked_fill(~context_mask[..., None], 0.0)
    weights = torch.softmax(query @ key.mT / key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("8.1", "empty-row-nan")
def cross_nan(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "empty-row-nan")
def cross_renormalised(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    weights = scores.softmax(dim=-1)
    if context_mask is not None:
        weights = weights * context_mask[..., None, :]
        weights = weights / weights.sum(-1, keepdim=True)
    return weights @ (context @ W_value), weights


@wrong("8.1", "empty-row-nan")
def cross_weights_mended_late(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights.nan_to_num(0.0)


@wrong("8.1", "empty-row-uniform")
def cross_large_negative(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], -1e9)
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "zero-for-infinity")
def cross_zero_scores(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores * context_mask[..., None, :]
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "softmax-over-queries")
def cross_columns(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-2)
    return weights @ (context @ W_value), weights


@wrong("8.1", "softmax-over-queries")
def cross_columns_mended(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-2).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "scale-missing")
def cross_unscaled(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).transpose(-2, -1)
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "scale-of-model-width")
def cross_root_of_width(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / math.sqrt(x.shape[-1])
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "divided-by-width")
def cross_over_width(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_key.shape[-1]
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "values-not-projected")
def cross_bare_values(x, context, W_query, W_key, W_value, context_mask=None):
    weights = cross_formula(x, context, W_query, W_key, W_value, context_mask)[1]
    return weights @ context, weights


@wrong("8.1", "keys-for-values")
def cross_keys_averaged(x, context, W_query, W_key, W_value, context_mask=None):
    weights = cross_formula(x, context, W_query, W_key, W_value, context_mask)[1]
    return weights @ (context @ W_key), weights


@wrong("8.1", "keys-and-values-exchanged")
def cross_matrices_exchanged(x, context, W_query, W_key, W_value, context_mask=None):
    return cross_formula(x, context, W_query, W_value, W_key, context_mask)


@wrong("8.1", "matrices-transposed")
def cross_like_linear(x, context, W_query, W_key, W_value, context_mask=None):
    query, key = F.linear(x, W_query), F.linear(context, W_key)
    scores = query @ key.mT / key.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ F.linear(context, W_value), weights


@wrong("8.1", "fixed-axes")
def cross_for_a_batch(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("8.1", "transpose-of-all-axes")
def cross_dot_t(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.T / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("8.1", "mask-needed")
def cross_mask_always(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-needed")
def cross_mask_unsqueezed_always(
    x, context, W_query, W_key, W_value, context_mask=None
):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    scores = scores.masked_fill(~context_mask.unsqueeze(-2), float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-as-truth-value")
def cross_if_mask(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "input-changed")
def cross_context_changed(x, context, W_query, W_key, W_value, context_mask=None):
    result = cross_formula(x, context, W_query, W_key, W_value, context_mask)
    if context_mask is not None:
        context *= context_mask[..., None]
    return result


@wrong("8.1", "context-zeroed")
def cross_padding_zeroed(x, context, W_query, W_key, W_value, context_mask=None):
    if context_mask is not None:
        context = context * context_mask.unsqueeze(-1)
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-added")
def cross_mask_added(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        scores = scores + context_mask[..., None, :]
    weights = scores.softmax(dim=-1)
    return weights @ (context @ W_value), weights


@wrong("8.1", "mask-on-queries")
def cross_mask_on_both_axes(x, context, W_query, W_key, W_value, context_mask=None):
    scores = (x @ W_query) @ (context @ W_key).mT / W_query.shape[1] ** 0.5
    if context_mask is not None:
        mask = context_mask[..., None, :] & context_mask[..., :, None]
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong("8.1", "x-among-the-keys")
def cross_joined(x, context, W_query, W_key, W_value, context_mask=None):
    both = torch.cat((x, context), dim=-2)
    query, key, value = x @ W_query, both @ W_key, both @ W_value
    weights = (query @ key.mT / key.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights


@wrong("8.1", "scale-of-first-axis")
def cross_root_of_len(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.mT / math.sqrt(len(query))
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("8.1", "x-added")
def cross_residual(x, context, W_query, W_key, W_value, context_mask=None):
    output, weights = cross_formula(x, context, W_query, W_key, W_value, context_mask)
    return x + output, weights
