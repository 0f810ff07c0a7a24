"""What functions and layers expect of their arguments.

The decorator `inputs` checks each argument by itself, and their shapes together. What
else concerns several arguments is in the body of a function, with `that`. Each check
raises ValueError or, for another class, TypeError.

Shapes: B batch, T tokens (queries), S tokens attended to (keys).
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

import torch
from torch import Tensor, nn

# Type hints with the options of `integer` and `number`, which check such an argument.
PositiveInt = Annotated[int, ("least", 1)]
NonNegativeInt = Annotated[int, ("least", 0)]
PositiveFloat = Annotated[float, ("above_zero", True)]
NonNegativeFloat = Annotated[float, ("above_zero", False)]
Proportion = Annotated[float, ("high", 1)]


def inputs(expected: str = "", /, *, equal: bool = False):
    """Check the arguments of a function before each call.

    expected, equal: tensors by the names of their parameters, as `shapes` takes them

    Other arguments have to be what their type hints say, if that is a class, such as
    `bool`, or one of the hints of this module, such as `PositiveInt`.

    >>> @inputs("x (..., T, D)")
    ... def split(x: Tensor, num_heads: PositiveInt) -> Tensor:
    ...     return x.unflatten(-1, (num_heads, -1))
    >>> split(torch.zeros(3), num_heads=2)
    Traceback (most recent call last):
    ValueError: expected x (..., T, D), got (3,)
    """
    specs = {spec.split()[0].strip(":"): spec for spec in expected.split("; ") if spec}

    def decorate(function):
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters]
        optional = {p.name for p in parameters if NoneType in get_args(p.annotation)}
        checks = {p.name: find_check(p.annotation) for p in parameters}

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            given = dict(zip(names, args)) | kwargs
            for name in optional:
                if given.get(name, 0) is None:
                    del given[name]
            for name, x in given.items():
                if check := checks.get(name):
                    check(name, x)
            tensors = [name for name in specs if name in given]
            spec = "; ".join([specs[name] for name in tensors])
            shapes(spec, *[given[name] for name in tensors], equal=equal)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def find_check(hint) -> Callable | None:
    """Return the function that checks an argument with this hint, if one does."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        hints = [part for part in get_args(hint) if part is not NoneType]
        return find_check(hints[0]) if len(hints) == 1 else None
    if origin is Annotated:
        kind, *options = get_args(hint)
        return functools.partial(integer if kind is int else number, **dict(options))
    kind = origin or hint  # `dict` for `dict[str, int]`
    if isinstance(kind, type) and kind not in (int, float, inspect.Parameter.empty):
        return functools.partial(instance, kind=kind)
    return None


def that(condition: bool, expected: str, *received, where: str | Path = ""):
    """Raise ValueError unless the condition is true.

    In hot paths, or with a number of tokens in the message (`torch.compile` would
    specialise), write `if` and `refuse`: here it is built even if nothing is wrong.
    """
    if not condition:
        refuse(expected, *received, where=where)


def refuse(expected: str, *received, where: str | Path = ""):
    """Raise ValueError with what was expected and what was received, perhaps where."""
    received = [tuple(r) if isinstance(r, torch.Size) else r for r in received]
    got = " and ".join(map(str, received))
    where = f"{where}: " if where else ""
    raise ValueError(f"{where}expected {expected}, got {got}") from None


def instance(name: str, x, kind: type = Tensor):
    """Expect a tensor, or an object of another class; raise TypeError otherwise."""
    if isinstance(x, kind):
        return
    if kind is bool:  # a text such as "no" would count as true
        raise TypeError(f"expected {name} as True or False, got {x!r:.80}")
    expected = "tensor" if kind is Tensor else kind.__name__
    expected = f"an {expected}" if expected[0] in "AEIO" else f"a {expected}"
    raise TypeError(f"expected {name} as {expected}, got {type(x).__name__}")


# ---- shapes -----------------------------------------------------------------------


