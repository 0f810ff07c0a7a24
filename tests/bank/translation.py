"""Answers to the exercises of notebook 08."""

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


@right("8.2")
def greedy_while(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@right("8.2")
def greedy_for(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        logits = next_logits([start_id] + written)
        best = int(torch.argmax(logits, dim=-1))
        if best == end_id:
            return written
        written += [best]
    return written


@right("8.2")
def greedy_end_removed(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(int(next_logits(ids).max(dim=0).indices))
        if ids[-1] == end_id:
            ids.pop()
            break
    return ids[1:]


@right("8.2")
def greedy_recursive(next_logits, start_id, end_id, max_length):
    def rest(ids):
        if len(ids) > max_length:
            return []
        logits = next_logits(ids).tolist()
        best = max(range(len(logits)), key=logits.__getitem__)
        return [] if best == end_id else [best, *rest([*ids, best])]

    return rest([start_id])


@right("8.2")
def greedy_by_softmax(next_logits, start_id, end_id, max_length):
    ids, done = [start_id], False
    while not done and len(ids) - 1 < max_length:
        probs = torch.softmax(next_logits(ids), dim=0)
        best = int(probs.argmax())
        done = best == end_id
        if not done:
            ids = ids + [best]
    del ids[0]
    return ids


@right("8.2")
def greedy_full_then_cut(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):  # longer than needed, cut at the first end
        ids.append(next_logits(ids).argmax().item())
    written = ids[1:]
    return written[: written.index(end_id)] if end_id in written else written


@right("8.2")
def greedy_numpy(next_logits, start_id, end_id, max_length):
    ids = []
    while len(ids) < max_length:
        best = int(next_logits([start_id, *ids]).numpy().argmax())
        if best == end_id:
            break
        ids.append(best)
    return ids


@wrong("8.2", "returns-nothing")
def greedy_no_return(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(next_logits(ids).argmax().item())


@wrong("8.2", "wrong-signature")
def greedy_no_limit_argument(next_logits, start_id, end_id):
    return []


@wrong("8.2", "end-kept")
def greedy_end_kept(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(next_logits(ids).argmax().item())
        if ids[-1] == end_id:
            break
    return ids[1:]


@wrong("8.2", "start-kept")
def greedy_start_kept(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids


@wrong("8.2", "start-kept")
def greedy_all_kept(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(int(next_logits(ids).argmax()))
        if ids[-1] == end_id:
            return ids
    return ids


@wrong("8.2", "first-id-lost")
def greedy_first_lost(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        best = int(next_logits([start_id, *written]).argmax())
        if best == end_id:
            break
        written.append(best)
    return written[1:]


@wrong("8.2", "one-too-few")
def greedy_always_cut(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(next_logits(ids).argmax().item())
        if ids[-1] == end_id:
            break
    return ids[1:-1]


@wrong("8.2", "last-id-lost")
def greedy_last_cut(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        best = int(next_logits([start_id, *written]).argmax())
        if best == end_id:
            break
        written.append(best)
    return written[:-1]


@wrong("8.2", "goes-on-after-end")
def greedy_no_end(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(next_logits(ids).argmax().item())
    return ids[1:]


@wrong("8.2", "goes-on-after-end")
def greedy_end_skipped(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        ids.append(next_logits(ids).argmax().item())
    return [i for i in ids[1:] if i != end_id]


@wrong("8.2", "never-ends")
def greedy_endless(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while True:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            return ids[1:]
        ids.append(best)


@wrong("8.2", "never-ends")
def greedy_nothing_appended(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
    return ids[1:]


@wrong("8.2", "never-ends")
def greedy_limit_never_met(next_logits, start_id, end_id, max_length):
    ids, count = [start_id], 0
    while count != max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids = ids + [best]
    return ids[1:]


@wrong("8.2", "one-too-few")
def greedy_start_counted(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) < max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "one-too-many")
def greedy_one_more(next_logits, start_id, end_id, max_length):
    written = []
    while len(written) <= max_length:
        best = next_logits([start_id, *written]).argmax().item()
        if best == end_id:
            break
        written.append(best)
    return written


@wrong("8.2", "limit-checked-late")
def greedy_limit_late(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while True:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
        if len(ids) - 1 >= max_length:
            break
    return ids[1:]


@wrong("8.2", "ids-do-not-grow")
def greedy_same_question(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        best = next_logits([start_id]).argmax().item()
        if best == end_id:
            break
        written.append(best)
    return written


@wrong("8.2", "last-id-only")
def greedy_last_only(next_logits, start_id, end_id, max_length):
    current, written = start_id, []
    for _ in range(max_length):
        current = next_logits([current]).argmax().item()
        if current == end_id:
            break
        written.append(current)
    return written


@wrong("8.2", "start-missing")
def greedy_without_start(next_logits, start_id, end_id, max_length):
    written = []
    for _ in range(max_length):
        best = next_logits(written).argmax().item()
        if best == end_id:
            break
        written.append(best)
    return written


@wrong("8.2", "list-needed")
def greedy_tensor_given(next_logits, start_id, end_id, max_length):
    ids = torch.tensor([start_id])
    while len(ids) <= max_length:
        best = next_logits(ids).argmax()
        if best == end_id:
            break
        ids = torch.cat([ids, best[None]])
    return ids[1:].tolist()


@wrong("8.2", "list-needed")
def greedy_one_id_given(next_logits, start_id, end_id, max_length):
    current, written = start_id, []
    for _ in range(max_length):
        current = next_logits(current).argmax().item()
        if current == end_id:
            break
        written.append(current)
    return written


@wrong("8.2", "tensor-returned")
def greedy_tensor(next_logits, start_id, end_id, max_length):
    return torch.tensor(greedy_while(next_logits, start_id, end_id, max_length))


@wrong("8.2", "tensors-in-list")
def greedy_no_item(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "smallest-taken")
def greedy_argmin(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argsort()[0].item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "value-for-id")
def greedy_max(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).max().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "sampled")
def greedy_sampled(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        probs = next_logits(ids).softmax(-1)
        best = torch.multinomial(probs, num_samples=1).item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "last-of-ties")
def greedy_last_of_equal(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best, largest = 0, -torch.inf
        for i, logit in enumerate(next_logits(ids).tolist()):
            if logit >= largest:
                best, largest = i, logit
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "position-axis-expected")
def greedy_last_row(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids)[-1].argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "position-axis-expected")
def greedy_batch_expected(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids)[0, -1].argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "start-taken-for-end")
def greedy_until_last_is_end(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while ids[-1] != end_id and len(ids) <= max_length:
        ids.append(next_logits(ids).argmax().item())
    return [i for i in ids[1:] if i != end_id]


@wrong("8.2", "start-taken-for-end")
def greedy_compares_start(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == start_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "one-id-alone")
def greedy_return_inside(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = next_logits(ids).argmax().item()
        if best != end_id:
            ids.append(best)
        return ids[1:]
    return []


@wrong("8.2", "tuple-returned")
def greedy_tuple(next_logits, start_id, end_id, max_length):
    return tuple(greedy_while(next_logits, start_id, end_id, max_length))


@wrong("8.2", "one-too-few")  # and tensors in the list
def greedy_start_counted_no_item(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) < max_length:
        best = next_logits(ids).argmax()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("8.2", "written-backwards")
def greedy_in_front(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.insert(1, best)
    return ids[1:]
