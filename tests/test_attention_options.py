"""Each test pins one sentence about what `utils.attention` leaves to choose."""

import pytest
import torch
from small_layers import random
from torch import nn

from utils.attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention,
    attention_weights,
    causal_mask,
    dropout,
    merge_heads,
    repeat_kv,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import rotary_tables


def build(kind, **options):
    """Return a small layer (B, T, 6) -> (B, T, 12) of one of the three kinds."""
    torch.manual_seed(0)
    if kind is SelfAttention:
        return SelfAttention(6, 12, **options).double()
    p, heads = options.pop("p", 0.0), {MultiHeadAttention: [2]}.get(kind, [])
    return kind(6, 12, 11, p, *heads, **options).double()


KINDS = SelfAttention, CausalAttention, MultiHeadAttention


# Batches, precisions, devices


def test_softmax_takes_the_maximum_of_each_row():
    rows = torch.tensor([[0.0, 0.0], [1000.0, 1000.0]])
    assert torch.equal(softmax(rows), torch.full((2, 2), 0.5))


def test_sentences_of_a_batch_do_not_meet():
    x = random(3, 3, 5, 7)
    for i in range(3):
        torch.testing.assert_close(attention_weights(x)[i], attention_weights(x[i]))


def test_dropout_of_zero_keeps_every_entry_in_any_precision():
    ones = torch.ones(10_000, dtype=torch.bfloat16)  # in which a random number may be 0
    assert torch.equal(dropout(ones, 0.0), ones)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"alibi": True}, {"rotary": True}], ids=str)
def test_a_layer_keeps_the_precision_of_its_input(options, need_weights):
    layer, x = build(MultiHeadAttention, **options), random(2, 5, 6)
    output = layer.bfloat16()(x.bfloat16(), need_weights=need_weights)
    assert (output[0] if need_weights else output).dtype == torch.bfloat16


def test_masks_and_biases_are_made_where_the_queries_are():
    assert causal_mask(3, device="meta").is_meta
    layer, x = build(MultiHeadAttention, alibi=True).to("meta"), torch.empty(2, 5, 6)
    assert layer(x.double().to("meta"), need_weights=True)[1].is_meta


# Weights, biases, dropout


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_layer_with_one_head_returns_its_weights_when_asked(kind):
    layer, x = build(kind), random(2, 5, 6)
    output, weights = layer(x, need_weights=True)
    assert weights.shape == (2, 5, 5)
    torch.testing.assert_close(weights @ layer.W_value(x), output)
    torch.testing.assert_close(layer(x), output)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
def test_queries_keys_and_values_have_a_bias_when_asked(kind, bias):
    layer = build(kind, qkv_bias=bias)
    projections = [layer.W_query, layer.W_key, layer.W_value]
    assert [p.bias is not None for p in projections] == [bias] * 3


def test_dropout_of_causal_attention_acts_on_the_weights_in_training_alone():
    layer, x = build(CausalAttention, p=0.5), random(2, 9, 6)
    output, weights = layer(x, need_weights=True)
    _, whole = layer.eval()(x, need_weights=True)
    torch.testing.assert_close(output, weights @ layer.W_value(x))
    dropped = (weights == 0) & (whole > 0)
    torch.testing.assert_close(weights, (2 * whole).masked_fill(dropped, 0.0))
    assert 0.2 < dropped.sum() / (whole > 0).sum() < 0.8
    torch.testing.assert_close(whole.sum(dim=-1), torch.ones(2, 9).double())


def test_the_weights_returned_are_those_used_after_dropout():
    inputs = [random(2, 5, 6, seed=seed) for seed in range(3)]
    output, weights = scaled_dot_product_attention(*inputs, dropout_p=0.5)
    assert (weights == 0).any()
    torch.testing.assert_close(output, weights @ inputs[2])


# Caches and heads


@pytest.mark.parametrize("need_weights", [False, True])
def test_of_two_new_tokens_the_first_does_not_see_the_second(need_weights):
    layer, x = build(MultiHeadAttention), random(2, 5, 6)
    cache = KeyValueCache(11)
    layer(x[:, :3], cache=cache)
    new = layer(x[:, 3:], cache=cache, need_weights=need_weights)
    new = new[0] if need_weights else new
    torch.testing.assert_close(new, layer(x)[:, 3:])


def test_one_repetition_leaves_the_heads_as_they_are():
    x = random(2, 3, 5, 7)
    assert torch.equal(repeat_kv(x, 1), x)


@pytest.mark.parametrize("num_tokens", range(1, 8))
def test_shared_keys_fit_for_every_number_of_tokens(num_tokens):
    torch.manual_seed(0)
    layer = MultiHeadAttention(6, 12, 11, 0.0, 6, num_kv_heads=2).double()
    x = random(2, num_tokens, 6)
    torch.testing.assert_close(layer(x), layer(x, need_weights=True)[0])


def test_heads_are_split_and_merged_without_a_batch_too():
    x = random(5, 12)
    assert split_heads(x, 3).shape == (3, 5, 4)
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


def test_a_rotary_layer_turns_by_the_base_10_000_unless_another_is_given():
    tables = torch.stack(rotary_tables(torch.arange(11), 6, 10_000.0))
    layer = MultiHeadAttention(6, 12, 11, 0.0, 2, rotary=True)
    assert torch.equal(layer.tables, tables)


def test_a_replaced_projection_may_read_an_x_of_another_width():
    layer = build(MultiHeadAttention, causal=False)
    layer.W_query = nn.Linear(3, 12).double()
    assert layer(random(2, 5, 3), random(2, 7, 6)).shape == (2, 5, 12)


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


def test_a_query_and_a_key_that_do_not_fit_are_named_with_their_shapes():
    shapes = (5, 11), (7, 13), (7, 2)
    said = refused(scaled_dot_product_attention, *(random(*s) for s in shapes))
    assert said == "expected query and key of one width d_k, got (5, 11) and (7, 13)"


def test_a_causal_layer_with_a_context_says_what_it_may_be_told():
    x = random(2, 5, 6)
    assert refused(build(MultiHeadAttention), x, context=x) == (
        "expected causal=False (all of the context may be seen) or causal=True when a "
        "causal layer is called with a context, got neither"
    )


def test_what_only_causal_layers_do_is_refused_by_others():
    said = refused(build, MultiHeadAttention, causal=False, window=3)
    assert said == "expected window and alibi with causal=True alone"
    layer, cache = build(MultiHeadAttention, causal=False), KeyValueCache(11)
    said = refused(layer, random(2, 5, 6), cache=cache)
    assert said == "expected a cache with causal self-attention alone"
