"""Token ids to vectors, and the order of words.

Shapes: B batch, T tokens, D model width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import nn


def embed(ids, table):
    """Look up embeddings as the product of one-hot rows with the table.

    ids: integers of any shape (...)
    table: (V, D)
    returns: (..., D), equal to `table[ids]`

    Raises ValueError for an id outside 0 ... V - 1.

    >>> embed(torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    tensor([[5., 6.],
            [1., 2.]])
    """
    check_token_ids(ids, len(table))
    one_hot = F.one_hot(ids.long(), num_classes=len(table))  # (..., V)
    return one_hot.to(table.dtype) @ table


def sinusoidal_positions(num_positions, d_model):
    """Give each position a fixed vector of sines and cosines.

    P[t, 2i] = sin(t / 10000^(2i/D)),  P[t, 2i+1] = cos(t / 10000^(2i/D))

    returns: (T, D), positions from 0

    Raises ValueError for an odd or non-positive width.

    >>> sinusoidal_positions(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])

    Source: Vaswani et al. 2017, section 3.5.
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"expected an even d_model of 2 or more, got {d_model}")
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    positions = torch.arange(num_positions, dtype=torch.float64)
    angles = positions[:, None] / 10000 ** (even / d_model)  # (T, D / 2)
    table = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (T, D / 2, 2)
    return table.flatten(-2).to(torch.get_default_dtype())  # (T, D)


class TokenAndPositionEmbedding(nn.Module):
    """Add a learned vector for the token and a learned vector for its position.

    token_ids: (B, T) with T up to `context_length`
    returns: (B, T, D)

    Raises ValueError for an id outside the vocabulary and for a longer sequence.

    >>> TokenAndPositionEmbedding(50257, 4, 8)(torch.tensor([[11, 22]])).shape
    torch.Size([1, 2, 8])

    Source: Radford et al. 2018, section 3.1.
    """

    def __init__(self, vocab_size, context_length, d_model):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(context_length, d_model)

    def forward(self, token_ids):
        num_tokens = token_ids.shape[-1]
        context_length = self.position_embedding.num_embeddings
        if num_tokens > context_length:
            raise ValueError(
                f"expected at most context_length = {context_length} tokens, "
                f"got {num_tokens}"
            )
        check_token_ids(token_ids, self.token_embedding.num_embeddings)
        positions = torch.arange(num_tokens, device=token_ids.device)
        return self.token_embedding(token_ids) + self.position_embedding(positions)


def check_token_ids(ids, vocab_size):
    """Raise ValueError unless all ids are integers from 0 to `vocab_size - 1`.

    >>> check_token_ids(torch.tensor([6]), 6)
    Traceback (most recent call last):
    ...
    ValueError: expected token ids from 0 to 5, got 6
    """
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ValueError(f"expected integer token ids, got {ids.dtype}")
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside):
        raise ValueError(
            f"expected token ids from 0 to {vocab_size - 1}, got {outside[0].item()}"
        )
