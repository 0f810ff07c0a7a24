"""Exercises 5.1 and 5.3: the causal mask and the padding mask."""

import torch

from utils.checks.attention_steps import INF
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import numbers, shape

TEXTS = texts_of(__file__)


# --- the entries of a right mask as something else ----------------------------------


def additive(mask):
    """Return what is added to the scores: 0 for `True`, -inf for `False`."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def as_float(s):
    return s.mask.float()


def as_long(s):
    return s.mask.long()


KIND = Forms(TEXTS["KIND"])
KIND.wrong("numbers-for-booleans", result=as_float)
KIND.wrong("numbers-for-booleans", result=as_long)
KIND.wrong("additive-mask", result=lambda s: additive(s.mask))
KIND.wrong("additive-mask", result=lambda s: ~s.mask * -1e9)
KIND.wrong("list-for-tensor", result=lambda s: s.mask.tolist())
KIND.wrong("list-for-tensor 2", result=lambda s: list(s.mask))
KIND.wrong("array-for-tensor", result=lambda s: s.mask.numpy())


# --- 5.1 --------------------------------------------------------------------------


def right_mask(num_tokens):
    positions = torch.arange(num_tokens)
    return positions <= positions[:, None]


def cut_from(entries, diagonal=0, cut=torch.tril):
    """Return the mask cut out of these entries, `entries(rows, columns)`."""
    return lambda s: cut(entries(s.side, s.side), diagonal).bool()


def empty_of(dtype):
    """Return the mask that comes out of torch.tensor([]) where there is no token."""
    return lambda s: s.result if s.side else torch.tensor([], dtype=dtype)


def without_first_row(s):
    return right_mask(s.side) & (torch.arange(s.side) > 0)[:, None]


def future(s):
    return ~right_mask(s.side)


def upper(s):
    return right_mask(s.side).T


CAUSAL = Forms(TEXTS["CAUSAL"])
CAUSAL.wrong("upper-for-lower", mask=upper)
CAUSAL.wrong("upper-for-lower 2", mask=cut_from(torch.ones, -1, torch.triu))
CAUSAL.wrong("polarity-inverted", mask=future)
CAUSAL.wrong("diagonal-masked", mask=cut_from(torch.ones, -1))
CAUSAL.wrong("one-step-leaked", mask=cut_from(torch.ones, 1))
CAUSAL.wrong("two-steps-leaked", mask=cut_from(torch.ones, 2))
CAUSAL.wrong("everything-allowed", mask=lambda s: torch.ones(s.side, s.side).bool())
CAUSAL.wrong("nothing-allowed", mask=cut_from(torch.zeros))
CAUSAL.wrong("diagonal-alone", mask=lambda s: torch.eye(s.side).bool())
CAUSAL.wrong("window-alone", mask=lambda s: right_mask(s.side).triu(-1))
CAUSAL.wrong("other-diagonal", mask=lambda s: right_mask(s.side).flip(0))
CAUSAL.wrong("other-diagonal", mask=lambda s: right_mask(s.side).flip(1))
CAUSAL.wrong("first-row-missing", mask=without_first_row)
CAUSAL.wrong("row-for-a-matrix", mask=lambda s: torch.tril(torch.ones(s.side)))
CAUSAL.wrong("numbers-for-booleans 2", mask=upper, result=as_float)
CAUSAL.wrong("numbers-for-booleans 3", mask=future, result=as_float)
CAUSAL.wrong("numbers-for-booleans 3", mask=future, result=as_long)
CAUSAL.wrong("zero-times-infinity", result=lambda s: (~s.mask).float() * -INF)
CAUSAL.wrong("zero-times-infinity 2", result=lambda s: s.mask.float() * -INF)
CAUSAL.wrong("uniform-weights", result=lambda s: additive(s.mask).softmax(-1))
CAUSAL.wrong("leading-axes", result=lambda s: s.mask[None])
CAUSAL.wrong("leading-axes", result=lambda s: s.mask[None, None])
CAUSAL.wrong("one-row-only", result=lambda s: s.mask[0])
CAUSAL.wrong("one-row-only", result=lambda s: s.mask[-1])
CAUSAL.wrong("one-too-large", side=lambda s: s.num_tokens + 1)
CAUSAL.extend(KIND)
CAUSAL.wrong("no-token-fails", end=empty_of(torch.float))
CAUSAL.wrong("no-token-fails", end=empty_of(torch.bool))
CAUSAL.wrong("size-of-a-number", side=lambda s: s.num_tokens.shape[0])
CAUSAL.wrong("size-of-a-number", side=lambda s: s.num_tokens.size(0))
mask = Exercise(
    id="5.1",
    signature="causal_mask(num_tokens)",
    returns="a boolean tensor (T, T), True where the query (row) may attend to the key "
    "(column)",
    oracle=right_mask,
    cases=[
        case(3),
        case(5),
        case(2),
        case(11),
        case(1, note="one token"),
        case(0, note="no token", special=True),
    ],
    pipeline=Pipeline(
        start=lambda num_tokens: {"num_tokens": num_tokens},
        steps={
            "side": lambda s: s.num_tokens,
            "mask": lambda s: right_mask(s.side),
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


def real(s):
    """Return the right mask of these ends of sentences and this many places."""
    return right_padding(s.ends, s.places)


def places(s):
    return torch.arange(s.places)


def one_length(pick):
    """Return the step that takes one of the lengths for all."""
    return lambda s: pick(s.lengths).expand(len(s.lengths))


def one_place(step):
    """Return the mask with one True in each row, set by index."""

    def mask(s):
        marked = torch.zeros(len(s.ends), s.places, dtype=torch.bool)
        marked[torch.arange(len(s.ends)), s.ends + step] = True
        return marked

    return mask


def rows_for_columns(s):
    rows = torch.arange(len(s.ends)) < s.ends.max()
    return rows[:, None].expand(-1, s.places)


def sliced_by_tensor(s):
    marked = torch.zeros(len(s.ends), s.places, dtype=torch.bool)
    marked[:, : s.ends] = True
    return marked


def right_for(answer, kind):
    """Say whether an answer is right where the lengths come as this kind."""
    for lengths, num_tokens in (([2, 3], 5), ([3, 1, 2], 3), ([4, 0], 6)):
        try:
            found = answer(kind(lengths), num_tokens)
            if not torch.equal(found, right_padding(lengths, num_tokens)):
                return False
        except Exception:
            return False
    return True


def lists_and_tensors(answer):
    """Name an answer that takes the lengths as a list alone, or as a tensor alone."""
    as_list, as_tensor = right_for(answer, list), right_for(answer, torch.tensor)
    if as_tensor and not as_list:
        return TEXTS["FACTS"].say("list-not-accepted")
    if as_list and not as_tensor:
        return TEXTS["FACTS"].say("tensor-not-accepted")
    return None


def row_shown(s):
    """Say how many real tokens the first wrong row has."""
    counts = s.mask.sum(-1)
    row = (counts != s.lengths).int().argmax()
    return f"The sentence of length {s.lengths[row]} gets {counts[row]} True"


def padded(s):
    return ~real(s)


PAD = Forms(TEXTS["PADDING"])
PAD.wrong("polarity-inverted", mask=padded)
PAD.wrong("one-too-many", ends=lambda s: s.lengths + 1)
PAD.wrong("one-too-few", ends=lambda s: s.lengths - 1)
PAD.wrong("one-too-few", ends=lambda s: (s.lengths - 1) % s.num_tokens)
PAD.wrong("polarity-inverted 2", mask=lambda s: places(s) > s.ends[:, None])
PAD.wrong("left-for-right", mask=lambda s: real(s).flip(1))
PAD.wrong("sentences-reversed", mask=lambda s: real(s).flip(0))
PAD.wrong("lengths-sorted", ends=lambda s: s.lengths.sort().values)
PAD.wrong("lengths-sorted", ends=lambda s: s.lengths.sort(descending=True).values)
PAD.wrong("axes-swapped", result=lambda s: s.mask.T)
PAD.wrong("axis-missing", mask=lambda s: places(s) < s.ends)
PAD.wrong("longest-for-num-tokens", places=lambda s: int(s.lengths.max()))
PAD.wrong("one-place-short", places=lambda s: s.num_tokens - 1)
PAD.wrong("one-length-for-all", {"which": "the longest"}, ends=one_length(torch.max))
PAD.wrong("one-length-for-all", {"which": "the shortest"}, ends=one_length(torch.min))
PAD.wrong("one-length-for-all", {"which": "the first"}, ends=one_length(lambda n: n[0]))
PAD.wrong("one-length-for-all", {"which": "the last"}, ends=one_length(lambda n: n[-1]))
PAD.wrong("one-row-only", result=lambda s: s.mask[0])
PAD.wrong("one-row-only", result=lambda s: s.mask[-1])
PAD.wrong("minus-zero", mask=lambda s: real(s) & (s.ends < s.places)[:, None])
PAD.wrong("rows-for-columns", mask=rows_for_columns)
PAD.wrong("everything-real", mask=lambda s: real(s) | True)
PAD.wrong("nothing-real", mask=lambda s: real(s) & False)
PAD.wrong("last-token-alone", mask=lambda s: places(s) == s.ends[:, None] - 1)
PAD.wrong("last-token-alone", mask=lambda s: places(s) == s.ends[:, None])
PAD.wrong("last-token-alone", mask=one_place(-1))
PAD.wrong("last-token-alone 2", mask=one_place(0))
PAD.wrong("sliced-by-a-tensor", mask=sliced_by_tensor)
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
PAD.wrong("numbers-for-booleans", mask=padded, result=as_float)
PAD.wrong("numbers-for-booleans", mask=padded, result=as_long)
PAD.extend(KIND)
padding = Exercise(
    id="5.3",
    signature="padding_mask(lengths, num_tokens)",
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
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
        start=lambda lengths, num_tokens: {
            "lengths": lengths,
            "num_tokens": num_tokens,
        },
        steps={
            "ends": lambda s: s.lengths,
            "places": lambda s: s.num_tokens,
            "mask": real,
            "result": lambda s: s.mask,
        },
        forms=PAD,
        words={
            "row": row_shown,
            "T": lambda s: s.num_tokens,
            "shape": lambda s: shape(s.result),
            "side": lambda s: s.mask.shape[1],
        },
    ),
)
