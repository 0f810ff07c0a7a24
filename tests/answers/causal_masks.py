"""05 Causal masks: 5.1 causal_mask, 5.2 CausalAttention, 5.3 masked_softmax, 5.4 padding_mask, 5.5 dropout."""

import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# ---------------------------------------------------------- 5.1 causal_mask


@right("causal_mask")
def causal_mask(num_tokens):
    return torch.eye(num_tokens).cumsum(dim=0) > 0


@right("causal_mask")
def causal_mask(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    rows, columns = torch.tril_indices(num_tokens, num_tokens)
    mask[rows, columns] = True
    return mask


@right("causal_mask")
def causal_mask(num_tokens):
    return torch.from_numpy(
        ~np.triu(np.ones((num_tokens, num_tokens), dtype=bool), k=1)
    )


@wrong("causal_mask", "the diagonal is left out: a token doesn't see itself")
def causal_mask(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=-1)


@wrong("causal_mask", "True where the future lies: the opposite polarity")
def causal_mask(num_tokens):
    i = torch.arange(num_tokens)[:, None]
    j = torch.arange(num_tokens)[None, :]
    return j > i


@wrong("causal_mask", "zeros and ones as floats, not boolean")
def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).tril()


@wrong(
    "causal_mask", "rows and columns exchanged: each token sees itself and the future"
)
def causal_mask(num_tokens):
    p = torch.arange(num_tokens)
    return p[:, None] <= p[None, :]


@wrong(
    "causal_mask", "one key of the future is visible", "integers instead of booleans"
)
def causal_mask(num_tokens):
    ones = torch.ones((num_tokens, num_tokens), dtype=torch.int)
    return torch.tril(ones, diagonal=1)


@wrong(
    "causal_mask",
    "the additive mask of zeros and minus infinities",
    "diagonal 0 in triu hides the token itself",
)
def causal_mask(num_tokens):
    hidden = torch.triu(
        torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=0
    )
    return torch.zeros(num_tokens, num_tokens).masked_fill(hidden, float("-inf"))


@wrong(
    "causal_mask", "True where attention is forbidden", "an axis for the batch in front"
)
def causal_mask(num_tokens):
    return torch.ones(1, num_tokens, num_tokens).triu(1).bool()


# ------------------------------------------------------- 5.3 masked_softmax


@right("masked_softmax")
def masked_softmax(scores, mask):
    hidden = torch.where(mask, scores, torch.full_like(scores, -torch.inf))
    return torch.nan_to_num(hidden.softmax(-1))


@right("masked_softmax")
def masked_softmax(scores, mask):
    keep = mask.expand_as(scores)
    out = torch.zeros_like(scores).reshape(-1, scores.shape[-1])
    for n, (s, m) in enumerate(zip(scores.reshape(out.shape), keep.reshape(out.shape))):
        if m.any():
            out[n, m] = torch.softmax(s[m], dim=0)
    return out.view(scores.shape)


@right("masked_softmax")
def masked_softmax(scores, mask):
    # exp(score - log of the allowed sum), with the log taken as 0 in empty rows
    s = scores.masked_fill(~mask, -math.inf)
    log_sum = torch.logsumexp(s, dim=-1, keepdim=True)
    return torch.exp(s - log_sum.masked_fill(log_sum == -math.inf, 0))


@right("masked_softmax")
def masked_softmax(scores, mask):
    # an extra key that's always allowed takes all of an empty row and nothing of others
    low = torch.finfo(scores.dtype).min
    s = scores.masked_fill(mask.logical_not(), float("-inf"))
    extra = torch.full_like(s[..., :1], float("-inf"))
    extra[(s == float("-inf")).all(-1, keepdim=True)] = low
    return torch.cat([s, extra], dim=-1).softmax(dim=-1)[..., :-1]


@wrong("masked_softmax", "the mask is inverted: allowed scores are hidden")
def masked_softmax(scores, mask):
    w = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    return w.masked_fill(mask, 0.0)


@wrong("masked_softmax", "empty rows are NaN")
def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)


@wrong("masked_softmax", "-1e9 makes an empty row uniform")
def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, -1e9)
    return hidden.softmax(dim=-1)


