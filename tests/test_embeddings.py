"""Each test pins one sentence about `utils.embeddings`."""

import math

import pytest
import torch

from utils.embeddings import (
    TokenAndPositionEmbedding,
    apply_rope,
    embed,
    patchify,
    sinusoidal_positions,
)


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
