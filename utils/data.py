"""Texts and training pairs."""

import math
from collections.abc import Sequence

from torch import Tensor

from utils.files import DATA
from utils.validation import (
    PositiveInt,
    check_inputs,
    check_range,
    raise_unless,
    to_int_tensor,
)

# The first sentence of article 1, as published by the United Nations.
HUMAN_RIGHTS = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι "
    "στην αξιοπρέπεια και τα δικαιώματα.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Telugu": "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు.",
}


def load_text() -> str:
    """Read the short story that was written for the course."""
    return (DATA / "story.txt").read_text(encoding="utf-8")


@check_inputs()
def sliding_windows(
    ids: Sequence[int] | Tensor, context_length: PositiveInt, stride: PositiveInt
) -> tuple[Tensor, Tensor]:
    """Cut a sequence of ids into inputs and targets, shifted by one.

    The windows start at 0, stride, 2 * stride ... as long as their targets exist.

    ids: one sequence of integers from 0, more than `context_length`
    returns: inputs and targets, both integer tensors (N, context_length)

    >>> sliding_windows([5, 6, 7, 8, 9], context_length=2, stride=2)
    (tensor([[5, 6],
            [7, 8]]), tensor([[6, 7],
            [8, 9]]))
    """
    ids = to_int_tensor("token ids", ids)
    expected = f"more than context_length = {context_length} token ids"
    raise_unless(len(ids) > context_length, expected, len(ids))
    check_range("token ids", ids, 0, math.inf)
    windows = ids.unfold(0, context_length + 1, stride)  # (N, context_length + 1)
    return windows[:, :-1].clone(), windows[:, 1:].clone()
