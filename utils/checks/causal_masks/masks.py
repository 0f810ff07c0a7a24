"""Exercises 5.1 and 5.3: the causal mask and the padding mask."""

import torch

from utils.checks.attention_steps import INF
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import numbers, shape

TEXTS = texts_of(__file__)


# --- the entries of a right mask as something else ----------------------------------

NUMBERS = (lambda s: s.mask.float(), lambda s: s.mask.long())
KIND = Forms(TEXTS["KIND"])
for kind in NUMBERS:
    KIND.wrong("numbers-for-booleans", result=kind)
KIND.wrong("additive-mask", result=lambda s: s.mask.log())
KIND.wrong("additive-mask", result=lambda s: ~s.mask * -1e9)
KIND.wrong("list-for-tensor", result=lambda s: s.mask.tolist())
KIND.wrong("list-for-tensor 2", result=lambda s: list(s.mask))
KIND.wrong("array-for-tensor", result=lambda s: s.mask.numpy())


# --- 5.1 --------------------------------------------------------------------------


def right_mask(num_tokens):
    positions = torch.arange(num_tokens)
    return positions <= positions[:, None]


EMPTY = torch.tensor([])
CAUSAL = Forms(TEXTS["CAUSAL"])
CAUSAL.wrong("upper-for-lower", cut=lambda s: s.entries.triu())
CAUSAL.wrong("upper-for-lower 2", cut=lambda s: s.entries.triu(-1))
CAUSAL.wrong("polarity-inverted", cut=lambda s: s.entries.triu(1))
CAUSAL.wrong("diagonal-masked", cut=lambda s: s.entries.tril(-1))
CAUSAL.wrong("one-step-leaked", cut=lambda s: s.entries.tril(1))
CAUSAL.wrong("two-steps-leaked", cut=lambda s: s.entries.tril(2))
CAUSAL.wrong("everything-allowed", cut=lambda s: s.entries)
CAUSAL.wrong("nothing-allowed", entries=lambda s: torch.zeros(s.side, s.side))
CAUSAL.wrong("diagonal-alone", entries=lambda s: torch.eye(s.side))
CAUSAL.wrong("window-alone", mask=lambda s: s.cut.triu(-1).bool())
CAUSAL.wrong("other-diagonal", mask=lambda s: s.cut.flip(0).bool())
CAUSAL.wrong("other-diagonal", mask=lambda s: s.cut.flip(1).bool())
CAUSAL.wrong("first-row-missing", mask=lambda s: s.cut * s.cut.sum(1, True) > 1)
CAUSAL.wrong("row-for-a-matrix", entries=lambda s: torch.ones(s.side))
for kind in NUMBERS:
    CAUSAL.wrong("numbers-for-booleans 2", cut=lambda s: s.entries.triu(), result=kind)
    CAUSAL.wrong("numbers-for-booleans 3", cut=lambda s: s.entries.triu(1), result=kind)
