"""14 A cache that stays small: 14.1 latent_keys_values, 14.2 absorbed_scores."""

import torch

from tests.answers import right, wrong

# -------------------------------------------------------------- 14.1 latent_keys_values


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bhsk", latent, W_uk)
    values = torch.einsum("bsr,hrv->bhsv", latent, W_uv)
    return keys, values


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    keys = [latent @ head for head in W_uk]
    values = [latent @ head for head in W_uv]
    return torch.stack(keys, dim=1), torch.stack(values, dim=1)


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    B, S, R = latent.shape
    H = len(W_uk)
    keys = latent.new_zeros(B, H, S, W_uk.shape[2])
    values = latent.new_zeros(B, H, S, W_uv.shape[2])
    for b in range(B):
        for s in range(S):
            for h in range(H):
                for r in range(R):
                    keys[b, h, s] += latent[b, s, r] * W_uk[h, r]
                    values[b, h, s] += latent[b, s, r] * W_uv[h, r]
    return keys, values


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    def project(weight):
        heads, narrow, wide = weight.shape
        side_by_side = weight.permute(1, 0, 2).reshape(narrow, heads * wide)
        flat = latent @ side_by_side
        return flat.view(*latent.shape[:2], heads, wide).transpose(1, 2)

    return project(W_uk), project(W_uv)


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    exact = latent.double()[:, None]
    keys = torch.matmul(exact, W_uk.double()[None])
    values = torch.matmul(exact, W_uv.double()[None])
    return keys.to(latent.dtype), values.to(latent.dtype)


@right("latent_keys_values")
def latent_keys_values(latent, W_uk, W_uv):
    both = torch.cat((W_uk, W_uv), dim=-1)
    c = latent[:, None, :, :, None]
    made = (c * both[None, :, None]).sum(dim=3)
    return made.split([W_uk.size(-1), W_uv.size(-1)], dim=-1)


@wrong(
    "latent_keys_values", "The pair is in the wrong order: values first, keys second."
)
def latent_keys_values(latent, W_uk, W_uv):
    c = latent.unsqueeze(1)
    return c @ W_uv, c @ W_uk


@wrong(
    "latent_keys_values",
    "The heads come after the tokens: (B, S, H, K) in place of (B, H, S, K).",
)
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.stack([latent @ w for w in W_uk], dim=2)
    values = torch.stack([latent @ w for w in W_uv], dim=2)
    return keys, values


@wrong(
    "latent_keys_values",
    "(B, S, H, K) is reshaped to (B, H, S, K) where the axes should be transposed.",
)
def latent_keys_values(latent, W_uk, W_uv):
    B, S, R = latent.shape
    H = W_uk.shape[0]
    keys = torch.einsum("bsr,hrk->bshk", latent, W_uk).reshape(B, H, S, -1)
    values = torch.einsum("bsr,hrv->bshv", latent, W_uv).reshape(B, H, S, -1)
    return keys, values


@wrong("latent_keys_values", "The values are made with W_uk, not with W_uv.")
def latent_keys_values(latent, W_uk, W_uv):
    keys = latent.unsqueeze(1) @ W_uk
    values = latent.unsqueeze(1) @ W_uk
    return keys, values


@wrong(
    "latent_keys_values",
    "The matrices of all heads are put side by side by a reshape, without bringing R to the front first.",
)
def latent_keys_values(latent, W_uk, W_uv):
    B, S, R = latent.shape
    H, _, K = W_uk.shape
    V = W_uv.shape[-1]
    keys = latent @ W_uk.reshape(R, H * K)
    values = latent @ W_uv.reshape(R, H * V)
    return (
        keys.view(B, S, H, K).transpose(1, 2),
        values.view(B, S, H, V).transpose(1, 2),
    )


@wrong("latent_keys_values", "The keys are divided by the root of the latent's width.")
def latent_keys_values(latent, W_uk, W_uv):
    R = latent.shape[-1]
    keys = latent[:, None] @ W_uk / R**0.5
    values = latent[:, None] @ W_uv
    return keys, values


@wrong("latent_keys_values", "Every head uses the matrices of the first head.")
def latent_keys_values(latent, W_uk, W_uv):
    heads = range(W_uk.shape[0])
    keys = torch.stack([latent @ W_uk[0] for h in heads], dim=1)
    values = torch.stack([latent @ W_uv[0] for h in heads], dim=1)
    return keys, values