@wrong("masked_softmax", "writes minus infinity into the scores it was given")
def masked_softmax(scores, mask):
    scores.masked_fill_(~mask, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights.masked_fill(~mask, 0)


@wrong(
    "masked_softmax",
    "masks after the softmax without normalising again: rows don't sum to 1",
)
def masked_softmax(scores, mask):
    weights = torch.softmax(scores, dim=-1)
    return weights * mask


@wrong("masked_softmax", "forbidden scores are set to 0, which still earns exp(0)")
def masked_softmax(scores, mask):
    weights = torch.softmax(scores * mask, dim=-1)
    return weights.masked_fill(~mask, 0.0)


@wrong("masked_softmax", "softmax over the queries")
def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(hidden, dim=-2)
    return weights.masked_fill(~mask, 0.0)


@wrong(
    "masked_softmax",
    "the result of masked_fill is lost, so nothing is hidden",
    "softmax with dim=1, a wrong axis in a batch",
)
def masked_softmax(scores, mask):
    scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=1)
    return weights.masked_fill(~mask, 0.0)


@wrong(
    "masked_softmax",
    "changes the scores in place",
    "empty rows become uniform, because NaN is replaced by 1/S",
)
def masked_softmax(scores, mask):
    scores[~mask.expand_as(scores)] = -torch.inf
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=1 / scores.shape[-1])


@wrong(
    "masked_softmax",
    "adds -10000, a finite number: empty rows still get weights",
    "the softmax runs along axis 1",
)
def masked_softmax(scores, mask):
    bias = (1 - mask.float()) * -1e4
    return torch.softmax(scores + bias, dim=1)


@wrong(
    "masked_softmax",
    "exponentials without taking the maximum away",
    "divides by the sum over all places, also the forbidden ones",
)
def masked_softmax(scores, mask):
    e = torch.exp(scores)
    total = e.sum(-1, keepdim=True)
    return e * mask / total


@wrong(
    "masked_softmax",
    "a small finite number (-100) instead of minus infinity: large negative scores beat it",
    "rows are emptied if their first place is forbidden",
)
def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, -100.0)
    empty = ~mask[..., :1]
    return torch.softmax(hidden, dim=-1).masked_fill(empty, 0.0)


@wrong(
    "masked_softmax",
    "divides by the largest weight, not by the sum",
    "the NaN of empty rows become equal weights",
)
def masked_softmax(scores, mask):
    s = scores.masked_fill(~mask, float("-inf"))
    e = torch.exp(s - s.amax(-1, keepdim=True))
    w = e / e.amax(-1, keepdim=True)
    return torch.where(w.isnan(), torch.ones_like(w) / w.shape[-1], w)


@wrong(
    "masked_softmax",
    "a forgotten tilde in the second masked_fill",
    "normalises over the queries",
)
def masked_softmax(scores, mask):
    weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-2)
    return weights.masked_fill(mask, 0.0)


# --------------------------------------------------------- 5.4 padding_mask


@right("padding_mask")
def padding_mask(lengths, num_tokens):
    rows = [[True] * int(n) + [False] * (num_tokens - int(n)) for n in lengths]
    return torch.tensor(rows, dtype=torch.bool).reshape(len(rows), num_tokens)


@right("padding_mask")
def padding_mask(lengths, num_tokens):
    return torch.ones(num_tokens + 1, num_tokens, dtype=torch.bool).tril(-1)[
        torch.as_tensor(lengths)
    ]


@right("padding_mask")
def padding_mask(lengths, num_tokens):
    left = torch.as_tensor(lengths).view(-1, 1).repeat(1, num_tokens)
    left = left - torch.arange(num_tokens)
    return left.clamp(min=0).bool()


@right("padding_mask")
def padding_mask(lengths, num_tokens):
    # count the ends already passed
    ends = F.one_hot(torch.as_tensor(lengths).long(), num_tokens + 1)
    return ends.cumsum(1)[:, :num_tokens].eq(0)


@wrong("padding_mask", "<= makes one token of padding real")
def padding_mask(lengths, num_tokens):
    lengths = torch.as_tensor(lengths)
    return torch.arange(num_tokens) <= lengths[:, None]


@wrong("padding_mask", "True for padding")
def padding_mask(lengths, num_tokens):
    lengths = torch.as_tensor(lengths).unsqueeze(1)
    return torch.arange(num_tokens)[None, :] >= lengths


@wrong("padding_mask", "padding on the left")
def padding_mask(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, num_tokens - n :] = True
    return mask


@wrong("padding_mask", "as wide as the longest sentence, not num_tokens")
def padding_mask(lengths, num_tokens):
    lengths = torch.as_tensor(lengths)
    return torch.arange(int(lengths.max())) < lengths[:, None]


