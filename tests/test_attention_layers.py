"""Each test pins one sentence about the layers of `utils.attention`."""

import pytest
import torch
import torch.nn.functional as F
from small_layers import grouped, random
from torch import nn

from utils.attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from utils.cache import KeyValueCache


def test_self_attention_equals_torch_on_its_projections():
    layer, x = SelfAttention(5, 7, qkv_bias=True).double(), random(2, 3, 11, 5)
    assert layer.W_query.bias is not None
    expected = F.scaled_dot_product_attention(
        layer.W_query(x), layer.W_key(x), layer.W_value(x)
    )
    torch.testing.assert_close(layer(x), expected)


def torch_twin(layer):
    """Give `nn.MultiheadAttention` the weights of our layer, whose widths are equal."""
    width = layer.out_proj.in_features
    twin = nn.MultiheadAttention(width, layer.num_heads, batch_first=True).double()
    projections = (layer.W_query, layer.W_key, layer.W_value)
    twin.load_state_dict(
        {
            "in_proj_weight": torch.cat([linear.weight for linear in projections]),
            "in_proj_bias": torch.zeros(3 * width),
            "out_proj.weight": layer.out_proj.weight,
            "out_proj.bias": layer.out_proj.bias,
        }
    )
    return twin


def test_cross_attention_equals_torch_with_a_padded_context():
    torch.manual_seed(0)
    layer = MultiHeadAttention(10, 10, 5, 0.0, num_heads=2, causal=False).double()
    x, context = random(3, 5, 10), random(3, 7, 10, seed=1)
    padding = padding_mask([7, 4, 1], 7)
    twin = torch_twin(layer)
    # In nn.MultiheadAttention True means "may not attend".
    expected, expected_weights = twin(
        x, context, context, key_padding_mask=~padding, average_attn_weights=False
    )
    output, weights = layer(x, context, padding, need_weights=True)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_the_mask_of_causal_attention_follows_the_module_and_is_not_saved():
    layer = CausalAttention(3, 2, 6, 0.0)
    assert layer.to("meta").mask.is_meta
    assert "mask" not in layer.state_dict()


# What is chosen, and what is refused


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"alibi": True}, {"rotary": True}], ids=str)
def test_a_layer_keeps_the_precision_of_its_input(options, need_weights):
    layer, x = grouped(**options), random(2, 5, 5)
    output = layer.bfloat16()(x.bfloat16(), need_weights=need_weights)
    assert (output[0] if need_weights else output).dtype == torch.bfloat16


def test_the_weights_returned_are_those_used_after_dropout():
    inputs = [random(2, 5, 6, seed=seed) for seed in range(3)]
    output, weights = scaled_dot_product_attention(*inputs, dropout_p=0.5)
    assert (weights == 0).any()
    torch.testing.assert_close(output, weights @ inputs[2])


@pytest.mark.parametrize("shape", [(2, 7, 6), (2, 1, 7, 5), (7, 5)])
def test_a_context_that_does_not_fit_is_named(shape):
    with pytest.raises(ValueError) as error:
        grouped(causal=False)(random(2, 5, 5), random(*shape))
    assert str(error.value) == f"expected context (B, T, 5), got {shape}"


@pytest.mark.parametrize("options", [{"window": 3}, {"alibi": True}])
def test_window_and_alibi_without_a_causal_layer_are_named(options):
    with pytest.raises(ValueError, match="window and alibi with causal=True alone"):
        grouped(causal=False, **options)


def test_a_cache_without_causal_self_attention_is_named():
    x = random(2, 5, 5)
    for layer, how in (
        (grouped(causal=False), {}),
        (grouped(), {"context": x, "causal": True}),
    ):
        with pytest.raises(ValueError, match="cache with causal self-attention alone"):
            layer(x, cache=KeyValueCache(13), **how)


# A context from elsewhere


def test_a_causal_layer_told_so_attends_to_the_past_of_a_context():
    layer, x = grouped(), random(2, 7, 5)
    torch.testing.assert_close(layer(x, context=x, causal=True), layer(x))
    _, weights = layer(x[:, 4:], context=x, causal=True, need_weights=True)
    assert torch.equal(weights > 0, causal_mask(7)[4:].expand(2, 6, 3, 7))


# Other projections


class LowRank(nn.Sequential):
    """A linear layer as the product of two narrow ones, with no `in_features`."""

    def __init__(self, d_in, rank, d_out):
        super().__init__(nn.Linear(d_in, rank, bias=False), nn.Linear(rank, d_out))


def test_projections_may_be_replaced():
    torch.manual_seed(0)
    layer = MultiHeadAttention(10, 10, 11, 0.0, num_heads=2).double()
    x = random(2, 7, 10)
    layer.W_query = layer.W_value = nn.Identity()
    layer.W_key = LowRank(10, 3, 10).double()
    heads = [split_heads(t, 2) for t in (x, layer.W_key(x), x)]
    expected = F.scaled_dot_product_attention(*heads, is_causal=True)
    torch.testing.assert_close(layer(x), layer.out_proj(merge_heads(expected)))
