"""Embeddings and positions, `utils.embeddings`."""

import math

import pytest
import torch

from utils.embeddings import apply_rope, embed, rotary_tables, sinusoidal_positions


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
