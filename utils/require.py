"""What functions and layers expect of their inputs.

Each raises ValueError or, as `instance` does for another class, TypeError.

Shapes: B batch, T tokens (queries), S tokens attended to (keys).
"""

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import zip_longest
from numbers import Integral, Real
from pathlib import Path

import torch
from torch import Tensor, nn


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
    if not isinstance(x, kind):
        expected = "tensor" if kind is Tensor else kind.__name__
        expected = f"an {expected}" if expected[0] in "AEIO" else f"a {expected}"
        raise TypeError(f"expected {name} as {expected}, got {type(x).__name__}")


def shapes(
    expected: str,
    *tensors: Tensor,
    equal: bool = False,
    is_float: bool = False,
    **known,
) -> dict:
    """Expect tensors with these axes: "query (..., T, d_k); key (..., S, d_k)".

    Axes of one name have one size, and "..." are any axes that broadcast to each other,
    or if `equal`, that are the same.

    known: sizes by the names of their axes, and the `dtype` and `device` of all tensors
    returns: what is known then; the size of "..." is a tuple
    """
    for spec, x in zip(expected.split("; "), tensors):
        name, axes = spec[:-1].split(" (")
        instance(name, x)
        if is_float:
            floating(name, x)
            known = {"dtype": x.dtype, "device": x.device} | known
        kind = known.get("dtype", x.dtype), known.get("device", x.device)
        if kind != (x.dtype, x.device) and not _is_cast(x, *kind):
            refuse(f"{name} as {kind[0]} on {kind[1]}", f"{x.dtype} on {x.device}")
        axes = axes.split(", ")
        axis_sizes = _by_axis(axes, tuple(x.shape))
        for axis, size in axis_sizes.items():
            if axis == "..." and not equal:
                axis_sizes[axis] = _broadcast(size, known.get(axis, ()))
            elif known.get(axis, size) != size:
                axis_sizes[axis] = None
        if not axis_sizes or None in axis_sizes.values():
            shown_sizes = {a: n for a, n in known.items() if equal or n != ()}
            axes = [f"{a} = {shown_sizes[a]}" if a in shown_sizes else a for a in axes]
            refuse(f"{name} ({', '.join(axes)})", x.shape)
        known |= axis_sizes
    return known


def _is_cast(x, dtype, device):
    """Return whether autocast gives a tensor this dtype wherever it has to."""
    is_same = x.device == device and dtype.is_floating_point and x.is_floating_point()
    return is_same and torch.is_autocast_enabled(device.type)


def _by_axis(axes, shape):
    """Return the sizes by the names of the axes, nothing for another number of axes."""
    if axes[0] == "..." and len(shape) >= len(axes) - 1:
        num_leading = len(shape) - len(axes) + 1
        shape = shape[:num_leading], *shape[num_leading:]
    return dict(zip(axes, shape)) if len(axes) == len(shape) else {}


def _broadcast(first, second):
    """Return the shape to which two broadcast, or None."""
    pairs = [*zip_longest(first[::-1], second[::-1], fillvalue=1)][::-1]
    if all(a == b or 1 in (a, b) for a, b in pairs):
        return tuple(b if a == 1 else a for a, b in pairs)
    return None


def floats(expected: str, *tensors: Tensor, **known) -> dict:
    """Expect floats with these `shapes`, of one dtype and on one device.

    Under autocast dtypes may differ, because operations convert their inputs.
    """
    return shapes(expected, *tensors, is_float=True, **known)


def floating(name: str, x: Tensor):
    """Expect a tensor of floating-point numbers."""
    instance(name, x)
    that(x.is_floating_point(), f"{name} of floating-point numbers", x.dtype)
    wide(name, x)


def wide(name: str, x: Tensor):
    """Expect no numbers in float8, with which PyTorch hardly computes."""
    is_wide = x.dtype.itemsize > 1 or not x.is_floating_point()
    that(is_wide, f"{name} of 16 bits or more", x.dtype)


def real(name: str, x: Tensor):
    """Expect a tensor of real numbers, whole or not."""
    instance(name, x)
    is_real = not x.is_complex() and x.dtype not in (torch.bool, torch.uint64)
    that(is_real, f"{name} as real numbers", x.dtype)
    that(x.layout == torch.strided, f"{name} as a dense tensor", x.layout)


def memory(make: Callable, *shape: int, **kind) -> Tensor:
    """Return what `torch.empty` or the like makes; expect that it fits into memory."""
    try:
        return make(shape, **kind)
    except RuntimeError:
        refuse("a shape that fits into memory", shape)


def sizes(least: int = 1, /, **numbers: int):
    """Expect ints from `least`, and below 2**31, which no real size reaches.

    numbers: by the names that the message gives them
    """
    for name, size in numbers.items():
        if not (is_whole(size) and least <= size < 2**31 and not _is_narrow(size)):
            below = ", as an int" if _is_narrow(size) else ", below 2**31"
            below = below if is_whole(size) and size > 0 else ""
            refuse(f"{name} to be a whole number of {least} or more{below}", repr(size))


