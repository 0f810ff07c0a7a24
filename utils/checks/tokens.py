"""Exercises of notebook 01: byte-pair merges and sliding windows."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, form, texts_of

TEXTS = texts_of(__file__)

# --- 1.1 merge --------------------------------------------------------------------


def right_merge(ids, pair, new_id):
    if tuple(ids[:2]) == pair:
        return [new_id, *right_merge(ids[2:], pair, new_id)]
    return ids[:1] + right_merge(ids[1:], pair, new_id) if ids else []


def walked(s):
    """Return the ids after a walk from left to right, as the other steps say."""
    merged, i = [], 0
    while i < s.end:
        merged += s.put(i) if i in s.found else s.keep(i)
        i += s.jump if i in s.found else s.step
    return merged


def at(s, *some):
    """Return the places where these ids stand, one after the other."""
    return {i for i in range(len(s.ids)) if (*s.ids[i : i + len(some)],) == some}


def replaced(s, places, gone=()):
    """Return the ids with the new one at some places; others are gone."""
    return [s.new if i in places else x for i, x in enumerate(s.ids) if i not in gone]


def as_text(s):
    text = " ".join(map(str, s.ids)).replace(" ".join(map(str, s.pair)), str(s.new))
    return [*map(int, text.split())]


BACKWARDS = {"ids": lambda s: s.ids[::-1], "pair": lambda s: s.pair[::-1]}
IN_TWOS = {"keep": lambda s: lambda i: s.ids[i : i + 2], "step": lambda s: 2}
ONE_EARLY = {"end": lambda s: len(s.ids) - 1}
MERGE = Forms(TEXTS["MERGE"])
wrong = MERGE.wrong
wrong("nothing-merged", found=lambda s: set())
wrong("second-symbol-kept", jump=lambda s: 1)
wrong("first-symbol-kept", put=lambda s: lambda i: [s.pair[0], s.new])
wrong("overlapping-merges", merged=lambda s: replaced(s, s.found, s.behind - s.found))
wrong("overlapping-merges", merged=lambda s: replaced(s, s.found, s.behind))
wrong("return-inside-the-loop", result=lambda s: s.merged[:1] or None)
wrong("both-symbols-replaced", merged=lambda s: replaced(s, s.found | s.behind))
wrong("both-symbols-replaced", put=lambda s: lambda i: [s.new, s.new])
wrong("pair-removed", put=lambda s: lambda i: [])
wrong("pair-kept-as-a-tuple", put=lambda s: lambda i: [s.pair])
wrong("pair-kept", put=lambda s: lambda i: [*s.pair, s.new])
wrong("new-id-in-a-list", put=lambda s: lambda i: [[s.new]])
wrong("new-id-invented", new=lambda s: max(s.ids, default=0) + 1)
wrong("first-occurrence-only", found=lambda s: {*sorted(at(s, *s.pair))[:1]})
wrong("right-to-left", **BACKWARDS, result=lambda s: s.merged[::-1])
wrong("last-symbol-lost", **ONE_EARLY)
wrong("last-symbol-twice", **ONE_EARLY, result=lambda s: s.merged + s.ids[-1:])
wrong("last-pair-missed", found=lambda s: at(s, *s.pair) - {len(s.ids) - 2})
wrong("next-symbol-lost", jump=lambda s: 3)
wrong("else-missing", put=lambda s: lambda i: [s.new, s.ids[i + 2]], jump=lambda s: 3)
wrong("other-symbols-lost", keep=lambda s: lambda i: [])
wrong("every-second-symbol-lost", step=lambda s: 2)
wrong("pairs-at-even-places-only", **IN_TWOS)
wrong("either-order", found=lambda s: at(s, *s.pair) | at(s, *s.pair[::-1]))
wrong("order-turned-round", pair=lambda s: s.pair[::-1])
wrong("each-symbol-alone", merged=lambda s: replaced(s, s.first | s.second))
wrong("half-of-the-pair", found=lambda s: s.first)
wrong("half-of-the-pair", found=lambda s: {i - 1 for i in s.second})
wrong("half-of-the-pair", found=lambda s: s.first | {i - 1 for i in s.second})
# What is kept there is the id at i, but first the answer looks at the one behind it.
wrong("past-the-end", keep=lambda s: lambda i: [s.ids[i + 1], s.ids[i]][1:])
wrong(
    "past-the-end", keep=lambda s: lambda i: [s.ids[i + (i in s.first)], s.ids[i]][1:]
)
wrong("ids-compared-as-text", merged=as_text)
wrong("tuple-for-list", result=lambda s: tuple(s.merged))
wrong("tensor-for-list", result=lambda s: torch.tensor(s.merged))

merge = Exercise(
    id="1.1",
    **TEXTS["1.1"],
    oracle=right_merge,
    cases=[
        *(case(x, (1, 2), 9) for x in ([1, 2, 3, 1, 2], [4, 1, 2, 4], [2, 1, 2, 1])),
        case([1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([3, 1, 1, 1, 1, 1], (1, 1), 9, note="the pair overlaps itself"),
        case([4, 3, 4], (1, 2), 9, note="the pair does not occur"),
        case([11, 2, 31, 2, 1, 2], (1, 2), 9),
        case([98, 256, 97, 98, 256, 97], (256, 97), 257),
        case([1], (1, 2), 9, note="one id"),
        case([], (1, 2), 9, note="no ids"),
    ],
    pipeline=Pipeline(
        start=lambda ids, pair, new: {"ids": ids, "pair": pair, "new": new},
        steps={
            "ids": lambda s: s.ids,
            "end": lambda s: len(s.ids),
            "pair": lambda s: s.pair,
            "new": lambda s: s.new,
            "first": lambda s: at(s, s.pair[0]),
            "second": lambda s: at(s, s.pair[1]),
            "found": lambda s: at(s, *s.pair),
            "behind": lambda s: {i + 1 for i in s.found},
            "put": lambda s: lambda i: [s.new],
            "jump": lambda s: 2,
            "keep": lambda s: lambda i: [s.ids[i]],
            "step": lambda s: 1,
            "merged": walked,
            "result": lambda s: s.merged,
        },
        forms=MERGE,
    ),
)


# --- 1.2 sliding windows ----------------------------------------------------------


def right_windows(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    return rows[:, :-1], rows[:, 1:]


def rows(s, starts, more=0):
    """Return the windows from these places on, with some ids more, as a tensor."""
    return s.tensor([s.source[p : p + s.size + more] for p in starts])


SWAPPED = {"size": lambda s: s.stride - 1, "step": lambda s: s.length + 1}
LATER = {"later": lambda s: range(1, s.stop, s.step)}
STACKED = {"tensor": lambda s: lambda rows: torch.stack([*map(torch.tensor, rows)])}
LISTS = {"kind": lambda s: torch.Tensor.tolist}
WHOLE = {"stop": lambda s: len(s.source) - s.size - s.shift + 1}
WINDOWS = Forms(TEXTS["WINDOWS"])
wrong = WINDOWS.wrong
wrong("no-shift", shift=lambda s: 0)
wrong("shifted-by-stride", shift=lambda s: s.step)
wrong("shifted-by-stride", **WHOLE, shift=lambda s: s.step)
wrong("shifted-by-context", shift=lambda s: s.size)
wrong("shifted-by-context", **WHOLE, shift=lambda s: s.size)
wrong("shifted-by-two", shift=lambda s: 2)
wrong("shifted-by-two", **WHOLE, shift=lambda s: 2)
wrong("shifted-backwards", shift=lambda s: -1)
wrong("inputs-and-targets-swapped", result=lambda s: s.both[::-1])
wrong("stride-ignored", step=lambda s: 1)
wrong("context-for-stride", step=lambda s: s.size)
wrong("wrong-step", step=lambda s: s.size + 1)
wrong("wrong-step", step=lambda s: s.size - s.stride)
wrong("wrong-step", step=lambda s: s.size + s.stride)
wrong("last-window-lost", beyond=lambda s: -1)
wrong("last-window-lost", starts=lambda s: range(0, s.stop, s.step)[:-1])
wrong("last-window-lost 2", starts=lambda s: range(0, s.stop - s.stop % s.step, s.step))
wrong("last-targets-lost", **LATER)
wrong("unfold-arguments-swapped", **SWAPPED, tensor=lambda s: torch.LongTensor)
wrong("first-window-lost", starts=lambda s: range(s.step, s.stop, s.step))
wrong("first-window-lost 2", starts=lambda s: range(1, s.stop, s.step))
wrong("window-too-many", beyond=lambda s: 1)
wrong("window-too-many", beyond=lambda s: 1, **STACKED)
wrong("window-too-many", beyond=lambda s: 1, **LATER)
wrong("starts-too-far", beyond=lambda s: s.length)
wrong("starts-too-far", beyond=lambda s: s.length, **STACKED)
wrong("windows-too-short", size=lambda s: s.length - 1)
wrong("targets-in-the-inputs", inputs=lambda s: rows(s, s.starts, more=1))
wrong("target-wraps-round", targets=lambda s: s.inputs.roll(-1, 1))
wrong("last-target-missing", targets=lambda s: F.pad(s.inputs[:, 1:], (0, 1)))
wrong("last-target-missing 2", targets=lambda s: s.inputs[:, 1:])
wrong("one-target-per-window", result=lambda s: (s.inputs, s.targets[:, -1]))
wrong("one-target-per-window", result=lambda s: (s.inputs, s.targets[:, -1:]))
wrong("ids-plus-one", targets=lambda s: s.inputs + 1)
wrong("positions-for-ids", source=lambda s: [*range(len(s.ids))])
wrong("ids-cut-off", kind=lambda s: torch.Tensor.short)
wrong("ids-cut-off", kind=lambda s: torch.Tensor.byte)
wrong("float-tensors", kind=lambda s: torch.Tensor.float)
wrong("lists-for-tensors", **LISTS)
wrong("rows-not-stacked", kind=lambda s: list)
wrong("pairs-for-two-tensors", result=lambda s: tuple(zip(*s.both)))
wrong("pairs-for-two-tensors", **LISTS, result=lambda s: tuple(zip(*s.both)))
wrong("one-tensor-for-two", result=lambda s: torch.stack(s.both))
wrong("targets-missing", result=lambda s: s.inputs)
wrong("windows-not-split", result=lambda s: rows(s, s.starts, more=1))
wrong("axes-swapped", kind=lambda s: torch.t)

IDS = [50, 20, 70, 30, 60, 10, 40, 80, 90, 15, 35, 55, 75]
sliding_windows = Exercise(
    id="1.2",
    **TEXTS["1.2"],
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
            "kind": lambda s: lambda rows: rows,
            "both": lambda s: (s.kind(s.inputs), s.kind(s.targets)),
            "result": lambda s: s.both,
        },
        forms=WINDOWS,
        harmless=[form(None, **STACKED), form(None, **WHOLE)],
        words={"step": lambda s: s.step, "stride": lambda s: s.stride},
    ),
)

EXERCISES = [merge, sliding_windows]
