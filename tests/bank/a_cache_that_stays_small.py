"""Answers to the exercises of notebook 14."""

import math

import torch
import torch.nn.functional as F

from bank import right, wrong

# --- 14.1 -------------------------------------------------------------------------


@right("14.1")
def latent_broadcast(latent, W_uk, W_uv):
    return latent[:, None] @ W_uk, latent[:, None] @ W_uv


@right("14.1")
def latent_einsum(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bhsk", latent, W_uk)
    return keys, torch.einsum("bsr,hrv->bhsv", latent, W_uv)


@right("14.1")
def latent_head_by_head(latent, W_uk, W_uv):
    keys, values = [], []
    for h in range(W_uk.shape[0]):
        keys.append(latent @ W_uk[h])
        values.append(latent @ W_uv[h])
    return torch.stack(keys, dim=1), torch.stack(values, dim=1)


@right("14.1")
def latent_one_product(latent, W_uk, W_uv):
    H, R, K = W_uk.shape
    B, S, _ = latent.shape
    both = torch.cat([W_uk, W_uv], dim=2)  # (H, R, K + V)
    wide = latent @ both.permute(1, 0, 2).reshape(R, -1)
    wide = wide.view(B, S, H, -1).transpose(1, 2)
    return wide[..., :K], wide[..., K:]


@wrong("14.1", "keys-and-values-swapped")
def latent_swapped(latent, W_uk, W_uv):
    keys, values = latent_broadcast(latent, W_uk, W_uv)
    return values, keys


@wrong("14.1", "one-matrix-for-both")
def latent_same_matrix(latent, W_uk, W_uv):
    keys = latent.unsqueeze(1) @ W_uk
    return keys, latent.unsqueeze(1) @ W_uk


@wrong("14.1", "heads-first")
def latent_heads_outside(latent, W_uk, W_uv):
    return latent @ W_uk[:, None], latent @ W_uv[:, None]


@wrong("14.1", "tokens-first")
def latent_not_moved(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bshk", latent, W_uk)
    return keys, torch.einsum("bsr,hrv->bshv", latent, W_uv)


@wrong("14.1", "keys-alone")
def latent_only_keys(latent, W_uk, W_uv):
    return latent[:, None] @ W_uk


@wrong("14.1", "heads-meet-samples")
def latent_no_axis(latent, W_uk, W_uv):
    return latent @ W_uk, latent @ W_uv


@wrong("14.1", "reshaped-for-moved")
def latent_reshaped_matrix(latent, W_uk, W_uv):
    B, S, R = latent.shape
    keys = (latent @ W_uk.reshape(R, -1)).view(B, S, len(W_uk), -1).transpose(1, 2)
    values = (latent @ W_uv.reshape(R, -1)).view(B, S, len(W_uv), -1).transpose(1, 2)
    return keys, values


@wrong("14.1", "split-by-view")
def latent_scrambled(latent, W_uk, W_uv):
    H, R, K = W_uk.shape
    B, S, _ = latent.shape
    keys = latent @ W_uk.transpose(0, 1).reshape(R, H * K)
    values = latent @ W_uv.transpose(0, 1).reshape(R, -1)
    return keys.view(B, H, S, K), values.view(B, H, S, -1)


@wrong("14.1", "heads-merged")
def latent_side_by_side(latent, W_uk, W_uv):
    parts = zip(*((latent @ k, latent @ v) for k, v in zip(W_uk, W_uv)))
    return tuple(torch.cat(part, dim=-1) for part in parts)


@wrong("14.1", "first-head-alone")
def latent_first_matrix(latent, W_uk, W_uv):
    H = len(W_uk)
    keys = torch.stack([latent @ W_uk[0] for _ in range(H)], dim=1)
    return keys, torch.stack([latent @ W_uv[0] for _ in range(H)], dim=1)


@wrong("14.1", "joined")
def latent_in_one(latent, W_uk, W_uv):
    return latent[:, None] @ torch.cat((W_uk, W_uv), dim=-1)


@wrong("14.1", "heads-added")
def latent_summed(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bsk", latent, W_uk)
    return keys, torch.einsum("bsr,hrv->bsv", latent, W_uv)


# --- 14.2 -------------------------------------------------------------------------


@right("14.2")
def absorbed_two_products(query, latent, W_uk):
    return query @ W_uk.transpose(-2, -1) @ latent[:, None].transpose(-2, -1)


@right("14.2")
def absorbed_einsum(query, latent, W_uk):
    narrow = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    return torch.einsum("bhtr,bsr->bhts", narrow, latent)


@right("14.2")
def absorbed_by_loops(query, latent, W_uk):
    B, H, T, _ = query.shape
    scores = torch.zeros(B, H, T, latent.shape[1])
    for b in range(B):
        for h in range(H):
            scores[b, h] = (query[b, h] @ W_uk[h].T) @ latent[b].T
    return scores


@wrong("14.2", "keys-made")
def absorbed_not_at_all(query, latent, W_uk):
    return query @ (latent[:, None] @ W_uk).mT


@wrong("14.2", "keys-made")
def absorbed_keys_by_einsum(query, latent, W_uk):
    keys = torch.einsum("bsr,hrk->bhsk", latent, W_uk)
    return torch.einsum("bhtk,bhsk->bhts", query, keys)


@wrong("14.2", "scaled")
def absorbed_with_root(query, latent, W_uk):
    return absorbed_two_products(query, latent, W_uk) / query.shape[-1] ** 0.5


@wrong("14.2", "scaled")
def absorbed_with_root_of_latents(query, latent, W_uk):
    return absorbed_two_products(query, latent, W_uk) / latent.shape[-1] ** 0.5


@wrong("14.2", "softmax-taken")
def absorbed_weights(query, latent, W_uk):
    return absorbed_two_products(query, latent, W_uk).softmax(dim=-1)


@wrong("14.2", "transposed")
def absorbed_turned(query, latent, W_uk):
    return latent[:, None] @ (query @ W_uk.mT).mT


@wrong("14.2", "not-transposed")
def absorbed_wrong_side(query, latent, W_uk):
    return query @ W_uk @ latent[:, None].mT


@wrong("14.2", "first-head-alone")
def absorbed_one_matrix(query, latent, W_uk):
    return query @ W_uk[0].T @ latent.unsqueeze(1).mT


@wrong("14.2", "heads-added")
def absorbed_summed(query, latent, W_uk):
    return torch.einsum("bhtk,hrk,bsr->bts", query, W_uk, latent)


@wrong("14.2", "narrow-returned")
def absorbed_half_way(query, latent, W_uk):
    return query @ W_uk.mT


@wrong("14.2", "reshaped-for-moved")
def absorbed_reshaped(query, latent, W_uk):
    H, R, K = W_uk.shape
    return query @ W_uk.reshape(H, K, R) @ latent[:, None].mT


@wrong("14.2", "heads-meet-samples")
def absorbed_no_axis(query, latent, W_uk):
    return query @ W_uk.mT @ latent.mT


@wrong("14.2", "causal")
def absorbed_masked(query, latent, W_uk):
    scores = absorbed_two_products(query, latent, W_uk)
    T, S = scores.shape[-2:]
    mask = torch.ones(T, S).tril(S - T).bool()
    return scores.masked_fill(~mask, float("-inf"))


# --- 14.3 -------------------------------------------------------------------------


def step_scores(query, turned_query, latent, turned_key, W_uk):
    content = query @ W_uk.mT @ latent[:, None].mT
    return content + turned_query @ turned_key[:, None].mT


def step_root(query, turned_query):
    return (query.shape[-1] + turned_query.shape[-1]) ** 0.5


def step_mix(weights, latent, W_uv):
    return weights @ latent[:, None] @ W_uv


@right("14.3")
def step_two_parts(query, turned_query, latent, turned_key, W_uk, W_uv):
    content = query @ W_uk.mT @ latent[:, None].mT
    place = turned_query @ turned_key[:, None].mT
    scores = (content + place) / (query.shape[-1] + turned_query.shape[-1]) ** 0.5
    weights = torch.softmax(scores, dim=-1)
    mixed = weights @ latent[:, None]
    return mixed @ W_uv


@right("14.3")
def step_joined(query, turned_query, latent, turned_key, W_uk, W_uv):
    scale = (query.shape[-1] + turned_query.shape[-1]) ** -0.5
    queries = torch.cat((query @ W_uk.mT, turned_query), dim=-1)
    keys = torch.cat((latent, turned_key), dim=-1)[:, None]
    H = query.shape[1]
    keys, values = (t.expand(-1, H, -1, -1) for t in (keys, latent[:, None]))
    return F.scaled_dot_product_attention(queries, keys, values, scale=scale) @ W_uv


@right("14.3")
def step_by_letters(query, turned_query, latent, turned_key, W_uk, W_uv):
    absorbed = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    scores = torch.einsum("bhtr,bsr->bhts", absorbed, latent)
    scores += torch.einsum("bhtp,bsp->bhts", turned_query, turned_key)
    width = query.size(-1) + turned_query.size(-1)
    weights = F.softmax(scores / math.sqrt(width), dim=-1)
    mixed = torch.einsum("bhts,bsr->bhtr", weights, latent)
    return torch.einsum("bhtr,hrv->bhtv", mixed, W_uv)


@right("14.3")
def step_by_loops(query, turned_query, latent, turned_key, W_uk, W_uv):
    B, H, T, K = query.shape
    outputs = torch.empty(B, H, T, W_uv.shape[-1])
    for b in range(B):
        for h in range(H):
            for t in range(T):
                content = latent[b] @ (W_uk[h] @ query[b, h, t])  # (S,)
                places = turned_key[b] @ turned_query[b, h, t]
                scores = (content + places) / math.sqrt(K + turned_key.shape[-1])
                outputs[b, h, t] = scores.softmax(0) @ latent[b] @ W_uv[h]
    return outputs


@right("14.3")
def step_scaled_first(query, turned_query, latent, turned_key, W_uk, W_uv):
    both = torch.cat((query, turned_query), dim=-1)
    both = both / both.shape[-1] ** 0.5
    query, turned_query = both.split((query.shape[-1], turned_query.shape[-1]), dim=-1)
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    return step_mix(scores.softmax(dim=-1), latent, W_uv)


@wrong("14.3", "keys-made")
def step_with_keys(query, turned_query, latent, turned_key, W_uk, W_uv):
    keys = latent[:, None] @ W_uk
    scores = query @ keys.mT + turned_query @ turned_key[:, None].mT
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "keys-made")
def step_as_ever(query, turned_query, latent, turned_key, W_uk, W_uv):
    keys, values = latent_broadcast(latent, W_uk, W_uv)
    shared = turned_key[:, None].expand(-1, query.shape[1], -1, -1)
    keys = torch.cat((keys, shared), dim=-1)
    query = torch.cat((query, turned_query), dim=-1)
    return F.scaled_dot_product_attention(query, keys, values)


@wrong("14.3", "values-made")
def step_with_values(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return weights @ (latent[:, None] @ W_uv)


@wrong("14.3", "root-of-content")
def step_root_of_head(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    weights = torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "root-of-latents-and-turned")
def step_default_scale(query, turned_query, latent, turned_key, W_uk, W_uv):
    queries = torch.cat((query @ W_uk.mT, turned_query), dim=-1)
    keys = torch.cat((latent, turned_key), dim=-1).unsqueeze(1)
    keys = keys.expand(-1, query.shape[1], -1, -1)
    values = latent.unsqueeze(1).expand(-1, query.shape[1], -1, -1)
    return F.scaled_dot_product_attention(queries, keys, values) @ W_uv


@wrong("14.3", "root-of-latents")
def step_root_of_latents(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    weights = torch.softmax(scores / latent.shape[-1] ** 0.5, dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "not-scaled")
def step_unscaled(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    return scores.softmax(dim=-1) @ latent[:, None] @ W_uv


@wrong("14.3", "divided-by-width")
def step_no_root(query, turned_query, latent, turned_key, W_uk, W_uv):
    width = query.shape[-1] + turned_query.shape[-1]
    scores = step_scores(query, turned_query, latent, turned_key, W_uk) / width
    return step_mix(scores.softmax(dim=-1), latent, W_uv)


@wrong("14.3", "one-part-scaled")
def step_parentheses(query, turned_query, latent, turned_key, W_uk, W_uv):
    content = query @ W_uk.mT @ latent[:, None].mT
    places = turned_query @ turned_key[:, None].mT
    weights = (content + places / step_root(query, turned_query)).softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "root-for-each")
def step_two_roots(query, turned_query, latent, turned_key, W_uk, W_uv):
    content = query @ W_uk.mT @ latent[:, None].mT / query.shape[-1] ** 0.5
    places = turned_query @ turned_key[:, None].mT / turned_query.shape[-1] ** 0.5
    return step_mix((content + places).softmax(dim=-1), latent, W_uv)


@wrong("14.3", "turned-left-out")
def step_without_places(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = query @ W_uk.mT @ latent[:, None].mT / query.shape[-1] ** 0.5
    return step_mix(scores.softmax(dim=-1), latent, W_uv)


@wrong("14.3", "two-softmaxes")
def step_weights_added(query, turned_query, latent, turned_key, W_uk, W_uv):
    content = query @ W_uk.mT @ latent[:, None].mT / query.shape[-1] ** 0.5
    places = turned_query @ turned_key[:, None].mT / turned_query.shape[-1] ** 0.5
    weights = content.softmax(dim=-1) + places.softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "two-softmaxes")
def step_outputs_added(query, turned_query, latent, turned_key, W_uk, W_uv):
    root = step_root(query, turned_query)
    content = query @ W_uk.mT @ latent[:, None].mT / root
    places = turned_query @ turned_key[:, None].mT / root
    by_content = content.softmax(dim=-1) @ latent[:, None]
    return (by_content + places.softmax(dim=-1) @ latent[:, None]) @ W_uv


@wrong("14.3", "softmax-over-queries")
def step_columns(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    weights = (scores / step_root(query, turned_query)).softmax(dim=2)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "softmax-missing")
def step_without_softmax(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    return step_mix(scores / step_root(query, turned_query), latent, W_uv)


@wrong("14.3", "causal")
def step_masked(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    scores = scores.masked_fill(later, float("-inf"))
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "not-transposed")
def step_wrong_side(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = query @ W_uk @ latent[:, None].mT
    scores = scores + turned_query @ turned_key[:, None].mT
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "heads-meet-samples")
def step_no_axis(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = query @ W_uk.mT @ latent.mT + turned_query @ turned_key[:, None].mT
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return weights @ latent @ W_uv


@wrong("14.3", "heads-meet-samples")
def step_no_axis_for_places(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = query @ W_uk.mT @ latent[:, None].mT + turned_query @ turned_key.mT
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "heads-meet-samples")
def step_no_axis_at_all(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = query @ W_uk.mT @ latent.mT + turned_query @ turned_key.mT
    weights = (scores / step_root(query, turned_query)).softmax(dim=-1)
    return weights @ latent @ W_uv


@wrong("14.3", "matrix-for-keys")
def step_same_matrix(query, turned_query, latent, turned_key, W_uk, W_uv):
    return step_two_parts(query, turned_query, latent, turned_key, W_uk, W_uk)


@wrong("14.3", "softmax-over-heads")
def step_axis_left_open(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    weights = F.softmax(scores / step_root(query, turned_query))
    return step_mix(weights, latent, W_uv)


@wrong("14.3", "mixture-returned")
def step_half_way(query, turned_query, latent, turned_key, W_uk, W_uv):
    scores = step_scores(query, turned_query, latent, turned_key, W_uk)
    return (scores / step_root(query, turned_query)).softmax(dim=-1) @ latent[:, None]


@wrong("14.3", "heads-merged")
def step_side_by_side(query, turned_query, latent, turned_key, W_uk, W_uv):
    output = step_two_parts(query, turned_query, latent, turned_key, W_uk, W_uv)
    return output.transpose(1, 2).flatten(2)


@wrong("14.3", "first-head-alone")
def step_one_matrix(query, turned_query, latent, turned_key, W_uk, W_uv):
    same = W_uk[:1].expand_as(W_uk)
    return step_two_parts(query, turned_query, latent, turned_key, same, W_uv)


@wrong("14.3", "last-token-lost")
def step_without_the_last_token(query, turned_query, latent, turned_key, W_uk, W_uv):
    latent, turned_key = latent[:, None, :-1], turned_key[:, None, :-1]
    scores = query @ W_uk.mT @ latent.mT + turned_query @ turned_key.mT
    weights = (scores / (query.size(-1) + turned_query.size(-1)) ** 0.5).softmax(-1)
    return weights @ latent @ W_uv
