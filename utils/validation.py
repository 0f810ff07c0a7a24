"""What functions and layers expect of their arguments.

The decorator `check_inputs` checks each argument by itself, and their shapes together.
Other conditions are in the body of a function, with `raise_unless`. Each function named
`check_…` raises ValueError or, for an object of another class, TypeError.

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

# Type hints with the options of `check_int` and `check_number`.
PositiveInt = Annotated[int, ("minimum", 1)]
NonNegativeInt = Annotated[int, ("minimum", 0)]
PositiveFloat = Annotated[float, ("above_zero", True)]
NonNegativeFloat = Annotated[float, ("above_zero", False)]
Proportion = Annotated[float, ("maximum", 1)]


def check_inputs(expected: str = "", /, *, same_leading: bool = False):
    """Check the arguments of a function before each call.

    expected: the shapes of tensors by the names of their parameters, for `check_shapes`
    same_leading: whether "..." has to be the same for all of them

    Other arguments have to be what their type hints say, if that is a class, such as
    `bool`, or one of the hints of this module, such as `PositiveInt`.

    >>> @check_inputs("x (..., T, D)")
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
            check_shapes(
                spec, *[given[name] for name in tensors], same_leading=same_leading
            )
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
        check = check_int if kind is int else check_number
        return functools.partial(check, **dict(options))
    kind = origin or hint  # `dict` for `dict[str, int]`
    if isinstance(kind, type) and kind not in (int, float, inspect.Parameter.empty):
        return functools.partial(check_type, kind=kind)
    return None


def raise_unless(condition: bool, expected: str, *received, where: str | Path = ""):
    """Raise ValueError unless the condition is true.

    The message is built even if nothing is wrong. In hot paths, or with a number of
    tokens in it (`torch.compile` would specialise), write `if` and `raise_value_error`.
    """
    if not condition:
        raise_value_error(expected, *received, where=where)


def raise_value_error(expected: str, *received, where: str | Path = ""):
    """Raise ValueError with what was expected and what was received, perhaps where."""
    received = [tuple(r) if isinstance(r, torch.Size) else r for r in received]
    got = " and ".join(map(str, received))
    where = f"{where}: " if where else ""
    raise ValueError(f"{where}expected {expected}, got {got}") from None


def check_type(name: str, x, kind: type = Tensor):
    """Raise TypeError unless x is a tensor, or an object of another class."""
    if isinstance(x, kind):
        return
    if kind is bool:  # a text such as "no" would count as true
        raise TypeError(f"expected {name} as True or False, got {x!r:.80}")
    expected = "tensor" if kind is Tensor else kind.__name__
    expected = f"an {expected}" if expected[0] in "AEIO" else f"a {expected}"
    raise TypeError(f"expected {name} as {expected}, got {type(x).__name__}")


# ---- shapes -----------------------------------------------------------------------


def check_shapes(
    expected: str, *tensors: Tensor, same_leading: bool = False, **known
) -> dict:
    """Raise ValueError unless tensors have these axes, and one device.

    expected: the name and the axes of each tensor, as in the examples. Axes of one name
        have one size; "..." is any number of leading axes. Tensors hold floats of one
        dtype, unless `bool` or `any` before the axes says otherwise.
    same_leading: whether "..." has to be the same for all tensors
    known: sizes by the names of their axes, the `dtype` of floats, and the `device`
    returns: what is known then; the size of "..." is a tuple

    >>> query, key = torch.zeros(7, 3, 4), torch.zeros(5, 4)
    >>> sizes = check_shapes("query (..., T, d_k); key (S, d_k)", query, key)
    >>> sizes["T"], sizes["S"], sizes["d_k"]
    (3, 5, 4)
    >>> check_shapes("mask: bool (T, S)", torch.ones(3, 4) > 0, S=5)
    Traceback (most recent call last):
    ValueError: expected mask (T, S = 5), got (3, 4)
    """
    for spec, x in zip(expected.split("; "), tensors):
        name, axes = spec[:-1].split(" (")
        name, _, kind = name.partition(": ")
        check_type(name, x)
        dtype, device = x.dtype, known.setdefault("device", x.device)
        if kind == "bool":
            dtype = torch.bool
        elif kind == "":
            if not x.is_floating_point():
                raise_value_error(f"{name} of floating-point numbers", x.dtype)
            dtype = known.setdefault("dtype", x.dtype)
        if (x.dtype, x.device) != (dtype, device) and not _is_cast(x, dtype, device):
            raise_value_error(
                f"{name} as {dtype} on {device}", f"{x.dtype} on {x.device}"
            )
        axes = axes.split(", ")
        sizes = _sizes_by_axis(axes, tuple(x.shape), same_leading)
        if sizes is None or any(known.get(axis, n) != n for axis, n in sizes.items()):
            axes = [
                f"{axis} = {known[axis]}" if axis in known else axis for axis in axes
            ]
            raise_value_error(f"{name} ({', '.join(axes)})", x.shape)
        known |= sizes
    return known


