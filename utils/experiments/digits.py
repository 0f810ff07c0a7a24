"""Notebook 14: handwritten digits."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor


def split_digits(held_out: int = 297, seed: int = 0) -> tuple[Tensor, ...]:
    """Return images (B, 1, 8, 8), labels (B,), and the rows to train and to test on."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(images), generator=generator)
    parts = rows.split([len(images) - held_out, held_out])
    return images, torch.tensor(digits.target), *parts
