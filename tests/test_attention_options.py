"""Each test pins one sentence about what `utils.attention` leaves to choose."""

import pytest
import torch
from small_layers import random

from utils.attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention,
    scaled_dot_product_attention,
)
from utils.cache import KeyValueCache


def build(kind, **options):
    """Return a small layer (B, T, 6) -> (B, T, 12) of one of the three kinds."""
    torch.manual_seed(0)
    if kind is SelfAttention:
        return SelfAttention(6, 12, **options).double()
    p, heads = options.pop("p", 0.0), {MultiHeadAttention: [2]}.get(kind, [])
    return kind(6, 12, 11, p, *heads, **options).double()


KINDS = SelfAttention, CausalAttention, MultiHeadAttention


# Batches, precisions, devices


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"alibi": True}, {"rotary": True}], ids=str)
def test_a_layer_keeps_the_precision_of_its_input(options, need_weights):
    layer, x = build(MultiHeadAttention, **options), random(2, 5, 6)
    output = layer.bfloat16()(x.bfloat16(), need_weights=need_weights)
    assert (output[0] if need_weights else output).dtype == torch.bfloat16


# Weights, biases, dropout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
def test_queries_keys_and_values_have_a_bias_when_asked(kind, bias):
    layer = build(kind, qkv_bias=bias)
    projections = [layer.W_query, layer.W_key, layer.W_value]
    assert [p.bias is not None for p in projections] == [bias] * 3


def test_the_weights_returned_are_those_used_after_dropout():
    inputs = [random(2, 5, 6, seed=seed) for seed in range(3)]
    output, weights = scaled_dot_product_attention(*inputs, dropout_p=0.5)
    assert (weights == 0).any()
    torch.testing.assert_close(output, weights @ inputs[2])


# Caches and heads


# What is refused, in whole sentences


def refused(call, *words, **options):
    with pytest.raises(ValueError) as error:
        call(*words, **options)
    return str(error.value)


def test_a_width_that_does_not_fit_is_named_with_its_axes():
    for kind, axes in zip(KINDS, ("..., T", "..., T", "B, T")):
        said = refused(build(kind), random(2, 5, 4))
        assert said == f"expected x ({axes}, 6), got (2, 5, 4)"


@pytest.mark.parametrize("shape", [(2, 7, 5), (2, 1, 7, 6), (7, 6)])
def test_a_context_that_does_not_fit_is_named(shape):
    layer = build(MultiHeadAttention, causal=False)
    said = refused(layer, random(2, 5, 6), random(*shape))
    assert said == f"expected context (B, T, 6), got {shape}"


def test_what_only_causal_layers_do_is_refused_by_others():
    said = refused(build, MultiHeadAttention, causal=False, window=3)
    assert said == "expected window and alibi with causal=True alone"
    layer, cache = build(MultiHeadAttention, causal=False), KeyValueCache(11)
    said = refused(layer, random(2, 5, 6), cache=cache)
    assert said == "expected a cache with causal self-attention alone"
