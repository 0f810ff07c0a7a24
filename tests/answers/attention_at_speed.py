"""10 Attention at speed: 10.1 online_softmax_attention, 10.2 attend_with_cache, 10.3 repeat_kv."""

import math

import torch
import torch.nn.functional as F

from tests.answers import right, wrong

# --------------------------------------------- 10.1 online_softmax_attention


@right("online_softmax_attention")
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


@right("online_softmax_attention")
def online_softmax_attention(query, key, value, block_size):
    # two passes: first the maximum and the sum in blocks, then the output in blocks
    d_k, S = query.size(-1), key.size(-2)
    log_sum = None
    for s in range(0, S, block_size):
        part = (query @ key[..., s : s + block_size, :].mT / d_k**0.5).logsumexp(-1)
        log_sum = part if log_sum is None else torch.logaddexp(log_sum, part)
    out = 0
    for s in range(0, S, block_size):
        scores = query @ key[..., s : s + block_size, :].mT / d_k**0.5
        out = (
            out
            + torch.exp(scores - log_sum[..., None]) @ value[..., s : s + block_size, :]
        )
    return out


@right("online_softmax_attention")
def online_softmax_attention(query, key, value, block_size):
    # recursion: first block and rest are mixed by their shares
    def part(k, v):
        s = torch.einsum(
            "...td,...sd->...ts", query, k[..., :block_size, :]
        ) / math.sqrt(k.shape[-1])
        z = s.logsumexp(dim=-1, keepdim=True)
        o = s.softmax(dim=-1) @ v[..., :block_size, :]
        if k.shape[-2] <= block_size:
            return o, z
        o2, z2 = part(k[..., block_size:, :], v[..., block_size:, :])
        share = torch.sigmoid(z - z2)
        return share * o + (1 - share) * o2, torch.logaddexp(z, z2)

    return part(key, value)[0]


@right("online_softmax_attention")
def online_softmax_attention(query, key, value, block_size):
    # tokens without the last axis: maxima and sums are (..., T)
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros((*query.shape[:-1], value.size(-1)))
    start = 0
    while start < key.size(-2):
        stop = min(start + block_size, key.size(-2))
        s = (
            torch.matmul(query, key[..., start:stop, :].transpose(-1, -2))
            * query.size(-1) ** -0.5
        )
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        alpha = torch.exp(m - m_new)
        l = l * alpha + p.sum(-1)
        o = o * alpha[..., None] + p @ value[..., start:stop, :]
        m, start = m_new, stop
    return o / l[..., None]


@wrong(
    "online_softmax_attention", "the accumulator isn't rescaled when the maximum grows"
)
def online_softmax_attention(query, key, value, block_size):
    S = key.shape[-2]
    top = torch.full_like(query[..., :1], float("-inf"))
    total = torch.zeros_like(top)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, S, block_size):
        k = key[..., start : start + block_size, :]
        scores = query @ k.transpose(-2, -1) / query.shape[-1] ** 0.5
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        factor = torch.exp(top - new_top)
        weights = torch.exp(scores - new_top)
        total = total * factor + weights.sum(dim=-1, keepdim=True)
        acc = acc + weights @ value[..., start : start + block_size, :]
        top = new_top
    return acc / total


@wrong(
    "online_softmax_attention",
    "S // block_size blocks: the rest of the keys is never seen",
)
def online_softmax_attention(query, key, value, block_size):
    top = torch.full_like(query[..., :1], -torch.inf)
    total = torch.zeros_like(top)
    acc = 0.0
    for n in range(key.shape[-2] // block_size):
        here = slice(n * block_size, (n + 1) * block_size)
        scores = query @ key[..., here, :].mT / math.sqrt(key.shape[-1])
        new = torch.maximum(top, scores.amax(-1, True))
        total = total * torch.exp(top - new) + torch.exp(scores - new).sum(-1, True)
        acc = acc * torch.exp(top - new) + torch.exp(scores - new) @ value[..., here, :]
        top = new
    return acc / total


@wrong("online_softmax_attention", "a softmax in each block and a mean over blocks")
def online_softmax_attention(query, key, value, block_size):
    outputs = []
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        scores = query @ k.transpose(-2, -1) / query.shape[-1] ** 0.5
        outputs.append(torch.softmax(scores, dim=-1) @ v)
    return sum(outputs) / len(outputs)


@wrong("online_softmax_attention", "no scale")
def online_softmax_attention(query, key, value, block_size):
    m = torch.full_like(query[..., 0], -torch.inf)
    z = torch.zeros_like(m)
    o = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=value.dtype)
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT
        new = torch.maximum(m, s.amax(-1))
        e = torch.exp(s - new.unsqueeze(-1))
        shrink = torch.exp(m - new)
        z = z * shrink + e.sum(-1)
        o = o * shrink.unsqueeze(-1) + e @ v
        m = new
    return o / z.unsqueeze(-1)


