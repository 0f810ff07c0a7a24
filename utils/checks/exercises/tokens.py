"""Exercises of the notebook on tokens: byte-pair merges and sliding windows."""

from itertools import pairwise

import torch

from utils.checks.engine import Case, Exercise
from utils.checks.pipeline import variants


def walk(s):
    """Merge the ids from left to right, with what the other steps decide."""
    merged, i = [], 0
    while i < s.end:
        matches = i in s.matches
        merged += [s.new_id] if matches else [s.ids[i]]
        i += s.jump if matches else 1
    return merged


merge = Exercise(
    id="1.1",
    signature="merge(ids, pair, new_id)",
    returns="a new list of ids in which each occurrence of `pair` is one `new_id`",
    cases=[
        *(
            Case(x, (1, 2), 9)
            for x in ([1, 2, 3, 1, 2], [1, 2, 1, 2, 1, 3, 4], [2, 1, 2, 1])
        ),
        Case([1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        Case([4, 3, 4, 11, 2], (1, 2), 9, note="the pair does not occur"),
        Case([], (1, 2), 9, note="no ids"),
    ],
    steps={
        "end": lambda s: len(s.ids),
        "found": lambda s: {
            i for i, ids in enumerate(pairwise(s.ids)) if ids == s.pair
        },
        "matches": lambda s: s.found,
        "jump": lambda s: 2,
        "merged": walk,
        "result": lambda s: s.merged,
    },
    variants=variants(
        "nothing-merged: You found no pair. A slice of a list is a list, and [1, 2] == (1, 2) is False: compare tuple(ids[i : i + 2]).",
        dict(matches=lambda s: set()),
        "second-symbol-kept: You kept the second id of each pair: move on by two after a match, in a `while` loop, because in a `for` loop over a range `i += 1` has no effect.",
        dict(jump=lambda s: 1),
        "first-occurrence-only: You merged the first occurrence only: go on to the end.",
        dict(matches=lambda s: {*sorted(s.found)[:1]}),
        "last-pair-not-merged: You left a pair at the very end as it is: its first id is the last but one, len(ids) - 2, and your loop ends before it.",
        dict(matches=lambda s: {i for i in s.found if i + 2 < len(s.ids)}),
        "right-to-left: You merged from right to left: go from left to right, so that of three equal ids the first two are merged.",
        dict(ids=lambda s: s.ids[::-1], pair=lambda s: s.pair[::-1])
        | dict(result=lambda s: s.merged[::-1]),
        "last-symbol-lost: You lost the last id, because your loop ends one id early: that id has no neighbour, but it still belongs in the result.",
        dict(end=lambda s: len(s.ids) - 1),
    ),
)


def rows(s, starts):
    """Return the windows from these positions on, as a tensor."""
    return torch.tensor([s.ids[p : p + s.context_length] for p in starts])


WHOLE = {"stop": lambda s: len(s.ids) - s.context_length - s.shift + 1}
SHIFTS = lambda s: s.stride, lambda s: s.context_length, lambda s: 2

IDS = [50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75]
sliding_windows = Exercise(
    id="1.2",
    signature="sliding_windows(ids, context_length, stride)",
    returns="the tuple (inputs, targets), two integer tensors (N, context_length)",
    parts=("inputs", "targets"),
    cases=[
        *(Case(IDS[:n], *sizes) for n, *sizes in [(5, 2, 2), (6, 2, 1), (13, 3, 5)]),
        Case(IDS, 5, 7),
    ],
    steps={
        "shift": lambda s: 1,
        "beyond": lambda s: 0,
        "stop": lambda s: len(s.ids) - s.context_length + s.beyond,
        "starts": lambda s: range(0, s.stop, s.stride),
        "later": lambda s: [start + s.shift for start in s.starts],
        "inputs": lambda s: rows(s, s.starts),
        "targets": lambda s: rows(s, s.later),
        "result": lambda s: (s.inputs, s.targets),
    },
    variants=variants(
        "no-shift: You returned the inputs as targets: the target is the id that comes next, so the window of targets begins one position later.",
        dict(shift=lambda s: 0),
        "wrong-shift: You shifted the targets by {shift}: shift them by one, because the target is the id that comes next.",
        *(WHOLE | {"shift": shift} for shift in SHIFTS),
        "stride-ignored: You began a window at every id: the starts are 0, stride, 2 * stride and so on.",
        dict(stride=lambda s: 1),
        "context-for-stride: You began the windows `context_length` apart: begin them `stride` apart.",
        dict(stride=lambda s: s.context_length),
        "last-window-lost: You lost the last window although its targets exist: a start s is right as long as s + context_length < len(ids).",
        dict(beyond=lambda s: -1),
        dict(starts=lambda s: range(0, s.stop, s.stride)[: s.stop // s.stride]),
        dict(starts=lambda s: range(0, s.stop, s.stride)[: (s.stop - 1) // s.stride]),
        "windows-rolled: You rolled each window, so its last target is its own first id: take the window that begins one position later.",
        dict(targets=lambda s: s.inputs.roll(-1, 1)),
    ),
)

EXERCISES = [merge, sliding_windows]
