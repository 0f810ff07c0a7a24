"""Attention, from a softmax to several heads.

Shapes: B batch, T tokens (queries), S tokens attended to (keys), D model width,
H heads, d_k head width. Boolean masks: True = may attend. A query that may attend
to nothing gets weights of zero and an output of zero.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.cache import KeyValueCache, restore_on_error
from utils.embeddings import ComputedBuffer, Rotary
from utils.validation import (
    NonNegativeInt,
    PositiveInt,
    Proportion,
    can_read_values,
    check_broadcastable,
    check_context_length,
    check_divisible,
    check_even,
    check_finite,
    check_inputs,
    check_layer_input,
    check_mask,
    check_range,
    check_tokens,
    raise_unless,
    raise_value_error,
    to_int_tensor,
)


@check_inputs()
def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    """Turn scores into positive weights that sum to one along `dim`.

    softmax(s)_j = exp(s_j - max s) / sum_k exp(s_k - max s)

    Subtracting the maximum keeps exp finite and changes nothing in the result.

    scores: any shape
    returns: the same shape; of whole numbers, floats

    >>> softmax(torch.tensor([0.0, 0.0, 1000.0]))
    tensor([0., 0., 1.])
    """
    raise_unless(scores.dtype != torch.bool, "scores as real numbers", scores.dtype)
    if not scores.numel():
        return torch.exp(scores)
    if not scores.is_floating_point():
        scores = scores.to(torch.get_default_dtype())
    largest = scores.amax(dim=dim, keepdim=True)
    check_finite("a finite largest score", largest)
    exponentials = torch.exp(scores - largest)
    dtype = torch.promote_types(exponentials.dtype, torch.float32)  # float16 is narrow
    total = exponentials.sum(dim=dim, keepdim=True, dtype=dtype)
    return (exponentials / total).to(exponentials.dtype)


@check_inputs("x (..., T, D)")
def attention_weights(x: Tensor) -> Tensor:
    """Weigh every token against every other: softmax(X X^T), row by row.

    x: (..., T, D), floating point
    returns: (..., T, T), rows are queries and sum to one

    >>> attention_weights(torch.zeros(2, 3))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return softmax(dot_products(x, x), dim=-1).to(x.dtype)


def context_vectors(x: Tensor) -> Tensor:
    """Replace every token by the weighted sum of all tokens: softmax(X X^T) X.

    x: (..., T, D)
    returns: (..., T, D)

    >>> context_vectors(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    return attention_weights(x) @ x


@check_inputs()
def causal_mask(num_tokens: NonNegativeInt) -> Tensor:
    """Allow each token to attend to itself and to the tokens before it.

    returns: boolean (T, T), True = may attend: row i is True up to column i

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).tril()


@check_inputs()
def padding_mask(lengths: Tensor | list[int], num_tokens: NonNegativeInt) -> Tensor:
    """Mark the real tokens of sentences that are padded on the right.

    lengths: B integers from 0 to `num_tokens`
    returns: boolean (B, T), True = a real token, which may be attended to

    >>> padding_mask([1, 3], 3)
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    lengths = to_int_tensor("lengths", lengths)
    check_range("lengths", lengths, 0, num_tokens)
    return torch.arange(num_tokens, device=lengths.device) < lengths[:, None]


@check_inputs("scores (..., S)")
def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the allowed positions along the last axis.

    Forbidden scores become -inf before the softmax, so the allowed weights sum to
    one. A row without any allowed position becomes zeros instead of NaN.

    scores: (..., T, S)
    mask: boolean, broadcasts to (..., T, S), True = may attend
    returns: (..., T, S)

    >>> masked_softmax(torch.zeros(2, 2), torch.tensor([[True, False], [False, False]]))
    tensor([[1., 0.],
            [0., 0.]])
    """
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        check_mask("mask", mask, scores)
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        weights = weights.masked_fill(~mask, 0.0)
    if can_read_values(weights):
        is_nan = weights.sum(dim=-1).isnan()  # (..., T), without another (T, S)
        if is_nan.any():
            if mask is not None:
                scores = scores.masked_fill(~mask, float("-inf"))
            check_finite("a finite largest score", scores.amax(dim=-1)[is_nan])
    return weights


