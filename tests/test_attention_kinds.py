"""Each test pins one sentence about the kinds of `MultiHeadAttention`, and its cache.

Rotation, shared keys and values, ALiBi, a window.
"""

import pytest
import torch
from small_layers import KINDS, grouped, random

from utils.attention import (
    causal_mask,
    masked_softmax,
    padding_mask,
    repeat_kv,
    scaled_dot_product_attention,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, apply_rope


def test_shared_keys_and_values_equal_a_layer_that_repeats_them():
    layer, x = grouped(num_kv_heads=2), random(2, 7, 5)
    full = grouped(num_kv_heads=6)
    full.load_state_dict(
        {
            name: p.unflatten(0, (2, 4)).repeat_interleave(3, dim=0).flatten(0, 1)
            if name in ("W_key.weight", "W_value.weight")
            else p
            for name, p in layer.state_dict().items()
        }
    )
    torch.testing.assert_close(layer(x), full(x))


def test_rotary_turns_as_apply_rope_does_with_the_base_of_the_layer():
    layer, x = grouped(rotary=True, rope_base=50.0), random(2, 7, 5)
    _, weights = layer(x, need_weights=True)
    query = apply_rope(split_heads(layer.W_query(x), 6), torch.arange(7), base=50.0)
    key = apply_rope(split_heads(layer.W_key(x), 2), torch.arange(7), base=50.0)
    _, expected = scaled_dot_product_attention(
        query, repeat_kv(key, 3), repeat_kv(key, 3), causal_mask(7)
    )
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)


def test_alibi_adds_its_bias_to_the_scores():
    layer, x = grouped(alibi=True), random(2, 7, 5)
    _, weights = layer(x, need_weights=True)
    query = split_heads(layer.W_query(x), 6)
    key = repeat_kv(split_heads(layer.W_key(x), 2), 3)
    scores = query @ key.mT / 2 + alibi_bias(6, 7)
    torch.testing.assert_close(weights, masked_softmax(scores, causal_mask(7)))


@pytest.mark.parametrize("window", [1, 3, 7, 20])
def test_a_window_hides_what_lies_further_back(window):
    _, weights = grouped(window=window)(random(2, 7, 5), need_weights=True)
    expected = torch.tensor([[0 <= i - j < window for j in range(7)] for i in range(7)])
    assert torch.equal(weights > 0, expected.expand(2, 6, 7, 7))


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
