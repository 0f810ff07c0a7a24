"""What the experiments of several notebooks share."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.validation import check_logits, expect


def answer_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy of a batch of inputs and answers, a scalar."""
    *inputs, answers = batch
    return F.cross_entropy(model(*inputs).flatten(0, -2), answers.flatten())


@torch.no_grad()
def is_right(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return whether each answer of a batch (B, ...) has the largest logit."""
    *inputs, answers = batch
    return model(*inputs).argmax(dim=-1) == answers


@torch.no_grad()
def leak_test(layer: nn.Module, x: Tensor) -> float:
    """Return the largest change of an output when all later tokens are cut off.

    x: (B, T, d_in), or token ids (B, T) of a model; two tokens or more, else ValueError

    It is 0, up to rounding, if no output depends on a later token, in training or in
    evaluation mode. Meanwhile every `nn.Dropout`, and every layer that drops entries
    itself with the probability `dropout_p`, stays in evaluation mode.
    """
    expect(x.dim() > 1 and x.shape[1] > 1, "x of two tokens or more", x.shape)
    largest, modes = torch.tensor(0.0), {p: p.training for p in layer.modules()}
    try:
        for mode in (True, False):
            layer.train(mode)
            for part in modes:
                if isinstance(part, nn.Dropout) or getattr(part, "dropout_p", 0) > 0:
                    part.training = False
            whole = layer(x)
            for t in range(1, x.shape[1]):
                moved = (layer(x[:, :t]) - whole[:, :t]).abs().max()
                largest = torch.maximum(largest, moved)  # max() would lose NaN
    finally:
        for part, was_training in modes.items():
            part.training = was_training
    return largest.item()


def greedy_translate(
    next_logits: Callable, start_id: int, end_id: int, max_length: int
) -> list[int]:
    """Append the most probable id until the end, or until there is no more room.

    next_logits: function from the ids so far, start_id first, to logits (V,)
    returns: the ids between start_id and end_id

    >>> greedy_translate(lambda ids: torch.eye(5)[len(ids) + 1], 0, 4, max_length=9)
    [2, 3]
    """
    written = []
    while len(written) < max_length:
        logits = next_logits([start_id, *written])
        check_logits(logits)
        expect(logits.dim() == 1, "logits (V,)", logits.shape)
        best = logits.argmax().item()
        if best == end_id:
            break
        written.append(best)
    return written
