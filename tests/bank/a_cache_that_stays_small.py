"""Answers to the exercises of notebook 14."""

import torch

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
