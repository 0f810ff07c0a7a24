"""06 Multi-head attention: 6.1 split_heads, 6.2 merge_heads, 6.3 MultiHeadAttention."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import right, wrong

# ---------------------------------------------------------- 6.1 split_heads


@right("split_heads")
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} features can't be shared by {num_heads} heads")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right("split_heads")
def split_heads(x, num_heads):
    width, rest = divmod(x.size(2), num_heads)
    if rest != 0:
        raise ValueError("not divisible")
    return x.unfold(2, width, width).permute(0, 2, 1, 3)


@right("split_heads")
def split_heads(x, num_heads):
    B, T, D = x.shape
    K = D // num_heads
    if K * num_heads != D:
        raise ValueError((D, num_heads))
    heads = torch.empty(B, num_heads, T, K, dtype=x.dtype)
    for h in range(num_heads):
        heads[:, h] = x[:, :, h * K : (h + 1) * K]
    return heads


@wrong("split_heads", "view alone, straight to (B, H, T, K): tokens are mixed")
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError("D must be divisible by num_heads")
    return x.view(B, num_heads, T, D // num_heads)


@wrong("split_heads", "stops at (B, T, H, K): the transpose is missing")
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    return x.view(x.shape[0], x.shape[1], num_heads, -1)


@wrong("split_heads", "no ValueError: the features that are left over are cut off")
def split_heads(x, num_heads):
    B, T, D = x.shape
    K = D // num_heads
    x = x[..., : K * num_heads]
    return x.reshape(B, T, num_heads, K).transpose(1, 2)


@wrong(
    "split_heads", "the heads take every H-th feature: K and H exchanged in the view"
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError("num_heads must divide D")
    K = D // num_heads
    return x.view(B, T, K, num_heads).permute(0, 3, 1, 2)


@wrong("split_heads", "an assert instead of the ValueError")
def split_heads(x, num_heads):
    b, t, D = x.shape
    assert D % num_heads == 0, "not divisible"
    x = x.view(b, t, num_heads, D // num_heads)
    return x.transpose(1, 2)


@wrong(
    "split_heads",
    "view to the final shape without a transpose",
    "the check only asks whether there are fewer features than heads",
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D < num_heads:
        raise ValueError("more heads than features")
    K = D // num_heads
    return x.view(B, num_heads, T, K)


@wrong(
    "split_heads",
    "the wrong pair of axes changes places: (B, T, K, H)",
    "raises a TypeError instead of a ValueError",
)
def split_heads(x, num_heads):
    B, T, D = x.shape
    if D % num_heads:
        raise TypeError("d_out does not divide")
    return x.reshape(B, T, num_heads, D // num_heads).transpose(2, 3)


@wrong(
    "split_heads",
    "head h gets features h, h+H, ...",
    "nothing is checked: left-over features make the heads of unequal width, cut to the shortest",
)
def split_heads(x, num_heads):
    K = x.shape[-1] // num_heads
    return torch.stack([x[..., h::num_heads][..., :K] for h in range(num_heads)], dim=1)


@wrong("split_heads", "the heads come in front of the batch", "in reverse order")
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    parts = list(torch.split(x, x.shape[-1] // num_heads, dim=-1))
    return torch.stack(list(reversed(parts)), dim=0)


# ---------------------------------------------------------- 6.2 merge_heads


@right("merge_heads")
def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


@right("merge_heads")
def merge_heads(x):
    B, H, T, K = x.shape
    out = x.new_empty(B, T, H, K)
    out.copy_(x.movedim(1, 2))
    return out.view(B, T, H * K)


@right("merge_heads")
def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=2)


@wrong("merge_heads", "reshape without the transpose: tokens are mixed")
def merge_heads(x):
    B, H, T, K = x.shape
    return x.reshape(B, T, H * K)


@wrong("merge_heads", "joins tokens and heads instead of heads and features")
def merge_heads(x):
    return x.transpose(1, 2).flatten(1, 2)


@wrong("merge_heads", "the features are interleaved: feature first, then head")
def merge_heads(x):
    B, H, T, K = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, H * K)


@wrong(
    "merge_heads",
    "view after transpose: the numbers aren't in order in memory, an error",
)
def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).view(B, T, H * K)


@wrong(
    "merge_heads",
    "the heads are joined in reverse order",
    "along the tokens instead of the features",
)
def merge_heads(x):
    return torch.cat(x.flip(1).unbind(1), dim=1)


@wrong(
    "merge_heads",
    "transposes tokens and features (2, 3) instead of heads and tokens",
    "flattens from axis 1",
)
def merge_heads(x):
    return x.transpose(2, 3).flatten(1)


# --------------------------------------------------- 6.3 MultiHeadAttention


@right("MultiHeadAttention")
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


@right("MultiHeadAttention")
class MultiHeadAttention(nn.Module):
    # heads are folded into the batch
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.H, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def _fold(self, t):
        B, T, D = t.shape
        return t.view(B, T, self.H, -1).transpose(1, 2).reshape(B * self.H, T, -1)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (
            self._fold(self.W_query(x)),
            self._fold(self.W_key(x)),
            self._fold(self.W_value(x)),
        )
        bias = torch.zeros(T, T, dtype=x.dtype).masked_fill(
            torch.ones(T, T).triu(1) == 1, -torch.inf
        )
        weights = torch.baddbmm(
            bias, q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5
        ).softmax(-1)
        out = F.dropout(weights, self.p, self.training) @ v
        return self.out_proj(out.view(B, self.H, T, -1).permute(0, 2, 1, 3).flatten(2))


@right("MultiHeadAttention")
class MultiHeadAttention(nn.Module):
    # out_proj is applied head by head and the results are summed
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        if d_out % num_heads:
            raise ValueError
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask",
            torch.ones(context_length, context_length).tril() == 0,
            persistent=False,
        )

    def forward(self, x):
        T, H = x.shape[1], self.num_heads
        split = lambda t: t.unflatten(-1, (H, -1))  # noqa: E731
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        s = torch.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(q.size(-1))
        w = self.dropout(s.masked_fill(self.mask[:T, :T], -torch.inf).softmax(-1))
        context = torch.einsum("bhqs,bshk->bqhk", w, v)
        return (
            torch.einsum("bqhk,ohk->bqo", context, split(self.out_proj.weight))
            + self.out_proj.bias
        )


@right("MultiHeadAttention")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.head_width, left = divmod(d_out, num_heads)
        if left:
            raise ValueError(f"{d_out} features for {num_heads} heads leave {left}")
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.rate = dropout

    def forward(self, x):
        def heads(layer):
            return layer(x).unfold(-1, self.head_width, self.head_width).transpose(1, 2)

        out = F.scaled_dot_product_attention(
            heads(self.W_query),
            heads(self.W_key),
            heads(self.W_value),
            is_causal=True,
            dropout_p=self.rate if self.training else 0,
        )
        return self.out_proj(torch.cat(out.unbind(1), dim=-1))


@right("MultiHeadAttention")
class MultiHeadAttention(nn.Module):
    # the general function of the library, fed with our weights
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out // num_heads * num_heads != d_out:
            raise ValueError("d_out / num_heads must be whole")
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.h, self.d, self.drop = num_heads, d_out, dropout

    def forward(self, x):
        q, k, v = (
            layer(x).transpose(0, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        eye = torch.eye(self.d, dtype=x.dtype, device=x.device)
        hidden = torch.ones(len(q), len(q), dtype=torch.bool, device=x.device).triu(1)
        out, _ = F.multi_head_attention_forward(
            q,
            k,
            v,
            self.d,
            self.h,
            None,
            None,
            None,
            None,
            False,
            self.drop,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            need_weights=False,
            attn_mask=hidden,
            use_separate_proj_weight=True,
            q_proj_weight=eye,
            k_proj_weight=eye,
            v_proj_weight=eye,
        )
        return out.transpose(0, 1)


@wrong("MultiHeadAttention", "scales by the root of d_out, not of one head's width")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.d_out**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong("MultiHeadAttention", "out_proj is made and never called")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return context


@wrong(
    "MultiHeadAttention",
    "the view after attention without transposing back scrambles tokens and heads",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = weights @ values
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong(
    "MultiHeadAttention",
    "values go straight to (B, H, T, K) by view, without a transpose",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, self.num_heads, num_tokens, self.head_dim)
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong("MultiHeadAttention", "the mask isn't a buffer")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong("MultiHeadAttention", "F.dropout without training: drops in eval, too")
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
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-1)
        weights = F.dropout(weights, self.p)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    "MultiHeadAttention",
    "view straight after the transpose, without contiguous: an error",
)
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
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-1)
        weights = F.dropout(weights, self.p, training=self.training)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).view(B, T, -1))


@wrong("MultiHeadAttention", "the softmax runs over the heads (dim=1)")
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
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -1e9), dim=1)
        weights = F.dropout(weights, self.p, training=self.training)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    "MultiHeadAttention",
    "cat along the tokens' values is replaced by a mean: all heads are averaged and repeated",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        causal = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x):
        T = x.shape[1]
        heads = []
        queries = self.W_query(x).chunk(self.num_heads, dim=-1)
        keys = self.W_key(x).chunk(self.num_heads, dim=-1)
        values = self.W_value(x).chunk(self.num_heads, dim=-1)
        for q, k, v in zip(queries, keys, values):
            scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
            scores = scores.masked_fill(~self.causal[:T, :T], float("-inf"))
            heads.append(self.drop(scores.softmax(dim=-1)) @ v)
        return self.out_proj(torch.stack(heads).mean(0).repeat(1, 1, self.num_heads))


@wrong("MultiHeadAttention", "no mask in the loop")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        causal = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x):
        T = x.shape[1]
        heads = []
        queries = self.W_query(x).chunk(self.num_heads, dim=-1)
        keys = self.W_key(x).chunk(self.num_heads, dim=-1)
        values = self.W_value(x).chunk(self.num_heads, dim=-1)
        for q, k, v in zip(queries, keys, values):
            scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
            heads.append(self.drop(scores.softmax(dim=-1)) @ v)
        return self.out_proj(torch.cat(heads, dim=-1))


@wrong("MultiHeadAttention", "no scale", "no output projection")
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return context


@wrong(
    "MultiHeadAttention",
    "triu with diagonal 0 hides the token itself",
    "the heads of the keys are cut by view alone",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=0)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, self.num_heads, num_tokens, self.head_dim)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong(
    "MultiHeadAttention",
    "dropout is never applied",
    "scaled by the root of all heads' width",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.d_out**0.5, dim=-1)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong(
    "MultiHeadAttention",
    "masked_fill loses its result",
    "the heads aren't transposed back before they are joined",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = weights @ values
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)


@wrong(
    "MultiHeadAttention",
    "queries and keys exchanged in the product",
    "returns the weights beside the output",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1)
        )

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        values = values.view(b, num_tokens, self.num_heads, self.head_dim).transpose(
            1, 2
        )
        scores = keys @ queries.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        scores.masked_fill_(mask_bool, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2)
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context), weights


@wrong(
    "MultiHeadAttention",
    "the heads share the features in turn: reshape to (K, H)",
    "dropout is always on",
)
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
        return t.reshape(*t.shape[:2], self.K, self.H).permute(0, 3, 1, 2)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (
            self.split(self.W_query(x)),
            self.split(self.W_key(x)),
            self.split(self.W_value(x)),
        )
        scores = torch.einsum("bhqk,bhsk->bhqs", q, k) / math.sqrt(self.K)
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-1)
        weights = F.dropout(weights, self.p, training=True)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    "MultiHeadAttention",
    "the future is visible and the past hidden",
    "dropout on the output of the heads instead of the weights",
)
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


@wrong("MultiHeadAttention", "softmax over the queries", "values are made by W_key")
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
            self.split(self.W_key(x)),
        )  # v
        scores = torch.einsum("bhqk,bhsk->bhqs", q, k) / math.sqrt(self.K)
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-2)
        weights = F.dropout(weights, self.p, training=self.training)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    "MultiHeadAttention",
    "multiplies by the root",
    "no check of the division; the width is rounded down and the projections shrink",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        d_out = d_out // num_heads * num_heads
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
        scores = torch.einsum("bhqk,bhsk->bhqs", q, k) * math.sqrt(self.K)
        keep = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        weights = torch.softmax(torch.where(keep, scores, -math.inf), dim=-1)
        weights = F.dropout(weights, self.p, training=self.training)
        out = torch.einsum("bhqs,bhsk->bhqk", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    "MultiHeadAttention",
    "the list is made anew in the loop, so the last head fills all places",
    "the mask is a plain attribute",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        causal = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.causal = causal

    def forward(self, x):
        T = x.shape[1]
        heads = []
        queries = self.W_query(x).chunk(self.num_heads, dim=-1)
        keys = self.W_key(x).chunk(self.num_heads, dim=-1)
        values = self.W_value(x).chunk(self.num_heads, dim=-1)
        for q, k, v in zip(queries, keys, values):
            scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
            scores = scores.masked_fill(~self.causal[:T, :T], float("-inf"))
            heads = [self.drop(scores.softmax(dim=-1)) @ v] * self.num_heads
        return self.out_proj(torch.cat(heads, dim=-1))


@wrong(
    "MultiHeadAttention",
    "mask after the softmax, rows don't sum to 1",
    "the projections of q, k, v have a bias",
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=True)
        self.W_key = nn.Linear(d_in, d_out, bias=True)
        self.W_value = nn.Linear(d_in, d_out, bias=True)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        causal = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x):
        T = x.shape[1]
        heads = []
        queries = self.W_query(x).chunk(self.num_heads, dim=-1)
        keys = self.W_key(x).chunk(self.num_heads, dim=-1)
        values = self.W_value(x).chunk(self.num_heads, dim=-1)
        for q, k, v in zip(queries, keys, values):
            scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
            heads.append(self.drop(scores.softmax(dim=-1) * self.causal[:T, :T]) @ v)
        return self.out_proj(torch.cat(heads, dim=-1))
