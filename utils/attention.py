"""Attention, from a softmax to several heads.

Shapes: B batch, T tokens (queries), S tokens attended to (keys), D model width,
H heads, K head width. Boolean masks: True = may attend. A query that may attend
to nothing gets weights of zero and an output of zero.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, rotary_tables, rotate_pairs
from utils.validation import (
    check_broadcastable,
    check_cache,
    check_divisible,
    check_length,
    check_query_key_value,
    check_tokens,
    check_width,
)


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
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


def attention_weights(x: Tensor) -> Tensor:
    """Weigh every token against every other by plain dot products.

    softmax(X X^T), row by row, without scaling and without learned weights.

    x: (..., T, D)
    returns: (..., T, T), rows are queries and sum to one

    >>> attention_weights(torch.zeros(2, 3))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return softmax(x @ x.transpose(-2, -1), dim=-1)


def context_vectors(x: Tensor) -> Tensor:
    """Replace every token by the weighted sum of all tokens.

    softmax(X X^T) X

    x: (..., T, D)
    returns: (..., T, D)

    >>> context_vectors(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """
    return attention_weights(x) @ x


def causal_mask(num_tokens: int) -> Tensor:
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
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).tril()


def padding_mask(lengths: Tensor | list[int], num_tokens: int) -> Tensor:
    """Mark the real tokens of sentences that are padded on the right.

    lengths: B integers, each from 0 to `num_tokens`
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


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the softmax of the allowed positions along the last axis.

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
    if mask.dtype != torch.bool:  # True = may attend
        raise ValueError(f"expected a boolean mask, got {mask.dtype}")
    check_broadcastable("a mask", mask, scores.shape)
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero each entry with probability `p` and scale the survivors by 1 / (1 - p).

    The scaling leaves the expected value of every entry as it is (inverted dropout;
    Srivastava et al. 2014, section 10). Call it only during training.

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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Average the values, weighted by how well each key matches the query.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k)
    value: (..., S, d_v), d_v may differ from d_k
    mask: boolean, broadcasts to (..., T, S), True = may attend
    dropout_p: fraction of the weights that is dropped; 0 except during training
    bias: added to the scores, broadcasts to (..., T, S)
    returns: output (..., T, d_v) and the weights used, after dropout, (..., T, S)

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
        check_broadcastable("a bias", bias, scores.shape)
        scores = scores + bias
    weights = masked_softmax(scores, mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return weights @ value, weights


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
    bias: Tensor | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute `scaled_dot_product_attention` with PyTorch's fused kernels.

    Kernels differ where a query may attend to nothing: some give zeros, cuDNN's gives
    the mean of all values. Here such a query attends to every key, so that no kernel
    meets an empty row, and its output is then set to zero.

    query, key, value, mask, dropout_p, bias: as `scaled_dot_product_attention` takes
        them, with a leading axis for sentences and one for heads
    scale: factor for the scores; 1 / sqrt(d_k) by default
    enable_gqa: whether neighbouring query heads share a key head
    returns: output (B, H, T, d_v), without the weights

    >>> x, mask = torch.ones(1, 1, 2, 3), torch.tensor([[True, False], [False, False]])
    >>> fused_attention(x, x, x, mask)
    tensor([[[[1., 1., 1.],
              [0., 0., 0.]]]])
    """
    options = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, bias, **options)
    is_empty = ~mask.any(dim=-1, keepdim=True)  # (..., T, 1)
    mask = mask | is_empty
    if bias is not None:
        mask = bias.masked_fill(~mask, float("-inf"))
    output = F.scaled_dot_product_attention(query, key, value, mask, **options)
    return output.masked_fill(is_empty, 0.0)


