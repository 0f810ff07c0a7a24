"""Exercises of notebook 01: byte-pair merges and sliding windows."""

import re

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, form, texts_of

TEXTS = texts_of(__file__)

# --- 1.1 merge --------------------------------------------------------------------


def right_merge(ids, pair, new_id):
    merged = []
    while ids:
        found = tuple(ids[:2]) == tuple(pair)
        merged.append(new_id if found else ids[0])
        ids = ids[2:] if found else ids[1:]
    return merged


def walked(s):
    """Return the ids after a walk from left to right, as the other steps say."""
    merged, i = [], 0
    while i < s.end:
        found = s.match(i)
        merged += s.put(i) if found else s.leave(i)
        i += s.after_match if found else s.otherwise
    return merged


def places(s):
    """Return every place at which the pair begins, overlapping or not."""
    return [i for i in range(len(s.ids)) if tuple(s.ids[i : i + 2]) == s.pair]


def at(places):
    """Return the question whether the pair is merged at a place."""
    return places.__contains__


def overlapping(s):
    found = places(s)
    firsts = [s.new if i in found else x for i, x in enumerate(s.ids)]
    return [x for i, x in enumerate(firsts) if i in found or i - 1 not in found]


def runs_joined(s):
    merged, found = [], places(s)
    for i, x in enumerate(s.ids):
        if i - 1 in found:
            merged[-1] = s.new
        else:
            merged.append(x)
    return merged


def both_replaced(s):
    found = {*places(s)}
    return [s.new if {i, i - 1} & found else x for i, x in enumerate(s.ids)]


def as_text(s):
    text = " ".join(map(str, s.ids)).replace(" ".join(map(str, s.pair)), str(s.new))
    return [int(number) for number in re.findall(r"\d+", text)]


def first_or_second(two, pair):
    return two[0] == pair[0] or two[1:] == [pair[1]]


def first_and_second(two, pair):
    return two[0] == pair[0] and two[1] == pair[1]


def where(rule):
    """Return the way to match where two neighbours and the pair keep to a rule."""
    return lambda s: lambda i: rule(s.ids[i : i + 2], s.pair)


MERGE = Forms(TEXTS["MERGE"])
MERGE.wrong("nothing-merged", match=lambda s: at([]))
MERGE.wrong("second-symbol-kept", after_match=lambda s: 1)
MERGE.wrong("first-symbol-kept", put=lambda s: lambda i: [s.ids[i], s.new])
MERGE.wrong("overlapping-merges", merged=overlapping)
MERGE.wrong("overlapping-merges", merged=runs_joined)
MERGE.wrong("return-inside-the-loop", result=lambda s: s.merged[:1] or None)
MERGE.wrong("both-symbols-replaced", merged=both_replaced)
MERGE.wrong("both-symbols-replaced", put=lambda s: lambda i: [s.new, s.new])
MERGE.wrong("pair-removed", put=lambda s: lambda i: [])
MERGE.wrong("pair-kept-as-a-tuple", put=lambda s: lambda i: [s.pair])
MERGE.wrong("pair-kept", put=lambda s: lambda i: [*s.pair, s.new])
MERGE.wrong("new-id-in-a-list", put=lambda s: lambda i: [[s.new]])
MERGE.wrong("new-id-invented", new=lambda s: max(s.ids, default=0) + 1)
MERGE.wrong("first-occurrence-only", match=lambda s: at(places(s)[:1]))
MERGE.wrong(
    "right-to-left",
    merged=lambda s: right_merge(s.ids[::-1], s.pair[::-1], s.new)[::-1],
)
MERGE.wrong("last-symbol-lost", end=lambda s: len(s.ids) - 1)
MERGE.wrong(
    "last-symbol-twice",
    end=lambda s: len(s.ids) - 1,
    result=lambda s: s.merged + s.ids[-1:],
)
MERGE.wrong("last-pair-missed", match=lambda s: at({*places(s)} - {len(s.ids) - 2}))
MERGE.wrong("next-symbol-lost", after_match=lambda s: 3)
MERGE.wrong(
    "else-missing",
    put=lambda s: lambda i: [s.new, s.ids[i + 2]],
    after_match=lambda s: 3,
)
MERGE.wrong("other-symbols-lost", leave=lambda s: lambda i: [])
MERGE.wrong("every-second-symbol-lost", otherwise=lambda s: 2)
MERGE.wrong(
    "pairs-at-even-places-only",
    leave=lambda s: lambda i: s.ids[i : i + 2],
    otherwise=lambda s: 2,
)
MERGE.wrong("either-order", match=where(lambda two, pair: sorted(two) == sorted(pair)))
MERGE.wrong("order-turned-round", pair=lambda s: s.pair[::-1])
MERGE.wrong(
    "each-symbol-alone",
    match=where(lambda two, pair: two[0] in pair),
    after_match=lambda s: 1,
)
MERGE.wrong("half-of-the-pair", match=where(lambda two, pair: two[0] == pair[0]))
MERGE.wrong("half-of-the-pair", match=where(lambda two, pair: two[1:] == [pair[1]]))
MERGE.wrong("half-of-the-pair", match=where(first_or_second))
MERGE.wrong("past-the-end", match=where(lambda two, pair: (two[0], two[1]) == pair))
MERGE.wrong("past-the-end", match=where(first_and_second))
MERGE.wrong("ids-compared-as-text", merged=as_text)
MERGE.wrong("tuple-for-list", result=lambda s: tuple(s.merged))
MERGE.wrong("tensor-for-list", result=lambda s: torch.tensor(s.merged))

