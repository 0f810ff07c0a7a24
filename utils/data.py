"""Texts and training pairs."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from utils.files import DATA
from utils.tokenizer import END_OF_TEXT, load_tokenizer
from utils.validation import check_num_ids, check_positive, expect

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


def sliding_windows(
    ids: Sequence[int] | Tensor, context_length: int, stride: int
) -> tuple[Tensor, Tensor]:
    """Cut a sequence of ids into inputs and targets, shifted by one.

    The windows start at 0, stride, 2 * stride ... as long as their targets exist.

    ids: one sequence of integers, more than `context_length`, else ValueError
    returns: inputs and targets, both integer tensors (N, context_length)

    >>> sliding_windows([5, 6, 7, 8, 9], context_length=2, stride=2)
    (tensor([[5, 6],
            [7, 8]]), tensor([[6, 7],
            [8, 9]]))
    """
    check_positive("context_length", context_length)
    check_positive("stride", stride)
    expect(not isinstance(ids, str), "one sequence of token ids", "a text")
    ids = torch.as_tensor(ids)
    is_integer = not ids.is_floating_point() and ids.dtype != torch.bool
    is_valid = ids.dim() == 1 and (is_integer or not len(ids))  # [] becomes floats
    expect(is_valid, "one sequence of token ids", ids.dtype, ids.shape)
    check_num_ids(len(ids), context_length)
    windows = ids.unfold(0, context_length + 1, stride)  # (N, context_length + 1)
    return windows[:, :-1].clone(), windows[:, 1:].clone()


def create_dataloader(
    text: str,
    batch_size: int = 8,
    context_length: int = 256,
    stride: int = 256,
    shuffle: bool = True,
) -> DataLoader:
    """Tokenize a text with GPT-2's vocabulary and serve it in batches of windows.

    returns: `DataLoader` of pairs (inputs, targets), both (batch_size, context_length),
        without a last batch that isn't full; ValueError if there would be none

    >>> loader = create_dataloader("one two three four five", 2, 2, 1, shuffle=False)
    >>> [inputs for inputs, targets in loader]
    [tensor([[ 505,  734],
            [ 734, 1115]])]
    """
    token_ids = load_tokenizer().encode(text, allowed_special={END_OF_TEXT})
    dataset = TensorDataset(*sliding_windows(token_ids, context_length, stride))
    expected = f"at least batch_size = {batch_size} windows"
    expect(len(dataset) >= batch_size, expected, len(dataset))
    return DataLoader(dataset, batch_size, shuffle=shuffle, drop_last=True)
