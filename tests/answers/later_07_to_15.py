"""Answers by a fourth author, who saw the cards alone: exercises 7.2 to 15.2."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong


def masked_softmax(scores, mask):
    """What the course gives: True may be attended to, empty rows become zeros."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.where(
        mask.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights)
    )


# ---------------------------------------------------------------- 7.2 ALiBi


@right("alibi_bias")
def alibi_bias_right(num_heads, num_tokens):
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for h in range(num_heads):
        slope = 2 ** (-8 * (h + 1) / num_heads)
        for i in range(num_tokens):
            for j in range(i + 1):
                bias[h, i, j] = -slope * (i - j)
    return bias


@wrong("alibi_bias", "the first head's exponent is 0: h, not h + 1")
def alibi_bias_h0(num_heads, num_tokens):
    slopes = 2.0 ** (-8 * torch.arange(num_heads) / num_heads)
    pos = torch.arange(num_tokens)
    return -slopes[:, None, None] * (pos[:, None] - pos[None, :])


@wrong(
    "alibi_bias",
    "rows and columns of the distance swapped, so the past gets 0 and the future the penalty",
)
def alibi_bias_swapped(num_heads, num_tokens):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    pos = torch.arange(num_tokens)
    distance = (pos[None, :] - pos[:, None]).clamp(min=0)
    return -torch.einsum("h,ij->hij", slopes, distance.float())


@wrong(
    "alibi_bias",
    "slopes 2^-(h+1), as if there were always 8 heads",
    "the minus is forgotten: far tokens are rewarded",
)
def alibi_bias_8heads_plus(num_heads, num_tokens):
    slopes = 2.0 ** -torch.arange(1, num_heads + 1).float()
    pos = torch.arange(num_tokens)
    distance = pos.unsqueeze(1) - pos.unsqueeze(0)
    return slopes.view(-1, 1, 1) * distance


@wrong(
    "alibi_bias",
    "the distance is one too large, so that the diagonal isn't zero",
    "heads in reverse order",
)
def alibi_bias_offset_reverse(num_heads, num_tokens):
    slopes = [2 ** (-8 * (num_heads - h) / num_heads) for h in range(num_heads)]
    rows = torch.arange(1, num_tokens + 1).float()
    columns = torch.arange(0, num_tokens).float()
    return torch.stack([-s * (rows[:, None] - columns) for s in slopes])


# ---------------------------------------------------------------- 8.1 cross-attention


@right("cross_attention")
def cross_attention_right(x, context, W_query, W_key, W_value, context_mask=None):
    q = torch.einsum("...td,dk->...tk", x, W_query) / W_query.shape[1] ** 0.5
    k = torch.einsum("...sd,dk->...sk", context, W_key)
    v = torch.einsum("...sd,dv->...sv", context, W_value)
    scores = torch.einsum("...tk,...sk->...ts", q, k)
    if context_mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    else:
        mask = context_mask[..., None, :].expand_as(scores)
    weights = masked_softmax(scores, mask)
    return torch.einsum("...ts,...sv->...tv", weights, v), weights


@wrong("cross_attention", "divides by the root of D, not of K")
def cross_attention_root_D(x, context, W_query, W_key, W_value, context_mask=None):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    scores = q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])
    if context_mask is not None:
        context_mask = context_mask.unsqueeze(-2)
    weights = masked_softmax(scores, context_mask)
    return weights @ v, weights


@wrong(
    "cross_attention", "plain softmax after -inf: NaN where nothing may be attended to"
)
def cross_attention_nan(x, context, W_query, W_key, W_value, context_mask=None):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask.unsqueeze(-2), float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong(
    "cross_attention",
    "mask polarity: True taken as hidden",
    "no division by the root of K",
)
def cross_attention_polarity_noscale(
    x, context, W_query, W_key, W_value, context_mask=None
):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    scores = q @ k.mT
    if context_mask is None:
        weights = scores.softmax(-1)
    else:
        allowed = ~context_mask[..., None, :]
        weights = masked_softmax(scores, allowed)
    return weights @ v, weights