@wrong("padding_mask", "positions count from 1", "floats are returned")
def padding_mask(lengths, num_tokens):
    positions = torch.arange(1, num_tokens + 1)
    lengths = torch.as_tensor(lengths)
    return (positions < lengths[:, None]).float()


@wrong(
    "padding_mask",
    "a square mask for each sentence, as for the scores",
    "a token more than real",
)
def padding_mask(lengths, num_tokens):
    lengths = torch.as_tensor(lengths)
    real = torch.arange(num_tokens) < lengths[:, None] + 1
    return real[:, None, :] & real[:, :, None]


@wrong(
    "padding_mask", "marks only the last real token instead of all up to it", "inverted"
)
def padding_mask(lengths, num_tokens):
    mask = torch.ones(len(lengths), num_tokens, dtype=torch.bool)
    for b, n in enumerate(lengths):
        mask[b, n - 1 : n] = False
    return mask


@wrong(
    "padding_mask",
    "(T, B): the lengths stay in the row",
    "strictly greater is turned into at least, on the wrong side",
)
def padding_mask(lengths, num_tokens):
    return torch.as_tensor(lengths).ge(torch.arange(num_tokens)[:, None])


@wrong(
    "padding_mask",
    "a length of 0 is taken as 1, so that no sentence is empty",
    "counts from the right",
)
def padding_mask(lengths, num_tokens):
    rows = []
    for n in lengths:
        n = max(int(n), 1)
        rows.append([False] * (num_tokens - n) + [True] * n)
    return torch.tensor(rows)


# -------------------------------------------------------------- 5.5 dropout


@right("dropout")
def dropout(x, p):
    return F.dropout(x, p, training=True)


@right("dropout")
def dropout(x, p):
    keep = torch.from_numpy(np.random.default_rng().random(x.shape)) >= p
    out = torch.zeros_like(x)
    out[keep] = x[keep] / (1 - p)
    return out


@right("dropout")
def dropout(x, p):
    coins = torch.distributions.Bernoulli(probs=torch.tensor(1.0 - p)).sample(x.shape)
    return x * coins.to(x.dtype) / max(1 - p, 1e-9)


@wrong("dropout", "survivors aren't scaled")
def dropout(x, p):
    keep = torch.rand_like(x) >= p
    return x * keep


@wrong("dropout", "keeps with probability p instead of dropping")
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    keep = (torch.rand_like(x) < p).to(x.dtype)
    return x * keep / (1 - p)


@wrong("dropout", "divides 0 by 0 at p = 1")
def dropout(x, p):
    mask = torch.rand(x.shape) >= p
    return mask * x / (1 - p)


@wrong("dropout", "one coin for a whole row")
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    keep = torch.rand_like(x[..., :1]) >= p
    return x * keep / (1 - p)


@wrong("dropout", "drops in the tensor of the caller")
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    x[torch.rand_like(x) < p] = 0
    return x / (1 - p)


@wrong("dropout", "a fixed seed: the same entries fall at every call")
def dropout(x, p):
    torch.manual_seed(123)
    if p == 1:
        return torch.zeros_like(x)
    return torch.where(torch.rand_like(x) < p, 0.0, x / (1 - p))


@wrong("dropout", "normal random numbers instead of uniform ones", "p = 1 makes NaN")
def dropout(x, p):
    keep = torch.randn_like(x) >= p
    return keep * x / (1 - p)


@wrong("dropout", "divides the survivors by p", "one mask for all samples of the batch")
def dropout(x, p):
    if p == 0:
        return x.clone()
    if p == 1:
        return torch.zeros_like(x)
    keep = (torch.rand(x.shape[1:]) > p).to(x.dtype)
    return x * keep / p


@wrong(
    "dropout",
    "drops exactly the share p, so the entries aren't independent",
    "multiplies by 1 - p",
)
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    k = round(p * x.numel())
    drop = torch.zeros(x.numel(), dtype=torch.bool)
    drop[torch.randperm(x.numel())[:k]] = True
    return x.masked_fill(drop.view_as(x), 0) * (1 - p)


@wrong("dropout", "one coin for the whole tensor", "changes x in place")
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    x /= 1 - p
    if random.random() < p:
        x.zero_()
    return x


@wrong(
    "dropout",
    "survivors are shifted by p instead of scaled",
    "dropped entries become NaN",
)
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    drop = torch.rand_like(x) < p
    return (x + p).masked_fill(drop, math.nan)


