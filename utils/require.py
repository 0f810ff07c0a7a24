"""What functions and layers expect of their inputs.

Each raises ValueError for a wrong value and TypeError for another class.

Shapes: B batch, T tokens (queries), S tokens attended to (keys).
"""

import math
from numbers import Integral, Real

import torch
from torch import Tensor


def that(condition: bool, expected: str, *received):
    """Raise ValueError unless the condition is true.

    The message is built even when nothing is wrong. In hot paths, or if it contains a
    number of tokens (which would make `torch.compile` specialise), write an `if`
    instead.
    """
    if not condition:
        received = [tuple(r) if isinstance(r, torch.Size) else r for r in received]
        got = " and ".join(map(str, received))
        raise ValueError(f"expected {expected}, got {got}")


def instance(name: str, x, kind: type = Tensor):
    """Expect a tensor, or an object of another class; raise TypeError otherwise."""
    if not isinstance(x, kind):
        expected = "tensor" if kind is Tensor else kind.__name__
        raise TypeError(f"expected {name} as a {expected}, got {type(x).__name__}")


def axes(name: str, x: Tensor, axes: str):
    """Expect a tensor with these axes, such as "..., T, D" or "B, C, height, width"."""
    instance(name, x)
    num_leading = x.dim() - axes.count(",") - (axes[0] != ".")
    if num_leading < 0 or num_leading > 0 and axes[0] != ".":
        raise ValueError(f"expected {name} ({axes}), got {tuple(x.shape)}")


def floating(name: str, x: Tensor):
    """Expect a tensor of floating-point numbers."""
    instance(name, x)
    that(x.is_floating_point(), f"{name} of floating-point numbers", x.dtype)


def positive(name: str, number: int, least: int = 1):
    """Expect an int of `least` or more that PyTorch can take as a size."""
    if not (is_whole(number) and least <= number < 2**63):
        expected = f"{name} to be a whole number of {least} or more"  # no `that`: it
        if is_whole(number) and number > 0:  # may be a number of tokens
            expected += ", below 2**63"
        raise ValueError(f"expected {expected}, got {number!r}")


def sizes(**sizes: int):
    """Expect ints of 1 or more, by their names."""
    for name, size in sizes.items():
        positive(name, size)


def flags(**flags: bool):
    """Expect True or False: a text such as "no" would count as true."""
    for name, flag in flags.items():
        that(isinstance(flag, bool), f"{name} as True or False", repr(flag))


def even(name: str, width: int):
    """Expect an even int of 2 or more."""
    is_even = is_whole(width) and width >= 2 and width % 2 == 0
    that(is_even, f"an even {name} of 2 or more", repr(width))


def is_whole(x) -> bool:
    """Return whether x is a whole number; booleans and tensors are not."""
    return isinstance(x, Integral) and not isinstance(x, bool)


def is_number(x, low: float = -math.inf, high: float = math.inf) -> bool:
    """Return whether x is a finite number in a range; booleans and tensors are not."""
    is_real = isinstance(x, Real) and not isinstance(x, bool)
    return is_real and math.isfinite(x) and low <= x <= high


def number(name: str, x: float, high: float = math.inf, above_zero: bool = False):
    """Expect a finite number from 0, or above it, to `high` if that is given."""
    limits = "above 0" if above_zero else "from 0"
    limits += f" to {high:g}" if high < math.inf else ""
    is_valid = is_number(x, 0, high) and not (above_zero and x == 0)
    that(is_valid, f"a finite {name} {limits}", repr(x))


