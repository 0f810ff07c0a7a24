"""What goes wrong when a result is returned, in every exercise.

Each pipeline ends with two steps that leave the result as it is: `chosen`, which parts
in which order, and `returned`, with which axes and of which type. A result that can't
be changed in a variant's way stays as it is.
"""

from contextlib import suppress

import torch

from utils.checks.pipeline import variants

RETURNING_STEPS = {"chosen": lambda s: s.result, "returned": lambda s: s.chosen}


def parts(change):
    """Return the overrides that change a pair."""

    def chosen(s):
        return _changed(change, s.result) if type(s.result) is tuple else s.result

    return {"chosen": chosen}


def each(change):
    """Return the overrides that change the result, or each part of it."""
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
    "axes-swapped: You returned the axes in another order: return {returns}.",
    each(lambda x: x.mT),
    each(lambda x: x.transpose(0, 1)),
    each(lambda x: x.transpose(1, 2)),
    each(lambda x: x.movedim(0, -1)),
    "axis-added: You returned an axis of size 1 too many: return {returns}.",
    each(lambda x: x[None]),
    "axes-merged: You joined axes that should stay apart: return {returns}.",
    each(lambda x: x.flatten(0, 1)),
    each(lambda x: x.flatten(1, 2)),
    "added-up: You added up along an axis: return {returns}.",
    each(lambda x: x.sum(1)),
    "wrong-type: You returned another type: return {returns}.",
    each(lambda x: torch.tensor(x) if type(x) is list else x.tolist()),
    each(lambda x: x.float()),
    each(lambda x: x.long()),
    "softmax-taken: You took a softmax at the end: leave it out.",
    each(lambda x: x.softmax(-1)),
)
