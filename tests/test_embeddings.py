"""Each test pins one claim about `utils.embeddings`."""

import pytest
import torch

from utils.embeddings import (
    TokenAndPositionEmbedding,
    apply_rope,
    embed,
    patchify,
    sinusoidal_positions,
)

TABLE = TokenAndPositionEmbedding(11, None, 3)


@pytest.mark.parametrize(
    "function, inputs, message",
    [
        (embed, (torch.tensor([0, -1]), torch.zeros(6, 3)), "from 0 to 5, got -1"),
        (TABLE, (torch.tensor([[11]]),), "from 0 to 10, got 11"),
        (patchify, (torch.zeros(1, 1, 6, 8), 3), "that 3 divides, got 6 and 8"),
        (sinusoidal_positions, (3, 5), "even d_model of 2 or more, got 5"),
        (apply_rope, (torch.zeros(3, 6), torch.arange(4)), r"to \(3,\), got \(4,\)"),
    ],
)
def test_what_a_function_cannot_use_is_named(function, inputs, message):
    with pytest.raises(ValueError, match=message):
        function(*inputs)
