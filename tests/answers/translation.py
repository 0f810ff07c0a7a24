"""08 Cross-attention and translation: 8.1 cross_attention, 8.2 greedy_translate."""

import math
from itertools import islice

import torch
import torch.nn.functional as F

from tests.answers import right, wrong

# ------------------------------------------------------ 8.1 cross_attention


@right("cross_attention")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    scores = torch.einsum("...td,dk,ek,...se->...ts", x, W_query, W_key, context)
    scores = scores / W_key.size(1) ** 0.5
    if context_mask is not None:
        scores = scores.where(
            context_mask.unsqueeze(-2), torch.tensor(-torch.inf, dtype=scores.dtype)
        )
    weights = scores.softmax(-1).nan_to_num(0.0)
    return torch.einsum("...ts,...sd,dv->...tv", weights, context, W_value), weights


@right("cross_attention")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    # the hidden words' values don't matter, their exponentials are struck out by hand
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.mT * key.shape[-1] ** -0.5
    keep = (
        torch.ones_like(scores)
        if context_mask is None
        else context_mask[..., None, :].to(scores)
    )
    top = (
        scores.masked_fill(keep.expand_as(scores) == 0, -torch.inf)
        .amax(-1, keepdim=True)
        .nan_to_num(neginf=0.0)
    )
    e = torch.exp((scores - top).clamp(max=0)) * keep
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-30)
    return weights @ value, weights


@right("cross_attention")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    # one sentence after another, only its real words
    if x.dim() > 2:
        masks = [None] * len(x) if context_mask is None else context_mask
        pairs = [
            _attend_to_words(a, c, W_query, W_key, W_value, m)
            for a, c, m in zip(x, context, masks)
        ]
        return tuple(torch.stack(part) for part in zip(*pairs))
    return _attend_to_words(x, context, W_query, W_key, W_value, context_mask)


def _attend_to_words(x, context, W_query, W_key, W_value, mask):
    if x.dim() > 2:
        masks = [None] * len(x) if mask is None else mask
        pairs = [
            _attend_to_words(a, c, W_query, W_key, W_value, m)
            for a, c, m in zip(x, context, masks)
        ]
        return tuple(torch.stack(part) for part in zip(*pairs))
    weights = x.new_zeros(len(x), len(context))
    real = torch.arange(len(context)) if mask is None else mask.nonzero().flatten()
    if len(real):
        words = context[real]
        scores = (x @ W_query) @ (words @ W_key).T / math.sqrt(W_query.shape[1])
        weights[:, real] = scores.softmax(1)
    return weights @ (context @ W_value), weights


@right("cross_attention")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    # a word of nothing: one more key that everybody may see, at the lowest score there is
    q, k, v = (
        torch.matmul(x, W_query),
        torch.matmul(context, W_key),
        torch.matmul(context, W_value),
    )
    s = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    if context_mask is not None:
        s = s.masked_fill(~context_mask.unsqueeze(-2), float("-inf"))
    s = F.pad(s, (0, 1), value=torch.finfo(s.dtype).min)
    w = F.softmax(s, dim=-1)[..., :-1]
    return torch.matmul(w, v), w


@wrong("cross_attention", "keys come from x instead of the context")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, x @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return weights @ value, weights


