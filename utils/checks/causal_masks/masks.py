"""Exercises 5.1 and 5.3: the causal mask and the padding mask."""

import torch

from utils.checks.attention_steps import INF, lower
from utils.checks.engine import Exercise, case
from utils.checks.guard import attempt
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import agrees, numbers, shape

TEXTS = texts_of(__file__)
FACTS = TEXTS["FACTS"]


# --- the entries of a right mask as something else ----------------------------------

KIND = Forms(TEXTS["KIND"])
KIND.wrong("numbers-for-booleans", result=lambda s: s.mask.float())
KIND.wrong("numbers-for-booleans", result=lambda s: s.mask.long())
KIND.wrong("additive-mask", result=lambda s: s.mask.log())
KIND.wrong("additive-mask", result=lambda s: ~s.mask * -1e9)
KIND.wrong("list-for-tensor", result=lambda s: s.mask.tolist())
KIND.wrong("list-for-tensor 2", result=lambda s: list(s.mask))
KIND.wrong("array-for-tensor", result=lambda s: s.mask.numpy())


# --- 5.1 --------------------------------------------------------------------------

CAUSAL = Forms(TEXTS["CAUSAL"])
wrong = CAUSAL.wrong
wrong("upper-for-lower", cut=lambda s: s.entries.triu())
wrong("upper-for-lower 2", cut=lambda s: s.entries.triu(-1))
wrong("polarity-inverted", cut=lambda s: s.entries.triu(1))
wrong("diagonal-masked", cut=lambda s: s.entries.tril(-1))
wrong("one-step-leaked", cut=lambda s: s.entries.tril(1))
wrong("two-steps-leaked", cut=lambda s: s.entries.tril(2))
wrong("everything-allowed", cut=lambda s: s.entries)
wrong("nothing-allowed", entries=lambda s: torch.zeros(s.side, s.side))
wrong("diagonal-alone", entries=lambda s: torch.eye(s.side))
wrong("window-alone", mask=lambda s: s.cut.triu(-1).bool())
wrong("other-diagonal", mask=lambda s: s.cut.flip(0).bool())
wrong("other-diagonal", mask=lambda s: s.cut.flip(1).bool())
wrong("first-row-missing", mask=lambda s: s.cut * s.cut.sum(1, True) > 1)
wrong("row-for-a-matrix", entries=lambda s: torch.ones(s.side))
wrong("numbers-for-booleans", result=lambda s: s.entries.triu())
wrong("numbers-for-booleans", result=lambda s: s.entries.triu().long())
wrong("numbers-for-booleans 2", result=lambda s: s.entries.triu(1))
wrong("numbers-for-booleans 2", result=lambda s: s.entries.triu(1).long())
wrong("zero-times-infinity", result=lambda s: (~s.mask).float() * -INF)
wrong("zero-times-infinity 2", result=lambda s: s.mask.float() * -INF)
wrong("uniform-weights", result=lambda s: s.mask.log().softmax(-1))
wrong("leading-axes", result=lambda s: s.mask[None])
wrong("leading-axes", result=lambda s: s.mask[None, None])
wrong("one-row-only", result=lambda s: s.mask[0])
wrong("one-row-only", result=lambda s: s.mask[-1])
wrong("one-too-large", side=lambda s: s.num_tokens + 1)
CAUSAL.extend(KIND)
wrong("no-token-fails", end=lambda s: s.result if s.side else torch.tensor([]))
wrong("no-token-fails", end=lambda s: s.result if s.side else torch.tensor([]).bool())
wrong("size-of-a-number", side=lambda s: s.num_tokens.shape[0])
wrong("size-of-a-number", side=lambda s: s.num_tokens.size(0))
mask = Exercise(
    id="5.1",
    **TEXTS["5.1"],
    oracle=lambda num_tokens: torch.ones(num_tokens, num_tokens).tril().bool(),
    cases=[
        *map(case, (3, 5, 2, 11)),
        case(1, note="one token"),
        case(0, note="no token", special=True),
    ],
    pipeline=Pipeline(
        start=lambda num_tokens: {"num_tokens": num_tokens},
        steps={
            "side": lambda s: s.num_tokens,
            "entries": lambda s: torch.ones(s.side, s.side),
            "cut": lambda s: s.entries.tril(),
            "mask": lambda s: s.cut.bool(),
            "result": lambda s: s.mask,
            "end": lambda s: s.result,
        },
        gives={"end": "result"},
        forms=CAUSAL,
        words={
            "T": lambda s: s.num_tokens,
            "last": lambda s: s.num_tokens - 1,
            "count": lambda s: s.mask.numel(),
            "shape": lambda s: shape(s.result),
            "side": lambda s: len(s.result),
            "first_row": lambda s: numbers(s.result[0]),
            "last_row": lambda s: numbers(s.mask[-1]),
        },
    ),
)


# --- 5.3 --------------------------------------------------------------------------


def right_padding(lengths, num_tokens):
    return torch.arange(num_tokens) < torch.as_tensor(lengths)[:, None]


def right_for(answer, kind):
    """Say whether an answer is right where the lengths come as this kind."""
    inputs = (([2, 3], 5), ([3, 1, 2], 3), ([4, 0], 6))
    return all(
        agrees(attempt(answer, kind(lengths), T).value, right_padding(lengths, T))
        for lengths, T in inputs
    )