merging = Pipeline(
    start=lambda ids, pair, new_id: {"ids": ids, "pair": pair, "new_id": new_id},
    steps={
        "pair": lambda s: s.pair,
        "new": lambda s: s.new_id,
        "end": lambda s: len(s.ids),
        "match": lambda s: at(places(s)),
        "put": lambda s: lambda i: [s.new],
        "leave": lambda s: lambda i: [s.ids[i]],
        "after_match": lambda s: 2,
        "otherwise": lambda s: 1,
        "merged": walked,
        "result": lambda s: s.merged,
    },
    forms=MERGE,
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
    pipeline=merging,
)


# --- 1.2 sliding windows ----------------------------------------------------------


def right_windows(ids, context_length, stride):
    starts = torch.arange(0, len(ids) - context_length, stride)[:, None]
    places = starts + torch.arange(context_length)
    ids = torch.tensor(ids)
    return ids[places], ids[places + 1]


def rows(s, starts, more=0):
    """Return the windows from these places on, with some ids more, as a tensor."""
    return s.tensor([s.source[p : p + s.size + more] for p in starts])


def stacked(s):
    return lambda rows: torch.stack([torch.tensor(row) for row in rows])


def both(change):
    """Return the way to give the inputs and the targets, both changed."""
    return lambda s: (change(s.inputs), change(s.targets))


as_lists = both(torch.Tensor.tolist)


def beyond(more):
    """Return the way to stop so far beyond the last start."""
    return lambda s: len(s.source) - s.size + more


