"""Answers to one half of the exercises, as their authors wrote them."""

from torch import nn
import math
import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import right, wrong


@right
def merge(ids, pair, new_id):
    # two stacks: `todo` holds the rest, its next id on top
    todo, done = ids[::-1], []
    while todo:
        first = todo.pop()
        if todo and (first, todo[-1]) == tuple(pair):
            todo.pop()
            first = new_id
        done.append(first)
    return done


# works in the list of the caller
# and goes from right to left, so 1 1 1 is merged at the right end
@wrong("right-to-left", "input-changed")
def merge(ids, pair, new_id):
    i = len(ids) - 2
    while i >= 0:
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
            i -= 2
        else:
            i -= 1
    return ids


@right
def sliding_windows(ids, context_length, stride):
    both = np.lib.stride_tricks.sliding_window_view(np.array(ids), context_length + 1)
    both = torch.from_numpy(both[::stride].copy())
    return both[:, :-1], both[:, 1:]


# steps by the context length, the stride is ignored and returns targets before inputs
@wrong("context-for-stride", "parts-swapped")
def sliding_windows(ids, context_length, stride):
    rows = [
        ids[i : i + context_length + 1]
        for i in range(0, len(ids) - context_length, context_length)
    ]
    rows = torch.tensor(rows, dtype=torch.long).reshape(-1, context_length + 1)
    return rows[:, 1:], rows[:, :-1]


@right
def embed(ids, table):
    # nn.Linear multiplies with the transposed weight
    hot = F.one_hot(ids, table.size(0)).type_as(table)
    return F.linear(hot, table.T)


# looks up columns: the table is transposed and its width taken for the vocabulary
@wrong("one-change")
def embed(ids, table):
    rows = table.T
    return F.one_hot(ids, num_classes=rows.shape[0]).to(rows.dtype) @ rows


# counts the ids from 1 and computes in float32, so the table's type is lost
@wrong("ids-from-one", "other-precision")
def embed(ids, table):
    rows = torch.arange(1, table.shape[0] + 1)
    one_hot = (ids[..., None] == rows).float()
    return one_hot @ table.float()


@right
def sinusoidal_positions(num_positions, d_model):
    # a complex exponential, imaginary part first
    speed = 10000.0 ** -(torch.arange(0, d_model, 2) / d_model)
    turn = torch.polar(
        torch.ones(()), torch.outer(torch.arange(num_positions).float(), speed)
    )
    return torch.view_as_real(turn).flip(-1).reshape(num_positions, d_model)


# i / D instead of 2i / D and cosines stand on even features
@wrong("sine-and-cosine-swapped", "exponent-halved")
def sinusoidal_positions(num_positions, d_model):
    exponent = torch.arange(d_model // 2) / d_model
    angles = torch.outer(torch.arange(num_positions).float(), 10000.0**-exponent)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).reshape(
        num_positions, d_model
    )


@right
def attention_weights(x):
    # the scores are symmetric, so a softmax down the columns needs one transpose
    return F.softmax(torch.mm(x, x.t()), dim=0).t()


# the diagonal is hidden: a token doesn't see itself and normalises the columns
@wrong("softmax-over-queries", "diagonal-masked")
def attention_weights(x):
    scores = torch.matmul(x, x.transpose(0, 1))
    scores.fill_diagonal_(-1e4)
    return F.softmax(scores, 0)


@right
def context_vectors(x):
    # everything on its side: tokens are columns, and so are the weights of a query
    tokens = x.T
    return (tokens @ torch.softmax(tokens.T @ tokens, dim=0)).T


# scaled by the root of the width and adds the token itself on top
@wrong("scaled", "tokens-added")
def context_vectors(x):
    w = torch.softmax(x @ x.T / x.shape[-1] ** 0.5, dim=-1)
    return x + w @ x


@right
def softmax(scores, dim=-1):
    out = scores.clone()
    out -= out.max(dim, keepdim=True)[0].detach()
    out = out.exp()
    return out / torch.sum(out, dim, keepdim=True)


# subtracts the mean instead of the maximum
# and the sum lost its axis, unsqueezed at the wrong place
@wrong("mean-subtracted", "keepdim-missing")
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.mean(dim, keepdim=True))
    return e / e.sum(dim).unsqueeze(0)


@right
def scaled_dot_product_attention(query, key, value):
    # keys stand in the rows; everything is turned round at the end
    scores = key @ query.mT * query.shape[-1] ** -0.5
    upright = scores.softmax(dim=-2)
    return (value.mT @ upright).mT, upright.mT


# divides by d_k without the root and the output is made of the keys
@wrong("divided-by-width", "keys-for-values")
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    weights = torch.softmax(scores, dim=-1)
    return weights @ key, weights


@right
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


# forward runs without gradients, so nothing can be trained
# and a causal mask that this layer should not have
@wrong("future-hidden", "no-gradient")
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


