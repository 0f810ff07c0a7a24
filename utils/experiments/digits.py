"""Notebook 11: a small vision transformer names handwritten digits."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.model import TransformerBlock, feed_forward
from utils.training import train


def split_digits(held_out: int = 297, seed: int = 0) -> tuple[Tensor, ...]:
    """Return images (B, 1, 8, 8) from 0 to 1, labels (B,), and two lists of rows.

    The rows of the first list are for training, and the second is held out.
    """
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


class PatchEmbedding(nn.Module):
    """Turn images (B, C, H, W) into a class token and a vector per patch."""

    def __init__(self, cut: Callable, patch_size, num_patches, d_model, channels=1):
        super().__init__()
        self.cut, self.patch_size = cut, patch_size
        self.to_vector = nn.Linear(channels * patch_size**2, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model) / 2)
        self.positions = nn.Parameter(torch.randn(num_patches + 1, d_model) / 2)

    def forward(self, images):
        vectors = self.to_vector(self.cut(images, self.patch_size))  # (B, N, D)
        class_token = self.class_token.expand(len(images), -1, -1)  # (B, 1, D)
        x = torch.cat([class_token, vectors], dim=1)  # (B, N + 1, D)
        return x + self.positions


class VisionTransformer(nn.Module):
    """Score the classes of images by their class token, (B, classes)."""

    def __init__(self, embedding, num_classes: int, d_model: int, depth, num_heads):
        super().__init__()
        self.embedding = embedding
        sizes = d_model, num_heads, len(embedding.positions)
        self.blocks = nn.Sequential(*[open_block(*sizes) for _ in range(depth)])
        self.norm = nn.LayerNorm(d_model)
        self.to_class = nn.Linear(d_model, num_classes)

    def forward(self, images):
        x = self.blocks(self.embedding(images))  # (B, N + 1, D)
        return self.to_class(self.norm(x[:, 0]))  # (B, classes)


def digit_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the right digits of images, a scalar."""
    x, digits = batch
    return F.cross_entropy(model(x), digits)


def train_on_digits(model: nn.Module, images, labels, steps=300, lr=3e-3) -> nn.Module:
    """Train a model on random batches of 64 images; return it."""
    rows = torch.randint(len(images), (steps, 64))
    batches = [(images[row], labels[row]) for row in rows]
    train(model, batches, digit_loss, steps, lr, show_progress=False)
    return model
