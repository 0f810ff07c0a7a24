"""Attention, from a softmax to several heads.

Shapes: B batch, T tokens (queries), S tokens attended to (keys), D model width,
H heads, K head width. Boolean masks: True = may attend. A query that may attend
to nothing gets weights of zero and an output of zero.
"""

import torch
import torch.nn.functional as F
from torch import nn

from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, check_padding_mask, rotary_tables, rotate_pairs


def softmax(scores, dim=-1):
    """Turn scores into positive weights that sum to one along `dim`.

    softmax(s)_j = exp(s_j - max s) / sum_k exp(s_k - max s)

    Subtracting the maximum changes nothing in the result and keeps exp finite.

    scores: any shape
    returns: the same shape

    >>> softmax(torch.tensor([0.0, 0.0, 1000.0]))
    tensor([0., 0., 1.])
    """
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


def attention_weights(x):
    """Weigh every token against every other by plain dot products.

    softmax(X X^T), row by row, without scaling and with nothing to learn.

    x: (..., T, D)
    returns: (..., T, T), rows are queries and sum to one

    >>> attention_weights(torch.zeros(2, 3))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return softmax(x @ x.transpose(-2, -1), dim=-1)


def context_vectors(x):
    """Replace every token by the weighted sum of all tokens.

    softmax(X X^T) X

    x: (..., T, D)
    returns: (..., T, D)

    >>> context_vectors(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    return attention_weights(x) @ x


def causal_mask(num_tokens, device=None):
    """Allow each token to attend to itself and to the tokens before it.

    returns: boolean (T, T), True = may attend: row i is True up to column i

    Raises ValueError for a negative number of tokens.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    if num_tokens < 0:
        raise ValueError(f"expected num_tokens of 0 or more, got {num_tokens}")
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=device).tril()


def padding_mask(lengths, num_tokens):
    """Mark the real tokens of sentences that are padded on the right.

    lengths: B integers (list or tensor), each from 0 to `num_tokens`
    returns: boolean (B, T), True = a real token, which may be attended to

    Raises ValueError for a length outside 0 ... `num_tokens`.

    >>> padding_mask([1, 3], 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    lengths = torch.as_tensor(lengths)
    if lengths.dim() != 1:
        raise ValueError(f"expected lengths (B,), got {tuple(lengths.shape)}")
    if ((lengths < 0) | (lengths > num_tokens)).any():
        raise ValueError(
            f"expected lengths from 0 to {num_tokens}, got {lengths.tolist()}"
        )
    return torch.arange(num_tokens, device=lengths.device) < lengths[:, None]


def masked_softmax(scores, mask=None):
    """Softmax over the last axis, over the allowed positions alone.

    Forbidden scores become -inf before the softmax, so the allowed weights sum to
    one. A row without any allowed position becomes zeros instead of NaN.

    scores: (..., T, S)
    mask: boolean, broadcasts to (..., T, S), True = may attend
    returns: (..., T, S)

    Raises ValueError for a mask that is not boolean or does not broadcast.

    >>> masked_softmax(torch.zeros(2, 2), torch.tensor([[True, False], [False, False]]))
    tensor([[1., 0.],
            [0., 0.]])
    """
    if mask is None:
        return torch.softmax(scores, dim=-1)
    _check_mask(mask, scores.shape)
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def dropout(x, p):
    """Zero each entry with probability `p` and scale the survivors by 1 / (1 - p).

    The scaling keeps the expected value of every entry (inverted dropout; Srivastava
    et al. 2014, section 10). For training only.

    x: any shape
    returns: the same shape

    Raises ValueError for `p` outside 0 ... 1.

    >>> dropout(torch.ones(3), 0.0)
    tensor([1., 1., 1.])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"expected a dropout probability from 0 to 1, got {p}")
    if p == 1:
        return torch.zeros_like(x)
    return x * (torch.rand_like(x) >= p) / (1 - p)


def scaled_dot_product_attention(
    query, key, value, mask=None, dropout_p=0.0, bias=None
):
    """Average the values, weighted by how well each key answers the query.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k)
    value: (..., S, d_v), d_v may differ from d_k
    mask: boolean, broadcasts to (..., T, S), True = may attend
    dropout_p: share of the weights dropped; 0 outside training
    bias: numbers, broadcast to (..., T, S), added to the scores
    returns: output (..., T, d_v) and weights (..., T, S), as used: after dropout

    A query that may attend to nothing gets zeros. Raises ValueError for shapes that
    do not fit and for a mask that is not boolean.

    Source: Vaswani et al. 2017, section 3.2.1, equation 1. The mask follows
    `F.scaled_dot_product_attention`; `nn.MultiheadAttention` uses the opposite.

    >>> output, weights = scaled_dot_product_attention(
    ...     torch.zeros(1, 2), torch.ones(2, 2), torch.tensor([[1.0], [3.0]])
    ... )
    >>> output, weights
    (tensor([[2.]]), tensor([[0.5000, 0.5000]]))
    """
    check_query_key_value(query, key, value)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5  # (..., T, S)
    if bias is not None:
        _check_fits("bias", bias, scores.shape)
        scores = scores + bias
    weights = masked_softmax(scores, mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return weights @ value, weights


def online_softmax_attention(query, key, value, block_size):
    """Attend to the keys block by block, without the whole (T, S) matrix.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k), one key or more
    value: (..., S, d_v)
    returns: output (..., T, d_v)

    Raises ValueError for shapes that do not fit.

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, algorithm 1, of
    which this is the loop over the keys alone.

    >>> query, key = torch.ones(1, 1), torch.tensor([[1.0], [2.0], [4.0]]).log()
    >>> value = torch.tensor([[6.0], [12.0], [3.0]])
    >>> online_softmax_attention(query, key, value, block_size=2)
    tensor([[6.]])
    """
    check_query_key_value(query, key, value)
    maximum = torch.full_like(query[..., :1], -torch.inf)  # (..., T, 1)
    denominator = torch.zeros_like(maximum)  # (..., T, 1)
    accumulator = query.new_zeros(*query.shape[:-1], value.shape[-1])  # (..., T, d_v)
    for start in range(0, key.shape[-2], block_size):
        block = slice(start, start + block_size)
        scores = query @ key[..., block, :].mT / query.shape[-1] ** 0.5
        new_maximum = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        factor = torch.exp(maximum - new_maximum)  # (..., T, 1)
        weights = torch.exp(scores - new_maximum)  # (..., T, block)
        denominator = denominator * factor + weights.sum(dim=-1, keepdim=True)
        accumulator = accumulator * factor + weights @ value[..., block, :]
        maximum = new_maximum
    return accumulator / denominator


class SelfAttention(nn.Module):
    """Let every token attend to every token of its own sentence.

    softmax(Q K^T / sqrt(d_out)) V with Q = x W_query, K = x W_key, V = x W_value

    x: (..., T, d_in)
    returns: (..., T, d_out), and weights (..., T, T) with `need_weights=True`

    Raises ValueError where the last axis of x is not `d_in`.

    >>> SelfAttention(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])

    Source: Vaswani et al. 2017, section 3.2, with one head and no output projection.
    """

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x, need_weights=False):
        check_width("x", x, self.d_in)
        output, weights = scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )
        return (output, weights) if need_weights else output


class CausalAttention(nn.Module):
    """Let every token attend to itself and to the tokens before it.

    x: (B, T, d_in) with T up to `context_length`
    returns: (B, T, d_out), and weights (B, T, T) with `need_weights=True`

    The mask is a buffer: it follows the module to another device. It is not saved,
    because `context_length` says all about it. Dropout acts on the weights, in
    training alone.

    Raises ValueError where x has another width or more than `context_length` tokens.

    >>> CausalAttention(3, 2, context_length=6, dropout=0.0)(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 2])

    Source: Vaswani et al. 2017, section 3.2.3.
    """

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout_p = dropout
        self.register_buffer("mask", causal_mask(context_length), persistent=False)

    def forward(self, x, need_weights=False):
        check_width("x", x, self.d_in)
        num_tokens = x.shape[-2]
        check_length(num_tokens, len(self.mask))
        output, weights = scaled_dot_product_attention(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            mask=self.mask[:num_tokens, :num_tokens],
            dropout_p=self.dropout_p if self.training else 0.0,
        )
        return (output, weights) if need_weights else output


def split_heads(x, num_heads):
    """Give each head its consecutive features: head h owns h*K ... (h+1)*K - 1.

    x: (B, T, D)
    returns: (B, H, T, K) with K = D / H

    Raises ValueError where D is not divisible by the number of heads.

    >>> split_heads(torch.arange(8).view(1, 2, 4), num_heads=2)[0, 1]
    tensor([[2, 3],
            [6, 7]])
    """
    width = x.shape[-1]
    check_division(width, num_heads)
    heads = x.reshape(*x.shape[:-1], num_heads, width // num_heads)  # (B, T, H, K)
    return heads.transpose(-3, -2)  # (B, H, T, K)


def merge_heads(x):
    """Put the heads of each token side by side again, the inverse of `split_heads`.

    x: (B, H, T, K)
    returns: (B, T, H*K)

    >>> x = torch.arange(8).view(1, 2, 4)
    >>> torch.equal(merge_heads(split_heads(x, num_heads=2)), x)
    True
    """
    if x.dim() < 3:
        raise ValueError(f"expected heads (B, H, T, K), got {tuple(x.shape)}")
    return x.transpose(-3, -2).flatten(-2)  # (B, T, H, K), then (B, T, H*K)


def repeat_kv(x, n_rep):
    """Give each key-value head to `n_rep` neighbouring query heads.

    x: (B, H_kv, T, K)
    returns: (B, H_kv * n_rep, T, K), query head h uses head h // n_rep of x

    Raises ValueError for less than one repetition.

    >>> repeat_kv(torch.tensor([[[[1]], [[2]]]]), n_rep=2).flatten()
    tensor([1, 1, 2, 2])

    Source: Ainslie et al. 2023, section 2.2.
    """
    if n_rep < 1:
        raise ValueError(f"expected n_rep of 1 or more, got {n_rep}")
    return x.repeat_interleave(n_rep, dim=-3)


def regroup(x, num_heads):
    """Put the rows of neighbouring heads below each other, or apart again.

    x: (B, H, T, N)
    returns: (B, num_heads, H * T / num_heads, N)

    >>> regroup(torch.tensor([[[[1]], [[2]], [[3]], [[4]]]]), num_heads=2)[0, 1]
    tensor([[3],
            [4]])
    """
    batch_size, heads, num_rows, width = x.shape
    return x.reshape(batch_size, num_heads, heads * num_rows // num_heads, width)


class MultiHeadAttention(nn.Module):
    """Attend with several heads, each in its own slice of the features.

    Concat(head_1 ... head_H) W_out with head_h the attention of slice h

    x: (B, T, d_in), the queries
    context: (B, S, d_in), keys and values from elsewhere; x itself where not given
    padding_mask: boolean (B, S), True = a real token, which may be attended to; S
        counts the tokens of the cache, too
    cache: `KeyValueCache` of the tokens before x, which grows by those of x
    causal: for this call alone, in place of what the layer was built with
    returns: (B, T, d_out), and weights (B, H, T, S) with `need_weights=True`

    With `causal=True` a token attends to itself and to the tokens before it, `window`
    in all. A causal layer does not know how much of a separate context may be seen, so
    the call says `causal=False`, or `causal=True` where context and x end together.

    With fewer `num_kv_heads` than heads, neighbouring heads share their keys and
    values, without copies (grouped-query attention; one: multi-query). With
    `rotary=True` queries and keys are turned by their positions, but for a separate
    context; with `alibi=True` the scores of a causal layer fall with the distance.

    Without `need_weights` PyTorch's fused kernel computes the output, and nothing of
    size (T, S) is made. Some things ask for more: a causal mask together with a cache,
    padding or a window becomes a boolean (B or 1, 1, T, S), with ALiBi numbers (B or 1,
    H, T, S), and on the CPU the kernel knows no dropout.

    Raises ValueError where a width is not divisible by its number of heads or differs,
    a causal or rotary x has more than `context_length` tokens (those of the cache
    included), the padding mask is not boolean (B, S), a causal layer gets a context
    without a word on `causal`, or a cache, a window or ALiBi does not fit.

    >>> layer = MultiHeadAttention(3, 4, context_length=6, dropout=0.0, num_heads=2)
    >>> output, weights = layer(torch.zeros(2, 5, 3), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 2, 5, 5]))

    Source: Vaswani et al. 2017, section 3.2.2. Here q, k and v have no bias unless
    `qkv_bias=True`, and `d_out` is the width of all heads together.
    """

    def __init__(
        self,
        d_in,
        d_out,
        context_length,
        dropout,
        num_heads,
        qkv_bias=False,
        *,
        causal=True,
        num_kv_heads=None,
        window=None,
        rotary=False,
        rope_base=10000.0,
        alibi=False,
    ):
        super().__init__()
        check_division(d_out, num_heads)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        _check_groups(num_heads, num_kv_heads)
        _check_window(window, alibi, causal)
        self.d_in = d_in
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.dropout_p = dropout
        self.causal = causal
        self.window = window
        self.rotary = rotary
        self.alibi = alibi
        d_kv = self.head_dim * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        if rotary:
            angles = torch.arange(context_length), self.head_dim, rope_base
            tables = torch.stack(rotary_tables(*angles))
            self.register_buffer("tables", tables, persistent=False)

    def forward(
        self,
        x,
        context=None,
        padding_mask=None,
        need_weights=False,
        cache=None,
        causal=None,
    ):
        source = x if context is None else context
        causal = self._is_causal(context, causal)
        self._check(x, context, padding_mask, causal, cache)
        query = self._heads("W_query", x, self.num_heads)  # (B, H, T, K)
        key = self._heads("W_key", source, self.num_kv_heads)  # (B, H_kv, S, K)
        value = self._heads("W_value", source, self.num_kv_heads)  # (B, H_kv, S, K)
        if self.rotary and context is None:
            query, key = (self._rotate(t, cache) for t in (query, key))
        if cache is not None:
            key, value = cache.append(key, value)
        attend = self._attend_explicitly if need_weights else self._attend_fused
        output, weights = attend(query, key, value, padding_mask, causal)
        output = self.out_proj(merge_heads(output))  # (B, T, d_out)
        return (output, weights) if need_weights else output

    def new_cache(self, num_tokens):
        """Return an empty cache with room for `num_tokens`."""
        return KeyValueCache(num_tokens, self.window)

    def _attend_explicitly(self, query, key, value, padding_mask, causal):
        mask = combined_mask(query, key, padding_mask, causal, self.window)
        bias = self._bias(query, key, causal)
        query, mask, bias = self._share(query, mask, bias)
        output, weights = scaled_dot_product_attention(
            query, key, value, mask, self._dropout(), bias
        )
        return regroup(output, self.num_heads), regroup(weights, self.num_heads)

    def _attend_fused(self, query, key, value, padding_mask, causal):
        mask, skip = self._fused_mask(query, key, padding_mask, causal)
        if query.shape[-2] == 1:  # faster than enable_gqa, which reads keys per head
            query, mask = self._share(query, mask)
        shared = query.shape[1] != key.shape[1]
        output = F.scaled_dot_product_attention(
            query, key, value, mask, self._dropout(), is_causal=skip, enable_gqa=shared
        )
        return regroup(output, self.num_heads), None

    def _fused_mask(self, query, key, padding_mask, causal):
        # is_causal lets the kernel skip the future and needs no (T, S) mask, but it
        # counts from the top left and takes no other mask beside it.
        num_keys = key.shape[-2]
        square = query.shape[-2] == num_keys <= (self.window or num_keys)
        if causal and square and padding_mask is None and not self.alibi:
            return None, True
        mask = combined_mask(query, key, padding_mask, causal, self.window)
        bias = self._bias(query, key, causal)
        if bias is not None:
            mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
        return mask, False

    def _bias(self, query, key, causal):
        if not (self.alibi and causal):
            return None
        sizes = self.num_heads, key.shape[-2], query.shape[-2]
        return alibi_bias(*sizes, query.device)[None].to(query.dtype)  # (1, H, T, S)

    def _share(self, query, *masks):
        # Heads that share their keys become one head, which asks for all of them.
        shape = -1, self.num_heads, query.shape[-2], -1
        whole = [query, *(t if t is None else t.expand(shape) for t in masks)]
        return [t if t is None else regroup(t, self.num_kv_heads) for t in whole]

    def _heads(self, name, x, num_heads):
        projected = getattr(self, name)(x)
        check_width(f"{name} to give", projected, num_heads * self.head_dim, dims=3)
        return split_heads(projected, num_heads)

    def _width(self, projection):  # a replaced one may not say how wide its input is
        return getattr(projection, "in_features", self.d_in)

    def _rotate(self, x, cache):
        start = 0 if cache is None else len(cache)
        return rotate_pairs(x, *self.tables[:, start : start + x.shape[-2]])

    def _dropout(self):
        return self.dropout_p if self.training else 0.0

    def _is_causal(self, context, causal):
        if causal is None and context is not None and self.causal:
            raise ValueError(
                "expected causal=False (all of the context may be seen) or causal=True "
                "when a causal layer is called with a context, got neither"
            )
        return self.causal if causal is None else causal

    def _check(self, x, context, padding_mask, causal, cache):
        own, source = context is None, x if context is None else context
        check_width("x", x, self._width(self.W_query), dims=3)
        if not own:
            check_width("context", context, self._width(self.W_key), dims=3)
        if len(source) != len(x):
            raise ValueError(
                f"expected a context for each of {len(x)} sentences, got {len(source)}"
            )
        if cache is not None:
            check_cache(cache, causal and own, self.window)
        num_keys = source.shape[-2] + (0 if cache is None else len(cache))
        if own and (causal or self.rotary):
            check_length(num_keys, self.context_length)
        if padding_mask is not None:
            check_padding_mask(padding_mask, (len(x), num_keys))


def combined_mask(query, key, padding_mask, causal=True, window=None):
    """Put the causal mask, a window and the padding together, for the newest tokens.

    query: (B, H, T, K), the last T of the S tokens;  key: (B, H_kv, S, K)
    padding_mask: boolean (B, S), True = a real token
    returns: boolean (B or 1, 1, T, S), True = may attend; None where all may be seen

    >>> combined_mask(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 3, 4), None)
    tensor([[[[ True,  True, False],
              [ True,  True,  True]]]])
    """
    num_queries, num_keys = query.shape[-2], key.shape[-2]
    far = window is not None and num_keys > window
    mask = None
    if causal and (num_queries > 1 or far):  # else the newest token may see everything
        everything = query.new_ones(1, 1, num_queries, num_keys, dtype=torch.bool)
        mask = everything.tril(num_keys - num_queries)  # the last query sees all keys
        if far:
            mask = mask.triu(num_keys - num_queries - window + 1)
    if padding_mask is None:
        return mask
    keys = padding_mask[:, None, None, padding_mask.shape[-1] - num_keys :]
    return keys if mask is None else mask & keys  # (B, 1, T, S)


def check_query_key_value(query, key, value):
    """Raise ValueError unless the three have tokens and widths that fit.

    >>> check_query_key_value(torch.zeros(5, 3), torch.zeros(7, 2), torch.zeros(7, 2))
    Traceback (most recent call last):
    ...
    ValueError: expected query and key of one width d_k, got (5, 3) and (7, 2)
    """
    shapes = [tuple(t.shape) for t in (query, key, value)]
    if min(len(shape) for shape in shapes) < 2:
        raise ValueError(f"expected (..., tokens, width) three times, got {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"expected query and key of one width d_k, got {shapes[0]} and {shapes[1]}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"expected a value for each key, got {shapes[1]} and {shapes[2]}"
        )
    try:
        torch.broadcast_shapes(*(shape[:-2] for shape in shapes))
    except RuntimeError:
        raise ValueError(f"expected leading axes that fit, got {shapes}") from None


def _check_mask(mask, shape):
    if mask.dtype != torch.bool:  # True = may attend
        raise ValueError(f"expected a boolean mask, got {mask.dtype}")
    _check_fits("mask", mask, shape)


def _check_fits(name, x, shape):
    try:
        x.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"expected a {name} that broadcasts to {tuple(shape)}, got {tuple(x.shape)}"
        ) from None


def check_width(name, x, width, dims=None):
    """Raise ValueError unless x is (..., T, width), or has so many axes in all.

    >>> check_width("x", torch.zeros(5, 3), 4)
    Traceback (most recent call last):
    ...
    ValueError: expected x (..., T, 4), got (5, 3)
    """
    if x.dim() < 2 or x.shape[-1] != width or dims not in (None, x.dim()):
        axes = "B, T" if dims else "..., T"
        raise ValueError(f"expected {name} ({axes}, {width}), got {tuple(x.shape)}")


def check_length(num_tokens, context_length):
    """Raise ValueError where there are more tokens than the layer is built for.

    >>> check_length(7, 5)
    Traceback (most recent call last):
    ...
    ValueError: expected up to context_length = 5 tokens, got 7
    """
    if num_tokens > context_length:
        raise ValueError(
            f"expected up to context_length = {context_length} tokens, got {num_tokens}"
        )


def check_division(width, num_heads):
    """Raise ValueError unless the width is the same for all heads.

    >>> check_division(8, 3)
    Traceback (most recent call last):
    ...
    ValueError: expected a width that is divisible by the number of heads, got width 8 \
and 3 heads
    """
    if num_heads < 1 or width % num_heads:
        raise ValueError(
            f"expected a width that is divisible by the number of heads, "
            f"got width {width} and {num_heads} heads"
        )


def _check_groups(num_heads, num_kv_heads):
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        raise ValueError(
            f"expected num_kv_heads to divide num_heads, "
            f"got {num_kv_heads} and {num_heads}"
        )


def _check_window(window, alibi, causal):
    if window is not None and window < 1:
        raise ValueError(f"expected a window of 1 or more, got {window}")
    if (alibi or window is not None) and not causal:
        raise ValueError("expected window and alibi with causal=True alone")


def check_cache(cache, causal, window):
    """Raise ValueError for a cache that the layer does not write into.

    >>> from utils.cache import KeyValueCache
    >>> check_cache(KeyValueCache(8), causal=True, window=3)
    Traceback (most recent call last):
    ...
    ValueError: expected a cache with window=3, got None
    """
    if not causal:
        raise ValueError("expected a cache with causal self-attention alone")
    if cache.window != window:
        raise ValueError(f"expected a cache with window={window}, got {cache.window}")
