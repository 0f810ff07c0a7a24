"""Wrong forms of a result, in every exercise, such as a list or a lost axis.

In two forms, a result can still be compared: `adapt_form` makes it what it should be.
For the others, what a right answer returns goes through `as_is`, whose lines say which
parts are returned, and in which form. The mistakes are wrong lines of it. If a change
fails, the result is left alone.
"""

from contextlib import suppress

import torch

from utils.checks.engine.guard import attempt
from utils.checks.engine.mistakes import Diagnosis, Mistake, read_variants
from utils.checks.engine.values import agrees, fits_form


def adapt_form(got, expected):
    """Return a list of tensors as one tensor, and of a tuple the part that is expected.

    Return also the diagnoses, a list.
    """
    is_sequence = isinstance(got, tuple | list) and len(got) > 0
    if is_sequence and isinstance(expected, tuple) and len(got) == len(expected):
        parts, diagnoses = zip(*map(adapt_form, got, expected))
        return type(got)(parts), sum(diagnoses, [])
    if not is_sequence or not torch.is_tensor(expected):
        return got, []
    stacked = attempt(lambda: torch.stack(got)).value
    if stacked is not None and stacked.shape == expected.shape:
        return stacked, [Diagnosis("list-for-tensor", "You returned a list of tensors: make one tensor of it, with torch.stack.")]  # fmt: skip
    if type(got) is tuple:
        part = max(got, key=lambda x: (fits_form(x, expected), agrees(x, expected)))
        return part, [Diagnosis("returns-a-tuple", "You returned a tuple: return only the one tensor that is asked for.")]  # fmt: skip
    return got, []


def as_is(result):
    parts = result
    output = parts
    return output


def change_pair(change, result):
    """Change a pair; leave another result as it is."""
    return change(result) if type(result) is tuple else result


def change_parts(change, result):
    """Change the result, or each part of it."""
    if type(result) is tuple:
        return tuple(change_parts(change, part) for part in result)
    with suppress(Exception):
        return change(result)
    return result


LOST_AXIS = Diagnosis("axis-lost", "You lost an axis of length 1: squeeze() takes every such axis away, also that of a single token or sentence. Leave it out, or name the axis that you mean, as in squeeze(-1).")  # fmt: skip

FORM_VARIANTS = read_variants(as_is, [
    Mistake("parts-swapped", "You swapped the parts: return {returns}.", "parts = change_pair(lambda pair: pair[::-1], result)"),
    Mistake("axes-swapped", "You returned the axes in another order: return {returns}.", "output = change_parts(lambda x: x.mT, parts)", "output = change_parts(lambda x: x.transpose(0, 1), parts)", "output = change_parts(lambda x: x.transpose(1, 2), parts)"),
    Mistake("axes-merged", "You joined axes that should stay apart: return {returns}.", "output = change_parts(lambda x: x.flatten(0, 1), parts)", "output = change_parts(lambda x: x.flatten(1, 2), parts)"),
    Mistake("softmax-taken", "You took a softmax at the end: leave it out.", "output = change_parts(lambda x: x.softmax(-1), parts)"),
    Mistake("list-for-tuple", "You returned a list: return {returns}.", "parts = change_pair(list, result)"),
    Mistake("part-missing", "You returned one part only: return {returns}.", "parts = change_pair(lambda pair: pair[0], result)", "parts = change_pair(lambda pair: pair[1], result)"),
    Mistake("axis-added", "You returned an axis of size 1 too many: return {returns}.", "output = change_parts(lambda x: x[None], parts)"),
    Mistake(*LOST_AXIS, "output = change_parts(torch.squeeze, parts)", "output = change_parts(lambda x: x.squeeze(0), parts)", "parts = change_pair(lambda pair: (change_parts(torch.squeeze, pair[0]), pair[1]), result)"),
    Mistake("tuple-returned", "You returned a tuple: return {returns}.", "output = tuple(parts) if type(parts) is list else parts"),
])  # fmt: skip