CAUSAL.wrong("zero-times-infinity", result=lambda s: (~s.mask).float() * -INF)
CAUSAL.wrong("zero-times-infinity 2", result=lambda s: s.mask.float() * -INF)
CAUSAL.wrong("uniform-weights", result=lambda s: s.mask.log().softmax(-1))
CAUSAL.wrong("leading-axes", result=lambda s: s.mask[None])
CAUSAL.wrong("leading-axes", result=lambda s: s.mask[None, None])
CAUSAL.wrong("one-row-only", result=lambda s: s.mask[0])
CAUSAL.wrong("one-row-only", result=lambda s: s.mask[-1])
CAUSAL.wrong("one-too-large", side=lambda s: s.num_tokens + 1)
CAUSAL.extend(KIND)
CAUSAL.wrong("no-token-fails", end=lambda s: s.result if s.side else EMPTY)
CAUSAL.wrong("no-token-fails", end=lambda s: s.result if s.side else EMPTY.bool())
CAUSAL.wrong("size-of-a-number", side=lambda s: s.num_tokens.shape[0])
CAUSAL.wrong("size-of-a-number", side=lambda s: s.num_tokens.size(0))
mask = Exercise(
    id="5.1",
    **TEXTS["5.1"],
    oracle=right_mask,
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


def one_length(pick):
    """Return the step that takes one of the lengths for all."""
    return lambda s: pick(s.lengths).expand(len(s.lengths))


def right_for(answer, kind):
    """Say whether an answer is right where the lengths come as this kind."""
    inputs = (([2, 3], 5), ([3, 1, 2], 3), ([4, 0], 6))
    try:
        found = [answer(kind(lengths), num_tokens) for lengths, num_tokens in inputs]
        return all(map(torch.equal, found, (right_padding(*args) for args in inputs)))
    except Exception:
        return False


def lists_and_tensors(answer):
    """Name an answer that takes the lengths as a list alone, or as a tensor alone."""
    if right_for(answer, list) == right_for(answer, torch.tensor):
        return None
    if right_for(answer, list):
        return TEXTS["FACTS"].say("tensor-not-accepted")
    return TEXTS["FACTS"].say("list-not-accepted")


def row_shown(s):
    """Say how many real tokens the first wrong row has."""
    counts = s.mask.sum(-1)
    row = (counts != s.lengths).int().argmax()
    return f"The sentence of length {s.lengths[row]} gets {counts[row]} True"


def padded(s):
    return s.row >= s.column


PAD = Forms(TEXTS["PADDING"])
PAD.wrong("polarity-inverted", mask=padded)
PAD.wrong("one-too-many", ends=lambda s: s.lengths + 1)
PAD.wrong("one-too-few", ends=lambda s: s.lengths - 1)
PAD.wrong("one-too-few", ends=lambda s: (s.lengths - 1) % s.T)
PAD.wrong("polarity-inverted 2", mask=lambda s: s.row > s.column)
PAD.wrong("left-for-right", row=lambda s: torch.arange(s.places).flip(0))
PAD.wrong("sentences-reversed", ends=lambda s: s.lengths.flip(0))
PAD.wrong("lengths-sorted", ends=lambda s: s.lengths.sort().values)
PAD.wrong("lengths-sorted", ends=lambda s: s.lengths.sort(descending=True).values)
PAD.wrong("axes-swapped", result=lambda s: s.mask.T)
PAD.wrong("axis-missing", column=lambda s: s.ends)
PAD.wrong("longest-for-num-tokens", places=lambda s: int(s.lengths.max()))
PAD.wrong("one-place-short", places=lambda s: s.T - 1)
PAD.wrong("one-length-for-all", {"which": "the longest"}, ends=one_length(torch.max))
PAD.wrong("one-length-for-all", {"which": "the shortest"}, ends=one_length(torch.min))
PAD.wrong("one-length-for-all", {"which": "the first"}, ends=one_length(lambda n: n[0]))
PAD.wrong("one-length-for-all", {"which": "the last"}, ends=one_length(lambda n: n[-1]))
PAD.wrong("one-row-only", result=lambda s: s.mask[0])
PAD.wrong("one-row-only", result=lambda s: s.mask[-1])
PAD.wrong("minus-zero", ends=lambda s: s.lengths * (s.lengths < s.T))
PAD.wrong(
    "rows-for-columns",
    mask=lambda s: (torch.arange(len(s.ends)) < s.ends.max())[:, None].repeat(1, s.T),
)
PAD.wrong("everything-real", ends=lambda s: 0 * s.lengths + s.T)
PAD.wrong("nothing-real", ends=lambda s: 0 * s.lengths)
PAD.wrong("last-token-alone", mask=lambda s: s.row == s.column - 1)
PAD.wrong("last-token-alone", mask=lambda s: s.row == s.column)
PAD.wrong("last-token-alone", mask=lambda s: torch.eye(s.T)[s.row, s.column - 1] > 0)
PAD.wrong("last-token-alone 2", mask=lambda s: torch.eye(s.T)[s.row, s.column] > 0)
PAD.wrong("sliced-by-a-tensor", result=lambda s: s.mask[:, : s.ends])
PAD.wrong("axis-inserted", result=lambda s: s.mask[:, None])
PAD.wrong("axis-inserted", result=lambda s: s.mask[:, None, None])
PAD.wrong("axis-inserted", result=lambda s: s.mask[..., None])
PAD.wrong("queries-hidden", result=lambda s: s.mask[:, :, None] & s.mask[:, None])
PAD.wrong(
    "repeated-for-queries", result=lambda s: s.mask[:, None].expand(-1, s.places, -1)
)
PAD.wrong("causal-mask-too", result=lambda s: s.mask[:, None] & right_mask(s.places))
PAD.wrong("causal-mask-instead", result=lambda s: right_mask(s.places))
PAD.wrong("causal-mask-instead", result=lambda s: torch.ones_like(s.mask).tril())
PAD.wrong("lengths-for-ids", result=lambda s: s.lengths != 0)
for kind in NUMBERS:
    PAD.wrong("numbers-for-booleans", mask=padded, result=kind)
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
            "ends": lambda s: s.lengths,
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
