"""The parts of notebooks' experiments that another notebook uses again.

Each file has the code of the notebook that it names. Code that no other notebook uses
isn't here, but only in its notebook.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def answer_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy of the right answers, a scalar.

    batch: the inputs of the model, and the answers (B, ...) to its logits (B, ..., C)
    """
    *inputs, answers = batch
    return F.cross_entropy(model(*inputs).flatten(0, -2), answers.flatten())


@torch.no_grad()
def is_right(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return whether each answer (B, ...) has the largest logit; batch as above."""
    *inputs, answers = batch
    return model(*inputs).argmax(dim=-1) == answers