@wrong(
    "online_softmax_attention",
    "the running maximum starts at 0, so very negative scores underflow to 0/0",
)
def online_softmax_attention(query, key, value, block_size):
    maximum = torch.zeros_like(query[..., :1])  # maximum
    denominator = torch.zeros_like(query[..., :1])
    accumulator = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for start in range(0, key.shape[-2], block_size):
        block = slice(start, start + block_size)
        scores = query @ key[..., block, :].transpose(-2, -1) / query.shape[-1] ** 0.5
        new_maximum = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        factor = torch.exp(maximum - new_maximum)
        weights = torch.exp(scores - new_maximum)
        denominator = denominator * factor + weights.sum(dim=-1, keepdim=True)
        accumulator = accumulator * factor + weights @ value[..., block, :]
        maximum = new_maximum
    return accumulator / denominator


@wrong(
    "online_softmax_attention",
    "the denominator isn't rescaled",
    "the loop leaves out the last, shorter block",
)
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


@wrong(
    "online_softmax_attention",
    "the factor is upside down: exp(new - old)",
    "divides by d_k",
)
def online_softmax_attention(query, key, value, block_size):
    top = torch.full_like(query[..., :1], float("-inf"))
    total, acc = 0.0, 0.0
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        scores = query @ k.mT / query.shape[-1]
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        factor = torch.exp(new - top).nan_to_num(posinf=0.0)
        w = torch.exp(scores - new)
        total = total * factor + w.sum(-1, keepdim=True)
        acc = acc * factor + w @ v
        top = new
    return acc / total


@wrong(
    "online_softmax_attention",
    "one maximum for all queries of the block",
    "divides by the sum of the last block alone",
)
def online_softmax_attention(query, key, value, block_size):
    top = torch.full_like(query[..., :1], float("-inf"))
    total, acc = 0.0, 0.0
    for start in range(0, key.shape[-2], block_size):
        k, v = (t[..., start : start + block_size, :] for t in (key, value))
        scores = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(top, scores.amax())
        factor = torch.exp(top - new)
        w = torch.exp(scores - new)
        total = w.sum(-1, keepdim=True)
        acc = acc * factor + w @ v
        top = new
    return acc / total


@wrong("online_softmax_attention", "the old maximum is never updated", "a causal mask")
def online_softmax_attention(query, key, value, block_size):
    top = torch.full_like(query[..., :1], -torch.inf)
    total, acc = 0.0, 0.0
    for start in range(0, key.shape[-2], block_size):
        k, v = (
            key[..., start : start + block_size, :],
            value[..., start : start + block_size, :],
        )
        scores = query @ k.transpose(-2, -1) / math.sqrt(query.shape[-1])
        place = torch.arange(start, start + k.shape[-2])
        scores = scores.masked_fill(
            place > torch.arange(query.shape[-2])[:, None], -1e9
        )
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        factor = torch.exp(top - new)
        w = torch.exp(scores - new)
        total = total * factor + w.sum(-1, keepdim=True)
        acc = acc * factor + w @ v
    return acc / total


@wrong(
    "online_softmax_attention",
    "returns the denominator beside the output",
    "blocks overlap by one: the border keys count twice",
)
def online_softmax_attention(query, key, value, block_size):
    top = torch.full_like(query[..., :1], float("-inf"))
    total, acc = 0.0, 0.0
    for start in range(0, key.shape[-2], block_size):
        here = slice(start, start + block_size + 1)
        scores = query @ key[..., here, :].transpose(-2, -1) / query.shape[-1] ** 0.5
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        w = torch.exp(scores - new)
        total = total * torch.exp(top - new) + w.sum(-1, keepdim=True)
        acc = acc * torch.exp(top - new) + w @ value[..., here, :]
        top = new
    return acc / total, total


