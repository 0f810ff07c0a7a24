"""Latent attention: keys and values computed from one narrow vector per token.

Shapes: B batch, T tokens (queries), S tokens attended to (keys), H heads, d_k width
of a head, d_c width of a latent, d_rot width of the rotated part.
"""

import torch
from torch import Tensor, nn

from utils.attention import (
    MultiHeadAttention,
    attend_with_heads,
    dot_products,
    masked_softmax,
    merge_heads,
    split_heads,
)
from utils.cache import KeyValueCache, restore_on_error
from utils.embeddings import Rotary
from utils.validation import (
    NonNegativeInt,
    PositiveInt,
    Proportion,
    check_context_length,
    check_divisible,
    check_even,
    check_inputs,
    check_tokens,
)


@check_inputs("latent (B, S, d_c); W_uk (H, d_c, d_k); W_uv (H, d_c, d_v)")
def latent_keys_values(
    latent: Tensor, W_uk: Tensor, W_uv: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute each head's keys and values from the cached latents.

    latent: (B, S, d_c)
    W_uk, W_uv: (H, d_c, d_k) and (H, d_c, d_v), a matrix for each head
    returns: keys (B, H, S, d_k) and values (B, H, S, d_v)

    >>> sizes = torch.zeros(2, 5, 3), torch.zeros(7, 3, 4), torch.zeros(7, 3, 6)
    >>> [tuple(t.shape) for t in latent_keys_values(*sizes)]
    [(2, 7, 5, 4), (2, 7, 5, 6)]

    Source: DeepSeek-AI 2024, *DeepSeek-V2*, section 2.1.2, equations 10 and 11.
    """
    latent = latent[:, None]  # (B, 1, S, d_c)
    return latent @ W_uk, latent @ W_uv


@check_inputs("query (B, H, T, d_k); latent (B, S, d_c); W_uk (H, d_c, d_k)")
def absorbed_scores(query: Tensor, latent: Tensor, W_uk: Tensor) -> Tensor:
    """Compare queries with the latents themselves, without computing keys.

    q (c W_uk)^T = (q W_uk^T) c^T

    query: (B, H, T, d_k)
    latent: (B, S, d_c)
    W_uk: (H, d_c, d_k)
    returns: (B, H, T, S), not scaled, of 16-bit inputs in float32

    >>> query, latent = torch.ones(1, 1, 1, 2), torch.tensor([[[3.0]]])
    >>> absorbed_scores(query, latent, torch.tensor([[[1.0, 4.0]]]))
    tensor([[[[15.]]]])

    Source: DeepSeek-AI 2024, *DeepSeek-V2*, section 2.1.2.
    """
    return dot_products(dot_products(query, W_uk), latent[:, None])


@check_inputs(
    "query (B, H, T, d_k); rotated_query (B, H, T, d_rot); latent (B, S, d_c); "
    "rotated_key (B, S, d_rot); W_uk (H, d_c, d_k); W_uv (H, d_c, d_v)"
)
def absorbed_attention(
    query: Tensor,
    rotated_query: Tensor,
    latent: Tensor,
    rotated_key: Tensor,
    W_uk: Tensor,
    W_uv: Tensor,
) -> Tensor:
    """Attend to all cached tokens, without computing their keys or values.

    scores = (q W_uk^T c + q_rot k_rot) / sqrt(d_k + d_rot)
    output = (softmax(scores) c) W_uv

    query, rotated_query: (B, H, T, d_k) and (B, H, T, d_rot), rotated by position
    latent, rotated_key: (B, S, d_c) and (B, S, d_rot), both shared by all heads
    W_uk, W_uv: (H, d_c, d_k) and (H, d_c, d_v)
    returns: (B, H, T, d_v), the outputs of the heads

    >>> one, latent = torch.ones(1, 1, 1, 1), torch.tensor([[[1.0], [3.0]]])
    >>> matrices = torch.zeros(1, 1, 1), torch.full((1, 1, 1), 5.0)
    >>> absorbed_attention(one, one, latent, torch.ones(1, 2, 1), *matrices)
    tensor([[[[10.]]]])

    Source: DeepSeek-AI 2024, *DeepSeek-V2*, sections 2.1.2 and 2.1.3.
    """
    width = query.shape[-1] + rotated_query.shape[-1]
    scores = absorbed_scores(query, latent, W_uk)
    scores = scores + dot_products(rotated_query, rotated_key[:, None])
    weights = masked_softmax(scores / width**0.5)
    latent, W_uv = latent.to(weights.dtype), W_uv.to(weights.dtype)
    return (weights @ latent[:, None] @ W_uv).to(query.dtype)


class LatentAttention(nn.Module):
    """Attend with several heads whose keys and values come from one latent per token.

    latent = norm(x W_latent);  keys latent W_up_key;  values latent W_up_value

    It replaces a causal `MultiHeadAttention`, and takes and returns the same (x,
    `padding_mask`, `need_weights`, `cache`), with the same limits. The cache
    stores latents instead of keys, and the rotated keys instead of values.

    absorbed: True compares queries with the latents, False computes keys and values;
        None chooses the form with fewer operations. The output is the same.

    With `rotary=True` each query has `rotary_dim` further features (an even number, by
    default half a head or one less, but two at least), and all heads share one key of
    that width: these are rotated by position, and the rest is not. A latent is
    `latent_dim` wide, by default four times the width of a head.

    >>> layer = LatentAttention(3, 8, context_length=6, dropout=0.0, num_heads=2)
    >>> layer(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 8])

    Source: DeepSeek-AI 2024, *DeepSeek-V2*, section 2.1. Queries come from x
    itself, as in DeepSeek-V2-Lite, and a value is as wide as the part of a key that is
    not rotated.
    """

    @check_inputs()
    def __init__(
        self,
        d_in: PositiveInt,
        d_out: PositiveInt,
        context_length: NonNegativeInt,
        dropout: Proportion,
        num_heads: PositiveInt,
        *,
        latent_dim: PositiveInt | None = None,
        rotary: bool = False,
        rotary_dim: int | None = None,
        rope_base: float = 10000.0,
    ):
        super().__init__()
        check_divisible(d_out, num_heads)
        self.d_in = d_in
        self.context_length = context_length
        self.num_heads = num_heads
        self.head_dim = head_dim = d_out // num_heads
        self.latent_dim = 4 * head_dim if latent_dim is None else latent_dim
        rotary_dim = max(2, head_dim // 4 * 2) if rotary_dim is None else rotary_dim
        check_even("rotary_dim", rotary_dim)
        self.rotary_dim = rotary_dim if rotary else 0
        self.dropout_p = dropout
        d_query = num_heads * (head_dim + self.rotary_dim)
        self.W_query = nn.Linear(d_in, d_query, bias=False)
        self.W_latent = nn.Linear(d_in, self.latent_dim, bias=False)
        self.norm = nn.RMSNorm(self.latent_dim, eps=1e-6)
        self.W_up_key = nn.Linear(self.latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(self.latent_dim, d_out, bias=False)
        self.W_rotary = None
        self.out_proj = nn.Linear(d_out, d_out)
        if rotary:
            self.rotate = Rotary(context_length, self.rotary_dim, rope_base)
            self.W_rotary = nn.Linear(d_in, self.rotary_dim, bias=False)

    @check_inputs()
    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
        absorbed: bool | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        start = 0 if cache is None else len(cache)
        num_tokens = check_tokens("x", x, self, padding_mask, start)
        check_context_length(num_tokens, self.context_length)
        query = split_heads(self.W_query(x), self.num_heads)  # (B, H, T, d_k + d_rot)
        query, rotated_query = query.split((self.head_dim, self.rotary_dim), dim=-1)
        latent = self.W_latent(x)  # (B, T, d_c), in 16 bits under autocast
        latent = self.norm(latent.to(self.norm.weight.dtype)).to(latent.dtype)
        latent = latent[:, None]  # (B, 1, T, d_c)
        rotated_key = x.new_empty(*x.shape[:2], 0)[:, None]  # (B, 1, T, d_rot)
        if self.rotary_dim:
            rotated_query = self.rotate(rotated_query, start)
            rotated_key = self.rotate(self.W_rotary(x)[:, None], start)
        with restore_on_error([cache]):
            if cache is not None:
                latent, rotated_key = cache.append(latent, rotated_key)
            if absorbed is None:
                absorbed = self._is_absorbing_cheaper(query.shape[-2], latent.shape[-2])
            shape = self.num_heads, self.head_dim, self.latent_dim
            W_uk = self.W_up_key.weight.view(shape).mT  # (H, d_c, d_k)
            W_uv = self.W_up_value.weight.view(shape).mT
            if absorbed:
                query, key, value = query @ W_uk.mT, latent, latent
            else:
                key, value = latent_keys_values(latent[:, 0], W_uk, W_uv)
                rotated_key = rotated_key.expand(-1, self.num_heads, -1, -1)
            # d_k + d_rot wide, or d_c + d_rot: query (B, H, T, …), key (B, H | 1, S, …)
            query = torch.cat((query, rotated_query), dim=-1)
            key = torch.cat((key, rotated_key), dim=-1)
            if absorbed:  # PyTorch divides by √(d_c + d_rot), not by √(d_k + d_rot)
                width = self.head_dim + self.rotary_dim
                query = query * (query.shape[-1] / width) ** 0.5
            output, weights = attend_with_heads(
                query,
                key,
                value,
                padding_mask,
                dropout_p=self.dropout_p if self.training else 0.0,
                need_weights=need_weights,
            )
            if absorbed:
                output = output @ W_uv
            output = self.out_proj(merge_heads(output))  # (B, T, d_out)
        return (output, weights) if need_weights else output

    new_cache = MultiHeadAttention.new_cache

    def _is_absorbing_cheaper(self, num_queries, num_keys):
        # Multiplications per head, without those of the rotated part, which are equal.
        d_k, d_c = self.head_dim, self.latent_dim
        expanded = num_keys * d_k * d_c + num_queries * num_keys * d_k
        return num_queries * d_k * d_c + num_queries * num_keys * d_c < expanded