@check_inputs("x (...)")
def dropout(x: Tensor, p: Proportion) -> Tensor:
    """Zero each entry with probability `p` and scale the survivors by 1 / (1 - p).

    The scaling keeps the expected value of every entry. Call it only during training.

    x: any shape
    p: from 0 to 1
    returns: the same shape

    >>> dropout(torch.ones(3), 0.0)
    tensor([1., 1., 1.])

    Source: Srivastava et al. 2014, section 10.
    """
    if p == 1:
        return torch.zeros_like(x)
    dtype = torch.promote_types(x.dtype, torch.float32)  # 16 bits have few numbers
    return x * (torch.rand_like(x, dtype=dtype) >= p) / (1 - p)


@check_inputs("query (..., T, d_k); key (..., S, d_k)")
def scaled_scores(query: Tensor, key: Tensor) -> Tensor:
    """Compare each query with each key: Q K^T / sqrt(d_k).

    query, key: (..., T, d_k) and (..., S, d_k)
    returns: (..., T, S), of 16-bit inputs in float32: products often exceed 65504, the
        largest float16, and bfloat16 would round a score of 20 by up to 0.06

    >>> scaled_scores(torch.ones(1, 4), torch.ones(2, 4))
    tensor([[2., 2.]])
    """
    return dot_products(query, key) / query.shape[-1] ** 0.5


def dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Compute Q K^T, of 16-bit inputs in float32.

    query, key: (..., T, d_k) and (..., S, d_k)
    returns: (..., T, S)
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    if dtype == query.dtype == key.dtype:
        return query @ key.mT
    with torch.autocast(query.device.type, enabled=False):
        return query.to(dtype) @ key.to(dtype).mT


@check_inputs("query (..., T, d_k); key (..., S, d_k); value (..., S, d_v)")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: Proportion = 0.0,
) -> tuple[Tensor, Tensor]:
    """Average the values, weighted by how well each key matches the query.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k)
    value: (..., S, d_v), d_v may differ from d_k
    mask: boolean, broadcasts to (..., T, S), True = may attend, as PyTorch's function
        of this name takes it; `nn.MultiheadAttention` uses the opposite. Hidden
        values must be finite, too, because 0 * NaN is NaN.
    dropout_p: fraction of the weights that is dropped; 0 except during training
    returns: output (..., T, d_v) and the weights used, after dropout, (..., T, S)

    Source: Vaswani et al. 2017, section 3.2.1, equation 1.

    >>> output, weights = scaled_dot_product_attention(
    ...     torch.zeros(1, 2), torch.ones(2, 2), torch.tensor([[1.0], [3.0]])
    ... )
    >>> output, weights
    (tensor([[2.]]), tensor([[0.5000, 0.5000]]))
    """
    if mask is not None:  # it may have leading axes that only the values have
        leading = torch.broadcast_shapes(*(t.shape[:-2] for t in (query, key, value)))
        query = query.expand(*leading, *query.shape[-2:])
    weights = masked_softmax(scaled_scores(query, key), mask).to(value.dtype)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return weights @ value, weights