def shapes(expected: str, *tensors: Tensor, equal: bool = False, **known) -> dict:
    """Expect tensors with these axes: "query (..., T, d_k); key (..., S, d_k)".

    They hold floats of one dtype unless it says `mask: bool (T, S)` or `x: any (T, D)`.
    Axes of one name have one size, and if `equal`, so have all axes "...".

    known: sizes by the names of their axes, the `dtype` of floats, and the `device`
    returns: what is known then; the size of "..." is a tuple
    """
    for spec, x in zip(expected.split("; "), tensors):
        name, axes = spec[:-1].split(" (")
        name, _, kind = name.partition(": ")
        instance(name, x)
        dtype, device = x.dtype, known.setdefault("device", x.device)
        if kind == "bool":
            dtype = torch.bool
        elif kind == "":
            if not x.is_floating_point():
                refuse(f"{name} of floating-point numbers", x.dtype)
            dtype = known.setdefault("dtype", x.dtype)
        if (x.dtype, x.device) != (dtype, device) and not _is_cast(x, dtype, device):
            refuse(f"{name} as {dtype} on {device}", f"{x.dtype} on {x.device}")
        axes = axes.split(", ")
        sizes = _sizes_by_axis(axes, tuple(x.shape), equal)
        if sizes is None or any(known.get(axis, n) != n for axis, n in sizes.items()):
            axes = [
                f"{axis} = {known[axis]}" if axis in known else axis for axis in axes
            ]
            refuse(f"{name} ({', '.join(axes)})", x.shape)
        known |= sizes
    return known


def _is_cast(x, dtype, device):
    """Return whether autocast gives a tensor this dtype wherever it has to."""
    is_same = x.device == device and dtype.is_floating_point and x.is_floating_point()
    return is_same and torch.is_autocast_enabled(device.type)


def _sizes_by_axis(axes, shape, equal):
    """Return the sizes by the names of the axes, None for another number of axes."""
    if axes[0] == "..." and len(shape) >= len(axes) - 1:
        num_leading = len(shape) - len(axes) + 1
        shape = shape[:num_leading], *shape[num_leading:]
    if len(axes) != len(shape):
        return None
    return {axis: n for axis, n in zip(axes, shape) if axis != "..." or equal}


