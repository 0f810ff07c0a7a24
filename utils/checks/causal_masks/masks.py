"""Exercises 5.1 and 5.3: the causal mask and the padding mask."""

import torch

from utils.checks.draw import several
from utils.checks.engine import Exercise, Mistake, Mistakes, case
from utils.checks.values import numbers, shape

INF = torch.inf


# --- 5.1 --------------------------------------------------------------------------


def right_mask(num_tokens):
    positions = torch.arange(num_tokens)
    return positions <= positions[:, None]


def triangle(diagonal):
    """Return the mask whose `True` ends `diagonal` places right of the diagonal."""
    return lambda num_tokens: torch.ones(num_tokens, num_tokens).tril(diagonal).bool()


def in_numbers(mask):
    """Return 1 for `True` and 0 for `False`."""
    return mask.float()


def additive(mask):
    """Return what is added to the scores: 0 for `True`, -inf for `False`."""
    return torch.zeros(mask.shape).masked_fill(~mask, -INF)


def read_sizes_of_a_number(name):
    def compute(num_tokens):
        raise AttributeError(f"'int' object has no attribute '{name}'")

    return compute


def other_kinds(right):
    """Return the mistakes that give the entries of a right mask as something else."""
    return [
        *several(
            "numbers-for-booleans",
            "The entries are 1 and 0 where a boolean mask is asked for: `~` and "
            "masked_fill need True and False. Use dtype=torch.bool or a comparison.",
            lambda *args: right(*args).float(),
            lambda *args: right(*args).long(),
        ),
        *several(
            "numbers-for-booleans",
            "The entries are 1 where a token is hidden and 0 elsewhere: return "
            "booleans, True where it may be attended to.",
            lambda *args: (~right(*args)).float(),
            lambda *args: (~right(*args)).long(),
        ),
        *several(
            "additive-mask",
            "This is an additive mask, 0 and a very negative number: return booleans, "
            "True where a token may be attended to.",
            lambda *args: additive(right(*args)),
            lambda *args: ~right(*args) * -1e9,
        ),
        Mistake(
            "list-for-tensor",
            lambda *args: right(*args).tolist(),
            "The entries are right, as Python lists: torch.tensor makes one tensor.",
        ),
        Mistake(
            "list-for-tensor",
            lambda *args: list(right(*args)),
            "The rows are right, as a list: torch.stack makes one tensor of them.",
        ),
        Mistake(
            "array-for-tensor",
            lambda *args: right(*args).numpy(),
            "This is a NumPy array: use the functions of torch, or torch.from_numpy "
            "at the end.",
        ),
    ]


