"""Notebook 11: handwritten digits, and a block of a vision transformer."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from utils.attention import MultiHeadAttention
from utils.model import TransformerBlock, feed_forward


def split_digits(held_out: int = 297, seed: int = 0) -> tuple[Tensor, ...]:
    """Return images (B, 1, 8, 8), labels (B,), and the rows to train and to test on."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(images), generator=generator)
    parts = rows.split([len(images) - held_out, held_out])
    return images, torch.tensor(digits.target), *parts


def open_block(d_model: int, num_heads: int, num_tokens: int) -> TransformerBlock:
    """Return a block as in 09, without a mask."""
    sizes = d_model, d_model, num_tokens
    attention = MultiHeadAttention(*sizes, 0.0, num_heads, causal=False)
    return TransformerBlock(attention, feed_forward(d_model), d_model)
