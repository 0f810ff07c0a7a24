"""Answers by a third author, who saw the cards alone: exercises 1.1 to 7.1."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# ---------------------------------------------------------------- helpers
# What the cards take from the course, all of it right. The names start with
# an underscore so that no answer below can replace them.


def _causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).tril()


def _sdpa(query, key, value, mask=None, dropout_p=0.0):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = F.dropout(weights, dropout_p)
    return weights @ value, weights


# ---------------------------------------------------------------- 1.1


@right("merge")
def merge(ids, pair, new_id):
    out = []
    rest = iter(ids)
    held = next(rest, None)
    while held is not None:
        following = next(rest, None)
        if (held, following) == tuple(pair):
            out.append(new_id)
            held = next(rest, None)
        else:
            out.append(held)
            held = following
    return out


@wrong("merge", "moves on by one id after a merge, so the second of the pair stays")
def merge(ids, pair, new_id):
    out = []
    i = 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            out.append(new_id)
        else:
            out.append(ids[i])
        i += 1
    return out


@wrong("merge", "changes the given list in place")
def merge(ids, pair, new_id):
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i : i + 2] = [new_id]
        i += 1
    return ids[:]


@wrong(
    "merge",
    "loses the last id where it's in no pair",
    "merges the pair in either order",
)
def merge(ids, pair, new_id):
    out = []
    i = 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) in (pair, pair[::-1]):
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


@wrong("merge", "changes the given list in place", "merges the first occurrence only")
def merge(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            ids[i] = new_id
            del ids[i + 1]
            break
    return list(ids)


# ---------------------------------------------------------------- 1.2


@right("sliding_windows")
def sliding_windows(ids, context_length, stride):
    ids = torch.tensor(ids, dtype=torch.long)
    starts = torch.arange(0, max(len(ids) - context_length, 0), stride)
    places = starts[:, None] + torch.arange(context_length)
    return ids[places], ids[places + 1]


@wrong("sliding_windows", "stops one start early, so the last full window is lost")
def sliding_windows(ids, context_length, stride):
    xs, ys = [], []
    for i in range(0, len(ids) - context_length - 1, stride):
        xs.append(ids[i : i + context_length])
        ys.append(ids[i + 1 : i + context_length + 1])
    xs = torch.tensor(xs, dtype=torch.long).reshape(-1, context_length)
    ys = torch.tensor(ys, dtype=torch.long).reshape(-1, context_length)
    return xs, ys


@wrong("sliding_windows", "targets shifted by the stride, not by one")
def sliding_windows(ids, context_length, stride):
    xs, ys = [], []
    i = 0
    while i + context_length < len(ids):
        xs.append(ids[i : i + context_length])
        y = ids[i + stride : i + stride + context_length]
        ys.append(y + [0] * (context_length - len(y)))
        i += stride
    xs = torch.tensor(xs, dtype=torch.long).reshape(-1, context_length)
    ys = torch.tensor(ys, dtype=torch.long).reshape(-1, context_length)
    return xs, ys


@wrong(
    "sliding_windows",
    "steps by the context length, the stride is ignored",
    "returns targets before inputs",
)
def sliding_windows(ids, context_length, stride):
    rows = [
        ids[i : i + context_length + 1]
        for i in range(0, len(ids) - context_length, context_length)
    ]
    rows = torch.tensor(rows, dtype=torch.long).reshape(-1, context_length + 1)
    return rows[:, 1:], rows[:, :-1]


@wrong(
    "sliding_windows",
    "returns float tensors",
    "stops one start early, so the last full window is lost",
)
def sliding_windows(ids, context_length, stride):
    n = len(range(0, len(ids) - context_length - 1, stride))
    inputs = torch.zeros(n, context_length)
    targets = torch.zeros(n, context_length)
    for row in range(n):
        for j in range(context_length):
            inputs[row, j] = ids[row * stride + j]
            targets[row, j] = ids[row * stride + j + 1]
    return inputs, targets


# ---------------------------------------------------------------- 2.1


@right("embed")
def embed(ids, table):
    one_hot = (ids.unsqueeze(-1) == torch.arange(table.shape[0])).to(table.dtype)
    return torch.einsum("...v,vd->...d", one_hot, table)


@wrong("embed", "computes in float32, so the table's type is lost")
def embed(ids, table):
    one_hot = F.one_hot(ids, num_classes=table.shape[0]).float()
    return one_hot @ table.float()


@wrong("embed", "flattens the ids and doesn't restore their shape")
def embed(ids, table):
    ids = ids.reshape(-1)
    one_hot = torch.zeros(len(ids), table.shape[0], dtype=table.dtype)
    one_hot[torch.arange(len(ids)), ids] = 1
    return one_hot @ table


@wrong(
    "embed", "counts the ids from 1", "computes in float32, so the table's type is lost"
)
def embed(ids, table):
    rows = torch.arange(1, table.shape[0] + 1)
    one_hot = (ids[..., None] == rows).float()
    return one_hot @ table.float()


# ---------------------------------------------------------------- 2.2


@right("sinusoidal_positions")
def sinusoidal_positions(num_positions, d_model):
    table = torch.empty(num_positions, d_model)
    for pos in range(num_positions):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
    return table


@wrong(
    "sinusoidal_positions",
    "sines in the first half and cosines in the second, not side by side",
)
def sinusoidal_positions(num_positions, d_model):
    pos = torch.arange(num_positions).float()
    freq = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.outer(pos, freq)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@wrong("sinusoidal_positions", "exponent i/d, the factor 2 is forgotten")
def sinusoidal_positions(num_positions, d_model):
    pos = torch.arange(num_positions).float().unsqueeze(1)
    i = torch.arange(d_model // 2)
    angles = pos / 10000 ** (i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(
        num_positions, d_model
    )


@wrong(
    "sinusoidal_positions",
    "positions count from 1",
    "cosines in the even features, sines in the odd ones",
)
def sinusoidal_positions(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    pos = torch.arange(1, num_positions + 1).float()[:, None]
    angles = pos * torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2] = torch.cos(angles)
    table[:, 1::2] = torch.sin(angles)
    return table


@wrong(
    "sinusoidal_positions",
    "odd features take an exponent of their own",
    "multiplies by the power where it should divide",
)
def sinusoidal_positions(num_positions, d_model):
    pos = torch.arange(num_positions).float()[:, None]
    k = torch.arange(d_model)
    angles = pos * 10000.0 ** (k / d_model)
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.sin(angles[:, 0::2])
    table[:, 1::2] = torch.cos(angles[:, 1::2])
    return table


# ---------------------------------------------------------------- 3.3


@right("softmax")
def softmax(scores, dim=-1):
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    log_total = torch.exp(shifted).sum(dim=dim, keepdim=True).log()
    return torch.exp(shifted - log_total)


@wrong("softmax", "subtracts the maximum of the whole tensor")
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.max())
    return e / e.sum(dim=dim, keepdim=True)


@wrong("softmax", "subtracts the maximum in place")
def softmax(scores, dim=-1):
    scores -= scores.max(dim=dim, keepdim=True).values
    e = torch.exp(scores)
    return e / e.sum(dim, keepdim=True)


@wrong("softmax", "doesn't subtract the maximum", "always sums over the last axis")
def softmax(scores, dim=-1):
    e = torch.exp(scores)
    return e / e.sum(dim=-1, keepdim=True)


@wrong("softmax", "subtracts the maximum in place", "always sums over the last axis")
def softmax(scores, dim=-1):
    scores.sub_(scores.amax(dim=dim, keepdim=True))
    e = torch.exp(scores)
    return e / e.sum(-1, keepdim=True)


# ---------------------------------------------------------------- 3.1


@right("attention_weights")
def attention_weights(x):
    scores = torch.einsum("id,jd->ij", x, x)
    e = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
    return e / e.sum(dim=1, keepdim=True)


@wrong("attention_weights", "softmax over the queries")
def attention_weights(x):
    scores = x @ x.T
    return torch.softmax(scores, dim=0)


@wrong("attention_weights", "divides by the sum, without exp")
def attention_weights(x):
    scores = x @ x.T
    return scores / scores.sum(dim=1, keepdim=True)


@wrong(
    "attention_weights", "scores divided by the root of D", "softmax over the queries"
)
def attention_weights(x):
    scores = torch.matmul(x, x.transpose(0, 1)) / x.shape[1] ** 0.5
    return scores.softmax(dim=0)


# ---------------------------------------------------------------- 3.2


@right("context_vectors")
def context_vectors(x):
    scores = torch.stack([(x * q).sum(dim=1) for q in x])
    weights = torch.softmax(scores, dim=1)
    return torch.einsum("ij,jd->id", weights, x)


@wrong("context_vectors", "mixes with the transposed weights")
def context_vectors(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    return weights.T @ x


@wrong("context_vectors", "mixes with the scores, softmax forgotten")
def context_vectors(x):
    scores = x @ x.T
    return scores @ x


@wrong(
    "context_vectors",
    "mixes with the transposed weights",
    "adds the token itself to the mixture",
)
def context_vectors(x):
    w = torch.softmax(x @ x.T, dim=1)
    return x + torch.einsum("ij,id->jd", w, x)


@wrong(
    "context_vectors",
    "scores divided by the root of D",
    "divides the sum by the number of tokens",
)
def context_vectors(x):
    T, D = x.shape
    w = torch.softmax(x @ x.T / math.sqrt(D), dim=1)
    return w @ x / T


# ---------------------------------------------------------------- 4.1


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    root = math.sqrt(key.size(-1))
    scores = torch.einsum("...td,...sd->...ts", query / root, key)
    weights = scores.softmax(dim=-1)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@wrong("scaled_dot_product_attention", "scores divided by the root of d_v, not of d_k")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-1, -2) / math.sqrt(value.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@wrong("scaled_dot_product_attention", "scales the query in place")
def scaled_dot_product_attention(query, key, value):
    query /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ key.mT, dim=-1)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "scores divided by d_k, not its root",
    "returns the weights first",
)
def scaled_dot_product_attention(query, key, value):
    d_k = key.shape[-1]
    scores = torch.matmul(query, key.transpose(-2, -1)) / d_k
    weights = torch.softmax(scores, dim=-1)
    return weights, torch.matmul(weights, value)


@wrong("scaled_dot_product_attention", "softmax over the queries", "not scaled at all")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-2)
    output = weights @ value
    return output, weights


# ---------------------------------------------------------------- 4.2


@right("SelfAttention")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=False))

    def forward(self, x):
        q = self.W_query(x) * self.W_query.out_features**-0.5
        scores = torch.einsum("...id,...jd->...ij", q, self.W_key(x))
        return torch.softmax(scores, dim=-1) @ self.W_value(x)


@wrong("SelfAttention", "returns output and weights")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        return _sdpa(self.W_query(x), self.W_key(x), self.W_value(x))


@wrong("SelfAttention", "queries and keys swapped in the call")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        output, _ = _sdpa(self.W_key(x), self.W_query(x), self.W_value(x))
        return output


@wrong(
    "SelfAttention",
    "scores divided by the root of d_in, not of d_out",
    "values made with W_key",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_key(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])
        return torch.softmax(scores, dim=-1) @ v


@wrong("SelfAttention", "projections with a bias", "softmax over the queries")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-2)
        return weights @ v


# ---------------------------------------------------------------- 5.1


@right("causal_mask")
def causal_mask(num_tokens):
    place = torch.arange(num_tokens)
    return place.unsqueeze(0) <= place.unsqueeze(1)


@wrong("causal_mask", "polarity: True where the key is hidden")
def causal_mask(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1).bool()


@wrong("causal_mask", "a token may not attend to itself")
def causal_mask(num_tokens):
    i = torch.arange(num_tokens)
    return i[:, None] > i[None, :]


@wrong(
    "causal_mask", "one key of the future may be seen", "returns floats, not booleans"
)
def causal_mask(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens), diagonal=1)


@wrong(
    "causal_mask",
    "upper triangle: rows and columns swapped",
    "returns integers, not booleans",
)
def causal_mask(num_tokens):
    place = torch.arange(num_tokens)
    return (place[:, None] <= place[None, :]).long()


# ---------------------------------------------------------------- 5.2


@right("CausalAttention")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        T = x.shape[1]
        scores = torch.einsum("bid,bjd->bij", self.W_query(x), self.W_key(x))
        hidden = torch.where(self.mask[:T, :T], 0.0, -torch.inf)
        weights = torch.softmax(scores / self.W_key.out_features**0.5 + hidden, dim=2)
        return torch.bmm(self.dropout(weights), self.W_value(x))


@wrong("CausalAttention", "dropout on the output, not on the weights")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(~self.mask[:T, :T], -torch.inf)
        return self.dropout(torch.softmax(scores, dim=-1) @ v)


@wrong(
    "CausalAttention",
    "hides after the softmax with zeros, so the rows don't sum to one",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), dim=-1)
        weights = weights * self.mask[:T, :T]
        return self.dropout(weights) @ v


@wrong(
    "CausalAttention",
    "scores divided by the root of d_in, not of d_out",
    "dropout forgotten",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        B, T, width = x.shape
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / width**0.5
        scores[:, ~self.mask[:T, :T]] = -torch.inf
        weights = torch.softmax(scores, dim=-1)
        return weights @ v


@wrong(
    "CausalAttention",
    "dropout acts in evaluation too",
    "hidden scores become 0, not -inf",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~self.mask[:T, :T], 0.0)
        weights = F.dropout(torch.softmax(scores, dim=-1), self.dropout.p)
        return weights @ v


# ---------------------------------------------------------------- 6.1


@right("split_heads")
def split_heads(x, num_heads):
    D = x.shape[-1]
    if D % num_heads:
        raise ValueError(f"{D} features don't go into {num_heads} heads")
    return torch.stack(x.split(D // num_heads, dim=-1), dim=1)


@wrong("split_heads", "reshapes straight to (B, H, T, K), which mixes tokens")
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError("num_heads must divide D")
    return x.reshape(B, num_heads, T, D // num_heads)


@wrong("split_heads", "no ValueError: left-over features are dropped")
def split_heads(x, num_heads):
    K = x.shape[-1] // num_heads
    heads = [x[:, :, h * K : (h + 1) * K] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@wrong(
    "split_heads",
    "heads own every H-th feature, not neighbours",
    "raises an AssertionError, not a ValueError",
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    assert D % num_heads == 0, "num_heads must divide D"
    return x.reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)


@wrong(
    "split_heads",
    "returns (B, T, H, K), the swap of the axes is forgotten",
    "divisibility asked of T, not of D",
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    if T % num_heads != 0:
        raise ValueError("not divisible")
    K = D // num_heads
    return x[..., : num_heads * K].reshape(B, T, num_heads, K)


# ---------------------------------------------------------------- 6.2


@right("merge_heads")
def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@wrong("merge_heads", "reshapes without swapping heads and tokens")
def merge_heads(x):
    B, H, T, K = x.shape
    return x.reshape(B, T, H * K)


@wrong("merge_heads", "interleaves the features of the heads")
def merge_heads(x):
    B, H, T, K = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, K * H)


@wrong(
    "merge_heads",
    "interleaves the features of the heads",
    "joins batch and tokens into one axis",
)
def merge_heads(x):
    B, H, T, K = x.shape
    return torch.einsum("bhtk->btkh", x).reshape(B * T, H * K)


# ---------------------------------------------------------------- 6.3


@right("MultiHeadAttention")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = (
            torch.stack(W(x).chunk(self.num_heads, dim=-1), dim=1)
            for W in (self.W_query, self.W_key, self.W_value)
        )
        p = self.p if self.training else 0.0
        out, _ = _sdpa(q, k, v, mask=self.mask[:T, :T], dropout_p=p)
        return self.out_proj(torch.cat(out.unbind(dim=1), dim=-1))


@wrong("MultiHeadAttention", "scores divided by the root of d_out, not of K")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)

    def forward(self, x):
        B, T, _ = x.shape
        queries = self.W_query(x)
        scale = math.sqrt(queries.shape[-1])
        q = queries.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / scale
        scores = scores.masked_fill(~self.mask[:T, :T], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(B, T, -1)
        return self.out_proj(out)


@wrong("MultiHeadAttention", "the mask isn't passed, so the future is seen")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)

    def forward(self, x):
        B, T, _ = x.shape

        def split(y):
            return y.reshape(B, T, self.num_heads, -1).transpose(1, 2)

        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        mask = self.mask[:T, :T]
        p = self.dropout if self.training else 0.0
        out, _ = _sdpa(q, k, v, dropout_p=p)
        return self.out_proj(out.transpose(1, 2).reshape(B, T, -1))


@wrong(
    "MultiHeadAttention",
    "dropout acts in evaluation too",
    "merges the heads without swapping heads and tokens",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_out = d_out
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)

    def forward(self, x):
        B, T, _ = x.shape
        H, K = self.num_heads, self.d_out // self.num_heads
        q = self.W_query(x).view(B, T, H, K).transpose(1, 2)
        k = self.W_key(x).view(B, T, H, K).transpose(1, 2)
        v = self.W_value(x).view(B, T, H, K).transpose(1, 2)
        out, _ = _sdpa(q, k, v, self.mask[:T, :T], self.dropout)
        return self.out_proj(out.reshape(B, T, self.d_out))


@wrong(
    "MultiHeadAttention",
    "divisibility asked of d_in, not of d_out",
    "out_proj forgotten in forward",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_in % num_heads != 0:
            raise ValueError("not divisible by num_heads")
        self.num_heads = num_heads
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", _causal_mask(context_length), persistent=False)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        q, k, v = (
            y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for y in (q, k, v)
        )
        p = self.dropout if self.training else 0.0
        out, _ = _sdpa(q, k, v, self.mask[:T, :T], p)
        out = out.transpose(1, 2).flatten(2)
        return out


# ---------------------------------------------------------------- 7.1


@right("apply_rope")
def apply_rope(x, positions, base=10000.0):
    K = x.shape[-1]
    speeds = base ** (-torch.arange(0, K, 2, dtype=torch.float64) / K)
    angles = positions.to(torch.float64)[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    pairs = x.unflatten(-1, (K // 2, 2))
    return torch.einsum("tpij,...tpj->...tpi", turn.to(x.dtype), pairs).flatten(-2)


@wrong("apply_rope", "pairs are p and p + K/2, not neighbours")
def apply_rope(x, positions, base=10000.0):
    K = x.shape[-1]
    freq = base ** (-torch.arange(0, K, 2) / K)
    angles = positions[:, None] * freq
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., : K // 2], x[..., K // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong("apply_rope", "odd features computed from even ones already turned")
def apply_rope(x, positions, base=10000.0):
    K = x.shape[-1]
    out = x.clone()
    for p in range(K // 2):
        angle = positions * base ** (-2 * p / K)
        cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
        out[..., 2 * p] = out[..., 2 * p] * cos - out[..., 2 * p + 1] * sin
        out[..., 2 * p + 1] = out[..., 2 * p] * sin + out[..., 2 * p + 1] * cos
    return out


@wrong(
    "apply_rope",
    "turns clockwise",
    "positions taken as 0, 1, 2 ..., the argument is ignored",
)
def apply_rope(x, positions, base=10000.0):
    T, K = x.shape[-2:]
    freq = base ** (-torch.arange(0, K, 2) / K)
    angles = torch.outer(torch.arange(T).float(), freq)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack([even * cos + odd * sin, odd * cos - even * sin], dim=-1)
    return pairs.flatten(-2)


@wrong(
    "apply_rope", "exponent p/K, the factor 2 is forgotten", "writes the result into x"
)
def apply_rope(x, positions, base=10000.0):
    K = x.shape[-1]
    freq = base ** (-torch.arange(K // 2) / K)
    angles = positions[:, None] * freq
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2].clone(), x[..., 1::2].clone()
    x[..., 0::2] = even * cos - odd * sin
    x[..., 1::2] = even * sin + odd * cos
    return x