MASK_MISTAKES = Mistakes()
MASK_MISTAKES.add(
    "upper-for-lower",
    lambda n: right_mask(n).T,
    "The first query sees the whole future and the last one only itself: row i is "
    "True up to column i. Keep the lower triangle, tril.",
)
MASK_MISTAKES.add(
    "polarity-inverted",
    lambda n: ~right_mask(n),
    "True stands where the query must not look. In this course True means that it may "
    "attend: return ~mask.",
)
MASK_MISTAKES.add(
    "diagonal-masked",
    triangle(-1),
    "The first token may attend to nothing, not even to itself. The current token "
    "counts as known: key j is allowed where j <= i, not only where j < i. The "
    "diagonal belongs to the mask.",
)
MASK_MISTAKES.add(
    "one-step-leaked",
    triangle(1),
    "Query 0 sees token 1, which it is to predict, and so on in each row. The last "
    "True of row i is in column i: tril() with diagonal 0.",
)
MASK_MISTAKES.add(
    "two-steps-leaked",
    triangle(2),
    "Row i is True up to column i + 2: its last True belongs into column i.",
)
MASK_MISTAKES.add(
    "everything-allowed",
    lambda n: torch.ones(n, n).bool(),
    lambda e: (
        f"All {e.got.numel()} entries are True, so every query sees the whole "
        "future. Keep the lower triangle alone; tril returns a new tensor."
    ),
)
MASK_MISTAKES.add(
    "nothing-allowed",
    lambda n: torch.zeros(n, n).bool(),
    lambda e: (
        f"All {e.got.numel()} entries are False, so no query sees anything: a "
        "triangle cut out of zeros is zero. Start with torch.ones."
    ),
)
MASK_MISTAKES.add(
    "diagonal-alone",
    lambda n: torch.eye(n).bool(),
    lambda e: (
        f"Row {e.args[0] - 1} is {numbers(e.got[-1])}: each token sees itself "
        "alone. It may attend to all tokens before it too: j <= i, not j == i."
    ),
)
MASK_MISTAKES.add(
    "window-alone",
    lambda n: right_mask(n).triu(-1),
    lambda e: (
        f"Row {e.args[0] - 1} is {numbers(e.got[-1])}: each token sees itself "
        "and its neighbour alone. All tokens before it are allowed."
    ),
)
MASK_MISTAKES.several(
    "other-diagonal",
    "The triangle leans the other way: row i is True up to column i. Here the rows, "
    "or the columns, are in reverse order.",
    lambda n: right_mask(n).flip(0),
    lambda n: right_mask(n).flip(1),
)
MASK_MISTAKES.add(
    "first-row-missing",
    lambda n: right_mask(n) & (torch.arange(n) > 0)[:, None],
    "The first row is all False: the first token may attend to itself. A loop over "
    "the rows begins at 0.",
)
MASK_MISTAKES.add(
    "row-for-a-matrix",
    lambda n: torch.tril(torch.ones(n)),
    "torch.ones(num_tokens) is one row: the mask has two axes, torch.ones(num_tokens, "
    "num_tokens).",
)
MASK_MISTAKES.add(
    "numbers-for-booleans",
    lambda n: in_numbers(right_mask(n).T),
    "These are numbers, and 1 stands in the upper triangle: return booleans, True in "
    "the lower triangle and on the diagonal.",
)
MASK_MISTAKES.add(
    "zero-times-infinity",
    lambda n: in_numbers(~right_mask(n)) * -INF,
    lambda e: (
        f"Row 0 is {numbers(e.got[0])}: 0 times infinity is NaN, so every zero "
        "of the triangle became NaN. And a boolean mask is asked for."
    ),
)
MASK_MISTAKES.add(
    "zero-times-infinity",
    lambda n: in_numbers(right_mask(n)) * -INF,
    lambda e: (
        f"Row 0 is {numbers(e.got[0])}: 0 times infinity is NaN, and -inf "
        "stands on the wrong side. Return a boolean mask: no infinity at all."
    ),
)
MASK_MISTAKES.add(
    "uniform-weights",
    lambda n: torch.softmax(additive(right_mask(n)), -1),
    "These are weights that sum to 1 in each row, a step too far: return the mask, "
    "True where the query may attend.",
)
MASK_MISTAKES.several(
    "leading-axes",
    "The triangle is right, but there are axes in front of it: return (T, T). "
    "Broadcasting adds the batch later.",
    lambda n: right_mask(n)[None],
    lambda n: right_mask(n)[None, None],
)
MASK_MISTAKES.several(
    "one-row-only",
    lambda e: (
        f"The result has the shape {shape(e.got)}: each of the {e.args[0]} "
        "queries has a row of its own, (T, T). Compare with a column, "
        "positions[:, None]; in a loop, keep every row."
    ),
    lambda n: right_mask(n)[0],
    lambda n: right_mask(n)[-1],
)
MASK_MISTAKES.add(
    "one-too-large",
    lambda n: right_mask(n + 1),
    lambda e: (
        f"The side is {len(e.got)} for {e.args[0]} tokens: one row and one "
        "column for each token, num_tokens of both."
    ),
)
MASK_MISTAKES.extend(other_kinds(right_mask))
MASK_MISTAKES.several(
    "no-token-fails",
    "Without a token the mask is empty, (0, 0) and boolean: torch.tensor([]) has one "
    "axis and holds floats.",
    lambda n: right_mask(n) if n else torch.tensor([]),
    lambda n: right_mask(n) if n else torch.tensor([], dtype=torch.bool),
)
MASK_MISTAKES.several(
    "size-of-a-number",
    "`num_tokens` is a number, not a tensor: it is the side T of the mask.",
    read_sizes_of_a_number("shape"),
    read_sizes_of_a_number("size"),
)
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
    mistakes=MASK_MISTAKES,
)


# --- 5.3 --------------------------------------------------------------------------


def right_padding(lengths, num_tokens):
    return torch.arange(num_tokens) < torch.as_tensor(lengths)[:, None]


def shifted(steps):
    """Return the mask with `steps` more True entries in each row."""
    return lambda lengths, num_tokens: right_padding(lengths + steps, num_tokens)


def axis_missing(lengths, num_tokens):
    return torch.arange(num_tokens) < lengths


def both_ways(lengths, num_tokens):
    real = right_padding(lengths, num_tokens)
    return real[:, :, None] & real[:, None, :]


