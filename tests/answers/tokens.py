"""Answers to the exercises of notebook 01."""

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
def merge_by_looking_back(ids, pair, new_id):  # right, as new_id is never in the pair
    merged = []
    for id in ids:
        if merged and (merged[-1], id) == pair:
            merged[-1] = new_id
        else:
            merged.append(id)
    return merged


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
