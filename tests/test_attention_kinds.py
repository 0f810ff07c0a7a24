"""Each test pins one sentence about the kinds of `MultiHeadAttention`, and its cache.

Rotation, shared keys and values, ALiBi, a window.
"""

import pytest
import torch
from small_layers import KINDS, grouped, random

from utils.attention import (
    masked_softmax,
    merge_heads,
    padding_mask,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, apply_rope


@pytest.mark.parametrize("kind", [*KINDS, {"rotary": True, "rope_base": 50.0}], ids=str)
def test_every_kind_follows_its_formula(kind):
    layer, x, places = grouped(**kind), random(2, 7, 5), torch.arange(7)
    query, key, value = (
        split_heads(W(x), W.out_features // 4)
        for W in (layer.W_query, layer.W_key, layer.W_value)
    )
    if "rotary" in kind:
        base = kind.get("rope_base", 10000.0)
        query, key = (apply_rope(t, places, base) for t in (query, key))
    key, value = (t.repeat_interleave(6 // t.shape[1], dim=1) for t in (key, value))
    scores = query @ key.mT / 2
    if "alibi" in kind:
        scores = scores + alibi_bias(6, 7)
    back = places[:, None] - places
    expected = masked_softmax(scores, (back >= 0) & (back < kind.get("window", 7)))
    output, weights = layer(x, need_weights=True)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)
    by_hand = layer.out_proj(merge_heads(expected @ value))
    torch.testing.assert_close(output, by_hand, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_token_behind_padding_alone_gets_zeros_in_every_kind(kind, need_weights):
    layer, x = grouped(**kind), random(3, 7, 5).requires_grad_()
    padding = padding_mask([7, 4, 0], 7).flip(-1)
    output = layer(x, padding_mask=padding, need_weights=need_weights)
    output = output[0] if need_weights else output
    empty = ~padding
    expected = layer.out_proj.bias.expand(int(empty.sum()), 24)
    torch.testing.assert_close(output[empty], expected)
    output.square().sum().backward()
    assert x.grad.isfinite().all()


def test_a_cache_with_another_window_is_named():
    with pytest.raises(ValueError, match="a cache with window=3, got None"):
        grouped(window=3)(random(2, 5, 5), cache=KeyValueCache(13))