def broadcastable(name: str, x: Tensor, shape: tuple):
    """Expect a shape that broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        refuse(f"{name} of a shape that broadcasts to {tuple(shape)}", x.shape)


def mask(name: str, x: Tensor, scores: Tensor):
    """Expect booleans whose shape broadcasts to that of scores."""
    shapes(f"{name}: bool (...)", x, device=scores.device)
    broadcastable(name, x, scores.shape)


def layer_input(name: str, x: Tensor, layer: nn.Module, axes: str = "B, T") -> dict:
    """Expect floats with these axes and d_in, as the weights of a layer are."""
    known, W = {}, layer.W_query
    if type(W) is nn.Linear:  # not one that a reader has replaced
        known = {"dtype": W.weight.dtype, "device": W.weight.device}
    return shapes(f"{name} ({axes}, d_in)", x, d_in=layer.d_in, **known)


def tokens(
    name: str, x: Tensor, layer: nn.Module, padding_mask: Tensor | None, num_cached: int
) -> int:
    """Expect x (B, T, d_in), and a boolean padding mask (B, S) or None.

    returns: S, the number of tokens of x and of those in the cache
    """
    known = layer_input(name, x, layer)
    known["S"] = num_cached + known["T"]
    if padding_mask is not None:
        shapes("padding_mask: bool (B, S)", padding_mask, **known)
    return known["S"]


def fits_context(num_tokens: int, limit: int, name: str = "context_length"):
    """Expect no more tokens than a layer is built for."""
    that(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


def fits_memory(make: Callable, *shape: int, **options) -> Tensor:
    """Return what `torch.empty` or the like makes; expect that it fits into memory."""
    try:
        return make(shape, **options)
    except RuntimeError:
        refuse("a shape that fits into memory", shape)


# ---- numbers ----------------------------------------------------------------------


def is_whole(x) -> bool:
    """Return whether x is a whole number; booleans and tensors are not."""
    return isinstance(x, Integral | torch.SymInt) and not isinstance(x, bool)


def integer(name: str, x: int, least: int = 1):
    """Expect an int from `least`, and below 2**31, which no real size reaches."""
    limit = ""
    if is_whole(x) and x >= least:
        if getattr(x, "itemsize", 8) < 4:  # products of NumPy's small ints overflow
            limit = ", as an int"
        elif x >= 2**31:
            limit = ", below 2**31"
        else:
            return
    refuse(f"{name} to be a whole number of {least} or more{limit}", repr(x))


def even(name: str, width: int):
    """Expect an even int of 2 or more."""
    integer(name, width, least=2)
    that(width % 2 == 0, f"an even {name}", width)


def divisible(width: int, num_heads: int):
    """Expect a width that the heads can share equally."""
    if not (width > 0 and width % num_heads == 0):
        expected = "a width above 0 that is divisible by the number of heads"
        refuse(expected, f"width {width}", f"{num_heads} heads")


def number(name: str, x: float, high: float = math.inf, above_zero: bool = False):
    """Expect a finite number from 0, or above it, to `high` if that is given."""
    is_number = isinstance(x, Real) and not isinstance(x, bool | Fraction)
    is_valid = is_number and 0 <= x <= high and math.isfinite(x)
    if not is_valid or above_zero and x == 0:
        limits = "above 0" if above_zero else "from 0"
        limits += f" to {high:g}" if high < math.inf else ""
        refuse(f"a finite {name} {limits}", f"{x!r:.80}")


def path(name: str, x: str | Path):
    """Expect the path of a file or folder."""
    that(isinstance(x, str | Path), f"{name} as a file or folder", repr(x))


def whole_numbers(name: str, numbers: Iterable):
    """Expect whole numbers, of which one of each class is looked at."""
    unusable = [n for n in {type(n): n for n in numbers}.values() if not is_whole(n)]
    that(not unusable, f"{name} as whole numbers", *map(repr, unusable[:1]))


def integers(name: str, numbers: Iterable[int]) -> Tensor:
    """Return one sequence of whole numbers, or a generator of them, as a tensor."""
    expected = f"{name} as one sequence of whole numbers"
    if not torch.is_tensor(numbers):
        numbers = [*numbers]
        one_of_each_class = {type(n): n for n in numbers}.values()
        that(all(map(is_whole, one_of_each_class)), expected, f"{numbers!r:.80}")
        numbers = torch.tensor(numbers, dtype=torch.long)
    is_integer = not (numbers.is_floating_point() or numbers.dtype == torch.bool)
    that(numbers.dim() == 1 and is_integer, expected, numbers.dtype, numbers.shape)
    return numbers.long()


# ---- entries of tensors -----------------------------------------------------------


def is_readable(x: Tensor) -> bool:
    """Return whether a check may look at the values of a tensor.

    A GPU would have to wait, `torch.compile` would break its graph, and inside `vmap`
    and on the device `meta` there are no values.
    """
    if torch.compiler.is_compiling():
        return False
    return x.is_cpu and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def in_range(name: str, x: Tensor, low: float, high: float):
    """Expect numbers in a range, and no NaN, where they can be read."""
    if is_readable(x):
        outside = x[~((x >= low) & (x <= high))].tolist()
        that(not outside, f"{name} from {low} to {high}", *outside[:1])


def finite(expected: str, x: Tensor):
    """Expect finite numbers, where they can be read."""
    if is_readable(x) and not x.isfinite().all():
        refuse(expected, x[~x.isfinite()][0].item())


def logits(x: Tensor):
    """Expect floats (..., V), with a finite largest one where it can be read."""
    shapes("logits (..., V)", x)
    finite("a finite largest logit", x.amax(dim=-1))


def token_ids(ids: Tensor, vocab_size: int):
    """Expect integers from 0 to `vocab_size - 1`.

    Where their values can't be read, the embedding itself checks them.
    """
    instance("token ids", ids)
    is_integer = ids.dtype in (torch.int32, torch.int64)  # what an embedding takes
    that(is_integer, "token ids as int64 or int32", ids.dtype)
    in_range("token ids", ids, 0, vocab_size - 1)


def targets(scores: Tensor, ids: Tensor, left_out: int | None = None):
    """Expect logits (..., V), and for each of their rows a token id, or `left_out`.

    On the CPU one target at least has to count, and its logits have to be finite.
    """
    shapes("logits (..., V); targets: any (...)", scores, ids, equal=True)
    if left_out is not None:
        that(is_whole(left_out), "left_out as a whole number", repr(left_out))
    if is_readable(ids):
        if left_out is not None:
            scores, ids = scores[ids != left_out], ids[ids != left_out]
        that(ids.numel() > 0, "targets of one token or more", ids.shape)
        logits(scores)
        token_ids(ids, scores.shape[-1])