def lists_and_tensors(answer):
    """Name an answer that takes the lengths as a list alone, or as a tensor alone."""
    as_list, as_tensor = (right_for(answer, kind) for kind in (list, torch.tensor))
    if as_list and not as_tensor:
        return FACTS.name("tensor-not-accepted")
    return FACTS.name("list-not-accepted") if as_tensor and not as_list else None


def row_shown(s):
    """Say how many real tokens the first wrong row has."""
    counts = s.mask.sum(-1)
    row = (counts != s.lengths).int().argmax()
    return f"The sentence of length {s.lengths[row]} gets {counts[row]} True"


PAD = Forms(TEXTS["PADDING"])
wrong = PAD.wrong
wrong("polarity-inverted", mask=lambda s: s.row >= s.column)
wrong("one-too-many", ends=lambda s: s.lengths + 1)
wrong("one-too-few", ends=lambda s: s.lengths - 1)
wrong("one-too-few", ends=lambda s: (s.lengths - 1) % s.T)
wrong("polarity-inverted 2", mask=lambda s: s.row > s.column)
wrong("left-for-right", row=lambda s: torch.arange(s.places).flip(0))
wrong("sentences-reversed", ends=lambda s: s.lengths.flip(0))
wrong("lengths-sorted", ends=lambda s: s.lengths.sort().values)
wrong("lengths-sorted", ends=lambda s: s.lengths.sort(descending=True).values)
wrong("axes-swapped", result=lambda s: s.mask.T)
wrong("axis-missing", column=lambda s: s.ends)
wrong("longest-for-num-tokens", places=lambda s: int(s.lengths.max()))
wrong("one-place-short", places=lambda s: s.T - 1)
wrong("one-length-for-all", {"which": "the longest"}, length=lambda s: s.lengths.max())
wrong("one-length-for-all", {"which": "the shortest"}, length=lambda s: s.lengths.min())
wrong("one-length-for-all", {"which": "the first"}, length=lambda s: s.lengths[0])
wrong("one-length-for-all", {"which": "the last"}, length=lambda s: s.lengths[-1])
wrong("one-row-only", result=lambda s: s.mask[0])
wrong("one-row-only", result=lambda s: s.mask[-1])
wrong("minus-zero", ends=lambda s: s.lengths * (s.lengths < s.T))
wrong(
    "rows-for-columns",
    mask=lambda s: (torch.arange(len(s.ends)) < s.ends.max())[:, None].repeat(1, s.T),
)
wrong("everything-real", ends=lambda s: 0 * s.lengths + s.T)
wrong("nothing-real", ends=lambda s: 0 * s.lengths)
wrong("last-token-alone", mask=lambda s: s.row == s.column - 1)
wrong("last-token-alone", mask=lambda s: s.row == s.column)
wrong("last-token-alone", mask=lambda s: torch.eye(s.T)[s.row, s.column - 1] > 0)
wrong("last-token-alone 2", mask=lambda s: torch.eye(s.T)[s.row, s.column] > 0)
wrong("sliced-by-a-tensor", result=lambda s: s.mask[:, : s.ends])
wrong("axis-inserted", result=lambda s: s.mask[:, None])
wrong("axis-inserted", result=lambda s: s.mask[:, None, None])
wrong("axis-inserted", result=lambda s: s.mask[..., None])
wrong("queries-hidden", result=lambda s: s.mask[:, :, None] & s.mask[:, None])
wrong("repeated-for-queries", result=lambda s: s.mask[:, None].expand(-1, s.places, -1))
wrong("causal-mask-too", result=lambda s: s.mask[:, None] & lower(s.places))
wrong("causal-mask-instead", result=lambda s: lower(s.places))
wrong("causal-mask-instead", result=lambda s: torch.ones_like(s.mask).tril())
wrong("lengths-for-ids", result=lambda s: s.lengths != 0)
wrong("numbers-for-booleans", result=lambda s: (~s.mask).float())
wrong("numbers-for-booleans", result=lambda s: (~s.mask).long())
PAD.extend(KIND)
padding = Exercise(
    id="5.3",
    **TEXTS["5.3"],
    oracle=right_padding,
    facts=[lists_and_tensors],
    cases=[
        case(torch.tensor([1, 3]), 3),
        case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        case(torch.tensor([3]), 3, note="one sentence"),
        case(torch.tensor([1, 1, 1, 1, 1]), 1, note="one token each"),
    ],
    pipeline=Pipeline(
        start=lambda lengths, num_tokens: {"lengths": lengths, "T": num_tokens},
        steps={
            "length": lambda s: s.lengths,
            "ends": lambda s: s.length.expand_as(s.lengths),
            "places": lambda s: s.T,
            "row": lambda s: torch.arange(s.places),
            "column": lambda s: s.ends[:, None],
            "mask": lambda s: s.row < s.column,
            "result": lambda s: s.mask,
        },
        forms=PAD,
        words={
            "row": row_shown,
            "T": lambda s: s.T,
            "shape": lambda s: shape(s.result),
            "side": lambda s: s.mask.shape[1],
        },
    ),
)
