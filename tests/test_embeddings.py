"""Embeddings and positions, `utils.embeddings`."""

import math

import pytest
import torch

from utils.embeddings import (
    Rotary,
    TokenAndPositionEmbedding,
    apply_rope,
    embed,
    patchify,
    rotary_tables,
    rotate_pairs,
    sinusoidal_positions,
)

WITH_POSITIONS = TokenAndPositionEmbedding(11, 4, 3)
X, IDS = torch.zeros(3, 6), torch.tensor([[1]])


@pytest.mark.parametrize(
    "function, inputs, message",
    [
        (embed, (torch.tensor([0, -1]), torch.zeros(6, 3)), "from 0 to 5, got -1"),
        (embed, (torch.tensor([0]), X[0]), r"expected table \(V, D\), got \(6,\)"),
        (embed, (torch.tensor([0], device="meta"), X), "token ids on cpu, got meta"),
        (embed, (IDS, X > 0), "table as real numbers, got torch.bool"),
        (embed, (IDS, X[:0]), "vocabulary of .* got none"),
        (sinusoidal_positions, (3, 5), "an even d_model, got 5"),
        (Rotary, (3, 4, 1e4, lambda speeds: speeds / 0 * 0), "frequencies .* got nan"),
        (patchify, (torch.zeros(1, 1, 6, 8), 3), "that 3 divides, got 6 and 8"),
        (apply_rope, (X, torch.arange(4)), r"to \(3,\), got \(4,\)"),
        (Rotary, (3, 4, 1e4, lambda speeds: X[0]), r"half_width = 2\), got \(6"),
        (TokenAndPositionEmbedding(5, None, 2), (IDS, "x"), "start .* got 'x'"),
        (rotate_pairs, (X, X[:, :3], X[:, :1]), r"half_width = 3\), got \(3, 1"),
        (rotate_pairs, (X, X[:, :3].long(), X[:, :3]), "cos of floating-point numb"),
        (apply_rope, (X, torch.arange(3).to("meta")), "positions .* on cpu, got"),
        (Rotary(5, 2), (X, 0), r"x \(\.\.\., width = 2\), got \(3, 6"),
        (WITH_POSITIONS, (IDS, -1), "first position of 0 or more"),
        (Rotary(5, 6), (X, 3), "up to num_positions = 5 tokens, got 6"),
    ],
)
def test_what_a_function_cannot_use_is_named(function, inputs, message):
    with pytest.raises(ValueError, match=message):
        function(*inputs)


def test_embed_equals_the_rows_of_the_table_next_to_infinite_ones():
    table, ids = torch.tensor([[1.0, 2.0], [torch.inf, torch.nan]]), torch.tensor([0])
    assert embed(ids, table).equal(table[ids])


def test_far_positions_rotate_by_angles_of_their_own():
    """Float32 has no 2^24 + 1, and its angles there would be wrong by a radian."""
    x, far = torch.ones(1, 2), torch.tensor([2**24 + 1])
    cos, sin = math.cos(2**24 + 1), math.sin(2**24 + 1)
    expected = torch.tensor([[cos - sin, cos + sin]])
    torch.testing.assert_close(apply_rope(x, far), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_tables_have_the_default_dtype_and_rotations_float32_at_least(dtype):
    x, positions = torch.randn(400, 64), torch.arange(400)
    expected = apply_rope(x, positions)
    try:
        torch.set_default_dtype(dtype)
        output, angles = apply_rope(x, positions), rotary_tables(positions, 64)
        assert sinusoidal_positions(3, 4).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert output.equal(expected)
    assert {t.dtype for t in angles} == {torch.promote_types(dtype, torch.float32)}
