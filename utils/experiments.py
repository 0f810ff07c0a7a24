"""What the experiments of several notebooks share."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from utils.model import mean_loss
from utils.validation import (
    NonNegativeInt,
    check_inputs,
    check_logits,
    check_targets,
    raise_unless,
)

LEFT_OUT = -100  # instead of an answer, as in PyTorch


def answer_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy of a batch of inputs and answers, a scalar.

    An answer of -100 doesn't count.
    """
    *inputs, answers = batch
    return mean_loss(model(*inputs), answers, LEFT_OUT)


@torch.no_grad()
def is_right(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return whether each answer of a batch (B, ...) has the largest logit.

    An answer of -100 is never right. To leave it out of a mean, as `answer_loss` does,
    take `is_right(model, batch)[answers != -100]`.
    """
    *inputs, answers = batch
    logits = model(*inputs)
    check_targets(logits, answers, LEFT_OUT)
    return logits.argmax(dim=-1) == answers


@torch.no_grad()
@check_inputs()
def leak_test(layer: nn.Module, x: Tensor) -> float:
    """Return the largest change of an output when all later tokens are cut off.

    layer: its outputs have the axes (B, T, …)
    x: (B, T, d_in), or token ids (B, T) of a model; two tokens or more

    It is 0, up to rounding, if no output depends on a later token, in training or in
    evaluation mode. Meanwhile every `nn.Dropout`, and every layer that drops entries
    itself with the probability `dropout_p`, stays in evaluation mode. A layer
    that is random then, too, as with `F.dropout`, is refused.
    """
    is_valid = x.dim() > 1 and x.shape[1] > 1 and x.numel() > 0
    raise_unless(is_valid, "x of two tokens or more", x.shape)
    differ = (x != x[:, :1]).any()  # equal ones have the same mean
    raise_unless(differ, "x with tokens that differ, or no leak shows", "equal ones")
    layer, largest = copy.deepcopy(layer), torch.tensor(0.0)  # buffers change
    for mode in (True, False):
        layer.train(mode)
        for part in layer.modules():
            if isinstance(part, nn.Dropout) or getattr(part, "dropout_p", 0) > 0:
                part.training = False
        outputs, repeated = layer(x), layer(x)
        is_same = torch.allclose(outputs, repeated, equal_nan=True)
        expected = "a layer that is random only in nn.Dropout, not in F.dropout"
        raise_unless(is_same, expected, "two outputs for the same x")
        for t in range(1, x.shape[1]):
            change = (layer(x[:, :t]) - outputs[:, :t]).abs().max()
            largest = torch.maximum(largest, change)  # max() would lose NaN
    return largest.item()


@check_inputs()
def greedy_translate(
    next_logits: Callable,
    start_id: NonNegativeInt,
    end_id: NonNegativeInt,
    max_length: NonNegativeInt,
) -> list[int]:
    """Append the most probable id until the end, or until there is no more room.

    next_logits: function from the ids so far, start_id first, to logits (V,)
    returns: the ids between start_id and end_id

    >>> greedy_translate(lambda ids: torch.eye(5)[len(ids) + 1], 0, 4, max_length=9)
    [2, 3]
    """
    ids = []
    while len(ids) < max_length:
        logits = next_logits([start_id, *ids])
        check_logits(logits)
        raise_unless(logits.dim() == 1, "logits (V,)", logits.shape)
        best = logits.argmax().item()
        if best == end_id:
            break
        ids.append(best)
    return ids