def is_readable(x: Tensor) -> bool:
    """Return whether a check may look at the values of a tensor.

    A GPU would have to wait, `torch.compile` would break its graph, and inside `vmap`
    and on the device `meta` there are no values.
    """
    is_compiling = torch.compiler.is_compiling()
    return x.is_cpu and not (
        is_compiling or torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def between(name: str, x: Tensor, low: float, high: float):
    """Expect floats in a range, and no NaN."""
    floating(name, x)
    if is_readable(x):
        wrong = x[~((x >= low) & (x <= high))].tolist()
        that(not wrong, f"{name} from {low:g} to {high:g}", *wrong[:1])


def logits(logits: Tensor) -> Tensor:
    """Expect floats (..., V), on the CPU with a finite largest one; return that."""
    floating("logits", logits)
    has_logits = logits.dim() > 0 and logits.shape[-1] > 0
    that(has_logits, "logits (..., V), one or more each", logits.shape)
    largest = logits.amax(dim=-1, keepdim=True)
    if is_readable(largest):
        wrong = largest[~largest.isfinite()].tolist()
        that(not wrong, "a finite largest logit", *wrong[:1])
    return largest


def mask(name: str, mask: Tensor, shape: tuple):
    """Expect booleans whose shape broadcasts to another."""
    instance(f"a boolean {name}", mask)
    that(mask.dtype == torch.bool, f"a boolean {name}", mask.dtype)
    broadcastable(name, mask, shape)


def token_ids(ids: Tensor, vocab_size: int, table: Tensor | None = None):
    """Expect integers from 0 to `vocab_size - 1`, on the device of the table.

    Where their values can't be read, the embedding itself checks them.
    """
    instance("token ids", ids)
    is_integer = ids.dtype in (torch.int32, torch.int64)  # what an embedding takes
    that(is_integer, "token ids as int64 or int32", ids.dtype)
    if table is not None and ids.device != table.device:
        raise ValueError(f"expected token ids on {table.device}, got {ids.device}")
    if not is_readable(ids):
        return
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside):
        raise ValueError(
            f"expected token ids from 0 to {vocab_size - 1}, got {outside[0].item()}"
        )


def targets(logits: Tensor, targets: Tensor, left_out: int | None = None):
    """Expect logits (..., V), and for each of their rows a token id, or `left_out`."""
    floating("logits", logits)
    instance("targets", targets)
    if not 0 < targets.numel() or logits.shape[:-1] != targets.shape:
        expected = tuple(logits.shape[:-1])
        raise ValueError(
            f"expected targets {expected}, one token or more, one for each row of "
            f"logits, got {tuple(targets.shape)}"
        )
    if left_out is not None:
        targets = targets.masked_fill(targets == left_out, 0)
    token_ids(targets, logits.shape[-1])


def integers(name: str, numbers) -> Tensor:
    """Return one sequence of whole numbers as a tensor."""
    try:
        x = torch.as_tensor(numbers)
    except (RuntimeError, TypeError, ValueError):  # texts, rows of several lengths
        raise TypeError(
            f"expected {name} as one sequence of whole numbers, got {numbers!r:.80}"
        ) from None
    if not x.numel():  # PyTorch makes floats of an empty list
        x = x.long()
    is_integer = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
    is_valid = x.dim() == 1 and is_integer
    that(is_valid, f"{name} as one sequence of whole numbers", x.dtype, x.shape)
    return x


def enough_ids(num_ids: int, context_length: int):
    """Expect enough token ids for a window and its last target."""
    positive("context_length", context_length)
    expected = f"more than context_length = {context_length} token ids"
    that(num_ids > context_length, expected, num_ids)


def alike(**tensors: Tensor):
    """Expect floats of one dtype, on one device, at which PyTorch doesn't always look.

    Under autocast dtypes may differ, because operations convert their inputs.
    """
    for name, x in tensors.items():
        floating(name, x)
    for word in ("device", "dtype"):
        kinds = [getattr(x, word) for x in tensors.values()]
        if kinds.count(kinds[0]) < len(kinds):
            device = next(iter(tensors.values())).device.type
            if word == "dtype" and torch.is_autocast_enabled(device):
                return
            names, received = " and ".join(tensors), " and ".join(map(str, kinds))
            raise ValueError(f"expected {names} of one {word}, got {received}")