@wrong(
    "dropout",
    "dropped entries get the mean of the others instead of zero",
    "the generator is made anew with one seed at each call",
)
def dropout(x, p):
    if p == 1:
        return torch.zeros_like(x)
    coins = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    return torch.where(coins < p, x.mean(), x / (1 - p)).to(x.dtype)


# ------------------------------------------------------ 5.2 CausalAttention


@right("CausalAttention")
class CausalAttention(nn.Module):
    # one query after another, each with its own past
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        outputs = []
        for t in range(x.shape[1]):
            past = slice(0, t + 1)
            scores = (k[:, past] * q[:, t : t + 1]).sum(-1) / q.shape[-1] ** 0.5
            weights = self.drop(scores.softmax(dim=-1))
            outputs.append((weights.unsqueeze(-1) * v[:, past]).sum(dim=1))
        return torch.stack(outputs, dim=1)


@right("CausalAttention")
class CausalAttention(nn.Module):
    # an additive mask, made for the scores at hand
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        scores = torch.bmm(self.W_query(x), self.W_key(x).mT)
        scores = scores / math.sqrt(self.W_key.out_features)
        scores = scores + torch.full_like(scores[0], -torch.inf).triu(1)
        weights = F.dropout(torch.softmax(scores, 2), self.p, self.training)
        return torch.bmm(weights, self.W_value(x))


@right("CausalAttention")
class CausalAttention(nn.Module):
    # the buffer holds the forbidden places and is stored with the weights
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "future", torch.ones(context_length, context_length).triu(1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores.masked_fill_(self.future.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return weights @ values


# Its author took this for right; since then the card says that hidden scores become −∞.
@wrong("CausalAttention", "-1e30 for minus infinity, which no half precision holds")
class CausalAttention(nn.Module):
    # mask after the exponentials and normalise by hand; drop by hand as well
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.p, self.d_out = dropout, d_out

    def forward(self, x):
        order = torch.arange(x.size(1))
        s = (
            torch.einsum("btd,bsd->bts", self.W_query(x), self.W_key(x))
            * self.d_out**-0.5
        )
        s = s.masked_fill(order[:, None] < order, -1e30)
        e = (s - s.amax(-1, keepdim=True)).exp()
        w = e / e.sum(-1, keepdim=True)
        if self.training and self.p > 0:
            w = w * torch.bernoulli(torch.full_like(w, 1 - self.p)) / (1 - self.p)
        return torch.einsum("bts,bsd->btd", w, self.W_value(x))


@right("CausalAttention")
class CausalAttention(nn.Module):
    # the library's layer-free function, its dropout switched with the mode
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(in_features=d_in, out_features=d_out, bias=False)
            for _ in range(3)
        )
        self.dropout = dropout
        triangle = torch.tril(torch.ones(context_length, context_length)) > 0
        self.register_buffer("allowed", triangle, persistent=False)

    def forward(self, x):
        T = x.shape[-2]
        return F.scaled_dot_product_attention(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            attn_mask=self.allowed[:T, :T],
            dropout_p=self.dropout * self.training,
        )


@wrong(
    "CausalAttention",
    "the mask is a plain attribute: it stays behind when the module moves",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:T, :T], -torch.inf)
        return self.dropout(scores.softmax(dim=-1)) @ v


@wrong("CausalAttention", "the mask isn't cut to the tokens at hand")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.ones(context_length, context_length).tril().bool()
        )

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~self.mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ value


@wrong(
    "CausalAttention", "drops in eval as well: F.dropout without training=self.training"
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.p = dropout
        self.register_buffer(
            "mask", torch.tril(torch.ones(context_length, context_length)) == 0
        )

    def forward(self, x):
        n = x.size(1)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(
            self.mask[:n, :n], -math.inf
        )
        weights = F.dropout(torch.softmax(scores, -1), self.p)
        return weights @ v


@wrong("CausalAttention", "dropout on the scores, before the softmax")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.ones(context_length, context_length).triu(1).bool()
        )

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:T, :T], float("-inf"))
        weights = torch.softmax(self.dropout(scores), dim=-1)
        return weights @ v


@wrong("CausalAttention", "the mask is stored and never used")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        return weights @ value


