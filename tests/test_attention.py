"""Each test pins one sentence about the functions of `utils.attention`."""

import pytest
import torch
import torch.nn.functional as F
from small_layers import random

from utils.attention import (
    attention_weights,
    context_vectors,
    dropout,
    masked_softmax,
    online_softmax_attention,
    padding_mask,
    repeat_kv,
    scaled_dot_product_attention,
    split_heads,
)

SUN = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])


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


# Softmax and attention without weights


def test_the_sunny_sentence_gives_the_numbers_of_the_curriculum():
    weights = attention_weights(SUN)[1]
    torch.testing.assert_close(
        weights, torch.tensor([0.2291, 0.4063, 0.3646]), atol=5e-5, rtol=0
    )
    torch.testing.assert_close(
        context_vectors(SUN)[1],
        torch.tensor([0.3990, 0.3854, 0.8610]),
        atol=5e-5,
        rtol=0,
    )


# Masks


@pytest.mark.parametrize("lengths", [[2, 5], [-1, 2]])
def test_padding_mask_names_a_length_out_of_range(lengths):
    with pytest.raises(ValueError, match="from 0 to 4, got"):
        padding_mask(lengths, 4)


def test_masked_softmax_equals_torch_on_rows_that_may_attend():
    scores, mask = random(2, 5, 7), random_mask(2, 5, 7)
    expected = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    rows = mask.any(dim=-1)
    torch.testing.assert_close(masked_softmax(scores, mask)[rows], expected[rows])


def test_leading_axes_that_do_not_fit_are_named():
    query, key = torch.zeros(2, 5, 3), torch.zeros(3, 7, 3)
    with pytest.raises(ValueError, match=r"axes that fit, got \[\(2, 5, 3\), \(3, 7"):
        scaled_dot_product_attention(query, key, key)


def test_masked_softmax_refuses_a_mask_of_numbers():
    with pytest.raises(ValueError, match="boolean mask, got torch.float32"):
        masked_softmax(torch.zeros(2, 2), torch.ones(2, 2))


def test_masked_softmax_names_a_mask_that_does_not_fit():
    with pytest.raises(ValueError, match=r"broadcasts to \(5, 7\), got \(7, 5\)"):
        masked_softmax(torch.zeros(5, 7), torch.ones(7, 5, dtype=torch.bool))


# Dropout


def test_dropout_scales_survivors_by_one_over_one_minus_p():
    torch.manual_seed(0)
    values = dropout(torch.ones(1000), 0.2).unique()
    torch.testing.assert_close(values, torch.tensor([0.0, 1.25]))


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_dropout_names_a_probability_out_of_range(p):
    with pytest.raises(ValueError, match=f"from 0 to 1, got {p}"):
        dropout(torch.ones(3), p)


# Scaled dot-product attention


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


def test_an_empty_row_gives_zeros_and_finite_gradients():
    query, key, value = query_key_value()
    output, weights = scaled_dot_product_attention(
        query, key, value, random_mask(2, 1, 5, 7)
    )
    output.square().sum().backward()
    assert (output[..., 0, :] == 0).all() and (weights[..., 0, :] == 0).all()
    assert all(t.grad.isfinite().all() for t in (query, key, value))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5, 3), (7, 2), (7, 2)), r"one width d_k, got \(5, 3\) and \(7, 2\)"),
        (((5, 3), (7, 3), (5, 3)), r"a value for each key, got \(7, 3\) and \(5, 3\)"),
        (((3,), (7, 3), (7, 3)), r"\(\.\.\., tokens, width\) three times, got"),
    ],
)
def test_attention_names_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*(torch.zeros(shape) for shape in shapes))


# In blocks


@pytest.mark.parametrize("block_size", [1, 3, 7, 9])
def test_attention_in_blocks_equals_torch_in_values_and_gradients(block_size):
    heads = query_key_value()
    expected = F.scaled_dot_product_attention(*heads)
    output = online_softmax_attention(*heads, block_size)
    torch.testing.assert_close(output, expected)
    there = torch.autograd.grad(expected.square().sum(), heads)
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), heads), there)


def test_attention_in_blocks_names_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="expected"):
        online_softmax_attention(torch.zeros(5, 3), *torch.zeros(2, 7, 2), 2)


# Heads


def test_head_h_owns_consecutive_features():
    x = random(2, 3, 10)
    heads = split_heads(x, num_heads=5)
    for h in range(5):
        assert torch.equal(heads[:, h], x[..., 2 * h : 2 * h + 2])


@pytest.mark.parametrize("num_heads", [3, 0])
def test_split_heads_names_a_width_that_does_not_divide(num_heads):
    with pytest.raises(ValueError, match=f"got width 8 and {num_heads} heads"):
        split_heads(torch.zeros(2, 5, 8), num_heads)


# Shared keys and values


def test_neighbouring_heads_share_keys_and_values():
    x = random(2, 3, 5, 7)
    assert torch.equal(repeat_kv(x, 2)[:, [0, 1]], x[:, [0, 0]])
    assert torch.equal(repeat_kv(x, 2)[:, [4, 5]], x[:, [2, 2]])


@pytest.mark.parametrize("shape", [(5, 1, 3, 3), (2, 2)])
def test_a_bias_that_does_not_fit_the_scores_is_refused(shape):
    x = torch.zeros(3, 4)
    with pytest.raises(ValueError, match="expected a bias that broadcasts to"):
        scaled_dot_product_attention(x, x, x, bias=torch.zeros(shape))