def from_zero(**numbers: int):
    """Expect ints of 0 or more, by their names."""
    sizes(0, **numbers)


def flags(**values: bool):
    """Expect True or False: a text such as "no" would count as true."""
    for name, x in values.items():
        that(isinstance(x, bool), f"{name} as True or False", repr(x))


def even(name: str, width: int):
    """Expect an even int of 2 or more."""
    sizes(2, **{name: width})
    that(width % 2 == 0, f"an even {name}", width)


def is_whole(x) -> bool:
    """Return whether x is a whole number; booleans and tensors are not."""
    return isinstance(x, Integral) and not isinstance(x, bool)


def _is_narrow(size):
    """Return whether it is a NumPy number of 8 or 16 bits, whose products overflow."""
    return not isinstance(size, int) and getattr(size, "itemsize", 8) < 4


def number(high: float = math.inf, /, above_zero: bool = False, **numbers: float):
    """Expect finite numbers from 0, or above it, to `high` if that is given.

    PyTorch can't multiply a tensor by a fraction.
    """
    limits = "above 0" if above_zero else "from 0"
    limits += f" to {high:g}" if high < math.inf else ""
    for name, x in numbers.items():
        is_valid = isinstance(x, Real) and not isinstance(x, bool | Fraction)
        is_valid = is_valid and 0 <= x <= high and x < math.inf
        is_valid = is_valid and int(x) <= sys.float_info.max  # 10**400 has no float
        is_valid = is_valid and not (above_zero and x == 0)
        that(is_valid, f"a finite {name} {limits}", f"{x!r:.80}")


def is_readable(x: Tensor) -> bool:
    """Return whether a check may look at the values of a tensor.

    A GPU would have to wait, `torch.compile` would break its graph, and inside `vmap`
    and on the device `meta` there are no values.
    """
    if torch.compiler.is_compiling():
        return False
    return x.is_cpu and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def between(name: str, x: Tensor, low: float, high: float):
    """Expect numbers in a range, and no NaN, where they can be read."""
    if is_readable(x):
        outside = x[~((x >= low) & (x <= high))].tolist()
        that(not outside, f"{name} from {low} to {high}", *outside[:1])


def finite(expected: str, x: Tensor):
    """Expect finite numbers, where they can be read."""
    if is_readable(x) and not x.isfinite().all():
        refuse(expected, x[~x.isfinite()][0].item())


def logits(x: Tensor) -> Tensor:
    """Expect floats (..., V), on the CPU with a finite largest one; return that."""
    floating("logits", x)
    has_logits = x.dim() > 0 and x.shape[-1] > 0
    that(has_logits, "logits (..., V), one or more each", x.shape)
    largest = x.amax(dim=-1, keepdim=True)
    finite("a finite largest logit", largest)
    return largest


def mask(name: str, x: Tensor, scores: Tensor):
    """Expect booleans whose shape broadcasts to that of scores."""
    shapes(f"{name} (...)", x, dtype=torch.bool, device=scores.device)
    broadcastable(name, x, scores.shape)


def token_ids(ids: Tensor, vocab_size: int, table: Tensor | None = None):
    """Expect integers from 0 to `vocab_size - 1`, on the device of the table.

    Where their values can't be read, the embedding itself checks them.
    """
    instance("token ids", ids)
    is_integer = ids.dtype in (torch.int32, torch.int64)  # what an embedding takes
    that(is_integer, "token ids as int64 or int32", ids.dtype)
    if table is not None and ids.device != table.device:
        refuse(f"token ids on {table.device}", ids.device)
    that(vocab_size > 0, "a vocabulary of one token or more", "none")
    between("token ids", ids, 0, vocab_size - 1)


def targets(scores: Tensor, ids: Tensor, left_out: int | None = None):
    """Expect logits (..., V), and for each of their rows a token id, or `left_out`."""
    known = floats("logits (..., V)", scores)
    del known["dtype"]
    shapes("targets (...)", ids, equal=True, **known)
    that(ids.numel() > 0, "targets of one token or more", ids.shape)
    if left_out is not None:
        that(is_whole(left_out), "left_out as a whole number", repr(left_out))
        is_small = -(2**63) <= left_out < 2**63
        that(is_small, "left_out from -2**63, below 2**63", left_out)
        is_out = ids == left_out
        if is_readable(ids):
            that(not is_out.all(), "one target or more that counts", left_out)
        ids = ids.masked_fill(is_out, 0)
    if is_readable(scores):  # a GPU would search for the largest ones in vain
        logits(scores if left_out is None else scores[~is_out])
    token_ids(ids, scores.shape[-1])