@right
def causal_mask(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    rows, columns = torch.tril_indices(num_tokens, num_tokens)
    mask[rows, columns] = True
    return mask


# True where attention is forbidden and an axis for the batch in front
@wrong("polarity-inverted", "axis-added")
def causal_mask(num_tokens):
    return torch.ones(1, num_tokens, num_tokens).triu(1).bool()


@right
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


@right
def masked_softmax(scores, mask):
    # exp(score - log of the allowed sum), with the log taken as 0 in empty rows
    s = scores.masked_fill(~mask, -math.inf)
    log_sum = torch.logsumexp(s, dim=-1, keepdim=True)
    return torch.exp(s - log_sum.masked_fill(log_sum == -math.inf, 0))


# the result of masked_fill is lost, so nothing is hidden
# and softmax with dim=1, a wrong axis in a batch
@wrong("mask-after-softmax", "fixed-axis")
def masked_softmax(scores, mask):
    scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=1)
    return weights.masked_fill(~mask, 0.0)


@right
def padding_mask(lengths, num_tokens):
    # count the ends already passed
    ends = F.one_hot(torch.as_tensor(lengths).long(), num_tokens + 1)
    return ends.cumsum(1)[:, :num_tokens].eq(0)


# (T, B): the lengths stay in the row
# and strictly greater is turned into at least, on the wrong side
@wrong("one-too-many", "axes-swapped")
def padding_mask(lengths, num_tokens):
    return torch.as_tensor(lengths).ge(torch.arange(num_tokens)[:, None])


@right
def split_heads(x, num_heads):
    width, rest = divmod(x.size(2), num_heads)
    if rest != 0:
        raise ValueError("not divisible")
    return x.unfold(2, width, width).permute(0, 2, 1, 3)


# head h gets features h, h+H, ...
# and nothing is checked: left-over features make the heads of unequal width, cut to
# the shortest
@wrong("features-interleaved", "width-not-divided")
def split_heads(x, num_heads):
    K = x.shape[-1] // num_heads
    return torch.stack([x[..., h::num_heads][..., :K] for h in range(num_heads)], dim=1)


@right
def merge_heads(x):
    B, H, T, K = x.shape
    out = x.new_empty(B, T, H, K)
    out.copy_(x.movedim(1, 2))
    return out.view(B, T, H * K)


# transposes tokens and features (2, 3) instead of heads and tokens
# and flattens from axis 1
@wrong("wrong-axes-transposed", "axes-merged")
def merge_heads(x):
    return x.transpose(2, 3).flatten(1)


@right
class MultiHeadAttention(nn.Module):
    # one head after another, on slices of the projections
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads don't fit")
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.drop = nn.Dropout(dropout)
        self.K = d_out // num_heads

    def forward(self, x):
        qs, ks, vs = (
            w(x).split(self.K, dim=-1) for w in (self.W_query, self.W_key, self.W_value)
        )
        future = torch.ones(
            x.shape[1], x.shape[1], dtype=torch.bool, device=x.device
        ).triu(1)
        heads = []
        for q, k, v in zip(qs, ks, vs):
            scores = (q @ k.mT / self.K**0.5).masked_fill(future, -torch.inf)
            heads.append(self.drop(scores.softmax(-1)) @ v)
        return self.out_proj(torch.cat(heads, dim=-1))


# the future is visible and the past hidden
# and dropout on the output of the heads instead of the weights
@wrong("upper-for-lower", "dropout-not-on-weights")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out} % {num_heads} is not 0")
        self.H, self.K = num_heads, d_out // num_heads
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def split(self, t):
        return t.reshape(*t.shape[:2], self.H, self.K).permute(0, 2, 1, 3)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (
            self.split(self.W_query(x)),
            self.split(self.W_key(x)),
            self.split(self.W_value(x)),
        )
        scores = torch.einsum("bhqk,bhsk->bhqs", q, k) / math.sqrt(self.K)
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).triu()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-1)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        out = F.dropout(out, self.p, training=self.training)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@right
def apply_rope(x, positions, base=10000.0):
    # complex numbers: a turn is a product
    D = x.shape[-1]
    speed = base ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    angle = positions.to(x.dtype)[:, None] * speed
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], D // 2, 2).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(
        -2
    )


# adds the sinusoids to x instead of turning it and positions count from 1
@wrong("positions-from-one", "added-not-rotated")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = (positions + 1)[:, None].to(x.dtype) * base ** (
        -torch.arange(0, D, 2).to(x.dtype) / D
    )
    return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


@right
def alibi_bias(num_heads, num_tokens):
    # distances as a running sum of ones below the diagonal
    distance = torch.ones(num_tokens, num_tokens).tril(-1).cumsum(0).tril(-1)
    slopes = torch.exp2(torch.linspace(-8 / num_heads, -8, num_heads))
    return -torch.einsum("h,ij->hij", slopes, distance)


# heads in reverse: the first gets the gentlest slope
# and one distance too many: the token itself is punished, too
@wrong("slopes-reversed", "distance-from-one")
def alibi_bias(num_heads, num_tokens):
    slopes = torch.pow(2.0, -8 * torch.arange(1, num_heads + 1) / num_heads)
    p = torch.arange(num_tokens)
    return -slopes.flip(0)[:, None, None] * (p[:, None] - p + 1)
