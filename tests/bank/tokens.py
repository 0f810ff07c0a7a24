"""Answers to the exercises of notebook 01."""

import re

import numpy as np
import torch

from bank import right, wrong


@right("1.1")
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


@right("1.1")
def merge_by_looking_back(ids, pair, new_id):
    out = []
    for token in ids:
        if out and out[-1] == pair[0] and token == pair[1]:
            out[-1] = new_id
        else:
            out.append(token)
    return out


@right("1.1")
def merge_recursive(ids, pair, new_id):
    if len(ids) < 2:
        return list(ids)
    if ids[0] == pair[0] and ids[1] == pair[1]:
        return [new_id] + merge_recursive(ids[2:], pair, new_id)
    return ids[:1] + merge_recursive(ids[1:], pair, new_id)


@right("1.1")
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


@right("1.1")
def merge_regex(ids, pair, new_id):
    text = "".join(f"<{i}>" for i in ids)
    text = text.replace(f"<{pair[0]}><{pair[1]}>", f"<{new_id}>")
    return [int(number) for number in re.findall(r"\d+", text)]


@right("1.1")
def merge_delete(ids, pair, new_id):
    ids = ids.copy()
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i] = new_id
            del ids[i + 1]
        i += 1
    return ids


@wrong("1.1", "nothing-merged")
def merge_list_against_tuple(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if ids[i : i + 2] == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "second-symbol-kept")
def merge_for_loop(ids, pair, new_id):
    merged = []
    for i in range(len(ids)):
        if i < len(ids) - 1 and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 1
        else:
            merged.append(ids[i])
    return merged


@wrong("1.1", "overlapping-merges")
def merge_overlapping(ids, pair, new_id):
    starts = [i for i in range(len(ids) - 1) if (ids[i], ids[i + 1]) == pair]
    merged = []
    for i, token in enumerate(ids):
        if i in starts:
            merged.append(new_id)
        elif i - 1 not in starts:
            merged.append(token)
    return merged


@wrong("1.1", "overlapping-merges")
def merge_runs(ids, pair, new_id):
    merged, before = [], None
    for token in ids:
        if (before, token) == pair:
            merged[-1] = new_id
        else:
            merged.append(token)
        before = token
    return merged