def integers(name: str, numbers) -> Tensor:
    """Return one sequence of whole numbers, or a generator of them, as a tensor."""
    expected = f"{name} as one sequence of whole numbers"
    try:
        numbers = numbers if hasattr(numbers, "__len__") else [*numbers]
        kinds = {type(numbers)}
        if isinstance(numbers, list | tuple):
            kinds = {*map(type, numbers)}
            if Tensor in kinds:
                kinds |= {n.dtype for n in numbers if torch.is_tensor(n)}
        if kinds & {bool, torch.bool, bytearray}:
            raise TypeError("PyTorch would take True for 1, and a bytearray, not bytes")
        x = torch.as_tensor(numbers)
        if x.dtype == torch.uint64:  # `x.long()` would make its larger half negative
            x = torch.as_tensor(numbers := x.tolist())
    except (RuntimeError, TypeError, ValueError) as error:  # texts, uneven rows
        limit = " below 2**63" if "Overflow" in str(error) else ""
        raise TypeError(f"expected {expected}{limit}, got {numbers!r:.80}") from None
    if not x.numel():  # PyTorch makes floats of an empty list
        x = x.long()
    is_integer = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
    that(x.dim() == 1 and is_integer, expected, x.dtype, x.shape)
    return x if x.dtype == torch.int32 else x.long()  # what an embedding takes


def whole_numbers(name: str, numbers: Iterable):
    """Expect whole numbers, of which one of each class is looked at."""
    unusable = [n for n in {type(n): n for n in numbers}.values() if not is_whole(n)]
    that(not unusable, f"{name} as whole numbers", *map(repr, unusable[:1]))


def enough_ids(ids, context_length: int) -> Tensor:
    """Return token ids as a tensor, more than a window has: it needs a last target."""
    sizes(context_length=context_length)
    ids = integers("token ids", ids)
    expected = f"more than context_length = {context_length} token ids"
    that(len(ids) > context_length, expected, len(ids))
    return ids


def query_key_value(query: Tensor, key: Tensor, *value: Tensor) -> dict:
    """Expect floats that fit, with one feature or more; return what `shapes` does."""
    expected = "query (..., T, d_k); key (..., S, d_k); value (..., S, d_v)"
    known = floats(expected, query, key, *value)
    that(known["d_k"] > 0, "queries and keys of one feature or more", query.shape)
    return known


def broadcastable(name: str, x: Tensor, shape: tuple):
    """Expect a shape that broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        refuse(f"{name} of a shape that broadcasts to {tuple(shape)}", x.shape)


def features(name: str, x: Tensor, layer: nn.Module, axes: str = "B, T") -> dict:
    """Expect floats with these axes and d_in, as the weights of a layer are."""
    known, W = {}, layer.W_query
    if type(W) is nn.Linear:  # not one that a reader has replaced
        weight = W.weight
        known = {"dtype": weight.dtype, "device": weight.device}
    return floats(f"{name} ({axes}, d_in)", x, d_in=layer.d_in, **known)


def length(num_tokens: int, limit: int, name: str = "context_length"):
    """Expect no more tokens than a layer is built for."""
    that(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


def first_position(start: int):
    """Expect a whole number from 0, which `torch.compile` may have made symbolic."""
    is_valid = is_whole(start) and not _is_narrow(start)
    is_valid = is_valid or isinstance(start, torch.SymInt)
    if not (is_valid and start >= 0):
        refuse("start as a first position of 0 or more", repr(start))


def rotary(is_rotary, rope_base, context_length, rotary_dim=None):
    """Without rotary=True, rope_base and rotary_dim must keep their defaults."""
    flags(rotary=is_rotary)
    number(above_zero=True, rope_base=rope_base)
    sizes(int(is_rotary), context_length=context_length)
    is_valid = is_rotary or rope_base == 10000.0 and rotary_dim is None
    that(is_valid, "rotary=True with a rope_base or rotary_dim", is_rotary)


def cache(x, kind: type) -> int:
    """Expect a cache of this class, or None; return the number of its tokens."""
    if x is not None:
        instance("cache", x, kind)
    return 0 if x is None else len(x)


def divisible(width: int, num_heads: int):
    """Expect a width that the heads can share equally."""
    sizes(num_heads=num_heads)
    expected = "a width above 0 that is divisible by the number of heads"
    if not (width > 0 and width % num_heads == 0):
        refuse(expected, f"width {width}", f"{num_heads} heads")


def layer_sizes(
    d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int = 1
):
    """Expect sizes from which an attention layer can be built."""
    sizes(d_in=d_in, d_out=d_out)
    divisible(d_out, num_heads)
    from_zero(context_length=context_length)
    number(1, dropout=dropout)


def tokens(
    name: str, x: Tensor, layer, padding_mask: Tensor | None, num_cached: int = 0
) -> int:
    """Expect x (B, T, d_in), and a boolean padding mask (B, S) or None.

    returns: S, the number of tokens of x and of those in the cache
    """
    known = features(name, x, layer)
    S = num_cached + known["T"]
    if padding_mask is not None:
        kind = {"dtype": torch.bool, "device": x.device}
        shapes("padding_mask (B, S)", padding_mask, B=known["B"], S=S, **kind)
    return S