@check_inputs(
    "x (..., T, D); W_query (D, d_k); encoded (..., S, D_2); W_key (D_2, d_k); "
    "W_value (D_2, d_v); source_mask: bool (..., S)"
)
def cross_attention(
    x: Tensor,
    encoded: Tensor,
    W_query: Tensor,
    W_key: Tensor,
    W_value: Tensor,
    source_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Let the tokens of x attend to those of another text, encoded, with one head.

    x: (..., T, D), the queries; encoded: (..., S, D), where keys and values come from
    W_query, W_key, W_value: (D, d_k), (D, d_k) and (D, d_v)
    source_mask: boolean (..., S), True = may be attended to
    returns: output (..., T, d_v) and weights (..., T, S)

    >>> x, encoded = torch.zeros(1, 2), torch.tensor([[1.0, 0.0], [3.0, 0.0]])
    >>> cross_attention(x, encoded, *[torch.eye(2)] * 3)[0]
    tensor([[2., 0.]])

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    if source_mask is not None:
        leading = torch.broadcast_shapes(x.shape[:-2], encoded.shape[:-2])
        shape = *leading, encoded.shape[-2]
        check_broadcastable("source_mask", source_mask, shape)
        source_mask = source_mask[..., None, :]  # (..., 1, S)
    query, key, value = x @ W_query, encoded @ W_key, encoded @ W_value
    return scaled_dot_product_attention(query, key, value, source_mask)


@check_inputs("query (..., T, d_k); key (..., S, d_k); value (..., S, d_v)")
def online_softmax_attention(
    query: Tensor, key: Tensor, value: Tensor, slice_size: PositiveInt
) -> Tensor:
    """Attend to the keys slice by slice, without the whole (T, S) matrix.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k); without any key the output is zero
    value: (..., S, d_v)
    slice_size: how many keys are read at a time
    returns: output (..., T, d_v)

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, algorithm 1.

    >>> query, key = torch.ones(1, 1), torch.tensor([[1.0], [2.0], [4.0]]).log()
    >>> value = torch.tensor([[6.0], [12.0], [3.0]])
    >>> online_softmax_attention(query, key, value, slice_size=2)
    tensor([[6.]])
    """
    leading = torch.broadcast_shapes(*(t.shape[:-2] for t in (query, key, value)))
    maximum = torch.full_like(query[..., :1], -torch.inf)  # (..., T, 1)
    denominator = torch.zeros_like(maximum)  # (..., T, 1)
    accumulator = query.new_zeros(*leading, query.shape[-2], value.shape[-1])
    for start in range(0, key.shape[-2], slice_size):
        part = slice(start, start + slice_size)
        scores = scaled_scores(query, key[..., part, :])
        new_maximum = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        base = replace_minus_infinity(new_maximum)
        factor = torch.exp(maximum - base)  # (..., T, 1)
        exps = torch.exp(scores - base)  # (..., T, part)
        denominator = denominator * factor + exps.sum(dim=-1, keepdim=True)
        values = value[..., part, :].to(exps.dtype)
        accumulator = accumulator * factor + exps @ values
        maximum = new_maximum
    if key.shape[-2]:
        check_finite("a finite largest score", maximum)
        accumulator = accumulator / denominator
    return accumulator.to(value.dtype)


def replace_minus_infinity(maximum: Tensor) -> Tensor:
    """Replace -inf by 0, so that `scores - maximum` is nowhere -inf - (-inf), NaN."""
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


@check_inputs(
    "query (..., T, d_k); key (..., T, d_k); value (..., T, d_v)", same_leading=True
)
def attend_with_cache(
    query: Tensor, key: Tensor, value: Tensor, cache: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Let new tokens attend to those in a cache, to themselves and to new ones before.

    query, key: (..., T, d_k), of the new tokens
    value: (..., T, d_v)
    cache: keys and values of all tokens before, as a tuple, or None at the beginning
    returns: output (..., T, d_v), and keys and values of all tokens, copied (which
        `utils.cache.KeyValueCache` avoids)

    >>> key, value = torch.tensor([[1.0], [2.0]]).log(), torch.tensor([[6.0], [12.0]])
    >>> _, cache = attend_with_cache(torch.ones(1, 1), key[:1], value[:1], None)
    >>> attend_with_cache(torch.ones(1, 1), key[1:], value[1:], cache)[0]
    tensor([[10.]])
    """
    if cache is not None:
        key, value = (torch.cat(pair, dim=-2) for pair in zip(cache, (key, value)))
    T, S = query.shape[-2], key.shape[-2]
    positions = torch.arange(S, device=query.device)
    mask = positions <= positions[S - T :, None]  # (T, S): the new tokens are the last
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    return output, (key, value)


class SelfAttention(nn.Module):
    """Let every token attend to every token of its own sentence.

    softmax(Q K^T / sqrt(d_out)) V with Q = x W_query, K = x W_key, V = x W_value

    x: (..., T, d_in)
    returns: (..., T, d_out), and weights (..., T, T) with `need_weights=True`

    >>> SelfAttention(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])

    Source: Vaswani et al. 2017, section 3.2, with one head and no output projection.
    """

    @check_inputs()
    def __init__(self, d_in: PositiveInt, d_out: PositiveInt, qkv_bias: bool = False):
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    @check_inputs()
    def forward(
        self, x: Tensor, need_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        check_layer_input("x", x, self, "..., T")
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        options = self._mask_and_dropout(x.shape[-2])
        output, weights = scaled_dot_product_attention(query, key, value, *options)
        return (output, weights) if need_weights else output

    def _mask_and_dropout(self, num_tokens):
        return None, 0.0


class CausalAttention(ComputedBuffer, SelfAttention):
    """Let every token attend to itself and to the tokens before it.

    x: (B, T, d_in) with T up to `context_length`
    returns: (B, T, d_out), and weights (B, T, T) with `need_weights=True`

    The mask is a buffer, so it follows the module to another device. It is not saved,
    because `context_length` determines it. Dropout acts on the weights.

    >>> CausalAttention(3, 2, context_length=6, dropout=0.0)(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 2])

    Source: Vaswani et al. 2017, section 3.2.3.
    """

    @check_inputs()
    def __init__(
        self,
        d_in: PositiveInt,
        d_out: PositiveInt,
        context_length: NonNegativeInt,
        dropout: Proportion,
        qkv_bias: bool = False,
    ):
        super().__init__(d_in, d_out, qkv_bias)
        self.dropout_p = dropout
        self.context_length = context_length
        self.register_computed()

    def compute_buffer(self):
        return "mask", causal_mask(self.context_length)

    def _mask_and_dropout(self, num_tokens):
        check_context_length(num_tokens, self.context_length)
        mask = self.mask[:num_tokens, :num_tokens]
        return mask, self.dropout_p if self.training else 0.0


@check_inputs("x: any (..., T, D)")
def split_heads(x: Tensor, num_heads: PositiveInt) -> Tensor:
    """Give each head its consecutive features: head h owns h*d_k ... (h+1)*d_k - 1.

    x: (B, T, D), where the number of heads divides D
    returns: (B, H, T, d_k) with d_k = D / H

    >>> split_heads(torch.arange(8).view(1, 2, 4), num_heads=2)[0, 1]
    tensor([[2, 3],
            [6, 7]])
    """
    check_divisible(x.shape[-1], num_heads)
    heads = x.unflatten(-1, (num_heads, -1))  # (B, T, H, d_k)
    return heads.transpose(-3, -2)  # (B, H, T, d_k)


@check_inputs("x: any (..., H, T, d_k)")
def merge_heads(x: Tensor) -> Tensor:
    """Put the heads of each token side by side: the inverse of `split_heads`.

    x: (B, H, T, d_k)
    returns: (B, T, H*d_k)

    >>> x = torch.arange(8).view(1, 2, 4)
    >>> torch.equal(merge_heads(split_heads(x, num_heads=2)), x)
    True
    """
    return x.transpose(-3, -2).flatten(-2)  # (B, T, H, d_k), then (B, T, H*d_k)


@check_inputs("x: any (..., H_kv, T, d_k)")
def repeat_kv(x: Tensor, n_rep: PositiveInt) -> Tensor:
    """Repeat each key-value head for `n_rep` neighbouring query heads.

    x: (B, H_kv, T, d_k)
    returns: (B, H_kv * n_rep, T, d_k), query head h uses head h // n_rep of x

    >>> repeat_kv(torch.tensor([[[[1]], [[2]]]]), n_rep=2).flatten()
    tensor([1, 1, 2, 2])

    Source: Ainslie et al. 2023, section 2.2.
    """
    return x.repeat_interleave(n_rep, dim=-3)


class MultiHeadAttention(nn.Module):
    """Attend with several heads, each in its own slice of the features.

    Concat(head_1 ... head_H) W_out, where head_h is the attention of slice h

    x: (B, T, d_in), the queries
    context: (B, S, d_in), where keys and values come from; x itself by default. It
        needs `causal=False`.
    padding_mask: boolean (B, S), True = a real token, which may be attended to; S
        includes the tokens in the cache. Padding must be finite: 0 * NaN is NaN.
    cache: `KeyValueCache` of the tokens before x; the tokens of x are added to it
    returns: (B, T, d_out), and weights (B, H, T, S) with `need_weights=True`

    With `causal=True` a token attends to itself and to the tokens before it, to
    `window` in all if that is given. With fewer `num_kv_heads` than heads, neighbouring
    heads share their keys and values. With `rotary=True` queries and keys are rotated
    by position, unless there is a context.

    >>> layer = MultiHeadAttention(3, 4, context_length=6, dropout=0.0, num_heads=2)
    >>> output, weights = layer(torch.zeros(2, 5, 3), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 2, 5, 5]))

    Source: Vaswani et al. 2017, section 3.2.2, where `d_out` is the width of all heads
    together; shared heads: Ainslie et al. 2023; rotation: Su et al. 2021.
    """

    @check_inputs()
    def __init__(
        self,
        d_in: PositiveInt,
        d_out: PositiveInt,
        context_length: NonNegativeInt,
        dropout: Proportion,
        num_heads: PositiveInt,
        qkv_bias: bool = False,
        *,
        causal: bool = True,
        num_kv_heads: PositiveInt | None = None,
        window: PositiveInt | None = None,
        rotary: bool = False,
        rope_base: float = 10000.0,
    ):
        super().__init__()
        check_divisible(d_out, num_heads)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        is_valid = num_heads % num_kv_heads == 0
        expected = "num_kv_heads to divide num_heads"
        raise_unless(is_valid, expected, num_kv_heads, num_heads)
        raise_unless(causal or window is None, "causal=True with a window", causal)
        self.d_in = d_in
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.dropout_p = dropout
        self.causal = causal
        self.window = window
        self.rotary = rotary
        d_kv = self.head_dim * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        if rotary:
            check_even("head width with rotary=True", self.head_dim)
            self.rotate = Rotary(context_length, self.head_dim, rope_base)

    @check_inputs()
    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        padding_mask: Tensor | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        start = self._check_inputs(x, context, padding_mask, cache)
        query, key, value = self._project_heads(x, context, cache)
        if self.rotary and context is None:
            query, key = self.rotate(query, start), self.rotate(key, start)
        with restore_on_error([cache]):
            if cache is not None:
                key, value = cache.append(key, value)
            output, weights = attend_with_heads(
                query,
                key,
                value,
                padding_mask,
                causal=self.causal,
                window=self.window,
                dropout_p=self.dropout_p if self.training else 0.0,
                need_weights=need_weights,
            )
            output = self.out_proj(merge_heads(output))  # (B, T, d_out)
        return (output, weights) if need_weights else output

    def new_cache(self, num_tokens: int) -> KeyValueCache:
        """Return an empty cache with room for `num_tokens`."""
        return KeyValueCache(num_tokens)

    def _check_inputs(self, x, context, padding_mask, cache):
        """Return the number of tokens before x."""
        num_cached = 0 if cache is None else len(cache)
        if context is not None and self.causal:
            received = "True (a mask goes to padding_mask=)"
            raise_value_error("causal=False in a layer that gets a context", received)
        expected = "causal=True in a layer that gets a cache, as from `generate`"
        raise_unless(cache is None or self.causal, expected, self.causal)
        if context is None:
            num_keys = check_tokens("x", x, self, padding_mask, num_cached)
            if self.causal or self.rotary:
                check_context_length(num_keys, self.context_length)
            return num_cached
        check_layer_input("x", x, self)
        check_tokens("context", context, self, padding_mask, num_cached=0)
        is_valid = len(context) == len(x)
        raise_unless(is_valid, "a context for each sentence", context.shape, x.shape)
        return num_cached

    def _project_heads(self, x, context, cache):
        """Return query (B, H, T, d_k), key and value (B, H_kv, S, d_k)."""
        layers = self.W_query, self.W_key, self.W_value
        counts = self.num_heads, self.num_kv_heads, self.num_kv_heads
        is_joint = context is None and cache is None and not x.is_cpu
        if is_joint and _can_be_joined(layers):
            # A GPU takes longer to start three products than to compute a larger one
            # (`gpu` in tests/benchmarks.md is measured with it).
            # A step of decoding would wait for the copy of the weights instead.
            weight, bias = torch.cat([layer.weight for layer in layers]), None
            if self.W_query.bias is not None:
                bias = torch.cat([layer.bias for layer in layers])
            heads = F.linear(x, weight, bias).unflatten(-1, (-1, self.head_dim))
            return [t.transpose(1, 2) for t in heads.split(counts, dim=2)]
        source = x if context is None else context
        projected = [W(t) for W, t in zip(layers, (x, source, source))]
        return [split_heads(t, n) for t, n in zip(projected, counts)]


def _can_be_joined(layers):
    """Return whether one product gives what these layers give, called one by one."""
    kinds = "forward", "forward_pre", "backward", "backward_pre"
    have_hooks = any(getattr(W, f"_{kind}_hooks") for W in layers for kind in kinds)
    are_linear = all(type(W) is nn.Linear for W in layers)
    return are_linear and not have_hooks and len({W.bias is None for W in layers}) == 1


@check_inputs(
    "query (B, H, T, d_k); key (B, H_kv, S, d_k); value (B, H_kv, S, d_v); "
    "padding_mask: bool (B, S)"
)
def attend_with_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding_mask: Tensor | None = None,
    causal: bool = True,
    dropout_p: Proportion = 0.0,
    need_weights: bool = False,
    window: PositiveInt | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Let the newest tokens attend, with PyTorch's kernels unless weights are needed.

    query: (B, H, T, d_k), the last T of the S tokens if `causal`
    key, value: (B, H_kv, S, d_k) and (B, H_kv, S, d_v), shared by neighbouring heads
    padding_mask: boolean (B, S), True = a real token, which may be attended to
    dropout_p: fraction of the weights that is dropped; 0 except during training
    window: how many keys a causal query may attend to, its own the last of them
    returns: output (B, H, T, d_v), and weights (B, H, T, S) or None; without weights no
        score is checked, and one that isn't finite may give NaN or count as hidden
    """
    num_heads, num_kv_heads, shape = query.shape[1], key.shape[1], query.shape[:3]
    if 0 in (num_heads, num_kv_heads) or num_heads % num_kv_heads:
        raise_value_error("heads that num_kv_heads divides", num_heads, num_kv_heads)
    raise_unless(causal or window is None, "causal=True with a window", causal)
    window = key.shape[2] if window is None else window
    is_square = query.shape[2] == key.shape[2] <= window
    if causal and is_square and padding_mask is None and not need_weights:
        # The kernel skips the future and needs no (T, S) mask. It aligns its own mask
        # at the top left, which is right only for a square.
        options = {"is_causal": True, "enable_gqa": num_heads != num_kv_heads}
        attend = F.scaled_dot_product_attention
        return attend(query, key, value, dropout_p=dropout_p, **options), None
    if causal and query.shape[2] > key.shape[2]:  # early queries would see no key
        raise_value_error("a key for each causal query", query.shape, key.shape)
    mask = _combine_masks(query, key, padding_mask, causal, window)
    if num_heads != num_kv_heads:
        # Heads that share their keys become one head, which has all their queries.
        query = query.unflatten(1, (num_kv_heads, -1)).flatten(2, 3)
        if mask is not None and mask.shape[2] > 1:
            mask = mask.repeat(1, 1, num_heads // num_kv_heads, 1)
    if not need_weights:
        output = _fused_attention(query, key, value, mask, dropout_p)
        return output.reshape(*shape, value.shape[-1]), None
    output, weights = scaled_dot_product_attention(query, key, value, mask, dropout_p)
    weights = weights.reshape(*shape, key.shape[2])
    return output.reshape(*shape, value.shape[-1]), weights


def _combine_masks(query, key, padding_mask, causal, window):
    """Return a boolean (B or 1, 1, T or 1, S), or None if all queries see all keys."""
    num_queries, num_keys = query.shape[2], key.shape[2]
    mask = None
    if causal and (num_queries > 1 or num_keys > window):
        mask = query.new_ones(1, 1, num_queries, num_keys, dtype=torch.bool)
        last = num_keys - num_queries  # the last query sees the last `window` keys
        mask = mask.tril(last).triu(last - window + 1)
    if padding_mask is None:
        return mask
    padding_mask = padding_mask[:, None, None]
    return padding_mask if mask is None else mask & padding_mask


def _fused_attention(query, key, value, mask, dropout_p):
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout_p)
    # Kernels differ where a query may attend to nothing: some give zeros, cuDNN's the
    # mean of all values. So it attends to every key, and its output is set to zero.
    is_empty = ~mask.any(dim=-1, keepdim=True)
    mask = mask | is_empty
    output = F.scaled_dot_product_attention(query, key, value, mask, dropout_p)
    return output.masked_fill(is_empty, 0.0)
