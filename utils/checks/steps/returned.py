"""What goes wrong when a result is returned, in every exercise.

Each pipeline ends with three steps that leave the result as it is: `arranged`, which
parts in which order; `selected`, which rows in which order; and `returned`, with which
axes and of which type. These variants change one of them.
"""

import torch

from utils.checks.pipeline import variants


class NotApplicable(Exception):
    """Raised where a result can't be changed in this way; no answer raises it."""


def arranged(change):
    """Return the step that changes the parts of the result."""
    return {"arranged": lambda s: _attempt(change, s.result)}


def rows(change):
    """Return the step that changes the rows of the result, or of each part."""
    return {"selected": lambda s: _in_parts(change, s.arranged)}


def change_each_part(change):
    """Return the step that changes axes or type of the result, or of each part."""
    return {"returned": lambda s: _in_parts(change, s.selected)}


def _in_parts(change, result):
    if type(result) is tuple:
        return tuple(_in_parts(change, part) for part in result)
    return _attempt(change, result)


def _attempt(change, result):
    try:
        return change(result)
    except Exception as error:
        raise NotApplicable from error


def parts(result):
    """Return the two parts of a result; raise an error for another one."""
    first, second = result if type(result) is tuple else ()
    return first, second


RETURNING_STEPS = {
    "arranged": lambda s: s.result,
    "selected": lambda s: s.arranged,
    "returned": lambda s: s.selected,
}
RETURNED = variants(
    "parts-swapped: You swapped the parts: return {returns}.",
    arranged(lambda r: parts(r)[::-1]),
    "part-missing: You returned one part only: return {returns}.",
    arranged(lambda r: parts(r)[0]),
    arranged(lambda r: parts(r)[1]),
    "parts-joined: You joined the parts into one: return {returns}.",
    arranged(lambda r: torch.cat(parts(r), -1)),
    "axes-swapped: You returned the axes in another order: return {returns}.",
    change_each_part(lambda x: x.mT),
    change_each_part(lambda x: x.transpose(0, 1)),
    change_each_part(lambda x: x.transpose(1, 2)),
    change_each_part(lambda x: x.movedim(0, -1)),
    "axis-added: You returned an axis of size 1 too many: return {returns}.",
    change_each_part(lambda x: x[None]),
    change_each_part(lambda x: x[:, None]),
    "size-one-axes-dropped: You dropped the axes of size 1, as squeeze() does: keep them, because there may be one token or one sample.",
    change_each_part(lambda x: x.squeeze()),
    "axes-merged: You merged two axes into one: return {returns}.",
    change_each_part(lambda x: x.flatten(0, 1)),
    change_each_part(lambda x: x.flatten(1, 2)),
    change_each_part(lambda x: x.flatten(0, -2)),
    change_each_part(lambda x: x.transpose(1, 2).flatten(2)),
    "order-reversed: You returned everything in reverse order: return {returns}.",
    rows(lambda x: x.flip(0) if torch.is_tensor(x) else x[::-1]),
    rows(lambda x: x.flip(1)),
    "one-row-only: You returned one row only: return {returns}. In a loop, keep what every round gives, and return after the last.",
    rows(lambda x: x[0]),
    rows(lambda x: x[-1]),
    rows(lambda x: x[..., -1, :]),
    "first-row-twice: You returned the first row twice: return {returns}. If a list starts with it, the loop should start with the second.",
    rows(lambda x: torch.cat((x[:1], x)) if torch.is_tensor(x) else x[:1] + x),
    "added-up: You added up or averaged along an axis: return {returns}.",
    rows(lambda x: x.sum(0)),
    rows(lambda x: x.sum(1)),
    rows(lambda x: x.mean(0)),
    "wrong-type: You returned another type: return {returns}.",
    change_each_part(lambda x: tuple(x) if type(x) is list else list(x)),
    change_each_part(lambda x: torch.tensor(x) if type(x) is list else x.tolist()),
    change_each_part(lambda x: x.float()),
    change_each_part(lambda x: x.long()),
    "softmax-taken: You took a softmax or a logarithm at the end: leave it out.",
    change_each_part(lambda x: x.softmax(-1)),
    change_each_part(lambda x: x.log()),
)