@wrong("cross_attention", "the mask means the opposite: True is hidden")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(context_mask[..., None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("cross_attention", "sentences without a real word give NaN")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if context_mask is not None:
        scores = torch.where(context_mask.unsqueeze(-2), scores, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("cross_attention", "the mask's new axis stands last: it hides queries")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if context_mask is not None:
        mask = context_mask[..., :, None][..., : scores.shape[-2], :]
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("cross_attention", "scaled by the width D of x, not by K")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / x.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, -1))
    return weights @ value, weights


@wrong("cross_attention", "the mask is never used")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query = x @ W_query
    key = context @ W_key
    value = context @ W_value
    scores = query @ key.transpose(-2, -1) / W_query.shape[1] ** 0.5
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong("cross_attention", "-1e9: where nothing is allowed the weights are uniform")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    q, k, v = x @ W_query, context @ W_key, context @ W_value
    s = torch.einsum("...td,...sd->...ts", q, k) / q.shape[-1] ** 0.5
    if context_mask is not None:
        s = s.masked_fill(~context_mask[..., None, :], -1e9)
    w = torch.softmax(s, dim=-1)
    return w @ v, w


@wrong(
    "cross_attention",
    "the matrices stand on the wrong side: W_query projects the context, W_key projects x",
    "no scale",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    a, b = (context @ W_query), (x @ W_key)
    scores = b @ a.mT
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[..., None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ (context @ W_value), weights


@wrong(
    "cross_attention", "values are the bare context, W_value unused", "inverted mask"
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key = x @ W_query, context @ W_key
    scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
    if context_mask is not None:
        hidden = context_mask.unsqueeze(-2)
        scores = scores.masked_fill(hidden, -torch.inf)
    weights = scores.softmax(-1).nan_to_num()
    return weights @ context, weights


@wrong(
    "cross_attention",
    "masks after the softmax: rows don't sum to 1",
    "multiplies the scores by the root",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) * math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    if context_mask is not None:
        weights = weights * context_mask[..., None, :]
    return weights @ value, weights


@wrong(
    "cross_attention",
    "returns weights first",
    "one of the places that mask: context_mask[:, None, :] needs a batch and exactly one",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask[:, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights, weights @ value


@wrong("cross_attention", "W_key makes the values", "divides by K, not by its root")
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    q = x @ W_query
    k = context @ W_key
    v = context @ W_key
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    if context_mask is not None:
        scores = scores.masked_fill(~context_mask.unsqueeze(-2), -torch.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ v, weights


@wrong(
    "cross_attention",
    "a causal mask on top: word i of the translation sees i words of the source",
    "the answer lacks the weights",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if context_mask is not None:
        keep = keep & context_mask[..., None, :]
    weights = torch.softmax(scores.masked_fill(~keep, -torch.inf), dim=-1).nan_to_num(
        0.0
    )
    return weights @ value


@wrong(
    "cross_attention",
    "adds the mask as a number to the scores: True adds 1, False hides nothing",
    "precedence in the scale: / K ** 1 / 2",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 1 / 2
    if context_mask is not None:
        scores = scores + context_mask[..., None, :]
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return weights @ value, weights


@wrong(
    "cross_attention",
    "a residual: x's projection is added to the output",
    "NaN rows are filled with equal weights",
)
def cross_attention(x, context, W_query, W_key, W_value, context_mask=None):
    query, key, value = x @ W_query, context @ W_key, context @ W_value
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if context_mask is not None:
        scores = scores.masked_fill(
            context_mask[..., None, :].logical_not(), -torch.inf
        )
    weights = torch.softmax(scores, dim=-1).nan_to_num(nan=1.0 / key.shape[-2])
    return x @ W_value + weights @ value, weights


# ----------------------------------------------------- 8.2 greedy_translate


@right("greedy_translate")
def greedy_translate(next_logits, start_id, end_id, max_length):
    def words():
        ids = [start_id]
        while True:
            best = next_logits(list(ids)).argmax().item()
            if best == end_id:
                return
            ids.append(best)
            yield best

    return list(islice(words(), max_length))


@right("greedy_translate")
def greedy_translate(next_logits, start_id, end_id, max_length):
    def go(ids):
        if len(ids) == max_length + 1:
            return ids
        values = next_logits(ids).tolist()
        best = max(range(len(values)), key=values.__getitem__)
        return ids if best == end_id else go(ids + [best])

    return go([start_id])[1:]


@right("greedy_translate")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        logits = next_logits(ids)
        ids.append(int((logits == logits.max()).nonzero()[0]))
        if ids[-1] == end_id:
            ids.pop()
            break
    del ids[0]
    return ids


@wrong("greedy_translate", "the end stays in the list")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = int(next_logits(ids).argmax())
        ids.append(best)
        if best == end_id:
            break
    return ids[1:]


@wrong("greedy_translate", "the start stays in the list")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) <= max_length:
        best = next_logits(ids).argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids


@wrong("greedy_translate", "only the last id is handed to next_logits")
def greedy_translate(next_logits, start_id, end_id, max_length):
    out = []
    last = start_id
    for _ in range(max_length):
        best = int(torch.argmax(next_logits([last])))
        if best == end_id:
            break
        out.append(best)
        last = best
    return out


@wrong("greedy_translate", "one id too few: the start is counted as well")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    while len(ids) < max_length:
        best = int(next_logits(ids).argmax(dim=-1))
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong("greedy_translate", "a list of tensors instead of numbers")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = next_logits(ids).argmax()
        if best == end_id:
            return ids[1:]
        ids.append(best)
    return ids[1:]


@wrong(
    "greedy_translate",
    "draws from the softmax instead of taking the best",
    "end is appended before the loop stops",
)
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for step in range(max_length):
        logits = next_logits(ids)
        best = torch.multinomial(torch.softmax(logits, dim=-1), 1).item()
        ids.append(best)
        if best == end_id:
            break
    return ids[1:]


@wrong(
    "greedy_translate", "the ids handed over lack the start", "never stops at the end"
)
def greedy_translate(next_logits, start_id, end_id, max_length):
    out = []
    while len(out) < max_length:
        best = int(next_logits(out).argmax())
        out.append(best)
    return out


@wrong("greedy_translate", "takes the worst: argmin", "one id more than max_length")
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length + 1):
        best = int(next_logits(ids).argmin())
        if best == end_id:
            break
        ids.append(best)
    return ids[1:]


@wrong(
    "greedy_translate",
    "the end is forbidden, the second best is taken in its place",
    "start is returned, too",
)
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        logits = next_logits(ids).clone()
        logits[end_id] = float("-inf")
        best = int(logits.argmax())
        if best == end_id:
            break
        ids.append(best)
    return ids


@wrong(
    "greedy_translate",
    "stops when the start comes up instead of the end",
    "returns a tensor",
)
def greedy_translate(next_logits, start_id, end_id, max_length):
    ids = [start_id]
    for _ in range(max_length):
        best = int(next_logits(ids).argmax())
        if best == start_id:
            break
        ids.append(best)
    return torch.tensor(ids[1:])
