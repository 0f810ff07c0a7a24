"""01 Tokens: 1.1 merge, 1.2 sliding_windows."""

from itertools import count

import numpy as np
import torch

from tests.answers import right, wrong

# ---------------------------------------------------------------- 1.1 merge


@right("merge")
def merge(ids, pair, new_id):
    # a generator over an iterator with one id of look-ahead
    def walk():
        rest = iter(ids)
        held = []
        for current in rest:
            held.append(current)
            if len(held) == 2:
                if tuple(held) == tuple(pair):
                    yield new_id
                    held = []
                else:
                    yield held.pop(0)
        yield from held

    return list(walk())


@right("merge")
def merge(ids, pair, new_id):
    out = []
    skip = False
    for left, here in zip([None] + list(ids), ids):
        # merge backwards: look at what was written last, unless it is a fresh merge
        if out and not skip and left == pair[0] and here == pair[1]:
            out[-1] = new_id
            skip = True
        else:
            out.append(here)
            skip = False
    return out


@right("merge")
def merge(ids, pair, new_id):
    ids = list(ids)
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i : i + 2] = [new_id]
        i += 1
    return ids


@right("merge")
def merge(ids, pair, new_id):
    # two stacks: `todo` holds the rest, its next id on top
    todo, done = ids[::-1], []
    while todo:
        first = todo.pop()
        if todo and (first, todo[-1]) == tuple(pair):
            todo.pop()
            first = new_id
        done.append(first)
    return done


@wrong(
    "merge",
    "goes one place further after a match, so the second half stays in the list",
)
def merge(ids, pair, new_id):
    result = []
    i = 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            result.append(new_id)
            i += 1
        else:
            result.append(ids[i])
            i += 1
    return result


@wrong("merge", "edits the list it was given")
def merge(ids, pair, new_id):
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i] = new_id
            del ids[i + 1]
        i += 1
    return ids


@wrong("merge", "accepts the pair in either order")
def merge(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) in (pair, pair[::-1]):
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("merge", "the loop ends before the last id, which is lost unless it was merged")
def merge(ids, pair, new_id):
    merged = []
    i = 0
    while i < len(ids) - 1:
        if ids[i : i + 2] == list(pair):
            merged.append(new_id)
            i = i + 2
        else:
            merged.append(ids[i])
            i = i + 1
    return merged


