"""Answers to one half of the exercises, as their authors wrote them."""

from torch import nn
import math
import torch
import torch.nn.functional as F

from tests.answers import right, wrong


@right
def cross_attention(x, context, W_query, W_key, W_value, source_mask=None):
    scores = torch.einsum("...td,dk,ek,...se->...ts", x, W_query, W_key, context)
    scores = scores / W_key.size(1) ** 0.5
    if source_mask is not None:
        scores = scores.where(
            source_mask.unsqueeze(-2), torch.tensor(-torch.inf, dtype=scores.dtype)
        )
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ts,...sd,dv->...tv", weights, context, W_value), weights


# a causal mask on top: word i of the translation sees i words of the source
# and the answer lacks the weights
@wrong("mask-causal", "part-missing")
def cross_attention(x, context, W_query, W_key, W_value, source_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if source_mask is not None:
        keep = keep & source_mask[..., None, :]
    weights = torch.softmax(scores.masked_fill(~keep, -torch.inf), dim=-1).nan_to_num(
        0.0
    )
    return weights @ value


@right
def greedy_translate(next_logits, start_id, end_id, max_length):
    def go(ids):
        if len(ids) == max_length + 1:
            return ids
        values = next_logits(ids).tolist()
        best = max(range(len(values)), key=values.__getitem__)
        return ids if best == end_id else go(ids + [best])

    return go([start_id])[1:]


# the ids handed over lack the start and never stops at the end
@wrong("goes-on-after-end", "start-missing")
def greedy_translate(next_logits, start_id, end_id, max_length):
    out = []
    while len(out) < max_length:
        best = int(next_logits(out).argmax())
        out.append(best)
    return out


@right
class TransformerBlock(nn.Module):
    # the stream is kept as a sum of its parts
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm2, self.norm1 = nn.LayerNorm(d_model), nn.LayerNorm([d_model])
        self.mix, self.think = attention, feed_forward

    def forward(self, x):
        parts = [x]
        parts.append(self.mix(self.norm1(sum(parts))))
        parts.append(self.think(self.norm2(parts[0] + parts[1])))
        return torch.stack(parts).sum(dim=0)


# dropout of 0.1 that wasn't wanted
# and attention and MLP side by side: both read the same x
@wrong("sublayers-parallel", "changes-in-training")
class TransformerBlock(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward = feed_forward
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        a = self.drop(self.attention(self.norm1(x)))
        return x + a + self.drop(self.feed_forward(self.norm2(x)))


@right
def next_token_probs(logits, temperature=1.0, top_k=None):
    # by rank: how many logits of the row are larger?
    scaled = logits / temperature
    e = torch.exp(scaled - scaled.logsumexp(-1, keepdim=True))
    if top_k is not None:
        rank = (logits[..., None, :] > logits[..., :, None]).sum(-1)
        e = e * (rank < top_k)
    return e / e.sum(-1, keepdim=True)


# keeps the k smallest and the temperature is forgotten
@wrong("temperature-ignored", "k-smallest")
def next_token_probs(logits, temperature=1.0, top_k=None):
    if top_k is not None:
        border = torch.topk(logits, top_k, dim=-1, largest=False).values[..., -1:]
        logits = logits.masked_fill(logits > border, float("-inf"))
    return torch.softmax(logits, dim=-1)


@right
def top_p_probs(logits, p):
    # what is better than token v: the sum over all larger logits, or earlier equal ones
    probs = logits.softmax(dim=-1)
    place = torch.arange(logits.shape[-1])
    larger = logits[..., None, :] > logits[..., :, None]
    equal = (logits[..., None, :] == logits[..., :, None]) & (place < place[:, None])
    better = ((larger | equal) * probs[..., None, :]).sum(-1)
    hidden = (better >= p) & (p < 1)
    return torch.softmax(logits.masked_fill(hidden, -torch.inf), dim=-1)


# the result stays sorted and not divided by the new sum
@wrong("not-renormalised", "order-lost")
def top_p_probs(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    return kept


@right
def online_softmax_attention(query, key, value, block_size):
    # a column of ones in the values carries the denominator along
    query = query / query.shape[-1] ** 0.5
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    top = torch.full_like(query[..., :1], -torch.inf)
    acc = torch.zeros_like(query[..., :1] * value[..., :1, :])
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        s = query @ k.mT
        higher = torch.maximum(top, s.max(dim=-1, keepdim=True).values)
        acc = acc * (top - higher).exp() + (s - higher).exp() @ v
        top = higher
    return acc[..., :-1] / acc[..., -1:]


# the denominator isn't rescaled and the loop leaves out the last, shorter block
@wrong("last-block-lost", "sums-not-rescaled")
def online_softmax_attention(query, key, value, block_size):
    S = key.shape[-2]
    top = torch.full_like(query[..., :1], float("-inf"))
    total = torch.zeros_like(top)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, S - block_size + 1, block_size):
        k = key[..., start : start + block_size, :]
        v = value[..., start : start + block_size, :]
        scores = query @ k.transpose(-2, -1) / query.shape[-1] ** 0.5
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        factor = torch.exp(top - new_top)
        weights = torch.exp(scores - new_top)
        total = total + weights.sum(dim=-1, keepdim=True)
        acc = acc * factor + weights @ v
        top = new_top
    return acc / total


@right
def attend_with_cache(query, key, value, cache):
    # as many empty queries in front as the cache has keys make it a square
    keys = key if cache is None else torch.cat([cache[0], key], -2)
    values = value if cache is None else torch.cat([cache[1], value], -2)
    past = keys.shape[-2] - query.shape[-2]
    padded = F.pad(query, (0, 0, past, 0))
    output = F.scaled_dot_product_attention(padded, keys, values, is_causal=True)
    return output[..., past:, :], (keys, values)


# the cached values are swapped with the cached keys
# and causal only when there is no cache
@wrong("mask-without-a-cache-only", "keys-and-values-swapped")
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        old_values, old_keys = cache
        key = torch.cat([old_keys, key], dim=-2)
        value = torch.cat([old_values, value], dim=-2)
    output = F.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
    return output, (key, value)


@right
def repeat_kv(x, n_rep):
    return torch.kron(x, torch.ones(1, n_rep, 1, 1, dtype=x.dtype))


# repeats the batch instead of the heads and one copy too many
@wrong("wrong-axis", "one-repetition-more")
def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep + 1, dim=0)


@right
def patchify(images, patch_size):
    # made for other ends: pixels of a square become channels
    return F.pixel_unshuffle(images, patch_size).flatten(2).transpose(1, 2)


# rows and columns inside a patch are exchanged and patches go column by column
@wrong("column-by-column", "pixels-by-columns")
def patchify(images, patch_size):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // patch_size, patch_size, W // patch_size, patch_size)
    return x.permute(0, 4, 2, 1, 5, 3).reshape(B, -1, C * patch_size**2)


@right
def combine_partial_attention(outputs, maxima, sums):
    empty = torch.isneginf(maxima) | (sums == 0)
    top = maxima.masked_fill(empty, -math.inf).amax(dim=0)
    top = torch.where(torch.isneginf(top), torch.zeros_like(top), top)
    numerator = torch.zeros_like(outputs[0])
    denominator = torch.zeros_like(sums[0])
    for o, m, s, gone in zip(outputs, maxima, sums, empty):
        factor = torch.where(
            gone, torch.zeros_like(m), torch.exp(torch.where(gone, top, m) - top)
        )
        numerator = numerator + factor[:, None] * o
        denominator = denominator + factor * s
    return numerator, maxima.amax(dim=0), denominator


# exp of the maxima themselves, nothing subtracted
# and mean over the parts on top, by their number
@wrong("mean-for-sum", "maximum-not-subtracted")
def combine_partial_attention(outputs, maxima, sums):
    scale = torch.exp(maxima)
    total = (scale * sums).sum(dim=0)
    return (scale.unsqueeze(-1) * outputs).mean(dim=0), maxima.amax(dim=0), total


@right
def latent_keys_values(latent, W_uk, W_uv):
    both = torch.cat((W_uk, W_uv), dim=-1)
    c = latent[:, None, :, :, None]
    made = (c * both[None, :, None]).sum(dim=3)
    return made.split([W_uk.size(-1), W_uv.size(-1)], dim=-1)


# The heads come after the tokens. and The pair is in the wrong order.
@wrong("parts-swapped", "axes-swapped")
def latent_keys_values(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bshk", latent, W_uk)
    values = torch.einsum("bsr,hrv->bshv", latent, W_uv)
    return values, keys


@right
def absorbed_scores(query, latent, W_uk):
    q, c, w = (a.to(torch.float64) for a in (query, latent, W_uk))
    by_head = [q[:, h] @ w[h].T @ c.transpose(1, 2) for h in range(w.shape[0])]
    return torch.stack(by_head, 1).to(query.dtype)


# Keys are made on the way, (B, H, S, K).
@wrong("keys-made")
def absorbed_scores(query, latent, W_uk):
    keys = latent.unsqueeze(1) @ W_uk
    return query @ keys.mT


# all heads use the first head's matrix and softmax at the end
@wrong("first-head-alone", "softmax-taken")
def absorbed_scores(query, latent, W_uk):
    q = query @ W_uk[0].mT
    scores = torch.einsum("bhtr,bsr->bhts", q, latent)
    return scores.softmax(dim=-1)


@right
def linear_attention(query, key, value):
    q, k, v = query.double(), key.double(), value.double()
    outputs = torch.empty_like(v)
    for t in range(v.shape[0]):
        outputs[t] = (k[: t + 1] @ q[t]) @ v[: t + 1]
    return outputs.to(value.dtype)


# A softmax is taken of the products. and The causal part is missing.
@wrong("softmax-kept", "no-causal-mask")
def linear_attention(query, key, value):
    return torch.softmax(query @ key.T, dim=-1) @ value


@right
def delta_rule(query, key, value, beta):
    turned = torch.zeros(value.size(1), key.size(1))
    rows = []
    for t in range(key.size(0)):
        read = turned.mv(key[t])
        turned.addr_(value[t] - read, key[t], alpha=beta[t].item())
        rows.append(turned.mv(query[t]))
    return torch.stack(rows, dim=0)


# Nothing is read before writing.
# and The outputs are divided by the root of the key's width.
@wrong("no-correction", "scaled")
def delta_rule(query, key, value, beta):
    weights = (query @ key.T).tril() / key.shape[1] ** 0.5
    return weights @ (beta[:, None] * value)