def one_place(step):
    """Return the mask with one True in each row, set by index."""

    def compute(lengths, num_tokens):
        marked = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
        marked[torch.arange(len(lengths)), lengths + step] = True
        return marked

    return compute


def minus_zero(lengths, num_tokens):
    """Hide `mask[b, -(T - length):]`, which is everything where nothing is padded."""
    return right_padding(lengths, num_tokens) & (lengths < num_tokens)[:, None]


def rows_for_columns(lengths, num_tokens):
    rows = torch.arange(len(lengths)) < lengths.max()
    return rows[:, None].expand(-1, num_tokens)


def right_for(answer, kind):
    """Say whether an answer is right where the lengths come as this kind."""
    for lengths, num_tokens in (([2, 3], 5), ([3, 1, 2], 3), ([4, 0], 6)):
        expected = right_padding(torch.tensor(lengths), num_tokens)
        try:
            if not torch.equal(answer(kind(lengths), num_tokens), expected):
                return False
        except Exception:
            return False
    return True


def lists_and_tensors(answer):
    """Name an answer that takes the lengths as a list alone, or as a tensor alone."""
    kinds = {"list": list, "tensor": torch.tensor}
    taken = [name for name, kind in kinds.items() if right_for(answer, kind)]
    if len(taken) != 1:
        return None
    other = "tensor" if taken == ["list"] else "list"
    return (
        f"{other}-not-accepted",
        f"With a {taken[0]} of lengths the answer is right, with a {other} it is not: "
        "torch.as_tensor(lengths) takes either.",
    )


def sliced_by_tensor(lengths, num_tokens):
    real = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    real[:, :lengths] = True
    return real


def as_keys(*index):
    """Return the mask indexed so that axes of size 1 are inserted."""
    return lambda lengths, num_tokens: right_padding(lengths, num_tokens)[index]


def rows_shown(e):
    """Say how many real tokens the first wrong row has."""
    row = (e.got != e.expected).any(-1).nonzero()[0].item()
    length, count = e.args[0][row].item(), int(e.got[row].sum())
    return f"The sentence of length {length} gets {count} True"


