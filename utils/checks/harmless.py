"""What makes it harmless to run a reader's code with changes: it only computes."""

import builtins
import math
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import torch
from torch.overrides import TorchFunctionMode

from utils.checks.values import LARGEST

PACKAGES = "torch numpy math cmath random itertools functools operator collections copy"
PACKAGES = {*PACKAGES.split(), "einops", "typing", "builtins"}
EFFECTS = {"input", "open", "breakpoint", "exec", "eval", "save", "tofile", "globals"}
DATA = int, float, str, tuple, type(None), torch.Tensor, torch.dtype, torch.device


def only_computes(value, seen=None):
    """Return whether a function or class has no side effects, except that it prints.

    All that it names must only compute, too. What isn't known to do so may ask the
    reader, draw, write a file or append to a list.
    """
    seen = [] if seen is None else seen
    if type(value) in DATA or any(value is one for one in seen):
        return True
    seen.append(value)
    if type(value) is ModuleType:
        return value.__name__.partition(".")[0] in PACKAGES
    if not isinstance(value, FunctionType | BuiltinFunctionType | type):
        return type(value) is bool
    if (value.__module__ or "").partition(".")[0] in PACKAGES:
        return value.__name__ not in EFFECTS
    if isinstance(value, type):
        members = [getattr(m, "__func__", m) for m in vars(value).values()]
        functions = [m for m in members if isinstance(m, FunctionType)]
        return all(only_computes(part, seen) for part in [*value.__bases__, *functions])
    if type(value) is not FunctionType or {*value.__code__.co_freevars} - {"__class__"}:
        return False
    names = {*_names(value.__code__)}
    known = sys.modules | vars(builtins) | value.__globals__
    return not names & EFFECTS and all(
        only_computes(known.get(name), seen) for name in names
    )


def _names(code):
    """Yield all names in code: of globals and modules, and also of attributes."""
    yield from code.co_names
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _names(part)


class Small(TorchFunctionMode):
    """Refuses huge tensors: with a change, `zeros(shape)` may be `zeros(9 * shape)`."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        parts = [arg if isinstance(arg, tuple | list) else [arg] for arg in args]
        sizes = [size for part in parts for size in part if type(size) is int]
        if abs(math.prod(filter(None, sizes))) > LARGEST:
            raise RuntimeError
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and torch.numel(made) > LARGEST:
            raise RuntimeError
        return made
