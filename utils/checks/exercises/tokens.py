"""Exercises of the notebook on tokens: byte-pair merges and sliding windows."""

from itertools import pairwise

import torch

from utils import data, tokenizer
from utils.checks.definition import Case, Exercise, Mistake


def merge(ids, pair, new_id):
    found = {i for i, both in enumerate(pairwise(ids)) if both == pair}
    end = len(ids)
    merged, i = [], 0
    while i < end:
        is_match = i in found
        merged.append(new_id if is_match else ids[i])
        i = i + (2 if is_match else 1)
    return merged


# Equal numbers, but each an object of its own, for which `is` is False.
LARGE = [int(id) for id in "300 400 300 400 300 3 4 300 400".split()]
exercise_1_1 = Exercise(
    id="1.1",
    right=merge,
    course=tokenizer.merge,
    returns="a new list of ids in which each occurrence of `pair` is one `new_id`",
    cases=[
        Case([1, 2, 3, 1, 2], (1, 2), 9),
        Case(LARGE[:7], (*LARGE[7:],), 500, note="ids above 256"),
        Case([1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        Case([4, 3, 4, 11, 2], (1, 2), 9, note="the pair does not occur"),
        Case([], (1, 2), 9, note="no ids"),
    ],
    mistakes=[
        Mistake("nothing-merged", "You found no pair. A slice of a list is a list, and [1, 2] == (1, 2) is False: compare tuple(ids[i : i + 2]).", "found = set()"),
        Mistake("is-for-equal", "You compared ids with `is`, which asks whether both are the same object. Of equal numbers above 256 there may be several, so compare with `==`.", "found = {i for i, (a, b) in enumerate(pairwise(ids)) if a is pair[0] and b is pair[1]}"),
        Mistake("second-symbol-kept", "You kept the second id of each pair: move on by two after a match, in a `while` loop, because in a `for` loop over a range `i += 1` has no effect.", "i = i + 1"),
        Mistake("first-occurrence-only", "You merged the first occurrence only: go on to the end.", "is_match = i == min(found, default=None)"),
        Mistake("last-pair-not-merged", "You left a pair at the very end as it is: its first id is the last but one, len(ids) - 2, and your loop ends before it.", "is_match = i in found and i + 2 < len(ids)"),
        Mistake("right-to-left", "You merged from right to left: go from left to right, so that of three equal ids the first two are merged.", "ids = ids[::-1]; pair = pair[::-1]; return merged[::-1]"),
        Mistake("last-symbol-lost", "You lost the last id, because your loop ends one id early: that id has no neighbour, but it still belongs in the result.", "end = len(ids) - 1"),
    ],
)  # fmt: skip

IDS = [50, 20, 50256, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75]
WINDOWS = [(5, 2, 2), (6, 2, 1), (13, 3, 5), (13, 5, 7)]  # ids, length, stride


def sliding_windows(ids, context_length, stride):
    shift = 1
    stop = len(ids) - context_length
    starts = range(0, stop, stride)
    inputs = [ids[s : s + context_length] for s in starts]
    targets = [ids[s + shift : s + shift + context_length] for s in starts]
    kind = torch.int64
    return torch.tensor(inputs).to(kind), torch.tensor(targets).to(kind)


exercise_1_2 = Exercise(
    id="1.2",
    right=sliding_windows,
    course=data.sliding_windows,
    smallest_inputs={"ids": [50, 20], "context_length": 1, "stride": 1},
    returns="the tuple (inputs, targets), two integer tensors (N, context_length)",
    parts=("inputs", "targets"),
    cases=[Case(IDS[:n], *sizes) for n, *sizes in WINDOWS],
    mistakes=[
        Mistake("no-shift", "You returned the inputs as targets: the target is the id that comes next, so the window of targets begins one position later.", "shift = 0"),
        Mistake("wrong-shift", "You shifted the targets by {shift}: shift them by one, because the target is the id that comes next.", "shift = stride; stop = len(ids) - context_length - shift + 1", "shift = context_length; stop = len(ids) - context_length - shift + 1", "shift = 2; stop = len(ids) - context_length - shift + 1"),
        Mistake("stride-ignored", "You began a window at every id: the starts are 0, stride, 2 * stride and so on.", "stride = 1"),
        Mistake("context-for-stride", "You began the windows `context_length` apart: begin them `stride` apart.", "stride = context_length"),
        Mistake("last-window-lost", "You lost the last window although its targets exist: a start s is right as long as s + context_length < len(ids).", "stop = len(ids) - context_length - 1", "starts = range(0, stop, stride)[: (stop - 1) // stride]"),
        Mistake("one-target-for-a-window", "You took one target for each window: each of its inputs has a target, so take the window that begins one position later.", "targets = [ids[s + context_length] for s in starts]"),
        Mistake("type-too-small", "You made integers of type {kind}, which can't hold every id, such as 50256: leave the type out, and torch.tensor takes int64.", "kind = torch.int8", "kind = torch.uint8", "kind = torch.int16"),
    ],
)  # fmt: skip
