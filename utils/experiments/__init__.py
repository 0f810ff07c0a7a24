"""The parts of a notebook's experiments that another notebook uses again."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def answer_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy of a batch of inputs and answers, a scalar."""
    *inputs, answers = batch
    return F.cross_entropy(model(*inputs).flatten(0, -2), answers.flatten())


@torch.no_grad()
def is_right(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return whether each answer of a batch (B, ...) has the largest logit."""
    *inputs, answers = batch
    return model(*inputs).argmax(dim=-1) == answers