def online_softmax_attention(
    query: Tensor, key: Tensor, value: Tensor, block_size: int
) -> Tensor:
    """Attend to the keys block by block, without the whole (T, S) matrix.

    softmax(Q K^T / sqrt(d_k)) V

    query: (..., T, d_k)
    key: (..., S, d_k), one key or more
    value: (..., S, d_v)
    returns: output (..., T, d_v)

    Raises ValueError for shapes that do not fit.

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, algorithm 1, of
    which this is only the loop over the keys.

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


def attend_with_cache(
    query: Tensor, key: Tensor, value: Tensor, cache: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Let new tokens attend to those in a cache, to themselves and to new ones before.

    query, key: (..., T, d_k), of the new tokens
    value: (..., T, d_v)
    cache: keys and values of all tokens before, or None at the beginning
    returns: output (..., T, d_v), and a new pair of the keys and values of all tokens

    It copies the cache for each step; `utils.cache.KeyValueCache` doesn't.

    >>> key, value = torch.tensor([[1.0], [2.0]]).log(), torch.tensor([[6.0], [12.0]])
    >>> _, cache = attend_with_cache(torch.ones(1, 1), key[:1], value[:1], None)
    >>> attend_with_cache(torch.ones(1, 1), key[1:], value[1:], cache)[0]
    tensor([[10.]])
    """
    if cache is not None:
        key, value = (torch.cat(pair, dim=-2) for pair in zip(cache, (key, value)))
    mask = causal_mask(key.shape[-2])[-query.shape[-2] :].to(query.device)
    return F.scaled_dot_product_attention(query, key, value, mask), (key, value)


