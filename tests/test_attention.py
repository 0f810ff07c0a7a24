"""Each test pins one sentence about the functions of `utils.attention`."""

import pytest
import torch
import torch.nn.functional as F
from small_layers import random

from utils.attention import (
    dropout,
    masked_softmax,
    online_softmax_attention,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)


def query_key_value(leading=(2, 3)):
    """T = 5 queries, S = 7 keys, d_k = 11, d_v = 13."""
    return (
        random(*leading, 5, 11, seed=1).requires_grad_(),
        random(*leading, 7, 11, seed=2).requires_grad_(),
        random(*leading, 7, 13, seed=3).requires_grad_(),
    )


def random_mask(*shape, seed=4):
    """Random, with an empty first row and a full last one."""
    mask = random(*shape, seed=seed) > 0
    mask[..., 0, :] = False
    mask[..., -1, :] = True
    return mask


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_attention_equals_torch_in_values_and_gradients(leading):
    inputs, twins = query_key_value(leading), query_key_value(leading)
    output, _ = scaled_dot_product_attention(*inputs)
    expected = F.scaled_dot_product_attention(*twins)
    torch.testing.assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    for ours, torchs in zip(inputs, twins, strict=True):
        torch.testing.assert_close(ours.grad, torchs.grad)


def test_masked_attention_equals_torch_on_rows_that_may_attend():
    query, key, value = query_key_value()
    mask = random_mask(2, 1, 5, 7)
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(output[..., 1:, :], expected[..., 1:, :])


@pytest.mark.parametrize("block_size", [1, 3, 7, 9])
def test_attention_in_blocks_equals_torch_in_values_and_gradients(block_size):
    heads = query_key_value()
    expected = F.scaled_dot_product_attention(*heads)
    output = online_softmax_attention(*heads, block_size)
    torch.testing.assert_close(output, expected)
    there = torch.autograd.grad(expected.square().sum(), heads)
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), heads), there)


@pytest.mark.parametrize(
    "shapes, said",
    [
        (((5, 3), (7, 2), (7, 2)), r"one width d_k, got \(5, 3\) and \(7, 2\)"),
        (((5, 3), (7, 3), (5, 3)), r"a value for each key, got \(7, 3\) and \(5, 3\)"),
        (((3,), (7, 3), (7, 3)), r"\(\.\.\., tokens, width\) three times, got"),
        (((2, 5, 3), (3, 7, 3), (3, 7, 3)), r"axes that fit, got \[\(2, 5, 3\)"),
    ],
)
def test_attention_names_shapes_that_do_not_fit(shapes, said):
    inputs = [torch.zeros(shape) for shape in shapes]
    with pytest.raises(ValueError, match=said):
        scaled_dot_product_attention(*inputs)
    with pytest.raises(ValueError, match=said):
        online_softmax_attention(*inputs, 2)


@pytest.mark.parametrize(
    "function, inputs, said",
    [
        (padding_mask, ([2, 5], 4), "from 0 to 4, got"),
        (padding_mask, ([-1, 2], 4), "from 0 to 4, got"),
        (masked_softmax, torch.ones(2, 2, 2), "boolean mask, got torch.float32"),
        (
            *(masked_softmax, (torch.zeros(5, 7), torch.ones(7, 5).bool())),
            r"broadcasts to \(5, 7\), got \(7, 5\)",
        ),
        (dropout, (torch.ones(3), -0.1), "from 0 to 1, got -0.1"),
        (dropout, (torch.ones(3), 1.5), "from 0 to 1, got 1.5"),
        (split_heads, (torch.zeros(2, 5, 8), 3), "got width 8 and 3 heads"),
        (split_heads, (torch.zeros(2, 5, 8), 0), "got width 8 and 0 heads"),
    ],
)
def test_what_a_function_cannot_use_is_named(function, inputs, said):
    with pytest.raises(ValueError, match=said):
        function(*inputs)


@pytest.mark.parametrize("shape", [(5, 1, 3, 3), (2, 2)])
def test_a_bias_that_does_not_fit_the_scores_is_named(shape):
    x = torch.zeros(3, 4)
    with pytest.raises(ValueError, match="expected a bias that broadcasts to"):
        scaled_dot_product_attention(x, x, x, bias=torch.zeros(shape))