@wrong("1.1", "first-symbol-kept")
def merge_first_kept(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        merged.append(ids[i])
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
            i += 1
        i += 1
    return merged


@wrong("1.1", "return-inside-the-loop")
def merge_returns_early(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
        return merged


@wrong("1.1", "both-symbols-replaced")
def merge_both(ids, pair, new_id):
    merged = list(ids)
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            merged[i] = merged[i + 1] = new_id
    return merged


@wrong("1.1", "pair-removed")
def merge_removing(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            i += 2
            continue
        merged.append(ids[i])
        i += 1
    return merged


@wrong("1.1", "pair-kept-as-a-tuple")
def merge_pair_appended(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(pair)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "pair-kept")
def merge_appended_behind(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged += [*pair, new_id]
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "new-id-in-a-list")
def merge_appending_a_list(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged.append([new_id] if found else ids[i])
        i += 1 + found
    return merged


@wrong("1.1", "new-id-invented")
def merge_next_free_id(ids, pair, new_id):
    return merge_while(ids, pair, max(ids, default=0) + 1)


@wrong("1.1", "first-occurrence-only")
def merge_once(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            return ids[:i] + [new_id] + ids[i + 2 :]
    return list(ids)


@wrong("1.1", "right-to-left")
def merge_backwards(ids, pair, new_id):
    merged = list(ids)
    for i in range(len(ids) - 2, -1, -1):
        if tuple(merged[i : i + 2]) == pair:
            merged[i : i + 2] = [new_id]
    return merged


@wrong("1.1", "last-symbol-lost")
def merge_short_loop(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "last-pair-missed")
def merge_last_pair(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i < len(ids) - 2 and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "next-symbol-lost")
def merge_one_too_far(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
        i += 1
    return merged


@wrong("1.1", "pairs-at-even-places-only")
def merge_in_twos(ids, pair, new_id):
    merged = []
    for i in range(0, len(ids), 2):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
        else:
            merged.extend(ids[i : i + 2])
    return merged


@wrong("1.1", "either-order")
def merge_as_sets(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and {ids[i], ids[i + 1]} == set(pair):
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "order-turned-round")
def merge_turned_round(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i + 1], ids[i]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "each-symbol-alone")
def merge_members(ids, pair, new_id):
    return [new_id if token in pair else token for token in ids]


@wrong("1.1", "past-the-end")
def merge_past_the_end(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "past-the-end")
def merge_past_the_end_at_times(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "ids-compared-as-text")
def merge_text(ids, pair, new_id):
    text = " ".join(str(i) for i in ids)
    text = text.replace(f"{pair[0]} {pair[1]}", str(new_id))
    return [int(number) for number in text.split()]


@wrong("1.1", "tuple-for-list")
def merge_tuple(ids, pair, new_id):
    return tuple(merge_while(ids, pair, new_id))


@wrong("1.1", "tensor-for-list")
def merge_tensor(ids, pair, new_id):
    return torch.tensor(merge_while(ids, pair, new_id))


@wrong("1.1", "last-symbol-twice")
def merge_last_appended_anyway(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    if ids:
        merged.append(ids[-1])
    return merged


@wrong("1.1", "last-symbol-twice")
def merge_last_appended_to_nothing_too(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids) - 1:
        found = (ids[i], ids[i + 1]) == pair
        merged.append(new_id if found else ids[i])
        i += 1 + found
    return merged + [ids[-1]]


@wrong("1.1", "else-missing")
def merge_without_else(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
            i += 2
        merged.append(ids[i])
        i += 1
    return merged


@wrong("1.1", "other-symbols-lost")
def merge_pairs_alone(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if ids[i : i + 2] == [*pair]:
            merged.append(new_id)
            i += 1
        i += 1
    return merged


@wrong("1.1", "every-second-symbol-lost")
def merge_in_strides_of_two(ids, pair, new_id):
    merged = []
    for i in range(0, len(ids), 2):
        found = tuple(ids[i : i + 2]) == pair
        merged.append(new_id if found else ids[i])
    return merged


@wrong("1.1", "half-of-the-pair")
def merge_by_the_first(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "half-of-the-pair")
def merge_with_or(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] or i + 1 < len(ids) and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@wrong("1.1", "last-symbol-lost")
def merge_neighbours_zipped(ids, pair, new_id):
    """Two mistakes: the second id stays, and the last id has no neighbour."""
    return [new_id if two == pair else two[0] for two in zip(ids, ids[1:])]


@wrong("1.1", "last-symbol-lost")
def merge_first_kept_last_lost(ids, pair, new_id):
    """Two mistakes: the first id of a pair stays, the last id of all is lost."""
    merged, i = [], 0
    while i < len(ids) - 1:
        merged.append(ids[i])
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            merged.append(new_id)
            i += 1
        i += 1
    return merged


@wrong("1.1", "input-changed")
def merge_in_place(ids, pair, new_id):
    i = 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
        i += 1
    return ids


@wrong("1.1", "returns-nothing")
def merge_prints(ids, pair, new_id):
    print(merge_while(ids, pair, new_id))


# --- 1.2 --------------------------------------------------------------------------


@right("1.2")
def windows_loop(ids, context_length, stride):
    inputs, targets = [], []
    for start in range(0, len(ids) - context_length, stride):
        inputs.append(ids[start : start + context_length])
        targets.append(ids[start + 1 : start + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@right("1.2")
def windows_unfold(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    return rows[:, :-1], rows[:, 1:]


@right("1.2")
def windows_indices(ids, context_length, stride):
    starts = torch.arange(0, len(ids) - context_length, stride)
    places = starts.unsqueeze(1) + torch.arange(context_length)
    ids = torch.as_tensor(ids)
    return ids[places], ids[places + 1]


@right("1.2")
def windows_stacked(ids, context_length, stride):
    ids = torch.tensor(ids, dtype=torch.int32)
    starts = [s for s in range(0, len(ids), stride) if s + context_length < len(ids)]
    return (
        torch.stack([ids[s : s + context_length] for s in starts]),
        torch.stack([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@right("1.2")
def windows_numpy(ids, context_length, stride):
    view = np.lib.stride_tricks.sliding_window_view(np.array(ids), context_length + 1)
    rows = torch.from_numpy(view[::stride].copy())
    return [rows[:, :-1], rows[:, 1:]]


@wrong("1.2", "no-shift")
def windows_no_shift(ids, context_length, stride):
    inputs, _ = windows_loop(ids, context_length, stride)
    return inputs, inputs.clone()


@wrong("1.2", "no-shift")
def windows_no_shift_all(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length, stride)
    return rows, rows


@wrong("1.2", "shifted-by-stride")
def windows_shift_stride(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length - stride + 1, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + stride : s + stride + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "shifted-by-stride")
def windows_shift_stride_short(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + stride : s + stride + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "shifted-by-context")
def windows_shift_context(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - 2 * context_length + 1, stride):
        inputs.append(torch.tensor(ids[s : s + context_length]))
        targets.append(torch.tensor(ids[s + context_length : s + 2 * context_length]))
    return torch.stack(inputs), torch.stack(targets)


@wrong("1.2", "inputs-and-targets-swapped")
def windows_swapped(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return targets, inputs


@wrong("1.2", "stride-ignored")
def windows_stride_one(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, 1)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "context-for-stride")
def windows_blocks(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, context_length):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 1 : s + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "last-window-lost")
def windows_one_less(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length - 1, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 1 : s + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "last-window-lost")
def windows_one_less_stacked(ids, context_length, stride):
    ids = torch.tensor(ids)
    starts = range(0, len(ids) - context_length - 1, stride)
    return (
        torch.stack([ids[s : s + context_length] for s in starts]),
        torch.stack([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@wrong("1.2", "last-targets-lost")
def windows_fewer_targets(ids, context_length, stride):
    stop = len(ids) - context_length
    inputs = [ids[s : s + context_length] for s in range(0, stop, stride)]
    targets = [ids[s : s + context_length] for s in range(1, stop, stride)]
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "unfold-arguments-swapped")
def windows_unfold_swapped(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, stride, context_length + 1)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "wrong-step")
def windows_behind_one_another(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, context_length + 1)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "wrong-step")
def windows_stride_as_overlap(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, context_length - stride)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "windows-not-split")
def windows_whole(ids, context_length, stride):
    return torch.tensor(ids).unfold(0, context_length + 1, stride)


@wrong("1.2", "window-too-many")
def windows_one_more(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length + 1, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 1 : s + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "window-too-many")
def windows_one_more_stacked(ids, context_length, stride):
    ids = torch.tensor(ids)
    starts = range(0, len(ids) - context_length + 1, stride)
    return (
        torch.stack([ids[s : s + context_length] for s in starts]),
        torch.stack([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@wrong("1.2", "window-too-many")
def windows_two_unfolds(ids, context_length, stride):
    ids = torch.tensor(ids)
    return ids.unfold(0, context_length, stride), ids[1:].unfold(
        0, context_length, stride
    )


@wrong("1.2", "starts-too-far")
def windows_to_the_end(ids, context_length, stride):
    inputs = [ids[s : s + context_length] for s in range(0, len(ids), stride)]
    targets = [ids[s + 1 : s + 1 + context_length] for s in range(0, len(ids), stride)]
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "windows-too-short")
def windows_of_context_length(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length, stride)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "targets-in-the-inputs")
def windows_long_inputs(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    return rows, rows[:, 1:]


@wrong("1.2", "target-wraps-round")
def windows_rolled(ids, context_length, stride):
    inputs, _ = windows_loop(ids, context_length, stride)
    return inputs, torch.roll(inputs, -1, dims=1)


@wrong("1.2", "last-target-missing")
def windows_padded(ids, context_length, stride):
    inputs, _ = windows_loop(ids, context_length, stride)
    targets = torch.zeros_like(inputs)
    targets[:, :-1] = inputs[:, 1:]
    return inputs, targets


@wrong("1.2", "one-target-per-window")
def windows_next_token(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "ids-plus-one")
def windows_plus_one(ids, context_length, stride):
    inputs, _ = windows_loop(ids, context_length, stride)
    return inputs, inputs + 1


@wrong("1.2", "positions-for-ids")
def windows_positions(ids, context_length, stride):
    starts = torch.arange(0, len(ids) - context_length, stride)
    places = starts[:, None] + torch.arange(context_length)
    return places, places + 1


@wrong("1.2", "float-tensors")
def windows_floats(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return torch.Tensor(inputs.tolist()), torch.Tensor(targets.tolist())


@wrong("1.2", "lists-for-tensors")
def windows_lists(ids, context_length, stride):
    starts = range(0, len(ids) - context_length, stride)
    inputs = [ids[s : s + context_length] for s in starts]
    return inputs, [ids[s + 1 : s + 1 + context_length] for s in starts]


@wrong("1.2", "rows-not-stacked")
def windows_not_stacked(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, stride):
        inputs.append(torch.tensor(ids[s : s + context_length]))
        targets.append(torch.tensor(ids[s + 1 : s + context_length + 1]))
    return inputs, targets


@wrong("1.2", "pairs-for-two-tensors")
def windows_pairs(ids, context_length, stride):
    pairs = []
    for s in range(0, len(ids) - context_length, stride):
        row = torch.tensor(ids[s : s + context_length + 1])
        pairs.append((row[:-1], row[1:]))
    return pairs


@wrong("1.2", "one-tensor-for-two")
def windows_one_tensor(ids, context_length, stride):
    return torch.stack(windows_loop(ids, context_length, stride))


@wrong("1.2", "targets-missing")
def windows_inputs_only(ids, context_length, stride):
    return windows_loop(ids, context_length, stride)[0]


@wrong("1.2", "axes-swapped")
def windows_columns(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return inputs.T, targets.T


@right("1.2")
def windows_in_int32(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return inputs.to(torch.int32), targets.to(torch.int32)


@wrong("1.2", "no-shift")
def windows_no_shift_in_int32(ids, context_length, stride):
    ids = np.array(ids, dtype=np.int32)
    starts = range(0, len(ids) - context_length, stride)
    rows = torch.tensor(np.stack([ids[s : s + context_length] for s in starts]))
    return rows, rows


@wrong("1.2", "ids-cut-off")
def windows_in_bytes(ids, context_length, stride):
    inputs, targets = windows_loop(ids, context_length, stride)
    return inputs.to(torch.uint8), targets.to(torch.uint8)


@wrong("1.2", "ids-cut-off")
def windows_in_int16(ids, context_length, stride):
    rows = torch.tensor(ids).short().unfold(0, context_length + 1, stride)
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "shifted-by-two")
def windows_two_later(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 2 : s + context_length + 2])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "shifted-backwards")
def windows_one_earlier(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(0, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s - 1 : s - 1 + context_length])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "first-window-lost")
def windows_from_one(ids, context_length, stride):
    inputs, targets = [], []
    for s in range(1, len(ids) - context_length, stride):
        inputs.append(ids[s : s + context_length])
        targets.append(ids[s + 1 : s + context_length + 1])
    return torch.tensor(inputs), torch.tensor(targets)


@wrong("1.2", "first-window-lost")
def windows_without_the_first(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)[1:]
    return rows[:, :-1], rows[:, 1:]


@wrong("1.2", "last-window-lost")
def windows_counted_down(ids, context_length, stride):
    inputs, targets = [], []
    for n in range((len(ids) - context_length) // stride):
        s = n * stride
        inputs.append(torch.tensor(ids[s : s + context_length]))
        targets.append(torch.tensor(ids[s + 1 : s + context_length + 1]))
    return torch.stack(inputs), torch.stack(targets)


@wrong("1.2", "window-too-many")
def windows_counted_up(ids, context_length, stride):
    number = (len(ids) - context_length) // stride + 1
    starts = [n * stride for n in range(number)]
    return (
        torch.tensor([ids[s : s + context_length] for s in starts]),
        torch.tensor([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@wrong("1.2", "wrong-step")
def windows_with_gaps(ids, context_length, stride):
    step = context_length + stride
    starts = range(0, len(ids) - context_length, step)
    return (
        torch.tensor([ids[s : s + context_length] for s in starts]),
        torch.tensor([ids[s + 1 : s + 1 + context_length] for s in starts]),
    )


@wrong("1.2", "stride-ignored")
def windows_at_every_id_swapped(ids, context_length, stride):
    """Two mistakes: every start, and the targets first."""
    inputs, targets = windows_loop(ids, context_length, 1)
    return targets, inputs


@wrong("1.2", "no-shift")
def windows_no_shift_in_columns(ids, context_length, stride):
    inputs, _ = windows_loop(ids, context_length, stride)
    return inputs.T, inputs.T


@wrong("1.2", "returns-nothing")
def windows_forgotten(ids, context_length, stride):
    rows = torch.tensor(ids).unfold(0, context_length + 1, stride)
    rows[:, :-1], rows[:, 1:]  # noqa: B018


@wrong("1.2", "input-changed")
def windows_eat_the_ids(ids, context_length, stride):
    inputs, targets = [], []
    while len(ids) > context_length:
        inputs.append(ids[:context_length])
        targets.append(ids[1 : context_length + 1])
        del ids[:stride]
    return torch.tensor(inputs), torch.tensor(targets)
