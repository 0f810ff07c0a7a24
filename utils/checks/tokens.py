"""Exercises of notebook 01: byte-pair merges and sliding windows."""

import re

import torch

from utils.checks.engine import Exercise, Mistakes, case

# --- 1.1 merge --------------------------------------------------------------------


def right_merge(ids, pair, new_id):
    merged = []
    while ids:
        found = tuple(ids[:2]) == tuple(pair)
        merged.append(new_id if found else ids[0])
        ids = ids[2:] if found else ids[1:]
    return merged


def matches(ids, pair):
    """Return every position at which the pair begins, overlapping or not."""
    return [i for i in range(len(ids) - 1) if tuple(ids[i : i + 2]) == tuple(pair)]


def second_kept(ids, pair, new_id):
    found = matches(ids, pair)
    return [new_id if i in found else ids[i] for i in range(len(ids))]


def overlapping(ids, pair, new_id):
    found = matches(ids, pair)
    firsts = [new_id if i in found else ids[i] for i in range(len(ids))]
    return [x for i, x in enumerate(firsts) if i in found or i - 1 not in found]


def runs_joined(ids, pair, new_id):
    merged = []
    for i, x in enumerate(ids):
        if i and (ids[i - 1], x) == pair:
            merged[-1] = new_id
        else:
            merged.append(x)
    return merged


