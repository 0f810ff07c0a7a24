"""Each test pins one sentence about `utils.embeddings`."""

import math

import pytest
import torch

from utils.embeddings import (
    TokenAndPositionEmbedding,
    alibi_bias,
    apply_rope,
    embed,
    patchify,
    rotary_tables,
    rotate_pairs,
    sinusoidal_positions,
)


@pytest.mark.parametrize("patch_size", [1, 2, 4])
def test_patches_are_those_of_pytorch(patch_size):
    images = torch.randn(3, 5, 8, 12)
    cut = torch.nn.functional.unfold(images, patch_size, stride=patch_size).mT
    assert patchify(images, patch_size).equal(cut)


def test_sinusoids_follow_the_formula():
    table = sinusoidal_positions(10_000, 6)
    for t in (*range(11), 9999):
        for i in range(3):
            angle = t / 10000 ** (2 * i / 6)
            assert math.isclose(table[t, 2 * i], math.sin(angle), abs_tol=1e-6)
            assert math.isclose(table[t, 2 * i + 1], math.cos(angle), abs_tol=1e-6)


def test_padding_on_the_left_moves_no_position():
    torch.manual_seed(0)
    layer, ids = TokenAndPositionEmbedding(11, 5, 3), torch.tensor([[0, 0, 7, 1, 2]])
    real = torch.tensor([[False, False, True, True, True]])
    torch.testing.assert_close(layer(ids, 0, real)[:, 2:], layer(ids[:, 2:]))
    torch.testing.assert_close(layer(ids[:, 4:], 4, real), layer(ids[:, 2:])[:, 2:])


def test_without_a_table_tokens_stand_alone_and_nothing_is_too_long():
    layer, ids = TokenAndPositionEmbedding(11, None, 3), torch.tensor([[7, 1, 7]])
    assert list(layer.state_dict()) == ["token_embedding.weight"]
    assert torch.equal(layer(ids, start=1000), layer.token_embedding(ids))


def test_rotation_equals_multiplication_by_a_complex_number():
    torch.manual_seed(0)
    x, positions = torch.randn(2, 3, 5, 6), torch.tensor([0, 1, 4, 9, 100])
    frequencies = 100.0 ** (-torch.arange(0, 6, 2) / 6)
    turn = torch.polar(torch.ones(5, 3), positions[:, None] * frequencies)
    pairs = torch.view_as_complex(x.unflatten(-1, (3, 2)))
    expected = torch.view_as_real(pairs * turn).flatten(-2)
    torch.testing.assert_close(apply_rope(x, positions, base=100.0), expected)


@pytest.mark.parametrize("num_heads", [1, 4])
def test_alibi_follows_the_formula(num_heads):
    bias = alibi_bias(num_heads, 7)
    assert bias.shape == (num_heads, 7, 7)
    for h in range(num_heads):
        for i in range(7):
            for j in range(i + 1):
                assert bias[h, i, j] == -(2.0 ** (-8 * (h + 1) / num_heads)) * (i - j)


def test_tables_computed_before_turn_as_apply_rope_does():
    torch.manual_seed(0)
    x, tables = torch.randn(2, 3, 5, 6), rotary_tables(torch.arange(9), 6, base=50.0)
    cos, sin = (table[4:] for table in tables)
    expected = apply_rope(x, torch.arange(4, 9), base=50.0)
    assert torch.equal(rotate_pairs(x, cos, sin), expected)


TABLE = TokenAndPositionEmbedding(11, None, 3)


@pytest.mark.parametrize(
    "function, inputs, said",
    [
        (embed, (torch.tensor([0, -1]), torch.zeros(6, 3)), "from 0 to 5, got -1"),
        (embed, (torch.tensor([0, 6]), torch.zeros(6, 3)), "from 0 to 5, got 6"),
        (TABLE, (torch.tensor([[11]]),), "from 0 to 10, got 11"),
        (patchify, (torch.zeros(1, 1, 6, 8), 3), "that 3 divides, got 6 and 8"),
        (sinusoidal_positions, (3, 5), "even d_model of 2 or more, got 5"),
        (sinusoidal_positions, (3, 0), "even d_model of 2 or more, got 0"),
        (apply_rope, (torch.zeros(3, 6), torch.arange(4)), r"to \(3,\), got \(4,\)"),
        (apply_rope, (torch.zeros(7, 4), torch.zeros(2, 7)), r"\(7,\), got \(2, 7\)"),
        (apply_rope, (torch.zeros(3, 6), torch.tensor(4)), r"to \(3,\), got \(\)"),
    ],
)
def test_what_a_function_cannot_use_is_named(function, inputs, said):
    with pytest.raises(ValueError, match=said):
        function(*inputs)
