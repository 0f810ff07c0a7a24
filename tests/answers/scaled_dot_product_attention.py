"""04 Scaled dot-product attention: 4.1 the function, 4.2 SelfAttention."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# ----------------------------------------- 4.1 scaled_dot_product_attention


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    # the library's function twice: the second time it averages the rows of an identity
    S = key.shape[-2]
    eye = torch.eye(S, dtype=value.dtype).expand(*key.shape[:-2], S, S)
    lead = query.dim() < 3
    if lead:
        query, key, value, eye = query[None], key[None], value[None], eye[None]
    output = F.scaled_dot_product_attention(query, key, value)
    weights = F.scaled_dot_product_attention(query, key, eye)
    return (output[0], weights[0]) if lead else (output, weights)


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    # half of the root on either side keeps the numbers small
    r = query.size(-1) ** 0.25
    scores = torch.einsum("...td,...sd->...ts", query / r, key / r)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    # broadcasting instead of matrix products: (..., T, 1, d) meets (..., 1, S, d)
    scores = (query[..., :, None, :] * key[..., None, :, :]).sum(-1) / math.sqrt(
        key.size(-1)
    )
    weights = scores.softmax(-1)
    output = (weights[..., None] * value[..., None, :, :]).sum(-2)
    return output, weights


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    # keys stand in the rows; everything is turned round at the end
    scores = key @ query.mT * query.shape[-1] ** -0.5
    upright = scores.softmax(dim=-2)
    return (value.mT @ upright).mT, upright.mT


@right("scaled_dot_product_attention")
def scaled_dot_product_attention(query, key, value):
    *front, T, d = query.shape
    S, d_v = value.shape[-2:]
    q, k, v = query.reshape(-1, T, d), key.reshape(-1, S, d), value.reshape(-1, S, d_v)
    zero = torch.zeros(1, 1, 1, dtype=q.dtype)
    scores = torch.baddbmm(zero, q, k.transpose(1, 2), alpha=1 / d**0.5)
    e = (scores - scores.amax(2, True)).exp()
    w = e / e.sum(2, keepdim=True)
    return w.bmm(v).view(*front, T, d_v), w.view(*front, T, S)


@wrong("scaled_dot_product_attention", "no scale at all")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "precedence: ** binds first, so this divides by d_k and by 2",
)
def scaled_dot_product_attention(query, key, value):
    d_k = query.shape[-1]
    weights = torch.softmax(query @ key.transpose(-2, -1) / d_k**1 / 2, dim=-1)
    return weights @ value, weights


@wrong("scaled_dot_product_attention", "the root is taken of the number of keys")
def scaled_dot_product_attention(query, key, value):
    scale = 1 / math.sqrt(key.shape[-2])
    weights = (scale * query @ key.mT).softmax(dim=-1)
    return weights @ value, weights


@wrong("scaled_dot_product_attention", "softmax over the queries instead of the keys")
def scaled_dot_product_attention(query, key, value):
    scores = torch.matmul(query, key.transpose(-1, -2))
    scores = scores / query.size(-1) ** 0.5
    weights = torch.softmax(scores, dim=-2)
    return torch.matmul(weights, value), weights


@wrong(
    "scaled_dot_product_attention", "dim=1 is the last axis for a single sentence alone"
)
def scaled_dot_product_attention(query, key, value):
    d_k = key.shape[-1]
    scores = query @ key.transpose(-2, -1) / d_k**0.5
    weights = F.softmax(scores, dim=1)
    return weights @ value, weights


@wrong("scaled_dot_product_attention", "scales the query of the caller in place")
def scaled_dot_product_attention(query, key, value):
    query /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "the width is read from value, which may be of another width",
)
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / value.shape[-1] ** 0.5
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


@wrong("scaled_dot_product_attention", "returns the scores in place of the weights")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, scores


@wrong(
    "scaled_dot_product_attention",
    "multiplies by the root instead of dividing",
    "returns weights first, output second",
)
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights, weights @ value


@wrong(
    "scaled_dot_product_attention",
    "the softmax comes before the scale, so rows sum to 1/sqrt(d_k)",
    "runs down the queries",
)
def scaled_dot_product_attention(query, key, value):
    d_k = query.shape[-1]
    scores = query @ key.mT
    weights = torch.softmax(scores, dim=-2) / d_k**0.5
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "divides by d_k without the root",
    "the output is made of the keys",
)
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return weights @ key, weights


@wrong(
    "scaled_dot_product_attention",
    "key.T turns all axes round, so only a single sentence works",
    "forgets the scale",
)
def scaled_dot_product_attention(query, key, value):
    keys = key.permute(*range(key.dim() - 1, -1, -1))
    scores = query @ keys
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "the exponentials are summed over everything in the row of the batch",
    "no maximum is subtracted in the hand-made softmax, large scores overflow",
)
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    e = scores.exp()
    weights = e / e.sum(dim=(-2, -1), keepdim=True)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "rounds the root down to a whole number",
    "a causal mask that nobody asked for",
)
def scaled_dot_product_attention(query, key, value):
    d_k = query.shape[-1]
    scores = query @ key.mT / int(math.sqrt(d_k))
    keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = scores.masked_fill(~keep, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@wrong(
    "scaled_dot_product_attention",
    "scores of keys with keys: the wrong variable on the left",
    "softmax with dim=0, the batch where there is one",
)
def scaled_dot_product_attention(query, key, value):
    key_ = key[..., : query.shape[-2], :]
    scores = torch.matmul(key_, key.transpose(-2, -1)) / math.sqrt(key.shape[-1])
    weights = torch.softmax(scores, dim=0)
    return torch.matmul(weights, value), weights


@wrong(
    "scaled_dot_product_attention",
    "returns the output alone",
    "the scale is the fourth root, because both query and scores were meant",
)
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.25
    weights = torch.softmax(scores, dim=-1)
    return weights @ value


# -------------------------------------------------------- 4.2 SelfAttention


@right("SelfAttention")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=False))

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.children())
        w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
        return w @ v


@right("SelfAttention")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.scale = d_out**-0.5

    def forward(self, x):
        # query and key matrices as one bilinear form; the average is projected at the end
        form = self.W_query.weight.T @ self.W_key.weight * self.scale
        weights = (x @ form @ x.mT).softmax(dim=-1)
        return self.W_value(weights @ x)


@right("SelfAttention")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        make = lambda: nn.Linear(d_in, d_out, bias=False)  # noqa: E731
        self.W_query, self.W_key, self.W_value = make(), make(), make()

    def forward(self, x):
        if x.dim() == 2:
            return self.forward(x.unsqueeze(0)).squeeze(0)
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )


@right("SelfAttention")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        stacked = torch.cat(
            [self.W_query.weight, self.W_key.weight, self.W_value.weight]
        )
        q, k, v = F.linear(x, stacked).chunk(3, dim=-1)
        scores = torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(q.size(-1))
        return torch.einsum("...ts,...sd->...td", scores.softmax(-1), v)


@wrong("SelfAttention", "returns output and weights")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(
            query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5, dim=-1
        )
        return weights @ value, weights


@wrong("SelfAttention", "divides by the root of the input width")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(-2, -1)
        return torch.softmax(scores / math.sqrt(x.shape[-1]), dim=-1) @ values


@wrong("SelfAttention", "the projections have a bias")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return w @ v


@wrong("SelfAttention", "the values are made by W_key")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query = self.W_query(x)
        key = self.W_key(x)
        value = self.W_key(x)  # values
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return scores.softmax(-1) @ value


@wrong("SelfAttention", "transpose(0, 1): fine for one sentence, wrong for a batch")
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        scores = q @ k.transpose(0, 1) / k.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ v


@wrong(
    "SelfAttention", "the averages are of x itself, W_value is never used", "no scale"
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query, key = self.W_query(x), self.W_key(x)
        weights = (query @ key.mT).softmax(dim=-1)
        return weights @ x


@wrong(
    "SelfAttention",
    "key and query swapped in the scores",
    "the softmax runs over the wrong axis of a batch (dim=1)",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.d_out = d_out

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = key @ query.transpose(-2, -1) / self.d_out**0.5
        weights = torch.softmax(scores, dim=1)
        return weights @ value


@wrong(
    "SelfAttention",
    "one layer shared by query and key",
    "divides by d_out without the root",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = self.W_query
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(q @ k.transpose(-2, -1) / self.d_out, dim=-1) @ v


@wrong(
    "SelfAttention",
    "W_value is made before W_key, so a seed gives other numbers",
    "adds x's projection back on: a residual that wasn't asked for",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(
            query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5, dim=-1
        )
        return value + weights @ value


@wrong(
    "SelfAttention",
    "forward runs without gradients, so nothing can be trained",
    "a causal mask that this layer should not have",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        with torch.no_grad():
            q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            future = torch.ones(x.shape[-2], x.shape[-2]).triu(1).bool()
            scores = scores.masked_fill(future, float("-inf"))
            return scores.softmax(-1) @ v


@wrong(
    "SelfAttention",
    "the softmax is left out",
    "the weights are transposed before the average",
)
class SelfAttention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.scale = math.sqrt(d_out)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(-2, -1)
        weights = scores / self.scale
        return weights.transpose(-2, -1) @ v
