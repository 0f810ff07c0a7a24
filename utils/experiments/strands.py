"""Deeper notebooks of 11: strands of DNA whose first bases pair with their last."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.training import train

STEM, LOOP, LENGTH, HIDDEN = 8, 4, 20, 4  # 4: a fifth token, for a hidden base


def hairpins(num_strands: int) -> Tensor:
    """Draw strands (B, 20): eight bases, a loop of four, and the eight partners."""
    left = torch.randint(4, (num_strands, STEM))
    loop = torch.randint(4, (num_strands, LOOP))
    return torch.cat([left, loop, 3 - left.flip(1)], dim=1)  # (B, T)


def strand_loss(model: nn.Module, strands: Tensor) -> Tensor:
    """Hide 15 % of the bases; return the mean cross-entropy of those, a scalar."""
    hidden = (torch.rand(strands.shape) < 0.15) & (strands < HIDDEN)
    logits = model(strands.masked_fill(hidden, HIDDEN))  # (B, T, 4)
    return F.cross_entropy(logits[hidden], strands[hidden])


def train_on_strands(model, draw=hairpins, steps=200, lr=3e-3) -> nn.Module:
    """Train a model on 64 new strands in each step; return it."""
    batches = [draw(64) for _ in range(steps)]
    train(model, batches, strand_loss, steps, lr, show_progress=False)
    return model


def hide_each(strands: Tensor) -> Tensor:
    """Copy each strand once for each position, which is hidden there, (B, T, T)."""
    copies = strands[:, None].repeat(1, LENGTH, 1)
    return copies.masked_fill(torch.eye(LENGTH).bool(), HIDDEN)


@torch.no_grad()
def strand_accuracy(model: nn.Module, strands: Tensor) -> Tensor:
    """Return how often each position's base is named when it's hidden, (T,)."""
    guesses = model(hide_each(strands).flatten(0, 1)).argmax(dim=-1)  # (B*T, T)
    guesses = guesses.view(-1, LENGTH, LENGTH).diagonal(dim1=1, dim2=2)
    return (guesses == strands).float().mean(dim=0)