class SelfAttention(nn.Module):
    """Let every token attend to every token of its own sentence.

    softmax(Q K^T / sqrt(d_out)) V with Q = x W_query, K = x W_key, V = x W_value

    x: (..., T, d_in)
    returns: (..., T, d_out), and weights (..., T, T) with `need_weights=True`

    Raises ValueError if the last axis of x is not `d_in`.

    >>> SelfAttention(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])

    Source: Vaswani et al. 2017, section 3.2, with one head and no output projection.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False):
        super().__init__()
        self.d_in = d_in
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(
        self, x: Tensor, need_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        check_width("x", x, self.d_in)
        output, weights = scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )
        return (output, weights) if need_weights else output


class CausalAttention(SelfAttention):
    """Let every token attend to itself and to the tokens before it.

    x: (B, T, d_in) with T up to `context_length`
    returns: (B, T, d_out), and weights (B, T, T) with `need_weights=True`

    The mask is a buffer: it follows the module to another device. It is not saved,
    because `context_length` determines it. Dropout acts on the weights, only during
    training.

    Raises ValueError if x has another width or more than `context_length` tokens.

    >>> CausalAttention(3, 2, context_length=6, dropout=0.0)(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 2])

    Source: Vaswani et al. 2017, section 3.2.3.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ):
        super().__init__(d_in, d_out, qkv_bias)
        self.dropout_p = dropout
        self.register_buffer("mask", causal_mask(context_length), persistent=False)

    def forward(
        self, x: Tensor, need_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
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


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Give each head its consecutive features: head h owns h*K ... (h+1)*K - 1.

    x: (B, T, D)
    returns: (B, H, T, K) with K = D / H

    Raises ValueError if D is not divisible by the number of heads.

    >>> split_heads(torch.arange(8).view(1, 2, 4), num_heads=2)[0, 1]
    tensor([[2, 3],
            [6, 7]])
    """
    width = x.shape[-1]
    check_divisible(width, num_heads)
    heads = x.reshape(*x.shape[:-1], num_heads, width // num_heads)  # (B, T, H, K)
    return heads.transpose(-3, -2)  # (B, H, T, K)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads of each token side by side: the inverse of `split_heads`.

    x: (B, H, T, K)
    returns: (B, T, H*K)

    >>> x = torch.arange(8).view(1, 2, 4)
    >>> torch.equal(merge_heads(split_heads(x, num_heads=2)), x)
    True
    """
    if x.dim() < 3:
        raise ValueError(f"expected heads (B, H, T, K), got {tuple(x.shape)}")
    return x.transpose(-3, -2).flatten(-2)  # (B, T, H, K), then (B, T, H*K)


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    """Repeat each key-value head for `n_rep` neighbouring query heads.

    x: (B, H_kv, T, K)
    returns: (B, H_kv * n_rep, T, K), query head h uses head h // n_rep of x

    Raises ValueError for fewer than one repetition.

    >>> repeat_kv(torch.tensor([[[[1]], [[2]]]]), n_rep=2).flatten()
    tensor([1, 1, 2, 2])

    Source: Ainslie et al. 2023, section 2.2.
    """
    if n_rep < 1:
        raise ValueError(f"expected n_rep of 1 or more, got {n_rep}")
    return x.repeat_interleave(n_rep, dim=-3)


class MultiHeadAttention(nn.Module):
    """Attend with several heads, each in its own slice of the features.

    Concat(head_1 ... head_H) W_out, where head_h is the attention of slice h

    x: (B, T, d_in), the queries
    context: (B, S, d_in), where keys and values come from; x itself by default
    padding_mask: boolean (B, S), True = a real token, which may be attended to; S
        includes the tokens in the cache
    cache: `KeyValueCache` of the tokens before x; the tokens of x are added to it
    causal: replaces the layer's own setting, for this call only
    returns: (B, T, d_out), and weights (B, H, T, S) with `need_weights=True`

    With `causal=True` a token attends to itself and to the tokens before it, `window`
    in all. A causal layer cannot know how much of a separate context a query may see,
    so such a call passes `causal=False`, or `causal=True` if context and x end
    together.

    With fewer `num_kv_heads` than heads, neighbouring heads share their keys and
    values without copying them (grouped-query attention; with one, multi-query). With
    `rotary=True` queries and keys are rotated by position, unless there is a separate
    context. With `alibi=True` the scores of a causal layer fall with the distance.

    Without `need_weights`, PyTorch's fused kernels compute the output and nothing of
    size (T, S) is stored, with these exceptions: a causal mask together with a cache,
    padding or a window becomes a boolean (B or 1, 1, T, S), ALiBi adds a bias (B or 1,
    H, T, S), and on the CPU the kernel has no dropout.

    Raises ValueError if a width is wrong or not divisible by its number of heads, if a
    causal or rotary x (together with the cache) has more than `context_length` tokens,
    if the padding mask is not boolean (B, S), if a causal layer gets a context without
    `causal`, or if a cache, a window or ALiBi does not fit.

    >>> layer = MultiHeadAttention(3, 4, context_length=6, dropout=0.0, num_heads=2)
    >>> output, weights = layer(torch.zeros(2, 5, 3), need_weights=True)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 2, 5, 5]))

    Source: Vaswani et al. 2017, section 3.2.2. Here q, k and v have no bias unless
    `qkv_bias=True`, and `d_out` is the width of all heads together.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        *,
        causal: bool = True,
        num_kv_heads: int | None = None,
        window: int | None = None,
        rotary: bool = False,
        rope_base: float = 10000.0,
        alibi: bool = False,
    ):
        super().__init__()
        check_divisible(d_out, num_heads)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        _check_options(num_heads, num_kv_heads, window, alibi, causal)
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
        x: Tensor,
        context: Tensor | None = None,
        padding_mask: Tensor | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
        causal: bool | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        causal = self._resolve_causal(context, causal)
        self._check_inputs(x, context, padding_mask, causal, cache)
        query, key, value = self._project_heads(x, context, cache)
        if self.rotary and context is None:
            start = 0 if cache is None else len(cache)
            query, key = self._rotate(query, start), self._rotate(key, start)
        if cache is not None:
            key, value = cache.append(key, value)
        output, weights = attend_with_heads(
            query,
            key,
            value,
            padding_mask,
            causal=causal,
            window=self.window,
            alibi=self.alibi,
            dropout_p=self.dropout_p if self.training else 0.0,
            need_weights=need_weights,
        )
        output = self.out_proj(merge_heads(output))  # (B, T, d_out)
        return (output, weights) if need_weights else output

    def new_cache(self, num_tokens: int) -> KeyValueCache:
        """Return an empty cache with room for `num_tokens`."""
        return KeyValueCache(num_tokens, self.window)

    def _project_heads(self, x, context, cache):
        """Return query (B, H, T, K), key and value (B, H_kv, S, K)."""
        layers = self.W_query, self.W_key, self.W_value
        counts = self.num_heads, self.num_kv_heads, self.num_kv_heads
        is_joint = context is None and cache is None and not x.is_cpu
        if is_joint and all(map(_is_plain_linear, layers)):
            # A GPU takes longer to start three products than to compute a larger one.
            # A step of decoding would wait for the copy of the weights instead.
            heads = _project_together(x, layers).view(*x.shape[:2], -1, self.head_dim)
            return [t.transpose(1, 2) for t in heads.split(counts, dim=2)]
        source = x if context is None else context
        projected = [W(t) for W, t in zip(layers, (x, source, source))]
        for name, t, num_heads in zip(PROJECTIONS, projected, counts):
            check_width(name, t, num_heads * self.head_dim, dims=3)
        return [split_heads(t, n) for t, n in zip(projected, counts)]

    def _rotate(self, x, start):
        return rotate_pairs(x, *self.tables[:, start : start + x.shape[-2]])

    def _input_width(self, projection):  # a replaced one may not have `in_features`
        return getattr(projection, "in_features", self.d_in)

    def _resolve_causal(self, context, causal):
        if causal is None and context is not None and self.causal:
            raise ValueError(
                "expected causal=False (all of the context may be seen) or causal=True "
                "when a causal layer is called with a context, got neither"
            )
        return self.causal if causal is None else causal

    def _check_inputs(self, x, context, padding_mask, causal, cache):
        width = self._input_width(self.W_query)
        check_cache(cache, causal and context is None, self.window)
        if context is not None:
            check_width("x", x, width, dims=3)
            width = self._input_width(self.W_key)
            check_tokens("context", context, width, padding_mask)
            if len(context) != len(x):
                raise ValueError(
                    f"expected a context for each of {len(x)} sentences, "
                    f"got {len(context)}"
                )
            return
        num_cached = 0 if cache is None else len(cache)
        num_keys = check_tokens("x", x, width, padding_mask, num_cached)
        if causal or self.rotary:
            check_length(num_keys, self.context_length)


def attend_with_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding_mask: Tensor | None = None,
    *,
    causal: bool = True,
    window: int | None = None,
    alibi: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Let the newest tokens attend, by the fastest of PyTorch's kernels that can do it.

    query: (B, H, T, K), the last T of the S tokens
    key, value: (B, H_kv, S, K) and (B, H_kv, S, V), shared by neighbouring query heads
    padding_mask: boolean (B, S), True = a real token, which may be attended to
    causal, window, alibi: as `MultiHeadAttention` takes them
    scale: factor for the scores; 1 / sqrt(K) by default
    dropout_p: fraction of the weights that is dropped; 0 except during training
    returns: output (B, H, T, V), and weights (B, H, T, S) or None

    >>> query, key = torch.zeros(1, 2, 1, 3), torch.zeros(1, 1, 4, 3)
    >>> value = torch.tensor([1.0, 2.0, 3.0, 6.0]).view(1, 1, 4, 1)
    >>> attend_with_heads(query, key, value)[0].flatten()
    tensor([3., 3.])
    """
    num_heads, num_queries = query.shape[1:3]
    num_kv_heads, num_keys = key.shape[1:3]
    enable_gqa = num_kv_heads != num_heads
    is_square = num_queries == num_keys <= (window or num_keys)
    needs_more = need_weights or alibi or padding_mask is not None
    if causal and is_square and not needs_more:
        # The kernel then skips the future and needs no (T, S) mask. It aligns its own
        # mask at the top left, which is right only for a square.
        options = {"is_causal": True, "scale": scale, "enable_gqa": enable_gqa}
        attend = F.scaled_dot_product_attention
        return attend(query, key, value, None, dropout_p, **options), None
    mask, bias = _combine_masks(query, key, padding_mask, causal, window), None
    if alibi and causal:
        bias = alibi_bias(num_heads, num_keys, num_queries, query.device)[None]
        bias = bias.to(query.dtype)
    # For one token this is faster than `enable_gqa`, whose kernels don't take values of
    # another width than the keys without copying both.
    is_one_width = key.shape[-1] == value.shape[-1]
    if enable_gqa and (need_weights or num_queries == 1 or not is_one_width):
        # Heads that share their keys become one head, which has all their queries.
        shape = -1, num_heads, num_queries, -1
        tensors = query, *(t if t is None else t.expand(shape) for t in (mask, bias))
        query, mask, bias = (
            t if t is None else _regroup(t, num_kv_heads) for t in tensors
        )
        enable_gqa = False
    if need_weights:
        if scale is not None:  # in place of the one that the function divides by
            query = query * (scale * query.shape[-1] ** 0.5)
        parts = scaled_dot_product_attention(query, key, value, mask, dropout_p, bias)
        return tuple(_regroup(part, num_heads) for part in parts)
    options = {"scale": scale, "enable_gqa": enable_gqa}
    output = fused_attention(query, key, value, mask, dropout_p, bias, **options)
    return _regroup(output, num_heads), None


PROJECTIONS = "output of W_query", "output of W_key", "output of W_value"


def _project_together(x, layers):
    """Apply linear layers to the same x as one product; all have a bias, or none."""
    weight, bias = torch.cat([layer.weight for layer in layers]), None
    if layers[0].bias is not None:
        bias = torch.cat([layer.bias for layer in layers])
    return F.linear(x, weight, bias)


def _is_plain_linear(layer):
    # A projection that was replaced, split or hooked is called itself.
    hooks = layer._forward_hooks or layer._forward_pre_hooks
    is_linear = type(layer) is nn.Linear and type(layer.weight) is nn.Parameter
    return is_linear and not hooks


def _regroup(x, num_heads):
    """Stack the rows of neighbouring heads into fewer heads, or undo that."""
    batch_size, heads, num_rows, width = x.shape
    return x.reshape(batch_size, num_heads, heads * num_rows // num_heads, width)


def _combine_masks(query, key, padding_mask, causal, window):
    """Combine the causal mask, a window and the padding, for the newest tokens.

    returns: boolean (B or 1, 1, T or 1, S), True = may attend; None if every query may
        attend to every key
    """
    num_queries, num_keys = query.shape[-2], key.shape[-2]
    exceeds_window = window is not None and num_keys > window
    mask = None
    if causal and (num_queries > 1 or exceeds_window):  # else the newest sees all keys
        all_allowed = query.new_ones(1, 1, num_queries, num_keys, dtype=torch.bool)
        mask = all_allowed.tril(num_keys - num_queries)  # the last query sees all keys
        if exceeds_window:
            mask = mask.triu(num_keys - num_queries - window + 1)
    if padding_mask is None:
        return mask
    keys = padding_mask[:, None, None, padding_mask.shape[-1] - num_keys :]
    return keys if mask is None else mask & keys  # (B, 1, T, S)


def _check_options(num_heads, num_kv_heads, window, alibi, causal):
    if num_kv_heads < 1 or num_heads % num_kv_heads:
        raise ValueError(
            f"expected num_kv_heads to divide num_heads, "
            f"got {num_kv_heads} and {num_heads}"
        )
    if window is not None and window < 1:
        raise ValueError(f"expected a window of 1 or more, got {window}")
    if (alibi or window is not None) and not causal:
        raise ValueError("expected window and alibi only with causal=True")