# ----------------------------------------------------------- 10.3 repeat_kv


@right("repeat_kv")
def repeat_kv(x, n_rep):
    return x[:, torch.arange(x.shape[1] * n_rep) // n_rep]


@right("repeat_kv")
def repeat_kv(x, n_rep):
    return torch.cat(
        [head for h in range(x.size(1)) for head in [x[:, h : h + 1]] * n_rep], dim=1
    )


@right("repeat_kv")
def repeat_kv(x, n_rep):
    return torch.kron(x, torch.ones(1, n_rep, 1, 1, dtype=x.dtype))


@wrong("repeat_kv", "repeat copies the whole row of heads: 0 1 0 1")
def repeat_kv(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


@wrong("repeat_kv", "repeats the tokens, not the heads")
def repeat_kv(x, n_rep):
    return torch.repeat_interleave(x, n_rep, dim=2)


@wrong("repeat_kv", "the new axis stands before the heads, so they come in turn")
def repeat_kv(x, n_rep):
    B, H, T, K = x.shape
    return x[:, None].expand(B, n_rep, H, T, K).reshape(B, H * n_rep, T, K)


@wrong("repeat_kv", "the two axes aren't joined: five axes")
def repeat_kv(x, n_rep):
    return x.unsqueeze(2).expand(-1, -1, n_rep, -1, -1)


@wrong("repeat_kv", "repeats the batch instead of the heads", "one copy too many")
def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep + 1, dim=0)


@wrong(
    "repeat_kv",
    "the heads in turn: 0 1 0 1",
    "divides among the copies, so that their sum stays",
)
def repeat_kv(x, n_rep):
    return torch.cat([x] * n_rep, dim=1) / n_rep


# --------------------------------------------------- 10.2 attend_with_cache


@right("attend_with_cache")
def attend_with_cache(query, key, value, cache):
    # one query after another over a list of keys that grows
    keys, values = cache if cache is not None else (key[..., :0, :], value[..., :0, :])
    outputs = []
    for t in range(query.shape[-2]):
        keys = torch.cat([keys, key[..., t : t + 1, :]], dim=-2)
        values = torch.cat([values, value[..., t : t + 1, :]], dim=-2)
        scores = query[..., t : t + 1, :] @ keys.mT / query.shape[-1] ** 0.5
        outputs.append(scores.softmax(-1) @ values)
    return torch.cat(outputs, dim=-2), (keys, values)


@right("attend_with_cache")
def attend_with_cache(query, key, value, cache):
    if cache:
        key, value = (torch.cat(pair, dim=-2) for pair in zip(cache, (key, value)))
    T, S = query.size(-2), key.size(-2)
    mask = torch.ones(T, S, dtype=torch.bool).tril(diagonal=S - T)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask), (
        key,
        value,
    )


@right("attend_with_cache")
def attend_with_cache(query, key, value, cache):
    # the past and the present are attended to apart and mixed by their shares
    s_now = query @ key.mT / math.sqrt(key.size(-1))
    s_now = s_now + torch.full_like(s_now, -math.inf).triu(1)
    if cache is None:
        return s_now.softmax(-1) @ value, (key, value)
    old_keys, old_values = cache
    s_old = query @ old_keys.mT / math.sqrt(key.size(-1))
    z_old, z_now = s_old.logsumexp(-1, keepdim=True), s_now.logsumexp(-1, keepdim=True)
    share = torch.sigmoid(z_old - z_now)
    output = share * (s_old.softmax(-1) @ old_values) + (1 - share) * (
        s_now.softmax(-1) @ value
    )
    return output, (torch.cat((old_keys, key), -2), torch.cat((old_values, value), -2))


@right("attend_with_cache")
def attend_with_cache(query, key, value, cache):
    # as many empty queries in front as the cache has keys make it a square
    keys = key if cache is None else torch.cat([cache[0], key], -2)
    values = value if cache is None else torch.cat([cache[1], value], -2)
    past = keys.shape[-2] - query.shape[-2]
    padded = F.pad(query, (0, 0, past, 0))
    output = F.scaled_dot_product_attention(padded, keys, values, is_causal=True)
    return output[..., past:, :], (keys, values)