@wrong(
    "latent_keys_values",
    "Every sentence gets the keys and values of the first sentence.",
)
def latent_keys_values(latent, W_uk, W_uv):
    B, S, R = latent.shape
    H, K, V = W_uk.shape[0], W_uk.shape[2], W_uv.shape[2]
    keys, values = torch.zeros(B, H, S, K), torch.zeros(B, H, S, V)
    for b in range(B):
        for h in range(H):
            keys[b, h] = latent[0] @ W_uk[h]
            values[b, h] = latent[0] @ W_uv[h]
    return keys, values


@wrong(
    "latent_keys_values",
    "The input is changed: unsqueeze_ gives the learner's latents another axis in place.",
)
def latent_keys_values(latent, W_uk, W_uv):
    latent.unsqueeze_(1)
    return latent @ W_uk, latent @ W_uv


@wrong(
    "latent_keys_values",
    "The keys are transposed, (B, H, K, S), as if ready for the scores.",
)
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bhks", latent, W_uk)
    values = torch.einsum("bsr,hrv->bhsv", latent, W_uv)
    return keys, values


@wrong(
    "latent_keys_values",
    "Keys and values are joined to one tensor; a pair is asked for.",
)
def latent_keys_values(latent, W_uk, W_uv):
    return torch.cat([latent[:, None] @ W_uk, latent[:, None] @ W_uv], dim=-1)


@wrong(
    "latent_keys_values",
    "The heads come after the tokens.",
    "The pair is in the wrong order.",
)
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bshk", latent, W_uk)
    values = torch.einsum("bsr,hrv->bshv", latent, W_uv)
    return values, keys


@wrong(
    "latent_keys_values",
    "The keys are divided by the root of the key's width.",
    "The values are made with W_uk.",
)
def latent_keys_values(latent, W_uk, W_uv):
    c = latent.unsqueeze(1)
    scale = W_uk.shape[-1] ** -0.5
    return c @ W_uk * scale, c @ W_uk


@wrong(
    "latent_keys_values",
    "The keys are transposed, (B, H, K, S).",
    "The values of every head use the first head's matrix.",
)
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.stack([(latent @ w).mT for w in W_uk], dim=1)
    values = torch.stack([latent @ W_uv[0] for w in W_uv], dim=1)
    return keys, values


@wrong(
    "latent_keys_values",
    "A softmax is taken of the latents.",
    "The pair is in the wrong order.",
)
def latent_keys_values(latent, W_uk, W_uv):
    c = torch.softmax(latent, dim=-1)[:, None]
    return c @ W_uv, c @ W_uk


@wrong(
    "latent_keys_values",
    "The keys of every sentence are those of the first.",
    "The keys are divided by the root of the latent's width.",
)
def latent_keys_values(latent, W_uk, W_uv):
    B, S, R = latent.shape
    keys = (latent[:1] @ W_uk).expand(B, -1, -1, -1) / R**0.5
    values = latent[:, None] @ W_uv
    return keys, values


# ----------------------------------------------------------------- 14.2 absorbed_scores


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    absorbed = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    return torch.einsum("bhtr,bsr->bhts", absorbed, latent)


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    return query @ W_uk.mT @ latent.unsqueeze(1).mT


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    B, H, T, _ = query.shape
    scores = torch.empty(B, H, T, latent.shape[1])
    for b in range(B):
        for h in range(H):
            for t in range(T):
                narrow = W_uk[h] @ query[b, h, t]
                scores[b, h, t] = latent[b] @ narrow
    return scores


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    narrow = (query[:, :, :, None, :] * W_uk[None, :, None]).sum(dim=-1)
    columns = []
    for s in range(latent.size(1)):
        c = latent[:, s][:, None, None, :]
        columns.append((narrow * c).sum(-1))
    return torch.stack(columns, dim=-1)


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    q, c, w = (a.to(torch.float64) for a in (query, latent, W_uk))
    by_head = [q[:, h] @ w[h].T @ c.transpose(1, 2) for h in range(w.shape[0])]
    return torch.stack(by_head, 1).to(query.dtype)


@right("absorbed_scores")
def absorbed_scores(query, latent, W_uk):
    B, H, T, K = query.shape
    R = W_uk.size(1)
    heads_first = query.transpose(0, 1).reshape(H, B * T, K)
    absorbed = torch.bmm(heads_first, W_uk.permute(0, 2, 1))
    absorbed = absorbed.view(H, B, T, R).transpose(0, 1).reshape(B, H * T, R)
    return torch.bmm(absorbed, latent.permute(0, 2, 1)).view(B, H, T, -1)