@wrong(
    "cross_attention",
    "weights zeroed after the softmax and not divided by their new sum",
    "returns the weights first",
)
def cross_attention_zeroed_order(
    x, context, W_query, W_key, W_value, context_mask=None
):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
    if context_mask is not None:
        weights = weights * context_mask.unsqueeze(-2)
    return weights, weights @ v


# ---------------------------------------------------------------- 8.2 greedy decoding


@right("greedy_translate")
def greedy_translate_right(next_logits, start_id, end_id, max_length):
    written = []
    while len(written) < max_length:
        best = int(torch.argmax(next_logits([start_id] + written)))
        if best == end_id:
            return written
        written = written + [best]
    return written


@wrong("greedy_translate", "the decoder is given only the last word")
def greedy_translate_last(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = next_logits(ids[-1:]).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("greedy_translate", "the end is left out, but the loop goes on after it")
def greedy_translate_goes_on(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    written = []
    for _ in range(max_length):
        best = next_logits(ids).argmax().item()
        ids.append(best)
        if best != end_id:
            written.append(best)
    return written


@wrong(
    "greedy_translate", "start counts towards max_length", "the end id is in the result"
)
def greedy_translate_short_end(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) < max_length:
        best = int(next_logits(ids).argmax())
        ids.append(best)
        if best == end_id:
            break
    return ids[1:]


@wrong(
    "greedy_translate",
    "the list holds tensors, not integers",
    "the start id is in the result",
)
def greedy_translate_tensors_start(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = next_logits(ids).argmax(dim=-1)
        if best == end_id:
            break
        ids.append(best)
    return ids


# ---------------------------------------------------------------- 9.1 the block


@right("TransformerBlock")
class TransformerBlockRight(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention, self.feed_forward = attention, feed_forward

    def forward(self, x):
        for norm, sublayer in (
            (self.norm1, self.attention),
            (self.norm2, self.feed_forward),
        ):
            x = sublayer(norm(x)) + x
        return x


@wrong(
    "TransformerBlock",
    "the second shortcut adds the block's input, not the sum after attention",
)
class TransformerBlockOldX(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        h = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(h))


@wrong("TransformerBlock", "the first shortcut carries the normalised input")
class TransformerBlockNormedShortcut(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attention(x)
        return x + self.feed_forward(self.norm2(x))


@wrong(
    "TransformerBlock",
    "norm1 used in both places",
    "no shortcut around the feed-forward",
)
class TransformerBlockOneNorm(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm1(x)
        return self.feed_forward(y)


@wrong(
    "TransformerBlock",
    "+= changes the input",
    "norm2 after the feed-forward, not before it",
)
class TransformerBlockInPlace(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x += self.attention(self.norm1(x))
        return x + self.norm2(self.feed_forward(x))


# ---------------------------------------------------------------- 9.2 next-token probabilities


@right("next_token_probs")
def next_token_probs_right(logits, temperature=1.0, top_k=None):
    scaled = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        values, places = scaled.topk(k, dim=-1)
        scaled = torch.full_like(scaled, -math.inf).scatter(-1, places, values)
    return F.softmax(scaled, dim=-1)


@wrong("next_token_probs", "multiplies by the temperature")
def next_token_probs_times(logits, temperature=1.0, top_k=None):
    z = logits * temperature
    if top_k is not None:
        border = z.topk(top_k, dim=-1).values[..., -1:]
        z = z.masked_fill(z < border, float("-inf"))
    return torch.softmax(z, dim=-1)


@wrong("next_token_probs", "the border is searched in the whole batch, not in each row")
def next_token_probs_flat(logits, temperature=1.0, top_k=None):
    z = logits / temperature
    if top_k is not None:
        border = z.flatten().topk(top_k).values[-1]
        keep = z >= border
        z = z.masked_fill(~keep, -1e9)
    return torch.softmax(z, dim=-1)


@wrong(
    "next_token_probs",
    "the temperature is divided in place",
    "cut after the softmax, the rest isn't divided by its new sum",
)
def next_token_probs_inplace_sum(logits, temperature=1.0, top_k=None):
    logits /= temperature
    probs = torch.softmax(logits, dim=-1)
    if top_k is not None:
        border = probs.sort(dim=-1, descending=True).values[..., top_k - 1 : top_k]
        probs = torch.where(probs >= border, probs, torch.zeros_like(probs))
    return probs


@wrong(
    "next_token_probs", "cut logits become 0, not -inf", "softmax over the first axis"
)
def next_token_probs_zero_axis(logits, temperature=1.0, top_k=None):
    z = logits / temperature
    if top_k is not None:
        border = z.topk(top_k, dim=-1).values[..., -1:]
        z = torch.where(z < border, 0.0, z)
    return torch.softmax(z, dim=0)


# ---------------------------------------------------------------- 9.3 top-p


@right("top_p_probs")
def top_p_probs_right(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    all_probs = torch.softmax(logits, dim=-1)
    rows = all_probs.reshape(-1, logits.shape[-1])
    result = torch.zeros_like(rows)
    for r, row in enumerate(rows):
        total = 0.0
        for place in row.argsort(descending=True).tolist():
            result[r, place] = row[place]
            total += row[place].item()
            if total >= p:
                break
        result[r] /= result[r].sum()
    return result.reshape(logits.shape)


@wrong("top_p_probs", "the token that reaches p is cut too: one too few")
def top_p_probs_few(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) <= p)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return torch.zeros_like(kept).scatter(-1, order, kept)


@wrong(
    "top_p_probs", "gather instead of scatter: the order is applied the wrong way round"
)
def top_p_probs_gather(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = probs.cumsum(dim=-1) - probs
    kept = probs.masked_fill(before >= p, 0.0)
    kept = kept / kept.sum(dim=-1, keepdim=True)
    return kept.gather(-1, order)


@wrong("top_p_probs", "the result stays sorted", "not divided by the new sum")
def top_p_probs_sorted_undivided(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    kept = probs * (probs.cumsum(dim=-1) - probs < p)
    return kept


@wrong(
    "top_p_probs", "one token too many stays", "divided by the sum of all rows together"
)
def top_p_probs_many_sum(logits, p):
    if p == 1:
        return torch.softmax(logits, dim=-1)
    probs, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    stays = probs.cumsum(dim=-1) < p
    shift = 2
    stays = F.pad(stays, (shift, 0), value=True)[..., : probs.shape[-1]]
    kept = probs * stays
    kept = kept / kept.sum()
    return torch.zeros_like(kept).scatter(-1, order, kept)


# ---------------------------------------------------------------- 10.1 online softmax attention


@right("online_softmax_attention")
def online_softmax_attention_right(query, key, value, block_size):
    scale = 1 / math.sqrt(query.shape[-1])
    top = total = acc = None
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        scores = torch.einsum("...td,...sd->...ts", query * scale, k)
        block_top = scores.amax(dim=-1, keepdim=True)
        e = (scores - block_top).exp()
        block_total, block_acc = e.sum(dim=-1, keepdim=True), e @ v
        if top is None:
            top, total, acc = block_top, block_total, block_acc
            continue
        new = torch.maximum(top, block_top)
        a, b = (top - new).exp(), (block_top - new).exp()
        top, total, acc = new, a * total + b * block_total, a * acc + b * block_acc
    return acc / total


@wrong("online_softmax_attention", "the last, shorter block is left out")
def online_softmax_attention_no_last(query, key, value, block_size):
    S = key.shape[-2]
    m = query.new_full((*query.shape[:-1], 1), float("-inf"))
    l = torch.zeros_like(m)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for b in range(S // block_size):
        k = key[..., b * block_size : (b + 1) * block_size, :]
        v = value[..., b * block_size : (b + 1) * block_size, :]
        s = query @ k.mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.max(dim=-1, keepdim=True).values)
        e = torch.exp(s - new)
        old = torch.exp(m - new)
        l = l * old + e.sum(dim=-1, keepdim=True)
        acc = acc * old + e @ v
        m = new
    return acc / l


@wrong(
    "online_softmax_attention",
    "divided by the sum after every block, and then once more at the end",
)
def online_softmax_attention_divides_early(query, key, value, block_size):
    m = query.new_full((*query.shape[:-1], 1), float("-inf"))
    l = torch.zeros_like(m)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        s = query @ key[..., start : start + block_size, :].mT / query.shape[-1] ** 0.5
        new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        e = torch.exp(s - new)
        old = torch.exp(m - new)
        l = l * old + e.sum(dim=-1, keepdim=True)
        acc = (acc * old + e @ value[..., start : start + block_size, :]) / l
        m = new
    return acc / l


@wrong(
    "online_softmax_attention",
    "the old sum isn't rescaled to the new maximum",
    "divides by the root of d_v",
)
def online_softmax_attention_sum_dv(query, key, value, block_size):
    scale = math.sqrt(value.shape[-1])
    m = query.new_full((*query.shape[:-1], 1), float("-inf"))
    l = torch.zeros_like(m)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        s = query @ key[..., start : start + block_size, :].mT / scale
        new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        e = torch.exp(s - new)
        old = torch.exp(m - new)
        l = l + e.sum(dim=-1, keepdim=True)
        acc = acc * old + e @ value[..., start : start + block_size, :]
        m = new
    return acc / l


@wrong(
    "online_softmax_attention",
    "the running maximum begins at 0, not -inf",
    "no division by the root of d_k",
)
def online_softmax_attention_zero_noscale(query, key, value, block_size):
    m = query.new_zeros(*query.shape[:-1], 1)
    l = torch.zeros_like(m)
    acc = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for start in range(0, key.shape[-2], block_size):
        s = query @ key[..., start : start + block_size, :].mT
        new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
        e = torch.exp(s - new)
        old = torch.exp(m - new)
        l = l * old + e.sum(dim=-1, keepdim=True)
        acc = acc * old + e @ value[..., start : start + block_size, :]
        m = new
    return acc / l


# ---------------------------------------------------------------- 10.2 attend with a cache


@right("attend_with_cache")
def attend_with_cache_right(query, key, value, cache):
    keys = key if cache is None else torch.cat((cache[0], key), dim=-2)
    values = value if cache is None else torch.cat((cache[1], value), dim=-2)
    new = query.shape[-2]
    before = keys.shape[-2] - new
    rows = []
    for t in range(new):
        seen = before + t + 1
        scores = (keys[..., :seen, :] * query[..., t : t + 1, :]).sum(-1) / math.sqrt(
            query.shape[-1]
        )
        w = scores.softmax(dim=-1)
        rows.append((w.unsqueeze(-1) * values[..., :seen, :]).sum(-2))
    return torch.stack(rows, dim=-2), (keys, values)


@wrong("attend_with_cache", "no mask among the new tokens: they see later ones")
def attend_with_cache_nomask(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value, (key, value)


@wrong("attend_with_cache", "the triangle isn't shifted by the length of the cache")
def attend_with_cache_unshifted(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    weights = scores.masked_fill(~seen, float("-inf")).softmax(dim=-1)
    return weights @ value, (key, value)


@wrong(
    "attend_with_cache",
    "returns only the new keys and values",
    "no division by the root of d_k",
)
def attend_with_cache_onlynew_noscale(query, key, value, cache):
    if cache is None:
        keys, values = key, value
    else:
        keys = torch.cat([cache[0], key], dim=-2)
        values = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], keys.shape[-2]
    scores = query @ keys.mT
    hidden = torch.ones(T, S, dtype=torch.bool, device=query.device).triu(S - T + 1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    return weights @ values, (key, value)


@wrong(
    "attend_with_cache",
    "the triangle is shifted by one too many: the next new token is seen",
    "returns the pair as (values, keys)",
)
def attend_with_cache_next_swapped(query, key, value, cache):
    if cache is not None:
        key = torch.cat([cache[0], key], dim=-2)
        value = torch.cat([cache[1], value], dim=-2)
    T, S = query.shape[-2], key.shape[-2]
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    seen = torch.ones(T, S, dtype=torch.bool, device=query.device).tril(S - T + 1)
    weights = scores.masked_fill(~seen, float("-inf")).softmax(dim=-1)
    return weights @ value, (value, key)


# ---------------------------------------------------------------- 10.3 repeat the shared heads


@right("repeat_kv")
def repeat_kv_right(x, n_rep):
    return x[:, [h // n_rep for h in range(x.shape[1] * n_rep)]]


@wrong("repeat_kv", "repeat, not repeat_interleave: heads come 0, 1, 0, 1")
def repeat_kv_tiled(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


@wrong("repeat_kv", "interleaves the tokens, and reshapes them into heads")
def repeat_kv_tokens(x, n_rep):
    B, H, T, K = x.shape
    return x.repeat_interleave(n_rep, dim=2).reshape(B, H * n_rep, T, K)


@wrong(
    "repeat_kv",
    "heads come 0, 1, 0, 1",
    "one copy too many: n_rep besides the original",
)
def repeat_kv_tiled_extra(x, n_rep):
    copies = [x]
    for _ in range(n_rep):
        copies.append(x)
    return torch.cat(copies, dim=1)


@wrong(
    "repeat_kv",
    "the heads come in reverse order",
    "returned with the tokens before the heads",
)
def repeat_kv_reverse_transposed(x, n_rep):
    heads = [x[:, h] for h in reversed(range(x.shape[1])) for _ in range(n_rep)]
    return torch.stack(heads, dim=2)


# ---------------------------------------------------------------- 11.1 patchify


@right("patchify")
def patchify_right(images, patch_size):
    P = patch_size
    H, W = images.shape[-2:]
    patches = []
    for top in range(0, H, P):
        for left in range(0, W, P):
            patches.append(images[:, :, top : top + P, left : left + P].flatten(1))
    return torch.stack(patches, dim=1)


@wrong("patchify", "one reshape without moving axes")
def patchify_reshape(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    return images.reshape(B, (H // P) * (W // P), C * P * P)


@wrong("patchify", "patches come column by column")
def patchify_columns(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P)
    return torch.einsum("bchpwq->bwhcpq", x).reshape(B, -1, C * P * P)


@wrong(
    "patchify",
    "channels last inside a patch",
    "pixels of a patch come column by column",
)
def patchify_last_columns(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P)
    x = x.permute(0, 2, 4, 5, 3, 1)  # B, rows, columns, ...
    return x.reshape(B, -1, P * P * C)


@wrong(
    "patchify",
    "splits the height into P groups instead of groups of P",
    "patches come column by column",
)
def patchify_groups_columns(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, P, H // P, W // P, P).transpose(2, 3)
    x = x.permute(0, 4, 2, 1, 3, 5)
    return x.reshape(B, -1, C * P * P)


# ---------------------------------------------------------------- 13.1 combine partial attention


@right("combine_partial_attention")
def combine_partial_attention_right(outputs, maxima, sums):
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
    safe = torch.where(denominator == 0, torch.ones_like(denominator), denominator)
    return numerator / safe[:, None]


@wrong("combine_partial_attention", "a token that sees no key in any part gets NaN")
def combine_partial_attention_nan(outputs, maxima, sums):
    top = maxima.amax(dim=0)
    scale = torch.exp(maxima - top)
    total = (scale * sums).sum(dim=0)
    return torch.einsum("pt,ptv->tv", scale, outputs) / total[:, None]


@wrong("combine_partial_attention", "outputs and sums are rescaled in place")
def combine_partial_attention_inplace(outputs, maxima, sums):
    top = maxima.max(dim=0).values
    top = top.masked_fill(top == float("-inf"), 0.0)
    scale = torch.exp(maxima - top)
    outputs *= scale.unsqueeze(-1)
    sums *= scale
    total = sums.sum(dim=0)
    total = total.masked_fill(total == 0, 1.0)
    return outputs.sum(dim=0) / total.unsqueeze(-1)


@wrong(
    "combine_partial_attention",
    "one maximum for all tokens: tokens far below it get lost",
    "the sums are added without rescaling",
)
def combine_partial_attention_global_sums(outputs, maxima, sums):
    top = maxima.max()
    top = top.masked_fill(top == float("-inf"), 0.0)
    scale = torch.exp(maxima - top)
    total = sums.sum(dim=0)
    total = total.masked_fill(total == 0, 1.0)
    return (scale.unsqueeze(-1) * outputs).sum(dim=0) / total.unsqueeze(-1)


@wrong(
    "combine_partial_attention",
    "exp of the maxima themselves, nothing subtracted",
    "mean over the parts on top, by their number",
)
def combine_partial_attention_overflow_mean(outputs, maxima, sums):
    scale = torch.exp(maxima)
    total = (scale * sums).sum(dim=0)
    total = total.masked_fill(total == 0, 1.0)
    return (scale.unsqueeze(-1) * outputs).mean(dim=0) / total.unsqueeze(-1)


# ---------------------------------------------------------------- 14.1 keys and values from a latent


@right("latent_keys_values")
def latent_keys_values_right(latent, W_uk, W_uv):
    keys = torch.stack([latent @ W for W in W_uk], dim=1)
    values = torch.stack([latent @ W for W in W_uv], dim=1)
    return keys, values


@wrong("latent_keys_values", "the values are made with W_uk")
def latent_keys_values_uk(latent, W_uk, W_uv):
    c = latent.unsqueeze(1)
    return c @ W_uk, c @ W_uk


@wrong("latent_keys_values", "tokens before heads: (B, S, H, K)")
def latent_keys_values_bsh(latent, W_uk, W_uv):
    keys = torch.einsum("bsr,hrk->bshk", latent, W_uk)
    values = torch.einsum("bsr,hrv->bshv", latent, W_uv)
    return keys, values


@wrong(
    "latent_keys_values",
    "heads before sentences: (H, B, S, K)",
    "returns (values, keys)",
)
def latent_keys_values_hb_swapped(latent, W_uk, W_uv):
    keys = torch.stack([latent @ W for W in W_uk])
    values = torch.stack([latent @ W for W in W_uv])
    return values, keys


@wrong(
    "latent_keys_values",
    "keys divided by the root of K already",
    "the values' heads are split by a reshape without a transpose",
)
def latent_keys_values_root_reshape(latent, W_uk, W_uv):
    B, S, R = latent.shape
    H, _, V = W_uv.shape
    keys = latent[:, None] @ W_uk / math.sqrt(W_uk.shape[-1])
    values = torch.einsum("bsr,hrv->bshv", latent, W_uv).reshape(B, H, S, V)
    return keys, values


# ---------------------------------------------------------------- 14.2 absorbed scores


@right("absorbed_scores")
def absorbed_scores_right(query, latent, W_uk):
    per_head = []
    for h in range(W_uk.shape[0]):
        asked = query[:, h] @ W_uk[h].T  # (B, T, R)
        per_head.append(torch.bmm(asked, latent.transpose(1, 2)))
    return torch.stack(per_head, dim=1)


@wrong("absorbed_scores", "divided by the root of K although the card wants no root")
def absorbed_scores_root(query, latent, W_uk):
    q = query @ W_uk.mT
    return q @ latent[:, None].mT / math.sqrt(query.shape[-1])


@wrong(
    "absorbed_scores",
    "other letter for the matrix's head: every query meets the sum of all heads' matrices",
)
def absorbed_scores_letters(query, latent, W_uk):
    q = torch.einsum("bhtk,grk->bhtr", query, W_uk)
    return torch.einsum("bhtr,bsr->bhts", q, latent)


@wrong(
    "absorbed_scores",
    "the matrix is reshaped to (H, K, R), not transposed",
    "latents before queries: (B, H, S, T)",
)
def absorbed_scores_reshape_st(query, latent, W_uk):
    H, R, K = W_uk.shape
    q = query @ W_uk.reshape(H, K, R)
    return latent.unsqueeze(1) @ q.mT


@wrong("absorbed_scores", "all heads use the first head's matrix", "softmax at the end")
def absorbed_scores_first_softmax(query, latent, W_uk):
    q = query @ W_uk[0].mT
    scores = torch.einsum("bhtr,bsr->bhts", q, latent)
    return scores.softmax(dim=-1)


# ---------------------------------------------------------------- 15.1 linear attention


@right("linear_attention")
def linear_attention_right(query, key, value):
    states = torch.einsum("tk,tv->tkv", key, value).cumsum(dim=0)
    return torch.einsum("tk,tkv->tv", query, states)


@wrong("linear_attention", "the query asks before its own token is added")
def linear_attention_before(query, key, value):
    state = key.new_zeros(key.shape[1], value.shape[1])
    out = []
    for q, k, v in zip(query, key, value):
        out.append(q @ state)
        state = state + torch.outer(k, v)
    return torch.stack(out)


@wrong("linear_attention", "every token asks the sum over all tokens, later ones too")
def linear_attention_all(query, key, value):
    state = key.T @ value
    return query @ state


@wrong(
    "linear_attention",
    "divides by the root of K",
    "the state is replaced, not added to",
)
def linear_attention_root_replaced(query, key, value):
    out = value.new_zeros(value.shape)
    for t in range(len(query)):
        state = key[t][:, None] * value[t]
        out[t] = query[t] @ state / math.sqrt(query.shape[1])
    return out


@wrong(
    "linear_attention",
    "triangle without the diagonal",
    "each row is divided by the sum of its scores' magnitudes",
)
def linear_attention_diag_division(query, key, value):
    scores = (query @ key.T).tril(-1)
    scores = scores / (scores.abs().sum(dim=-1, keepdim=True) + 1e-9)
    return scores @ value


# ---------------------------------------------------------------- 15.2 the delta rule


@right("delta_rule")
def delta_rule_right(query, key, value, beta):
    # the same as S <- (I - beta k'k) S + beta k'v
    K = key.shape[1]
    state = value.new_zeros(K, value.shape[1])
    eye = torch.eye(K, dtype=key.dtype, device=key.device)
    rows = []
    for t in range(key.shape[0]):
        kk = torch.einsum("i,j->ij", key[t], key[t])
        kv = torch.einsum("i,v->iv", key[t], value[t])
        state = (eye - beta[t] * kk) @ state + beta[t] * kv
        rows.append(torch.einsum("k,kv->v", query[t], state))
    return torch.stack(rows)


@wrong("delta_rule", "what was read is added, not subtracted")
def delta_rule_plus(query, key, value, beta):
    S = key.new_zeros(key.shape[1], value.shape[1])
    out = []
    for q, k, v, b in zip(query, key, value, beta):
        S = S + b * torch.outer(k, v + k @ S)
        out.append(q @ S)
    return torch.stack(out)


@wrong("delta_rule", "the difference uses what the query reads, not what the key reads")
def delta_rule_query_reads(query, key, value, beta):
    S = key.new_zeros(key.shape[1], value.shape[1])
    out = []
    for q, k, v, b in zip(query, key, value, beta):
        read = q @ S
        S = S + b * k[:, None] * (v - read)[None, :]
        out.append(q @ S)
    return torch.stack(out)


@wrong(
    "delta_rule",
    "beta only on v, not on what was read",
    "the query asks before the state is corrected",
)
def delta_rule_beta_before(query, key, value, beta):
    S = key.new_zeros(key.shape[1], value.shape[1])
    out = []
    for q, k, v, b in zip(query, key, value, beta):
        old = S
        S = S + torch.outer(k, b * v - k @ S)
        out.append(q @ old)
    return torch.stack(out)


@wrong(
    "delta_rule",
    "the difference is written into value in place",
    "beta of the first token for all tokens",
)
def delta_rule_inplace_beta0(query, key, value, beta):
    S = key.new_zeros(key.shape[1], value.shape[1])
    out = []
    for t in range(len(key)):
        v = value[t]
        v -= key[t] @ S
        S = S + beta[0] * torch.outer(key[t], v)
        out.append(query[t] @ S)
    return torch.stack(out)