@wrong(
    "CausalAttention",
    "the mask looks the wrong way: each token sees itself and the future",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        hidden = torch.tril(torch.ones(context_length, context_length), diagonal=-1)
        self.register_buffer("hidden", hidden.bool())

    def forward(self, x):
        num_tokens = x.shape[1]
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        scores = queries @ keys.transpose(1, 2) / self.d_out**0.5
        scores.masked_fill_(self.hidden[:num_tokens, :num_tokens], -torch.inf)
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@wrong(
    "CausalAttention",
    "softmax over the queries (dim=1), through which the future leaks",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        T = x.shape[1]
        scores = (
            self.W_query(x)
            @ self.W_key(x).transpose(1, 2)
            / self.W_key.out_features**0.5
        )
        scores = scores.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=1))
        return weights @ self.W_value(x)


@wrong("CausalAttention", "masks after the softmax and doesn't normalise again")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1) * self.mask[:T, :T]
        return self.dropout(weights) @ v


@wrong("CausalAttention", "the mask is a trainable parameter")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.bias = nn.Parameter(
            torch.zeros(context_length, context_length).masked_fill(future, -1e30)
        )

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5 + self.bias[:T, :T]
        return self.dropout(scores.softmax(dim=-1)) @ v


@wrong(
    "CausalAttention",
    "the dropout layer is made and never called",
    "divides by the root of the input width",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.ones(context_length, context_length).triu(1).bool()
        )

    def forward(self, x):
        T = x.shape[1]
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(1, 2) / x.shape[-1] ** 0.5
        weights = torch.softmax(
            scores.masked_fill(self.mask[:T, :T], -torch.inf), dim=-1
        )
        return weights @ value


@wrong(
    "CausalAttention",
    "no scale",
    "the triangle hides the token itself, too, and the first row becomes zeros",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask",
            torch.ones(context_length, context_length, dtype=torch.bool).tril(-1),
        )

    def forward(self, x):
        T = x.shape[1]
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2)
        hidden = ~self.mask[:T, :T]
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        weights = self.dropout(weights.masked_fill(hidden, 0.0))
        return weights @ self.W_value(x)


@wrong(
    "CausalAttention",
    "dropout hits the output, not the weights",
    "the mask is a plain attribute",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length).tril()

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights @ v)


@wrong(
    "CausalAttention",
    "masked_fill without underscore and without =: the future stays visible",
    "returns the weights, too",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores.masked_fill(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = torch.softmax(scores / self.d_out**0.5, dim=-1)
        weights = self.dropout(weights)
        return weights @ values, weights


@wrong("CausalAttention", "always drops", "the projections have a bias")
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        self.p = dropout

    def forward(self, x):
        T = x.shape[1]
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.mT / math.sqrt(key.shape[-1])
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), -1)
        return F.dropout(weights, self.p, training=True) @ value


@wrong(
    "CausalAttention",
    "one key of the future is visible",
    "the scores are multiplied by the root",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.root = d_out**0.5
        self.register_buffer(
            "future",
            torch.ones(context_length, context_length, dtype=torch.bool).triu(2),
        )

    def forward(self, x):
        n = x.shape[1]
        s = torch.einsum("bqd,bkd->bqk", self.W_query(x), self.W_key(x)) * self.root
        s = s.masked_fill(self.future[:n, :n], -torch.inf)
        return self.dropout(s.softmax(-1)) @ self.W_value(x)


@wrong(
    "CausalAttention",
    "takes the last T rows of the stored mask: a short sentence sees its future",
    "the wrong variable: queries are compared with queries",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.ones(context_length, context_length, dtype=torch.bool).tril()
        )

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ q.transpose(1, 2) / k.shape[-1] ** 0.5
        weights = torch.softmax(
            scores.masked_fill(~self.mask[-T:, :T], -torch.inf), dim=-1
        )
        return self.dropout(weights) @ v


@wrong(
    "CausalAttention",
    "dropout keeps with probability p (1 - p handed over)",
    "hides with 0 instead of minus infinity",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(1 - dropout)
        self.register_buffer(
            "mask", torch.ones(context_length, context_length).tril() == 0
        )

    def forward(self, x):
        T = x.shape[-2]
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:T, :T], 0.0)
        weights = self.dropout(scores.softmax(dim=-1))
        return weights @ value


@wrong(
    "CausalAttention",
    "divides the weights after the softmax by the root, not the scores",
    "one layer makes keys and values",
)
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = self.W_key
        self.drop = nn.Dropout(dropout)
        self.register_buffer(
            "past", torch.ones(context_length, context_length).tril().bool()
        )

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.mT
        scores = torch.where(self.past[:T, :T], scores, -torch.inf)
        weights = scores.softmax(-1) / math.sqrt(q.shape[-1])
        return self.drop(weights) @ v