@wrong("absorbed_scores", "Keys are made on the way, (B, H, S, K).")
def absorbed_scores(query, latent, W_uk):
    keys = latent.unsqueeze(1) @ W_uk
    return query @ keys.mT


@wrong("absorbed_scores", "The scores are divided by the root of the key's width.")
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk.mT
    return absorbed @ latent[:, None].mT / query.shape[-1] ** 0.5


@wrong("absorbed_scores", "A softmax is taken of the scores.")
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk.mT
    scores = absorbed @ latent[:, None].mT
    return torch.softmax(scores, dim=-1)


@wrong(
    "absorbed_scores",
    "A causal mask is put on the scores: those of later tokens are zero.",
)
def absorbed_scores(query, latent, W_uk):
    absorbed = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    return torch.einsum("bhtr,bsr->bhts", absorbed, latent).tril()


@wrong("absorbed_scores", "The scores are transposed, (B, H, S, T).")
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk.mT
    return latent.unsqueeze(1) @ absorbed.mT


@wrong(
    "absorbed_scores",
    "The matrices are reshaped to (H, K, R) where they should be transposed.",
)
def absorbed_scores(query, latent, W_uk):
    H, R, K = W_uk.shape
    absorbed = query @ W_uk.reshape(H, K, R)
    return absorbed @ latent[:, None].mT


@wrong(
    "absorbed_scores",
    "The latents are reshaped to (R, S) where they should be transposed.",
)
def absorbed_scores(query, latent, W_uk):
    B, S, R = latent.shape
    absorbed = query @ W_uk.mT
    return absorbed @ latent.reshape(B, 1, R, S)


@wrong("absorbed_scores", "Every head uses the matrix of the first head.")
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk[0].T
    return absorbed @ latent.unsqueeze(1).mT


@wrong(
    "absorbed_scores",
    "Every sentence is compared with the latents of the first sentence.",
)
def absorbed_scores(query, latent, W_uk):
    scores = []
    for sentence in query:
        absorbed = sentence @ W_uk.transpose(1, 2)
        scores.append(absorbed @ latent[0].T)
    return torch.stack(scores)


@wrong(
    "absorbed_scores",
    "The scores of all heads are added up: the axis of the heads is gone.",
)
def absorbed_scores(query, latent, W_uk):
    absorbed = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    return torch.einsum("bhtr,bsr->bts", absorbed, latent)


@wrong("absorbed_scores", "The absorbed query is returned, not the scores.")
def absorbed_scores(query, latent, W_uk):
    absorbed = torch.matmul(query, W_uk.transpose(-1, -2))
    scores = torch.matmul(absorbed, latent[:, None].transpose(-1, -2))
    return absorbed


@wrong(
    "absorbed_scores",
    "Keys are made on the way.",
    "The scores are divided by the root of the key's width.",
)
def absorbed_scores(query, latent, W_uk):
    keys = torch.einsum("bsr,hrk->bhsk", latent, W_uk)
    scores = torch.einsum("bhtk,bhsk->bhts", query, keys)
    return scores / keys.shape[-1] ** 0.5


@wrong(
    "absorbed_scores",
    "The scores are divided by the root of the latent's width.",
    "A softmax is taken of the scores.",
)
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk.mT
    scores = absorbed @ latent[:, None].mT / latent.shape[-1] ** 0.5
    return scores.softmax(-1)


@wrong(
    "absorbed_scores",
    "Every head uses the matrix of the first head.",
    "The scores are transposed, (B, H, S, T).",
)
def absorbed_scores(query, latent, W_uk):
    absorbed = query @ W_uk[0].mT
    return latent[:, None] @ absorbed.mT


@wrong(
    "absorbed_scores",
    "A causal mask is put on the scores.",
    "A softmax is taken of the scores.",
)
def absorbed_scores(query, latent, W_uk):
    scores = query @ W_uk.mT @ latent[:, None].mT
    T, S = scores.shape[-2:]
    later = torch.ones(T, S, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(dim=-1)


@wrong(
    "absorbed_scores",
    "The query, an input, is changed in place.",
    "The scores are divided by the root of the key's width.",
)
def absorbed_scores(query, latent, W_uk):
    query /= query.shape[-1] ** 0.5
    return query @ W_uk.mT @ latent[:, None].mT
