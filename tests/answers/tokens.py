"""Answers to the exercises of notebook 01."""

import re

import numpy as np
import torch

from answers import right


@right("merge")
def merge_while(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@right("merge")
def merge_recursive(ids, pair, new_id):
    if len(ids) < 2:
        return list(ids)
    if ids[0] == pair[0] and ids[1] == pair[1]:
        return [new_id] + merge_recursive(ids[2:], pair, new_id)
    return ids[:1] + merge_recursive(ids[1:], pair, new_id)


@right("merge")
def merge_iterator(ids, pair, new_id):
    result = []
    rest = iter(range(len(ids)))
    for i in rest:
        if ids[i : i + 2] == list(pair):
            result.append(new_id)
            next(rest)
        else:
            result.append(ids[i])
    return result


@right("merge")
def merge_regex(ids, pair, new_id):
    text = "".join(f"<{i}>" for i in ids)
    text = text.replace(f"<{pair[0]}><{pair[1]}>", f"<{new_id}>")
    return [int(number) for number in re.findall(r"\d+", text)]


@right("merge")
def merge_delete(ids, pair, new_id):
    ids = ids.copy()
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i] = new_id
            del ids[i + 1]
        i += 1
    return ids


# --- 1.2 --------------------------------------------------------------------------


@right("sliding_windows")
def windows_loop(ids, context_length, stride):
    inputs, targets = [], []
    for start in range(0, len(ids) - context_length, stride):
        inputs.append(ids[start : start + context_length])
        targets.append(ids[start + 1 : start + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@right("sliding_windows")
def windows_unfold(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    return rows[:, :-1], rows[:, 1:]


@right("sliding_windows")
def windows_indices(ids, context_length, stride):
    starts = torch.arange(0, len(ids) - context_length, stride)
    places = starts.unsqueeze(1) + torch.arange(context_length)
    ids = torch.as_tensor(ids)
    return ids[places], ids[places + 1]


@right("sliding_windows")
def windows_stacked(ids, context_length, stride):
    ids = torch.tensor(ids, dtype=torch.int32)
    starts = [s for s in range(0, len(ids), stride) if s + context_length < len(ids)]
    return (
        torch.stack([ids[s : s + context_length] for s in starts]),
        torch.stack([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@right("sliding_windows")
def windows_numpy(ids, context_length, stride):
    view = np.lib.stride_tricks.sliding_window_view(np.array(ids), context_length + 1)
    rows = torch.from_numpy(view[::stride].copy())
    return [rows[:, :-1], rows[:, 1:]]


@right("sliding_windows")
def windows_in_int32(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return inputs.to(torch.int32), targets.to(torch.int32)
