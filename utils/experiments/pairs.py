"""Notebook 13: recall what was paired with a letter in a list of pairs."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from utils.experiments import answer_loss, is_right
from utils.training import train

PAIRS = 4, 8, 16, 24  # the lengths of the lists


def last_positions(mask: Tensor) -> Tensor:
    """Return where the last True of each row is, (B, 1) of (B, T)."""
    numbered = mask * torch.arange(1, mask.shape[-1] + 1)  # 1 to T, or 0 for False
    return numbered.argmax(dim=-1, keepdim=True)  # (B, 1), and 0 without a True


def draw_pairs(
    num_lists: int, num_pairs: int, num_letters: int | None = None
) -> tuple[Tensor, ...]:
    """Draw letters and digits (B, pairs), and a letter asked for with its digit (B,).

    num_letters: None for 26, none of them twice in a list; else that many, which return
        with new digits, and the last one counts

    Source: Arora et al. 2023, *Zoology*, section 3.
    """
    if num_letters is None:
        letters = torch.rand(num_lists, 26).argsort(dim=-1)[:, :num_pairs]
    else:
        letters = torch.randint(num_letters, (num_lists, num_pairs))
    digits = torch.randint(10, letters.shape)
    asked = letters.gather(1, torch.randint(num_pairs, (num_lists, 1)))
    last = last_positions(letters == asked)
    return letters, digits, asked[:, 0], digits.gather(1, last)[:, 0]


def train_recall(
    build: Callable[[], nn.Module], draw: Callable, seed: int = 0, steps: int = 600
) -> nn.Module:
    """Return `build()`, trained on batches `draw(64, length)` of lengths in `PAIRS`."""
    torch.manual_seed(seed)
    batches = [draw(64, PAIRS[i % 4]) for i in range(steps)]
    reader = build()
    train(reader, batches, answer_loss, steps, lr=1e-2, show_progress=False)
    return reader


def recall_accuracy(reader: nn.Module, draw: Callable) -> list[float]:
    """Return the fraction of right answers for each length in `PAIRS`."""
    hits = [is_right(reader, draw(2000, num_pairs)) for num_pairs in PAIRS]
    return [hit.float().mean().item() for hit in hits]
