"""Exercises of the notebook on tokens: byte-pair merges and sliding windows."""

import torch

from utils.checks.engine import Exercise, case
from utils.checks.pipeline import Pipeline, variants

# --- merge ------------------------------------------------------------------------


def right_merge(ids, pair, new_id):
    if tuple(ids[:2]) == pair:
        return [new_id, *right_merge(ids[2:], pair, new_id)]
    return ids[:1] + right_merge(ids[1:], pair, new_id) if ids else []


def walk(s):
    """Return the ids after a walk from left to right, as the other steps say."""
    merged, i = [], 0
    while i < s.end:
        matches = i in s.matches
        merged += s.put(i) if matches else s.keep(i)
        i += s.jump if matches else s.step
    return merged


def at(s, *some):
    """Return the positions where these ids begin, one after the other."""
    return {i for i in range(len(s.ids)) if (*s.ids[i : i + len(some)],) == some}


def replaced(s, positions, dropped=()):
    """Return the ids with the new one at some positions; others are dropped."""
    ids = enumerate(s.ids)
    return [s.new if i in positions else x for i, x in ids if i not in dropped]


def looking_back(s):
    """Merge with what was written last, even where that is a new id."""
    merged = []
    for x in s.ids:
        if merged and (merged[-1], x) == s.pair:
            merged[-1] = s.new
        else:
            merged.append(x)
    return merged


def as_text(s):
    text = " ".join(map(str, s.ids)).replace(" ".join(map(str, s.pair)), str(s.new))
    return [*map(int, text.split())]


ONE_EARLY = {"end": lambda s: len(s.ids) - 1}
MERGE = variants(
    "nothing-merged: You found no pair: a slice of a list is a list, and [1, 2] == (1, 2) is False, so compare tuple(ids[i : i + 2]).",
    dict(matches=lambda s: set()),
    "second-symbol-kept: You kept the second id of each pair: move on by two after a match. In a `for` loop over a range, i += 1 doesn't do that; a `while` loop does.",
    dict(jump=lambda s: 1),
    "pair-kept: You kept an id of each pair: only `new_id` stays.",
    dict(put=lambda s: lambda i: [s.pair[0], s.new]),
    dict(put=lambda s: lambda i: [*s.pair, s.new]),
    dict(put=lambda s: lambda i: [s.pair]),
    "overlapping-merges: You let two merges share an id: after a match, move on by two.",
    dict(merged=lambda s: replaced(s, s.matches, s.behind - s.matches)),
    dict(merged=lambda s: replaced(s, s.matches, s.behind)),
    "merges-again: You merged a new id once more: compare the ids that you were given, not those that you have written.",
    dict(merged=looking_back),
    "return-inside-the-loop: Your result ends after one id: is `return` in the loop?",
    dict(result=lambda s: s.merged[:1] or None),
    "both-symbols-replaced: You replaced each id of the pair: the two become one.",
    dict(merged=lambda s: replaced(s, s.matches | s.behind)),
    "pair-removed: You removed the pair: append `new_id` in its place.",
    dict(put=lambda s: lambda i: []),
    "new-id-in-a-list: You put `new_id` in a list of its own: append the number, or extend by [new_id].",
    dict(put=lambda s: lambda i: [[s.new]]),
    "first-occurrence-only: You merged the first occurrence only: go on to the end.",
    dict(matches=lambda s: {*sorted(at(s, *s.pair))[:1]}),
    "right-to-left: You merged from right to left: go from left to right, so that of three equal ids the first two are merged.",
    dict(ids=lambda s: s.ids[::-1], pair=lambda s: s.pair[::-1])
    | dict(result=lambda s: s.merged[::-1]),
    "last-symbol-lost: You lost the last id, because the loop ends one id early: it has no neighbour, but it still belongs in the result.",
    ONE_EARLY,
    "last-symbol-twice: You appended the last id even where it has become part of a pair: append it only if no merge has taken it.",
    ONE_EARLY | dict(result=lambda s: s.merged + s.ids[-1:]),
    "last-pair-missed: You missed a pair at the very end: the last one begins at len(ids) - 2.",
    dict(matches=lambda s: at(s, *s.pair) - {len(s.ids) - 2}),
    "next-symbol-lost: You lost or didn't look at the id after each pair: move on by two after a match, and put what happens without a match into an `else`.",
    dict(jump=lambda s: 3),
    dict(put=lambda s: lambda i: [s.new, s.ids[i + 2]], jump=lambda s: 3),
    "every-second-symbol-lost: You moved by two where nothing is merged: move by one.",
    dict(step=lambda s: 2),
    dict(keep=lambda s: lambda i: s.ids[i : i + 2], step=lambda s: 2),
    "other-symbols-lost: You lost the ids that begin no pair: append them as they are.",
    dict(keep=lambda s: lambda i: []),
    "either-order: You merged the two ids in the opposite order as well: pair[0] comes first.",
    dict(matches=lambda s: at(s, *s.pair) | at(s, *s.pair[::-1])),
    "order-turned-round: You looked for the pair in the opposite order.",
    dict(pair=lambda s: s.pair[::-1]),
    "half-of-the-pair: You matched one of the two ids only: the first must be pair[0], and its right neighbour pair[1].",
    dict(matches=lambda s: s.first),
    dict(matches=lambda s: s.first | {i - 1 for i in s.second}),
    dict(merged=lambda s: replaced(s, s.first | s.second)),
    "past-the-end: You looked for the last id's right neighbour, ids[i + 1], and it has none: compare only if i + 1 < len(ids).",
    dict(keep=lambda s: lambda i: [s.ids[i + 1], s.ids[i]][1:]),
    dict(keep=lambda s: lambda i: [s.ids[i + (i in s.first)], s.ids[i]][1:]),
    "ids-compared-as-text: You replaced ids in a text, where the end of 11 passes for 1.",
    dict(merged=as_text),
)