@wrong("merge", "stops after the first match: only one occurrence is replaced")
def merge(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == (pair[0], pair[1]):
            return ids[:i] + [new_id] + ids[i + 2 :]
    return list(ids)


def _merge_rest(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == (pair[0], pair[1]):
            return ids[:i] + [new_id] + _merge_rest(ids[i + 2 :], pair, new_id)
    return list(ids)


@wrong(
    "merge",
    "after a match goes only one place further",
    "the last id is dropped when it isn't part of a match",
)
def merge(ids, pair, new_id):
    out = []
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(new_id)
            i += 1
            continue
        out.append(ids[i])
        i += 1
    return out


@wrong(
    "merge",
    "works in the list of the caller",
    "goes from right to left, so 1 1 1 is merged at the right end",
)
def merge(ids, pair, new_id):
    i = len(ids) - 2
    while i >= 0:
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
            i -= 2
        else:
            i -= 1
    return ids


@wrong(
    "merge",
    "compares as sets, so the pair matches in either order and equal neighbours match wrongly",
    "returns a tensor instead of a list",
)
def merge(ids, pair, new_id):
    out, i = [], 0
    while i < len(ids):
        if set(ids[i : i + 2]) == set(pair):
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return torch.tensor(out)


@wrong(
    "merge",
    "only the first neighbour is compared with the pair",
    "puts the pair's first id back instead of the new one",
)
def merge(ids, pair, new_id):
    out = []
    i = 0
    while i < len(ids):
        if ids[i] == pair[0] and i + 1 < len(ids):
            out.append(pair[0])
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


@wrong(
    "merge",
    "merges overlapping pairs: 1 1 1 becomes two new ids",
    "the new id is put in a list of its own",
)
def merge(ids, pair, new_id):
    out, i, n = [], 0, len(ids)
    while i < n:
        if i + 1 < n and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append([new_id])
            i += 1
        else:
            out.append(ids[i])
            i += 1
    return out


# ------------------------------------------------------- 1.2 sliding_windows


@right("sliding_windows")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("the text is too short")
    ids = torch.tensor(ids)
    starts = torch.arange(0, len(ids) - context_length, stride)
    places = starts[:, None] + torch.arange(context_length)
    return ids[places], ids[places + 1]


@right("sliding_windows")
def sliding_windows(ids, context_length, stride):
    both = np.lib.stride_tricks.sliding_window_view(np.array(ids), context_length + 1)
    both = torch.from_numpy(both[::stride].copy())
    return both[:, :-1], both[:, 1:]


@right("sliding_windows")
def sliding_windows(ids, context_length, stride):
    x, y = [], []
    for s in count(0, stride):
        target = ids[s + 1 : s + 1 + context_length]
        if len(target) < context_length:
            break
        x.append(ids[s : s + context_length])
        y.append(target)
    if not x:
        raise ValueError("nothing to cut")
    return torch.tensor(x, dtype=torch.int32), torch.tensor(y, dtype=torch.int32)


@right("sliding_windows")
def sliding_windows(ids, context_length, stride):
    n = (len(ids) - context_length - 1) // stride + 1
    if n <= 0:
        raise ValueError("too few ids")
    inputs = torch.zeros(n, context_length, dtype=torch.long)
    targets = torch.zeros_like(inputs)
    for row in range(n):
        for column in range(context_length):
            inputs[row, column] = ids[row * stride + column]
            targets[row, column] = ids[row * stride + column + 1]
    return inputs, targets


@wrong("sliding_windows", "the last start is missing: the range ends one too early")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    starts = range(0, len(ids) - context_length - 1, stride)
    inputs = [ids[s : s + context_length] for s in starts]
    targets = [ids[s + 1 : s + context_length + 1] for s in starts]
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("sliding_windows", "moves by the context length and ignores the stride")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    xs, ys = [], []
    for s in range(0, len(ids) - context_length, context_length):
        xs.append(ids[s : s + context_length])
        ys.append(ids[s + 1 : s + context_length + 1])
    return torch.tensor(xs), torch.tensor(ys)


@wrong("sliding_windows", "the targets are shifted by the stride instead of by one")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length - stride + 1, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + stride : s + stride + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("sliding_windows", "returns floats, as torch.Tensor makes them")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    starts = range(0, len(ids) - context_length, stride)
    inputs = [ids[s : s + context_length] for s in starts]
    targets = [ids[s + 1 : s + 1 + context_length] for s in starts]
    return torch.Tensor(inputs), torch.Tensor(targets)


@wrong("sliding_windows", "returns targets first")
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    windows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    inputs, targets = windows[:, :context_length], windows[:, 1:]
    return targets, inputs


@wrong(
    "sliding_windows",
    "the targets are the inputs once more, not shifted",
    "the stride is taken as one",
)
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s : s + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong(
    "sliding_windows",
    "the first window starts at stride instead of 0",
    "lists are returned, not tensors",
)
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    inputs, targets = [], []
    for s in range(stride, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 1 : s + context_length + 1])
    return inputs, targets


@wrong(
    "sliding_windows",
    "the number of windows is rounded down without the first: one is missing when the stride doesn't divide",
    "targets look one place back",
)
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    n = (len(ids) - context_length) // stride
    ids = torch.tensor(ids)
    places = torch.arange(n)[:, None] * stride + torch.arange(context_length)
    return ids[places], ids[places - 1]


@wrong(
    "sliding_windows",
    "one axis of all windows flattened instead of (N, context_length)",
    "stride and context length mixed up in the range",
)
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    ids = torch.as_tensor(ids)
    x, y = [], []
    for s in range(0, len(ids) - context_length, context_length):
        x.append(ids[s : s + context_length])
        y.append(ids[s + 1 : s + 1 + context_length])
    return torch.cat(x), torch.cat(y)


@wrong(
    "sliding_windows",
    "targets are two places further",
    "the last legal start is cut off by one more",
)
def sliding_windows(ids, context_length, stride):
    if len(ids) <= context_length:
        raise ValueError("too short")
    ids = torch.tensor(ids)
    last = len(ids) - context_length - 2
    x = [ids[s : s + context_length] for s in range(0, last + 1, stride)]
    y = [ids[s + 2 : s + 2 + context_length] for s in range(0, last + 1, stride)]
    return torch.stack(x), torch.stack(y)