def query_key_value(query: Tensor, key: Tensor, value: Tensor) -> tuple:
    """Expect (..., T, d_k), (..., S, d_k) and (..., S, d_v).

    returns: the sizes of their leading axes, broadcast to each other
    """
    alike(query=query, key=key, value=value)
    shapes = [tuple(t.shape) for t in (query, key, value)]
    that(min(map(len, shapes)) >= 2, "(..., tokens, width) three times", shapes)
    is_one_width = query.shape[-1] == key.shape[-1] > 0
    that(is_one_width, "query and key of one width d_k", *shapes[:2])
    that(key.shape[-2] == value.shape[-2], "a value for each key", *shapes[1:])
    try:  # not `broadcast_shapes`, which first imports sympy for half a second
        leading = [t.new_empty(t.shape[:-2]) for t in (query, key, value)]
        return torch.broadcast_tensors(*leading)[0].shape
    except RuntimeError:
        raise ValueError(f"expected leading axes that fit, got {shapes}") from None


def broadcastable(name: str, x: Tensor, shape: tuple):
    """Expect a shape that broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"expected {name} of a shape that broadcasts to {tuple(shape)}, "
            f"got {tuple(x.shape)}"
        ) from None


def features(name: str, x: Tensor, width: int, dims: int | None = None):
    """Expect floats (..., T, width), with `dims` axes if that is given."""
    floating(name, x)
    if x.dim() < 2 or x.shape[-1] != width or dims not in (None, x.dim()):
        axes = "B, T" if dims else "..., T"
        raise ValueError(f"expected {name} ({axes}, {width}), got {tuple(x.shape)}")


def length(num_tokens: int, limit: int, name: str = "context_length"):
    """Expect no more tokens than a layer is built for."""
    that(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


def positions(start: int, end: int, limit: int, name: str = "context_length"):
    """Expect positions that a table has."""
    length(end, limit, name)
    is_valid = not isinstance(start, bool | float) and start >= 0
    that(is_valid, "a first position of 0 or more", start)


def rotary(rotary: bool, rope_base: float, rotary_dim: int | None = None):
    """Without rotary=True, rope_base and rotary_dim must keep their defaults."""
    flags(rotary=rotary)
    is_default = rope_base == 10000.0 and rotary_dim is None
    that(rotary or is_default, "rotary=True with a rope_base or rotary_dim", rotary)


def cache(cache, kind: type) -> int:
    """Expect a cache of this class, or None; return the number of its tokens."""
    if not isinstance(cache, kind | None):
        raise TypeError(f"expected a {kind.__name__}, got {type(cache).__name__}")
    return 0 if cache is None else len(cache)


def divisible(width: int, num_heads: int):
    """Expect a width that the heads can share equally."""
    positive("num_heads", num_heads)
    is_valid = width > 0 and width % num_heads == 0
    expected = "a width above 0 that is divisible by the number of heads"
    that(is_valid, expected, f"width {width}", f"{num_heads} heads")


def layer_sizes(
    d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int = 1
):
    """Expect sizes from which an attention layer can be built."""
    sizes(d_in=d_in, d_out=d_out)
    divisible(d_out, num_heads)
    positive("context_length", context_length, least=0)
    number("dropout probability", dropout, 1)


def tokens(
    name: str, x: Tensor, width: int, padding_mask: Tensor | None, num_cached: int = 0
) -> int:
    """Expect x (B, T, width), and a boolean padding mask (B, S) or None.

    returns: S, the number of tokens of x and of those in the cache
    """
    features(name, x, width, dims=3)
    shape = x.shape[0], num_cached + x.shape[1]
    if padding_mask is not None:
        instance("padding_mask", padding_mask)
        if padding_mask.dtype != torch.bool or padding_mask.shape != shape:
            raise ValueError(
                f"expected a boolean padding mask (B, S) = {shape}, "
                f"got {padding_mask.dtype} {tuple(padding_mask.shape)}"
            )
    return shape[1]
