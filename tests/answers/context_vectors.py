"""03 Context vectors: 3.1 attention_weights, 3.2 context_vectors, 3.3 softmax."""

import math

import torch
import torch.nn.functional as F

from tests.answers import right, wrong

# -------------------------------------------------------------- 3.3 softmax


@right("softmax")
def softmax(scores, dim=-1):
    return torch.exp(scores - torch.logsumexp(scores, dim=dim, keepdim=True))


@right("softmax")
def softmax(scores, dim=-1):
    # the maximum from sorting, the sum as a product with ones
    s = scores.movedim(dim, -1)
    e = torch.exp(s - s.sort(dim=-1).values[..., -1:])
    ones = torch.ones(s.shape[-1], 1, dtype=s.dtype)
    return (e / (e @ ones)).movedim(-1, dim)


@right("softmax")
def softmax(scores, dim=-1):
    s = scores.transpose(0, dim) if scores.dim() else scores
    biggest, _ = s.max(dim=0)
    e = (s - biggest).exp()
    e = e / e.sum(0)
    return e.transpose(0, dim) if scores.dim() else e


@right("softmax")
def softmax(scores, dim=-1):
    out = scores.clone()
    out -= out.max(dim, keepdim=True)[0].detach()
    out = out.exp()
    return out / torch.sum(out, dim, keepdim=True)


@wrong("softmax", "doesn't subtract the maximum: large scores overflow")
def softmax(scores, dim=-1):
    e = torch.exp(scores)
    return e / e.sum(dim=dim, keepdim=True)


@wrong("softmax", "one maximum for the whole tensor: rows far below it become 0/0")
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.max())
    return e / torch.sum(e, dim=dim, keepdim=True)


@wrong("softmax", "the sum forgets dim, so all rows together sum to 1")
def softmax(scores, dim=-1):
    highest = scores.max(dim=dim, keepdim=True).values
    e = (scores - highest).exp()
    return e / e.sum()


@wrong("softmax", "always along the last axis, dim is ignored")
def softmax(scores, dim=-1):
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    e = torch.exp(shifted)
    return e / e.sum(dim=-1, keepdim=True)


@wrong("softmax", "changes the scores of the caller")
def softmax(scores, dim=-1):
    scores -= scores.amax(dim, keepdim=True)
    e = torch.exp(scores)
    return e / e.sum(dim, keepdim=True)


@wrong(
    "softmax",
    "subtracts the mean instead of the maximum",
    "the sum lost its axis, unsqueezed at the wrong place",
)
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.mean(dim, keepdim=True))
    return e / e.sum(dim).unsqueeze(0)


@wrong(
    "softmax", "the maximum is added, not subtracted", "works in place on the scores"
)
def softmax(scores, dim=-1):
    e = torch.exp(scores.add_(scores.amax(dim=dim, keepdim=True)))
    return e / e.sum(dim=dim, keepdim=True)


@wrong("softmax", "the default axis is 0", "no maximum is taken away")
def softmax(scores, dim=0):
    e = torch.exp(scores)
    return e / torch.sum(e, dim=dim, keepdim=True)


@wrong("softmax", "base 2 instead of e", "sums over everything")
def softmax(scores, dim=-1):
    e = torch.exp2(scores - scores.amax(dim, keepdim=True))
    return e / e.sum()


@wrong(
    "softmax",
    "takes the maximum of the absolute values, so very negative scores underflow to 0/0",
    "returns the logarithm of the weights",
)
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.abs().amax(dim=dim, keepdim=True))
    return (e / e.sum(dim=dim, keepdim=True)).log()


@wrong(
    "softmax",
    "adds 1e-3 to the denominator against a division by zero, so the weights don't sum to 1",
    "dim isn't used for the maximum",
)
def softmax(scores, dim=-1):
    top = scores.max()
    e = torch.exp(scores - top)
    total = e.sum(dim=dim, keepdim=True) + 1e-3
    return e / total


# ---------------------------------------------------- 3.1 attention_weights


@right("attention_weights")
def attention_weights(x):
    return F.linear(x, x).softmax(
        1
    )  # F.linear multiplies with the transposed second one


@right("attention_weights")
def attention_weights(x):
    scores = torch.einsum("ij,kj->ik", x, x)
    return torch.exp(scores - torch.logsumexp(scores, 1).unsqueeze(1))


@right("attention_weights")
def attention_weights(x):
    # the scores are symmetric, so a softmax down the columns needs one transpose
    return F.softmax(torch.mm(x, x.t()), dim=0).t()