@wrong(
    "attend_with_cache",
    "the mask counts from the top left: the offset of the cache is missing",
)
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    keep = torch.ones(T, S, dtype=torch.bool).tril()
    weights = torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1)
    return weights @ value, (key, value)


@wrong("attend_with_cache", "no mask: new tokens see each other in both directions")
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        keys, values = cache
        key = torch.cat((keys, key), dim=-2)
        value = torch.cat((values, value), dim=-2)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, (key, value)


@wrong("attend_with_cache", "new keys are put in front of the old ones")
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        key = torch.cat([key, cache[0]], dim=-2)
        value = torch.cat([value, cache[1]], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / query.shape[-1] ** 0.5
    hidden = torch.arange(S) > torch.arange(S - T, S)[:, None]
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ value, (
        key,
        value,
    )


@wrong(
    "attend_with_cache",
    "hands back the new keys and values alone, the old ones are forgotten",
)
def attend_with_cache(query, key, value, cache):
    keys = key if cache is None else torch.cat([cache[0], key], dim=-2)
    values = value if cache is None else torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], keys.shape[-2]
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    keep = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    output = torch.where(keep, scores, -torch.inf).softmax(dim=-1) @ values
    return output, (key, value)  # cache


@wrong(
    "attend_with_cache",
    "concatenates along dim=1, which is the heads' axis where there are heads",
)
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=1)
        value = torch.cat([cache[1], value], dim=1)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
    keep = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    weights = scores.masked_fill(~keep, float("-inf")).softmax(dim=-1)
    return weights @ value, (key, value)


@wrong(
    "attend_with_cache",
    "the offset is one too large: each token sees the next new one",
    "the scale is missing",
)
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT
    keep = torch.ones(T, S).tril(diagonal=S - T + 1).bool()
    weights = torch.softmax(scores.masked_fill(~keep, -torch.inf), dim=-1)
    return weights @ value, (key, value)


@wrong(
    "attend_with_cache",
    "returns the old cache, which never grows",
    "the mask isn't shifted by the cached tokens",
)
def attend_with_cache(query, key, value, cache):
    keys, values = key, value
    if cache is not None:
        keys = torch.cat([cache[0], key], dim=-2)
        values = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], keys.shape[-2]
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])
    keep = torch.ones(T, S).tril()
    weights = scores.masked_fill(keep == 0, float("-inf")).softmax(-1)
    output = weights @ values
    return output, cache or (key, value)


@wrong(
    "attend_with_cache",
    "the cached values are swapped with the cached keys",
    "causal only when there is no cache",
)
def attend_with_cache(query, key, value, cache):
    if cache is not None:
        old_values, old_keys = cache
        key = torch.cat([old_keys, key], dim=-2)
        value = torch.cat([old_values, value], dim=-2)
    output = F.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
    return output, (key, value)


@wrong(
    "attend_with_cache",
    "attends to the new keys alone, the cache is only passed on",
    "output and cache in one flat tuple of three",
)
def attend_with_cache(query, key, value, cache):
    keys, values = key, value
    if cache is not None:
        keys, values = torch.cat([cache[0], key], -2), torch.cat([cache[1], value], -2)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    out = scores.masked_fill(future, -torch.inf).softmax(-1) @ value
    return out, keys, values


@wrong(
    "attend_with_cache",
    "returns a list of steps instead of two tensors as the cache",
    "softmax over the queries",
)
def attend_with_cache(query, key, value, cache):
    keys = torch.cat([cache[0], key], dim=-2) if cache is not None else key
    values = torch.cat([cache[1], value], dim=-2) if cache is not None else value
    past = keys.shape[-2] - query.shape[-2]
    scores = torch.einsum("...td,...sd->...ts", query, keys) / keys.shape[-1] ** 0.5
    t = torch.arange(query.shape[-2])[:, None] + past
    scores = scores.masked_fill(torch.arange(keys.shape[-2]) > t, -1e9)
    out = scores.softmax(dim=-2) @ values
    return out, (keys, values) if cache is None else (
        [cache[0], key],
        [cache[1], value],
    )