def counted_down(s):
    return range(0, s.stop // s.step * s.step, s.step)


def from_one(s):
    return range(1, s.stop, s.step)


def size_swapped(s):
    rows = torch.tensor(s.source).unfold(0, s.step, s.size + 1)
    return rows[:, :-1], rows[:, 1:]


WINDOWS = Forms(TEXTS["WINDOWS"])
WINDOWS.wrong("no-shift", shift=lambda s: 0, stop=beyond(0))
WINDOWS.wrong("no-shift", shift=lambda s: 0)
WINDOWS.wrong("shifted-by-stride", shift=lambda s: s.step, stop=beyond(0))
WINDOWS.wrong("shifted-by-stride", shift=lambda s: s.step)
WINDOWS.wrong("shifted-by-context", shift=lambda s: s.size, stop=beyond(0))
WINDOWS.wrong("shifted-by-context", shift=lambda s: s.size)
WINDOWS.wrong("shifted-by-two", shift=lambda s: 2, stop=beyond(0))
WINDOWS.wrong("shifted-by-two", shift=lambda s: 2)
WINDOWS.wrong("shifted-backwards", shift=lambda s: -1, stop=beyond(0))
WINDOWS.wrong("inputs-and-targets-swapped", result=lambda s: (s.targets, s.inputs))
WINDOWS.wrong("stride-ignored", step=lambda s: 1)
WINDOWS.wrong("context-for-stride", step=lambda s: s.size)
WINDOWS.wrong("wrong-step", step=lambda s: s.size + 1)
WINDOWS.wrong("wrong-step", step=lambda s: s.size - s.stride)
WINDOWS.wrong("wrong-step", step=lambda s: s.size + s.stride)
WINDOWS.wrong("last-window-lost", stop=beyond(-1))
WINDOWS.wrong("last-window-lost", starts=lambda s: range(0, s.stop, s.step)[:-1])
WINDOWS.wrong("last-window-lost 2", starts=counted_down)
WINDOWS.wrong("last-targets-lost", later=from_one)
WINDOWS.wrong("unfold-arguments-swapped", result=size_swapped)
WINDOWS.wrong("first-window-lost", starts=lambda s: range(s.step, s.stop, s.step))
WINDOWS.wrong("first-window-lost 2", starts=from_one)
WINDOWS.wrong("window-too-many", stop=beyond(1))
WINDOWS.wrong("window-too-many", stop=beyond(1), tensor=stacked)
WINDOWS.wrong("window-too-many", stop=beyond(1), later=from_one)
WINDOWS.wrong("starts-too-far", stop=lambda s: len(s.source))
WINDOWS.wrong("starts-too-far", stop=lambda s: len(s.source), tensor=stacked)
WINDOWS.wrong("windows-too-short", size=lambda s: s.length - 1)
WINDOWS.wrong("windows-too-short", size=lambda s: s.length - 1, stop=beyond(-1))
WINDOWS.wrong("targets-in-the-inputs", inputs=lambda s: rows(s, s.starts, more=1))
WINDOWS.wrong("target-wraps-round", targets=lambda s: s.inputs.roll(-1, 1))
WINDOWS.wrong("last-target-missing", targets=lambda s: F.pad(s.inputs[:, 1:], (0, 1)))
WINDOWS.wrong("last-target-missing 2", targets=lambda s: s.inputs[:, 1:])
WINDOWS.wrong("one-target-per-window", result=lambda s: (s.inputs, s.targets[:, -1]))
WINDOWS.wrong("one-target-per-window", result=lambda s: (s.inputs, s.targets[:, -1:]))
WINDOWS.wrong("ids-plus-one", targets=lambda s: s.inputs + 1)
WINDOWS.wrong("positions-for-ids", source=lambda s: [*range(len(s.ids))])
WINDOWS.wrong("ids-cut-off", result=both(torch.Tensor.short))
WINDOWS.wrong("ids-cut-off", result=both(torch.Tensor.byte))
WINDOWS.wrong("float-tensors", result=both(torch.Tensor.float))
WINDOWS.wrong("lists-for-tensors", result=as_lists)
WINDOWS.wrong("rows-not-stacked", result=both(list))
WINDOWS.wrong("pairs-for-two-tensors", result=lambda s: tuple(zip(s.inputs, s.targets)))
WINDOWS.wrong("pairs-for-two-tensors", result=lambda s: tuple(zip(*as_lists(s))))
WINDOWS.wrong("one-tensor-for-two", result=lambda s: torch.stack((s.inputs, s.targets)))
WINDOWS.wrong("targets-missing", result=lambda s: s.inputs)
WINDOWS.wrong("windows-not-split", result=lambda s: rows(s, s.starts, more=1))
WINDOWS.wrong("axes-swapped", result=both(torch.t))

sliding = Pipeline(
    start=lambda ids, length, stride: {"ids": ids, "length": length, "stride": stride},
    steps={
        "source": lambda s: s.ids,
        "size": lambda s: s.length,
        "step": lambda s: s.stride,
        "shift": lambda s: 1,
        "stop": lambda s: len(s.source) - s.size - s.shift + 1,
        "starts": lambda s: range(0, s.stop, s.step),
        "later": lambda s: [start + s.shift for start in s.starts],
        "tensor": lambda s: torch.tensor,
        "inputs": lambda s: rows(s, s.starts),
        "targets": lambda s: rows(s, s.later),
        "result": lambda s: (s.inputs, s.targets),
    },
    forms=WINDOWS,
    harmless=[form(None, tensor=stacked)],
    words={"step": lambda s: s.step, "stride": lambda s: s.stride},
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
        case([50, 20, 70, 30, 50256, 10, 40, 80, 90, 15, 35, 55, 75], 5, 3),
        case([50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75], 5, 7),
        case([50, 20, 70, 30, 60, 10, 40, 80], 7, 3, note="one window"),
    ],
    pipeline=sliding,
)

EXERCISES = [merge, sliding_windows]
