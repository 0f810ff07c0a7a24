"""What goes wrong when a result is returned, in every exercise.

Each pipeline ends with two steps that leave the result as it is: `chosen`, which parts
and rows in which order, and `returned`, with which axes and of which type. A result
that can't be changed in a variant's way stays as it is.
"""

from contextlib import suppress

import torch

from utils.checks.pipeline import variants

RETURNING_STEPS = {"chosen": lambda s: s.result, "returned": lambda s: s.chosen}


def parts(change):
    """Return the overrides that change a pair."""
    return {
        "chosen": lambda s: (
            _changed(change, s.result) if type(s.result) is tuple else s.result
        )
    }


def rows(change):
    """Return the overrides that change the rows of the result, or of each part."""
    return {"chosen": lambda s: _in_parts(change, s.result)}


def axes(change):
    """Return the overrides that change axes or type of the result, or of each part."""
    return {"returned": lambda s: _in_parts(change, s.chosen)}


def _in_parts(change, result):
    if type(result) is tuple:
        return tuple(_in_parts(change, part) for part in result)
    return _changed(change, result)


def _changed(change, result):
    with suppress(Exception):
        return change(result)
    return result


RETURNED = variants(
    "returns-nothing: Your code returns None: a `return` is missing, perhaps in one branch.",
    {"returned": lambda s: None},
    "parts-swapped: You swapped the parts: return {returns}.",
    parts(lambda pair: pair[::-1]),
    "part-missing: You returned one part only: return {returns}.",
    parts(lambda pair: pair[0]),
    parts(lambda pair: pair[1]),
    "parts-joined: You joined the parts into one: return {returns}.",
    parts(lambda pair: torch.cat(pair, -1)),
    "axes-swapped: You returned the axes in another order: return {returns}.",
    axes(lambda x: x.mT),
    axes(lambda x: x.transpose(0, 1)),
    axes(lambda x: x.transpose(1, 2)),
    axes(lambda x: x.movedim(0, -1)),
    "axis-added: You returned an axis of size 1 too many: return {returns}.",
    axes(lambda x: x[None]),
    axes(lambda x: x[:, None]),
    "size-one-axes-dropped: You dropped the axes of size 1, as squeeze() does: keep them, because there may be one token or one sample.",
    axes(lambda x: x.squeeze()),
    "axes-merged: You merged two axes into one: return {returns}.",
    axes(lambda x: x.flatten(0, 1)),
    axes(lambda x: x.flatten(1, 2)),
    axes(lambda x: x.flatten(0, -2)),
    "order-reversed: You returned everything in reverse order: return {returns}.",
    rows(lambda x: x.flip(0) if torch.is_tensor(x) else x[::-1]),
    rows(lambda x: x.flip(1)),
    "one-row-only: You returned one row only: return {returns}. In a loop, keep what every round gives, and return after the last.",
    rows(lambda x: x[0]),
    rows(lambda x: x[-1]),
    rows(lambda x: x[..., -1, :]),
    "added-up: You added up or averaged along an axis: return {returns}.",
    rows(lambda x: x.sum(1)),
    rows(lambda x: x.mean(0)),
    "wrong-type: You returned another type: return {returns}.",
    axes(lambda x: tuple(x) if type(x) is list else list(x)),
    axes(lambda x: torch.tensor(x) if type(x) is list else x.tolist()),
    axes(lambda x: x.float()),
    axes(lambda x: x.long()),
    "softmax-taken: You took a softmax or a logarithm at the end: leave it out.",
    axes(lambda x: x.softmax(-1)),
    axes(lambda x: x.log()),
)