merge = Exercise(
    id="1.1",
    signature="merge(ids, pair, new_id)",
    returns="a new list of ids in which each occurrence of `pair` is one `new_id`",
    oracle=right_merge,
    cases=[
        *(case(x, (1, 2), 9) for x in ([1, 2, 3, 1, 2], [4, 1, 2, 4], [2, 1, 2, 1])),
        case([1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([3, 1, 1, 1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([4, 3, 4], (1, 2), 9, note="the pair does not occur"),
        case([11, 2, 31, 2, 1, 2], (1, 2), 9),
        case([98, 256, 97, 98, 256, 97], (256, 97), 257),
        case([5, 7, 7, 5, 7], (5, 7), 5, note="the new id is part of the pair"),
        case([1], (1, 2), 9, note="one id"),
        case([], (1, 2), 9, note="no ids"),
    ],
    pipeline=Pipeline(
        start=lambda ids, pair, new: {"ids": ids, "pair": pair, "new": new},
        steps={
            "ids": lambda s: s.ids,
            "end": lambda s: len(s.ids),
            "pair": lambda s: s.pair,
            "first": lambda s: at(s, s.pair[0]),
            "second": lambda s: at(s, s.pair[1]),
            "matches": lambda s: at(s, *s.pair),
            "behind": lambda s: {i + 1 for i in s.matches},
            "put": lambda s: lambda i: [s.new],
            "jump": lambda s: 2,
            "keep": lambda s: lambda i: [s.ids[i]],
            "step": lambda s: 1,
            "merged": walk,
            "result": lambda s: s.merged,
        },
        variants=MERGE,
    ),
)


# --- sliding windows --------------------------------------------------------------


def right_windows(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    return rows[:, :-1], rows[:, 1:]


def rows(s, starts, more=0):
    """Return the windows from these positions on, with some ids more, as a tensor."""
    return s.tensor([s.source[p : p + s.size + more] for p in starts])


STACKED = {"tensor": lambda s: lambda rows: torch.stack([*map(torch.tensor, rows)])}
WHOLE = {"stop": lambda s: len(s.source) - s.size - s.shift + 1}
LATER = {"later": lambda s: range(1, s.stop, s.step)}
WINDOWS = variants(
    "no-shift: You returned the inputs as targets: the target is the id that comes next, so the window of targets begins one position later.",
    dict(shift=lambda s: 0),
    "shifted-by-stride: You shifted the targets by the stride: shift them by one.",
    dict(shift=lambda s: s.step),
    WHOLE | dict(shift=lambda s: s.step),
    "shifted-by-context: You shifted the targets by context_length: shift them by one.",
    dict(shift=lambda s: s.size),
    WHOLE | dict(shift=lambda s: s.size),
    "shifted-by-two: You shifted the targets by two: shift them by one.",
    dict(shift=lambda s: 2),
    WHOLE | dict(shift=lambda s: 2),
    "shifted-backwards: You began the targets one position earlier: begin them one later.",
    dict(shift=lambda s: -1),
    "stride-ignored: You began a window at every id: the starts are 0, stride, 2 * stride and so on.",
    dict(step=lambda s: 1),
    "context-for-stride: You began the windows `context_length` apart: begin them `stride` apart.",
    dict(step=lambda s: s.size),
    "wrong-step: You began the windows {step} ids apart: begin them {stride} apart.",
    dict(step=lambda s: s.size + 1),
    dict(step=lambda s: s.size - s.stride),
    dict(step=lambda s: s.size + s.stride),
    "last-window-lost: You lost the last window although its targets exist: a start s is right as long as s + context_length < len(ids).",
    dict(beyond=lambda s: -1),
    dict(starts=lambda s: range(0, s.stop - s.stop % s.step, s.step)),
    "first-window-lost: You lost the first window: the starts begin at 0.",
    dict(starts=lambda s: range(s.step, s.stop, s.step)),
    dict(starts=lambda s: range(1, s.stop, s.step)),
    "window-too-many: You made a window whose targets would end after the last id: a start s needs s + context_length < len(ids).",
    dict(beyond=lambda s: 1),
    STACKED | dict(beyond=lambda s: 1),
    LATER | dict(beyond=lambda s: 1),
    dict(beyond=lambda s: s.length),
    "last-targets-lost: You made fewer windows of targets than of inputs: take the same starts for both.",
    LATER,
    "windows-too-short: You took windows of context_length ids, which give one pair less: take context_length + 1, then drop the last for the inputs, the first for the targets.",
    dict(size=lambda s: s.length - 1),
    "target-wraps-round: You rotated the inputs, so the last target is the first input: it should be the id after the window.",
    dict(targets=lambda s: s.inputs.roll(-1, 1)),
    "one-target-per-window: You gave each window one target: every position has one.",
    dict(result=lambda s: (s.inputs, s.targets[:, -1])),
    "positions-for-ids: You returned positions: look up the ids at these positions.",
    dict(source=lambda s: [*range(len(s.ids))]),
    "windows-not-split: You returned windows of context_length + 1 ids: all but the last are the inputs, all but the first the targets.",
    dict(result=lambda s: rows(s, s.starts, more=1)),
)

IDS = [50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75]
sliding_windows = Exercise(
    id="1.2",
    signature="sliding_windows(ids, context_length, stride)",
    returns="the tuple (inputs, targets), two integer tensors (N, context_length)",
    parts=("inputs", "targets"),
    oracle=right_windows,
    cases=[
        *(case(IDS[:n], *sizes) for n, *sizes in [(5, 2, 2), (6, 2, 1), (13, 3, 5)]),
        case(IDS[:11], 3, 3),
        case([*IDS[:4], 50256, *IDS[5:]], 5, 3),
        case(IDS, 5, 7),
        case(IDS[:8], 7, 3, note="one window"),
    ],
    pipeline=Pipeline(
        start=lambda ids, length, stride: dict(ids=ids, length=length, stride=stride),
        steps={
            "source": lambda s: s.ids,
            "size": lambda s: s.length,
            "step": lambda s: s.stride,
            "shift": lambda s: 1,
            "beyond": lambda s: 0,
            "stop": lambda s: len(s.source) - s.size + s.beyond,
            "starts": lambda s: range(0, s.stop, s.step),
            "later": lambda s: [start + s.shift for start in s.starts],
            "tensor": lambda s: torch.tensor,
            "inputs": lambda s: rows(s, s.starts),
            "targets": lambda s: rows(s, s.later),
            "result": lambda s: (s.inputs, s.targets),
        },
        variants=WINDOWS,
    ),
)

EXERCISES = [merge, sliding_windows]