@wrong(
    "attention_weights", "softmax down the columns: columns sum to 1 instead of rows"
)
def attention_weights(x):
    scores = x @ x.T
    return torch.softmax(scores, dim=0)


@wrong("attention_weights", "scales by the root of the width, which is 04's affair")
def attention_weights(x):
    return torch.softmax(x @ x.T / math.sqrt(x.shape[1]), dim=-1)


@wrong("attention_weights", "cosine similarity instead of plain dot products")
def attention_weights(x):
    unit = F.normalize(x, dim=-1)
    return torch.softmax(unit @ unit.T, dim=-1)


@wrong("attention_weights", "divides by the plain sum of the scores, no exponentials")
def attention_weights(x):
    scores = x @ x.T
    return scores / scores.sum(dim=-1, keepdim=True)


@wrong(
    "attention_weights",
    "the diagonal is hidden: a token doesn't see itself",
    "normalises the columns",
)
def attention_weights(x):
    scores = torch.matmul(x, x.transpose(0, 1))
    scores.fill_diagonal_(-1e4)
    return F.softmax(scores, 0)


@wrong(
    "attention_weights",
    "softmax over all pairs at once",
    "divides the scores by the number of tokens",
)
def attention_weights(x):
    scores = (x @ x.T) / len(x)
    return scores.flatten().softmax(0).view_as(scores)


@wrong(
    "attention_weights",
    "only the lower triangle is kept, so later tokens have a score of 0",
    "minus in front of the score: the least similar gets most",
)
def attention_weights(x):
    scores = -(x @ x.T)
    scores = torch.tril(scores)
    return torch.softmax(scores, dim=-1)


@wrong(
    "attention_weights",
    "x is centred first, so the scores aren't the plain dot products",
    "returns the scores' logarithmic softmax",
)
def attention_weights(x):
    y = x - x.mean(0)
    return torch.log_softmax(y @ y.T, dim=-1)


# ------------------------------------------------------ 3.2 context_vectors


@right("context_vectors")
def context_vectors(x):
    # everything on its side: tokens are columns, and so are the weights of a query
    tokens = x.T
    return (tokens @ torch.softmax(tokens.T @ tokens, dim=0)).T


@right("context_vectors")
def context_vectors(x):
    return F.scaled_dot_product_attention(x[None], x[None], x[None], scale=1.0)[0]


@right("context_vectors")
def context_vectors(x):
    weights = torch.einsum("id,jd->ij", x, x).softmax(-1)
    return torch.einsum("ij,jd->id", weights, x)


@wrong("context_vectors", "the weights are transposed: column i instead of row i")
def context_vectors(x):
    weights = torch.softmax(x @ x.T, dim=1)
    return weights.T @ x


@wrong(
    "context_vectors",
    "each token is only multiplied by its own weight, nothing is summed",
)
def context_vectors(x):
    return x * (x @ x.T).softmax(-1).diagonal()[:, None]


@wrong("context_vectors", "returns the weights beside the context vectors")
def context_vectors(x):
    w = torch.softmax(torch.matmul(x, x.T), -1)
    return w @ x, w


@wrong("context_vectors", "takes the mean over the tokens where the sum was wanted")
def context_vectors(x):
    w = torch.softmax(x @ x.T, dim=-1)
    return (w[:, :, None] * x[None, :, :]).mean(dim=1)


@wrong(
    "context_vectors", "scaled by the root of the width", "adds the token itself on top"
)
def context_vectors(x):
    w = torch.softmax(x @ x.T / x.shape[-1] ** 0.5, dim=-1)
    return x + w @ x


@wrong(
    "context_vectors",
    "the softmax is forgotten: the bare scores multiply the tokens",
    "keys are in reverse order",
)
def context_vectors(x):
    scores = x @ x.flip(0).T
    return scores @ x


@wrong(
    "context_vectors",
    "softmax along the columns",
    "the running sum isn't reset for the next query",
)
def context_vectors(x):
    w = torch.softmax(x @ x.T, dim=0)
    out = torch.zeros_like(x)
    total = torch.zeros_like(x[0])
    for i in range(len(x)):
        for j in range(len(x)):
            total = total + w[i, j] * x[j]
        out[i] = total
    return out


@wrong(
    "context_vectors",
    "writes each context vector into x while later queries still need the old tokens",
    "the sum leaves out the last token",
)
def context_vectors(x):
    T, D = x.shape
    out = x
    for i in range(T):
        w = torch.softmax(x @ x[i], dim=0)
        total = torch.zeros(D, dtype=x.dtype)
        for j in range(T - 1):
            total += w[j] * x[j]
        out[i] = total
    return out