PADDING_MISTAKES = Mistakes()
PADDING_MISTAKES.add(
    "polarity-inverted",
    lambda lengths, n: ~right_padding(lengths, n),
    lambda e: (
        f"{rows_shown(e)}, at the padding. In this course True means that a "
        "token may be attended to: t < length."
    ),
)
PADDING_MISTAKES.add(
    "polarity-inverted",
    lambda lengths, n: torch.arange(n) > lengths[:, None],
    lambda e: (
        f"{rows_shown(e)}, at the padding, whose first place is missed too. "
        "True means a real token: t < length."
    ),
)
PADDING_MISTAKES.add(
    "one-too-many",
    shifted(1),
    lambda e: (
        f"{rows_shown(e)}, one too many: positions start at 0, so the last "
        "real one is length - 1. Use < rather than <=."
    ),
)
PADDING_MISTAKES.add(
    "one-too-few",
    shifted(-1),
    lambda e: (
        f"{rows_shown(e)}, one too few: positions start at 0, so those below "
        "the length are real, t < length. Start arange at 0."
    ),
)
PADDING_MISTAKES.add(
    "left-for-right",
    lambda lengths, n: right_padding(lengths, n).flip(1),
    "The real tokens stand at the right end, so the padding is on the left: here a "
    "sentence begins at position 0 and the padding follows.",
)
PADDING_MISTAKES.add(
    "sentences-reversed",
    lambda lengths, n: right_padding(lengths, n).flip(0),
    "The rows are in reverse order: row b belongs to sentence b.",
)
PADDING_MISTAKES.several(
    "lengths-sorted",
    "The rows are sorted by length: row b belongs to sentence b.",
    lambda lengths, n: right_padding(lengths.sort().values, n),
    lambda lengths, n: right_padding(lengths.sort(descending=True).values, n),
)
PADDING_MISTAKES.add(
    "axes-swapped",
    lambda lengths, n: right_padding(lengths, n).T,
    lambda e: (
        f"The shape is {shape(e.got)}: the sentences are in the columns. "
        "Positions are the row, (T,), lengths the column, (B, 1)."
    ),
)
PADDING_MISTAKES.add(
    "axis-missing",
    axis_missing,
    "The lengths (B,) meet the positions (T,) entry by entry, which fails or, where B "
    "= T, makes one row. Make the lengths a column: lengths[:, None].",
)
PADDING_MISTAKES.add(
    "longest-for-num-tokens",
    lambda lengths, n: right_padding(lengths, int(lengths.max())),
    lambda e: (
        f"The rows are {e.got.shape[1]} long, as the longest sentence; they "
        f"should have num_tokens = {e.args[1]} places."
    ),
)
PADDING_MISTAKES.extend(
    Mistake(
        "one-length-for-all",
        lambda lengths, n, pick=pick: right_padding(pick(lengths)[None], n).expand(
            len(lengths), -1
        ),
        "Every sentence is given the same length: compare each row with its "
        f"own, here it is {which}.",
    )
    for which, pick in (
        ("the longest", torch.max),
        ("the shortest", torch.min),
        ("that of the first sentence", lambda lengths: lengths[0]),
        ("that of the last sentence", lambda lengths: lengths[-1]),
    )
)
PADDING_MISTAKES.several(
    "one-row-only",
    "This is the row of one sentence: each gets its own, (B, T). In a loop, keep "
    "every row and return after the last.",
    lambda lengths, n: right_padding(lengths, n)[0],
    lambda lengths, n: right_padding(lengths, n)[-1],
)
PADDING_MISTAKES.add(
    "minus-zero",
    minus_zero,
    "A sentence without padding loses all its tokens: in mask[b, -n:] with n = 0 the "
    "slice is [0:], everything. Count from the front, mask[b, length:].",
)
PADDING_MISTAKES.add(
    "rows-for-columns",
    rows_for_columns,
    "mask[:length] takes rows, which are sentences: the tokens are the second axis, "
    "mask[b, :length].",
)
PADDING_MISTAKES.add(
    "everything-real",
    lambda lengths, n: torch.ones(len(lengths), n).bool(),
    "All entries are True: the lengths play no part.",
)
PADDING_MISTAKES.add(
    "nothing-real",
    lambda lengths, n: torch.zeros(len(lengths), n).bool(),
    "All entries are False: nothing has been set to True.",
)
PADDING_MISTAKES.several(
    "last-token-alone",
    "Each row has a single True: all tokens before a sentence's length are real, t < "
    "length, not t == length.",
    lambda lengths, n: torch.arange(n) == lengths[:, None] - 1,
    lambda lengths, n: torch.arange(n) == lengths[:, None],
    one_place(-1),
)
PADDING_MISTAKES.add(
    "last-token-alone",
    one_place(0),
    "`mask[i, length] = True` sets one place, the first one of the padding: the slice "
    "mask[i, :length] is meant.",
)
PADDING_MISTAKES.add(
    "sliced-by-a-tensor",
    sliced_by_tensor,
    "mask[:, :lengths] cuts all rows at one place, so it takes one number: set each "
    "row in a loop, or compare positions with lengths[:, None].",
)
PADDING_MISTAKES.several(
    "axis-inserted",
    "The entries are right, with axes of size 1 inserted for the scores: return (B, "
    "T) here; mask[:, None, :] inserts one where it meets scores.",
    as_keys(slice(None), None),
    as_keys(slice(None), None, None),
    as_keys(..., None),
)
PADDING_MISTAKES.add(
    "queries-hidden",
    both_ways,
    "The mask is (B, T, T) and hides padded queries too: padding hides keys, one row "
    "(B, T) says which. Padded queries stay; nobody reads them.",
)
PADDING_MISTAKES.add(
    "repeated-for-queries",
    lambda lengths, n: right_padding(lengths, n)[:, None].expand(-1, n, -1),
    "The mask is repeated for every query, (B, T, T): return (B, T), and broadcasting "
    "does the rest.",
)
PADDING_MISTAKES.add(
    "causal-mask-too",
    lambda lengths, n: right_padding(lengths, n)[:, None] & right_mask(n),
    "The causal mask is combined with it already, (B, T, T): return the padding "
    "alone, (B, T).",
)
PADDING_MISTAKES.add(
    "causal-mask-instead",
    lambda lengths, n: right_mask(n),
    "This is the causal mask (T, T): the lengths play no part.",
)
PADDING_MISTAKES.add(
    "lengths-for-ids",
    lambda lengths, n: lengths != 0,
    lambda e: (
        f"The shape is {shape(e.got)}: the lengths are compared with 0 as if "
        "they were token ids. Compare positions with them, t < length."
    ),
)
PADDING_MISTAKES.extend(other_kinds(right_padding))
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
    mistakes=PADDING_MISTAKES,
)