def _is_cast(x, dtype, device):
    """Return whether autocast gives a tensor this dtype wherever it has to."""
    is_same = x.device == device and dtype.is_floating_point and x.is_floating_point()
    return is_same and torch.is_autocast_enabled(device.type)


def _sizes_by_axis(axes, shape, same_leading):
    """Return the sizes by the names of the axes, None for another number of axes."""
    if axes[0] == "..." and len(shape) >= len(axes) - 1:
        num_leading = len(shape) - len(axes) + 1
        shape = shape[:num_leading], *shape[num_leading:]
    if len(axes) != len(shape):
        return None
    return {axis: n for axis, n in zip(axes, shape) if axis != "..." or same_leading}


def check_broadcastable(name: str, x: Tensor, shape: tuple):
    """Raise ValueError unless the shape of x broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        raise_value_error(
            f"{name} of a shape that broadcasts to {tuple(shape)}", x.shape
        )


def check_mask(name: str, x: Tensor, scores: Tensor):
    """Raise ValueError unless x is boolean and broadcasts to the shape of scores."""
    check_shapes(f"{name}: bool (...)", x, device=scores.device)
    check_broadcastable(name, x, scores.shape)


def check_layer_input(
    name: str, x: Tensor, layer: nn.Module, axes: str = "B, T"
) -> dict:
    """Raise ValueError unless x has these axes, d_in, and the dtype of the layer."""
    known, W = {}, layer.W_query
    if type(W) is nn.Linear:  # not one that a reader has replaced
        known = {"dtype": W.weight.dtype, "device": W.weight.device}
    return check_shapes(f"{name} ({axes}, d_in)", x, d_in=layer.d_in, **known)


def check_tokens(
    name: str, x: Tensor, layer: nn.Module, padding_mask: Tensor | None, num_cached: int
) -> int:
    """Raise ValueError unless x is (B, T, d_in) and a padding mask boolean (B, S).

    returns: S, the number of tokens of x and of those in the cache
    """
    known = check_layer_input(name, x, layer)
    known["S"] = num_cached + known["T"]
    if padding_mask is not None:
        check_shapes("padding_mask: bool (B, S)", padding_mask, **known)
    return known["S"]


def check_context_length(num_tokens: int, limit: int, name: str = "context_length"):
    """Raise ValueError for more tokens than a layer is built for."""
    raise_unless(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


# ---- numbers ----------------------------------------------------------------------


def is_int(x) -> bool:
    """Return whether x is a whole number; booleans and tensors are not."""
    return isinstance(x, Integral | torch.SymInt) and not isinstance(x, bool)


def check_int(name: str, x: int, minimum: int = 1):
    """Raise ValueError unless x is an int from `minimum` to 2**31 - 1."""
    limit = ""
    if is_int(x) and x >= minimum:
        if getattr(x, "itemsize", 8) < 4:  # products of NumPy's small ints overflow
            limit = ", as an int"
        elif x >= 2**31:
            limit = ", below 2**31"
        else:
            return
    raise_value_error(
        f"{name} to be a whole number of {minimum} or more{limit}", repr(x)
    )


def check_even(name: str, width: int):
    """Raise ValueError unless the width is an even int of 2 or more."""
    check_int(name, width, minimum=2)
    raise_unless(width % 2 == 0, f"an even {name}", width)


def check_divisible(width: int, num_heads: int):
    """Raise ValueError unless the heads can share the width equally."""
    if not (width > 0 and width % num_heads == 0):
        expected = "a width above 0 that is divisible by the number of heads"
        raise_value_error(expected, f"width {width}", f"{num_heads} heads")


def check_number(
    name: str, x: float, maximum: float = math.inf, above_zero: bool = False
):
    """Raise ValueError unless x is a finite number from 0, or above, to `maximum`."""
    is_number = isinstance(x, Real) and not isinstance(x, bool | Fraction)
    is_valid = is_number and 0 <= x <= maximum and math.isfinite(x)
    if not is_valid or above_zero and x == 0:
        limits = "above 0" if above_zero else "from 0"
        limits += f" to {maximum:g}" if maximum < math.inf else ""
        raise_value_error(f"a finite {name} {limits}", f"{x!r:.80}")


def check_ints(name: str, numbers: Iterable):
    """Raise ValueError for other than whole numbers, looking at one of each class."""
    unusable = [n for n in {type(n): n for n in numbers}.values() if not is_int(n)]
    raise_unless(not unusable, f"{name} as whole numbers", *map(repr, unusable[:1]))


def to_int_tensor(name: str, numbers: Iterable[int]) -> Tensor:
    """Return a sequence of whole numbers, or a generator of them, as a tensor."""
    if not torch.is_tensor(numbers):
        numbers = [*numbers]
        check_ints(name, numbers)
        numbers = torch.tensor(numbers, dtype=torch.long)
    is_integer = not (numbers.is_floating_point() or numbers.dtype == torch.bool)
    is_valid = numbers.dim() == 1 and is_integer
    expected = f"{name} as one sequence of whole numbers"
    raise_unless(is_valid, expected, numbers.dtype, numbers.shape)
    return numbers.long()


# ---- entries of tensors -----------------------------------------------------------


def can_read_values(x: Tensor) -> bool:
    """Return whether a check may look at the values of a tensor.

    A GPU would have to wait, `torch.compile` would break its graph, and inside `vmap`
    and on the device `meta` there are no values.
    """
    if torch.compiler.is_compiling():
        return False
    return x.is_cpu and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def check_range(name: str, x: Tensor, low: float, high: float):
    """Raise ValueError for a NaN or a number outside a range, if values can be read."""
    if can_read_values(x):
        outside = x[~((x >= low) & (x <= high))].tolist()
        raise_unless(not outside, f"{name} from {low} to {high}", *outside[:1])


def check_finite(expected: str, x: Tensor):
    """Raise ValueError unless all numbers are finite, if values can be read."""
    if can_read_values(x) and not x.isfinite().all():
        raise_value_error(expected, x[~x.isfinite()][0].item())


def check_logits(x: Tensor):
    """Raise ValueError unless x is (..., V), with a finite largest logit per row."""
    check_shapes("logits (..., V)", x)
    check_finite("a finite largest logit", x.amax(dim=-1))


def check_token_ids(ids: Tensor, vocab_size: int):
    """Raise ValueError unless ids are integers from 0 to `vocab_size - 1`.

    Where their values can't be read, the embedding itself checks them.
    """
    check_type("token ids", ids)
    is_integer = ids.dtype in (torch.int32, torch.int64)  # what an embedding takes
    raise_unless(is_integer, "token ids as int64 or int32", ids.dtype)
    check_range("token ids", ids, 0, vocab_size - 1)


def check_targets(scores: Tensor, ids: Tensor, left_out: int | None = None):
    """Raise ValueError unless each row of logits (..., V) has a token id or `left_out`.

    On the CPU one target at least has to count, and its logits have to be finite.
    """
    check_shapes("logits (..., V); targets: any (...)", scores, ids, same_leading=True)
    if left_out is not None:
        raise_unless(is_int(left_out), "left_out as a whole number", repr(left_out))
    if can_read_values(ids):
        if left_out is not None:
            scores, ids = scores[ids != left_out], ids[ids != left_out]
        raise_unless(ids.numel() > 0, "targets of one token or more", ids.shape)
        check_logits(scores)
        check_token_ids(ids, scores.shape[-1])