def first_kept(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged += [ids[i], new_id] if found else [ids[i]]
        i += 2 if found else 1
    return merged


def both_replaced(ids, pair, new_id):
    found = matches(ids, pair)
    return [new_id if {i, i - 1} & {*found} else x for i, x in enumerate(ids)]


def from_the_right(ids, pair, new_id):
    return right_merge(ids[::-1], pair[::-1], new_id)[::-1]


def first_alone(ids, pair, new_id):
    for i in matches(ids, pair)[:1]:
        return ids[:i] + [new_id] + ids[i + 2 :]
    return ids


def last_lost(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        found = (ids[i], ids[i + 1]) == pair
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


def last_pair_missed(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = i < len(ids) - 2 and (ids[i], ids[i + 1]) == pair
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


def next_lost(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged.append(new_id if found else ids[i])
        i += 3 if found else 1
    return merged


def in_steps_of_two(ids, pair, new_id):
    merged = []
    for i in range(0, len(ids), 2):
        two = ids[i : i + 2]
        merged += [new_id] if tuple(two) == pair else two
    return merged


def either_order(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = sorted(ids[i : i + 2]) == sorted(pair)
        merged.append(new_id if found else ids[i])
        i += 2 if found else 1
    return merged


def past_the_end(ids, pair, new_id):
    if ids and right_merge(ids, pair, new_id)[-1] == ids[-1] != new_id:
        raise IndexError
    return right_merge(ids, pair, new_id)


def past_the_end_sometimes(ids, pair, new_id):
    if ids and ids[-1] == pair[0] and right_merge(ids, pair, new_id)[-1] == ids[-1]:
        raise IndexError
    return right_merge(ids, pair, new_id)


def as_text(ids, pair, new_id):
    text = " ".join(map(str, ids)).replace(" ".join(map(str, pair)), str(new_id))
    return [int(number) for number in re.findall(r"\d+", text)]


OVERLAPPING = (
    "Two merges share an id: after a match, go on behind the pair, so that its second "
    "id cannot begin another one."
)
PAST_THE_END = (
    "The last id has no neighbour at its right, and ids[i + 1] looks for one: compare "
    "only where i + 1 < len(ids), and keep the last id as it is."
)

MERGE_MISTAKES = Mistakes()
MERGE_MISTAKES.add(
    "nothing-merged",
    lambda ids, pair, new_id: ids,
    "The list comes back as it was: no pair was recognised. A slice of a list is a "
    "list, and [1, 2] == (1, 2) is False: compare tuple(ids[i : i + 2]).",
)
MERGE_MISTAKES.add(
    "second-symbol-kept",
    second_kept,
    "The second id of each pair is still there: after a match go on two places "
    "further. In a `for` loop over a range, i += 1 does not do that; a `while` loop "
    "does.",
)
MERGE_MISTAKES.add(
    "first-symbol-kept",
    first_kept,
    "The first id of each pair is still there, before `new_id`: the new id takes the "
    "place of both.",
)
MERGE_MISTAKES.add("overlapping-merges", overlapping, OVERLAPPING)
MERGE_MISTAKES.add("overlapping-merges", runs_joined, OVERLAPPING)
MERGE_MISTAKES.add(
    "return-inside-the-loop",
    lambda ids, pair, new_id: right_merge(ids, pair, new_id)[:1] or None,
    "The result ends after the first id: the `return` stands inside the loop. Move it "
    "out to the left.",
)
MERGE_MISTAKES.add(
    "both-symbols-replaced",
    both_replaced,
    "Each id of the pair has become `new_id`; the two together become one.",
)
MERGE_MISTAKES.add(
    "pair-removed",
    lambda ids, pair, new_id: [x for x in right_merge(ids, pair, None) if x],
    "The pair is gone and nothing stands for it: append `new_id`.",
)
MERGE_MISTAKES.add(
    "pair-kept-as-a-tuple",
    lambda ids, pair, new_id: right_merge(ids, pair, pair),
    "The pair itself stands in the list, as a tuple: append `new_id`.",
)
MERGE_MISTAKES.add(
    "new-id-invented",
    lambda ids, pair, new_id: right_merge(ids, pair, max(ids, default=0) + 1),
    "The merged pair got another id than `new_id`.",
)
MERGE_MISTAKES.add(
    "first-occurrence-only",
    first_alone,
    "The first occurrence alone is merged: go on to the end of the list.",
)
MERGE_MISTAKES.add(
    "right-to-left",
    from_the_right,
    "The merges begin at the right end: read from left to right, so that of three "
    "equal ids the first two are merged.",
)
MERGE_MISTAKES.add(
    "last-symbol-lost",
    last_lost,
    "The last id is missing: the loop ends one id early. It has no neighbour, but it "
    "still belongs to the result.",
)
MERGE_MISTAKES.add(
    "last-pair-missed",
    last_pair_missed,
    "A pair at the very end is not merged: the last pair begins at len(ids) - 2, and "
    "the loop does not look there.",
)
MERGE_MISTAKES.add(
    "next-symbol-lost",
    next_lost,
    "The id after each merged pair is missing: after a match `i` moves by 3. Perhaps "
    "+= 2 in the `if` is followed by += 1 outside it.",
)
MERGE_MISTAKES.add(
    "pairs-at-even-places-only",
    in_steps_of_two,
    "The list is cut into twos, so a pair that begins at an odd position is not seen: "
    "move on by one where there is no match.",
)
MERGE_MISTAKES.add(
    "either-order",
    either_order,
    "The two ids are merged in the opposite order as well: a pair has a first and a "
    "second id.",
)
MERGE_MISTAKES.add(
    "order-turned-round",
    lambda ids, pair, new_id: right_merge(ids, pair[::-1], new_id),
    "The pair is looked for with its two ids in the opposite order.",
)
MERGE_MISTAKES.add(
    "each-symbol-alone",
    lambda ids, pair, new_id: [new_id if x in pair else x for x in ids],
    "Every id that is one of the two became `new_id`: both must stand there, side by "
    "side and in this order.",
)
MERGE_MISTAKES.add("past-the-end", past_the_end, PAST_THE_END)
MERGE_MISTAKES.add("past-the-end", past_the_end_sometimes, PAST_THE_END)
MERGE_MISTAKES.add(
    "ids-compared-as-text",
    as_text,
    "The ids are joined to a text and replaced there, so the end of 11 passes for the "
    "id 1: compare numbers.",
)
MERGE_MISTAKES.add(
    "tuple-for-list",
    lambda ids, pair, new_id: tuple(right_merge(ids, pair, new_id)),
    "The ids are right, in a tuple: return a list.",
)
MERGE_MISTAKES.add(
    "tensor-for-list",
    lambda ids, pair, new_id: torch.tensor(right_merge(ids, pair, new_id)),
    "The ids are right, in a tensor: return a list.",
)
merge = Exercise(
    id="1.1",
    signature="merge(ids, pair, new_id)",
    returns="a new list of ids in which each occurrence of `pair` is one `new_id`",
    oracle=right_merge,
    cases=[
        case([1, 2, 3, 1, 2], (1, 2), 9),
        case([4, 1, 2, 4], (1, 2), 9),
        case([2, 1, 2, 1], (1, 2), 9),
        case([1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([3, 1, 1, 1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([4, 3, 4], (1, 2), 9, note="the pair does not occur"),
        case([11, 2, 31, 2, 1, 2], (1, 2), 9),
        case([98, 256, 97, 98, 256, 97], (256, 97), 257),
        case([1], (1, 2), 9, note="one id"),
        case([], (1, 2), 9, note="no ids"),
    ],
    mistakes=MERGE_MISTAKES,
)


# --- 1.2 sliding windows ----------------------------------------------------------


def windows(ids, starts, length, shift=0):
    """Return one row of ids for each start; rows of unequal length are an error."""
    return torch.tensor([ids[s + shift : s + shift + length] for s in starts])


def starts_of(ids, context_length, stride):
    return range(0, len(ids) - context_length, stride)


def right_windows(ids, context_length, stride):
    places = torch.arange(0, len(ids) - context_length, stride)[:, None]
    places = places + torch.arange(context_length)
    ids = torch.tensor(ids)
    return ids[places], ids[places + 1]


def shifted_by(how_far):
    """Return the mistake whose targets stand `how_far(length, stride)` away."""

    def compute(ids, length, stride):
        starts = starts_of(ids, length, stride)
        shift = how_far(length, stride)
        return windows(ids, starts, length), windows(ids, starts, length, shift)

    return compute


def from_starts(starts):
    """Return the mistake that takes other starts; `starts(number, length, stride)`."""

    def compute(ids, length, stride):
        places = starts(len(ids), length, stride)
        return windows(ids, places, length), windows(ids, places, length, 1)

    return compute


def ragged(stop, error):
    """Return the mistake that goes too far and stumbles over a shorter row."""

    def compute(ids, length, stride):
        starts = range(0, stop(len(ids), length), stride)
        if starts and starts[-1] + length >= len(ids):
            raise error
        return right_windows(ids, length, stride)

    return compute


def one_more_input(ids, length, stride):
    inputs = torch.tensor(ids).unfold(0, length, stride)
    return inputs, torch.tensor(ids[1:]).unfold(0, length, stride)


def chunks(ids, length, stride, stop=0):
    rows = windows(ids, range(0, len(ids) - length + stop, stride), length)
    return rows[:, :-1], rows[:, 1:]


def fewer_targets(ids, length, stride):
    starts = range(1, len(ids) - length, stride)
    return right_windows(ids, length, stride)[0], windows(ids, starts, length)


def unfold_swapped(ids, length, stride):
    rows = torch.tensor(ids).unfold(0, stride, length + 1)
    return rows[:, :-1], rows[:, 1:]


def wrapped_round(ids, length, stride):
    inputs, _ = right_windows(ids, length, stride)
    return inputs, inputs.roll(-1, 1)


def padded_target(ids, length, stride):
    inputs, targets = right_windows(ids, length, stride)
    targets[:, -1] = 0
    return inputs, targets


def as_lists(ids, length, stride):
    return tuple(part.tolist() for part in right_windows(ids, length, stride))


def seen_on_many_windows(answer):
    """Name a wrong shift or a lost window, also where small inputs give no window."""
    ids = [31, 7, 19, 2, 23, 11, 5, 29, 3, 17, 13, 41, 37, 43]
    right = [part.tolist() for part in right_windows(ids, 3, 2)]
    inputs, targets = (part.tolist() for part in answer(list(ids), 3, 2))
    if inputs == right[0][:-1] and targets == right[1][:-1]:
        return "last-window-lost", LAST_LOST
    for slug, shift, text in SHIFTS:
        if inputs[0] == ids[:3] and targets[0] == ids[shift : shift + 3]:
            return slug, text
    return None


def step_seen(answer):
    """Name windows that begin at other distances than the stride."""
    ids = list(range(100, 160))
    inputs, targets = (part.tolist() for part in answer(list(ids), 7, 3))
    step = inputs[1][0] - inputs[0][0]
    rows = [ids[s : s + 7] for s in range(0, 60, step)][: len(inputs)]
    if step != 3 and inputs == rows and targets == [[x + 1 for x in r] for r in rows]:
        text = "With context_length = 7 and stride = 3 the windows begin"
        return "wrong-step", f"{text} {step} ids apart: they should begin 3 apart."
    return None


NO_SHIFT = (
    "The targets are the inputs: at each position the target is the id that comes "
    "next, so the window of targets begins one place later."
)
BY_STRIDE = (
    "The targets are shifted by the stride. The stride is how far the next window is "
    "away; inputs and targets of one window are always one place apart."
)
BY_CONTEXT = (
    "The targets are the block after the inputs, shifted by `context_length`: every "
    "position has a target of its own, the id that comes next, one place later."
)
SHIFTS = [
    ("no-shift", 0, NO_SHIFT),
    ("shifted-by-stride", 2, BY_STRIDE),
    ("shifted-by-context", 3, BY_CONTEXT),
]
LAST_LOST = (
    "The last window is missing although its targets exist: a start s is right as "
    "long as s + context_length < len(ids)."
)
TOO_SHORT = (
    "A window of `context_length` ids gives one pair less than that: take "
    "context_length + 1 ids, drop the last for the inputs, the first for the targets."
)
ONE_TARGET = (
    "Each window has one target, the id behind it: every position is a training "
    "example and has a target of its own, the id that comes next."
)
PAIRS = (
    "This is a list of pairs, one for each window: return all inputs as one tensor "
    "and all targets as another."
)
TOO_MANY = (
    "There is one window too many: its targets would end behind the last id. A start "
    "s needs s + context_length < len(ids)."
)
TOO_FAR = (
    "The starts run on to the end of the ids, where the windows become shorter: a "
    "start s needs s + context_length < len(ids)."
)

SLIDING_WINDOWS_MISTAKES = Mistakes()
SLIDING_WINDOWS_MISTAKES.add("no-shift", shifted_by(lambda length, stride: 0), NO_SHIFT)
SLIDING_WINDOWS_MISTAKES.add(
    "shifted-by-stride", shifted_by(lambda length, stride: stride), BY_STRIDE
)
SLIDING_WINDOWS_MISTAKES.add(
    "shifted-by-context", shifted_by(lambda length, stride: length), BY_CONTEXT
)
SLIDING_WINDOWS_MISTAKES.add(
    "inputs-and-targets-swapped",
    lambda ids, length, stride: right_windows(ids, length, stride)[::-1],
    "Both are right, in the wrong order: the inputs come first.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "stride-ignored",
    lambda ids, length, stride: right_windows(ids, length, 1),
    "A window begins at every id: the starts are 0, stride, 2 * stride …",
)
SLIDING_WINDOWS_MISTAKES.add(
    "context-for-stride",
    lambda ids, length, stride: right_windows(ids, length, length),
    "The starts are `context_length` apart: they should be `stride` apart.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "last-window-lost",
    from_starts(lambda n, length, stride: range(0, n - length - 1, stride)),
    LAST_LOST,
)
SLIDING_WINDOWS_MISTAKES.add(
    "last-window-lost",
    from_starts(lambda n, length, stride: range(0, n - length, stride)[:-1]),
    LAST_LOST,
)
SLIDING_WINDOWS_MISTAKES.add(
    "last-targets-lost",
    fewer_targets,
    "There are fewer windows of targets than of inputs: a range that begins one later "
    "has to end one later. Better take the same starts for both.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "unfold-arguments-swapped",
    unfold_swapped,
    "Size and step are swapped: it is ids.unfold(0, size, step).",
)
SLIDING_WINDOWS_MISTAKES.add(
    "first-window-lost",
    from_starts(lambda n, length, stride: range(stride, n - length, stride)),
    "The first window is missing: the starts begin at 0.",
)
SLIDING_WINDOWS_MISTAKES.add("window-too-many", one_more_input, TOO_MANY)
SLIDING_WINDOWS_MISTAKES.add(
    "window-too-many",
    ragged(lambda n, length: n - length + 1, ValueError),
    TOO_MANY,
)
SLIDING_WINDOWS_MISTAKES.add(
    "window-too-many",
    ragged(lambda n, length: n - length + 1, RuntimeError),
    TOO_MANY,
)
SLIDING_WINDOWS_MISTAKES.add(
    "starts-too-far", ragged(lambda n, length: n, ValueError), TOO_FAR
)
SLIDING_WINDOWS_MISTAKES.add(
    "starts-too-far", ragged(lambda n, length: n, RuntimeError), TOO_FAR
)
SLIDING_WINDOWS_MISTAKES.add(
    "windows-too-short",
    lambda ids, length, stride: chunks(ids, length, stride, stop=1),
    TOO_SHORT,
)
SLIDING_WINDOWS_MISTAKES.add(
    "windows-too-short",
    chunks,
    TOO_SHORT,
)
SLIDING_WINDOWS_MISTAKES.add(
    "targets-in-the-inputs",
    lambda ids, length, stride: (
        windows(ids, starts_of(ids, length, stride), length + 1),
        right_windows(ids, length, stride)[1],
    ),
    "The inputs are one id too long: they hold the last target as well.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "target-wraps-round",
    wrapped_round,
    "The last target of each window is its first input: a rotation brings the front "
    "to the back. The last target is the id behind the window.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "last-target-missing",
    padded_target,
    "The last target of each window is 0: it is the id behind the window.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "last-target-missing",
    lambda ids, length, stride: (
        right_windows(ids, length, stride)[0],
        right_windows(ids, length, stride)[0][:, 1:],
    ),
    "Each window has one target less than inputs: the last target is the id behind "
    "the window.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "one-target-per-window",
    lambda ids, length, stride: (
        right_windows(ids, length, stride)[0],
        right_windows(ids, length, stride)[1][:, -1],
    ),
    ONE_TARGET,
)
SLIDING_WINDOWS_MISTAKES.add(
    "one-target-per-window",
    lambda ids, length, stride: (
        right_windows(ids, length, stride)[0],
        right_windows(ids, length, stride)[1][:, -1:],
    ),
    ONE_TARGET,
)
SLIDING_WINDOWS_MISTAKES.add(
    "positions-for-ids",
    lambda ids, length, stride: right_windows([*range(len(ids))], length, stride),
    "These are positions in the list: look up the ids that stand there.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "float-tensors",
    lambda ids, length, stride: tuple(
        part.float() for part in right_windows(ids, length, stride)
    ),
    "The numbers are right, as floats: ids are integers. torch.tensor keeps them, "
    "torch.Tensor makes floats.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "lists-for-tensors", as_lists, "Right, as lists: make two tensors."
)
SLIDING_WINDOWS_MISTAKES.add(
    "rows-not-stacked",
    lambda ids, length, stride: tuple(
        list(part) for part in right_windows(ids, length, stride)
    ),
    "Right, as lists of rows: torch.stack makes one tensor of each list.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "pairs-for-two-tensors",
    lambda ids, length, stride: tuple(zip(*right_windows(ids, length, stride))),
    PAIRS,
)
SLIDING_WINDOWS_MISTAKES.add(
    "pairs-for-two-tensors",
    lambda ids, length, stride: tuple(zip(*as_lists(ids, length, stride))),
    PAIRS,
)
SLIDING_WINDOWS_MISTAKES.add(
    "one-tensor-for-two",
    lambda ids, length, stride: torch.stack(right_windows(ids, length, stride)),
    "Inputs and targets are stacked into one tensor: return the two.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "targets-missing",
    lambda ids, length, stride: right_windows(ids, length, stride)[0],
    "These are the right inputs, but the targets are missing.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "windows-not-split",
    lambda ids, length, stride: torch.cat(
        (
            right_windows(ids, length, stride)[0],
            right_windows(ids, length, stride)[1][:, -1:],
        ),
        1,
    ),
    "These are windows of context_length + 1 ids: all but the last are the inputs, "
    "all but the first the targets.",
)
SLIDING_WINDOWS_MISTAKES.add(
    "axes-swapped",
    lambda ids, length, stride: tuple(
        part.T for part in right_windows(ids, length, stride)
    ),
    "The windows stand in the columns: a row is a window.",
)
sliding_windows = Exercise(
    id="1.2",
    signature="sliding_windows(ids, context_length, stride)",
    returns="the tuple (inputs, targets), two integer tensors (N, context_length)",
    parts=("inputs", "targets"),
    oracle=right_windows,
    cases=[
        case([50, 20, 70, 30, 60], 2, 2),
        case([50, 20, 70, 30, 60, 10], 2, 1),
        case([50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75], 3, 5),
        case([50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35], 3, 3),
        case([50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75], 5, 3),
        case([50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75], 5, 7),
        case([50, 20, 70, 30, 60, 10, 40, 80], 7, 3, note="one window"),
    ],
    facts=[seen_on_many_windows, step_seen],
    mistakes=SLIDING_WINDOWS_MISTAKES,
)

EXERCISES = [merge, sliding_windows]
