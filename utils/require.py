"""What functions and layers expect of their inputs.

Each raises ValueError for a wrong value and TypeError for another class.

Shapes: B batch, T tokens (queries), S tokens attended to (keys).
"""

import math
import sys
from numbers import Integral, Real

import torch
from torch import Tensor, nn


def that(condition: bool, expected: str, *received):
    """Raise ValueError unless the condition is true.

    In hot paths, or with a number of tokens in the message (`torch.compile` would
    specialise), write `if` and `refuse`: here it is built even if nothing is wrong.
    """
    if not condition:
        refuse(expected, *received)


def refuse(expected: str, *received):
    """Raise ValueError with what was expected and what was received."""
    received = [tuple(r) if isinstance(r, torch.Size) else r for r in received]
    got = " and ".join(map(str, received))
    raise ValueError(f"expected {expected}, got {got}") from None


def instance(name: str, x, kind: type = Tensor):
    """Expect a tensor, or an object of another class; raise TypeError otherwise."""
    if not isinstance(x, kind):
        expected = "tensor" if kind is Tensor else kind.__name__
        expected = f"an {expected}" if expected[0] in "AEIO" else f"a {expected}"
        raise TypeError(f"expected {name} as {expected}, got {type(x).__name__}")


def axes(name: str, x: Tensor, axes: str):
    """Expect a tensor with these axes, such as "..., T, D" or "B, C, height, width"."""
    instance(name, x)
    num_leading = x.dim() - axes.count(",") - (axes[0] != ".")
    if num_leading < 0 or num_leading > 0 and axes[0] != ".":
        refuse(f"{name} ({axes})", x.shape)


def floating(name: str, x: Tensor):
    """Expect a tensor of floating-point numbers."""
    instance(name, x)
    that(x.is_floating_point(), f"{name} of floating-point numbers", x.dtype)


def real(name: str, x: Tensor):
    """Expect a tensor of real numbers, whole or not."""
    instance(name, x)
    is_real = not x.is_complex() and x.dtype != torch.bool
    that(is_real, f"{name} as real numbers", x.dtype)


def sizes(least: int = 1, /, **sizes: int):
    """Expect ints of `least` or more that PyTorch can take, by their names."""
    for name, size in sizes.items():
        if not (is_whole(size) and least <= size < 2**63):
            below = ", below 2**63" if is_whole(size) and size > 0 else ""
            refuse(f"{name} to be a whole number of {least} or more{below}", repr(size))


def from_zero(**numbers: int):
    """Expect ints of 0 or more, by their names."""
    sizes(0, **numbers)


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


def number(name: str, x: float, high: float = math.inf, above_zero: bool = False):
    """Expect a finite number from 0, or above it, to `high` if that is given."""
    limits = "above 0" if above_zero else "from 0"
    limits += f" to {high:g}" if high < math.inf else ""
    is_valid = isinstance(x, Real) and not isinstance(x, bool)
    is_valid = is_valid and 0 <= x <= min(high, sys.float_info.max)
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
        refuse(f"token ids on {table.device}", ids.device)
    that(vocab_size > 0, "a vocabulary of one token or more", "none")
    if is_readable(ids):
        wrong = ids[(ids < 0) | (ids >= vocab_size)].tolist()
        that(not wrong, f"token ids from 0 to {vocab_size - 1}", *wrong[:1])


def targets(scores: Tensor, targets: Tensor, left_out: int | None = None):
    """Expect logits (..., V), and for each of their rows a token id, or `left_out`."""
    floating("logits", scores)
    axes("logits", scores, "..., V")
    instance("targets", targets)
    if not 0 < targets.numel() or scores.shape[:-1] != targets.shape:
        expected = f"targets {tuple(scores.shape[:-1])}, one token or more, one for"
        refuse(f"{expected} each row of logits", targets.shape)
    if left_out is not None:
        that(is_whole(left_out), "left_out as a whole number", repr(left_out))
        is_out = targets == left_out
        if is_readable(targets):
            that(not is_out.all(), "one target or more that counts", left_out)
        targets = targets.masked_fill(is_out, 0)
    if is_readable(scores):  # a GPU would search for the largest ones in vain
        logits(scores if left_out is None else scores[~is_out])
    token_ids(targets, scores.shape[-1])


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
    sizes(context_length=context_length)
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
            refuse(f"{' and '.join(tensors)} of one {word}", *kinds)


def query_key_value(query: Tensor, key: Tensor, *value: Tensor) -> tuple:
    """Expect (..., T, d_k), (..., S, d_k) and, if it is given, (..., S, d_v).

    returns: the sizes of their leading axes, broadcast to each other
    """
    parts = query, key, *value
    alike(**dict(zip(("query", "key", "value"), parts)))
    shapes = [tuple(t.shape) for t in parts]
    that(min(map(len, shapes)) >= 2, "(..., tokens, width) of each", shapes)
    is_one_width = query.shape[-1] == key.shape[-1] > 0
    that(is_one_width, "query and key of one width d_k", *shapes[:2])
    that(shapes[1][-2] == shapes[-1][-2], "a value for each key", *shapes[1:])
    try:  # not `broadcast_shapes`, which first imports sympy for half a second
        leading = [t.new_empty(t.shape[:-2]) for t in parts]
        return torch.broadcast_tensors(*leading)[0].shape
    except RuntimeError:
        refuse("leading axes that fit", shapes)


def broadcastable(name: str, x: Tensor, shape: tuple):
    """Expect a shape that broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        refuse(f"{name} of a shape that broadcasts to {tuple(shape)}", x.shape)


def features(name: str, x: Tensor, layer: nn.Module, dims: int | None = None):
    """Expect floats (..., T, d_in) for a layer, with `dims` axes if that is given."""
    floating(name, x)
    width, W = layer.d_in, layer.W_query
    if x.dim() < 2 or x.shape[-1] != width or dims not in (None, x.dim()):
        axes = "B, T" if dims else "..., T"
        refuse(f"{name} ({axes}, {width})", x.shape)
    if type(W) is nn.Linear and x.dtype != W.weight.dtype:
        is_converted = torch.is_autocast_enabled(x.device.type)
        that(is_converted, f"{name} of the layer's {W.weight.dtype}", x.dtype)


def length(num_tokens: int, limit: int, name: str = "context_length"):
    """Expect no more tokens than a layer is built for."""
    that(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


def first_position(start: int):
    """Expect a whole number from 0, which `torch.compile` may have made symbolic."""
    is_valid = is_whole(start) or isinstance(start, torch.SymInt)
    if not (is_valid and start >= 0):
        refuse("start as a first position of 0 or more", repr(start))


def rotary(rotary, rope_base, context_length, rotary_dim=None):
    """Without rotary=True, rope_base and rotary_dim must keep their defaults."""
    flags(rotary=rotary)
    number("rope_base", rope_base, above_zero=True)
    sizes(int(rotary), context_length=context_length)
    is_default = rope_base == 10000.0 and rotary_dim is None
    that(rotary or is_default, "rotary=True with a rope_base or rotary_dim", rotary)


def cache(cache, kind: type) -> int:
    """Expect a cache of this class, or None; return the number of its tokens."""
    if cache is not None:
        instance("cache", cache, kind)
    return 0 if cache is None else len(cache)


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
    number("dropout probability", dropout, 1)


def tokens(
    name: str, x: Tensor, layer, padding_mask: Tensor | None, num_cached: int = 0
) -> int:
    """Expect x (B, T, d_in), and a boolean padding mask (B, S) or None.

    returns: S, the number of tokens of x and of those in the cache
    """
    features(name, x, layer, dims=3)
    shape = x.shape[0], num_cached + x.shape[1]
    if padding_mask is not None:
        instance("padding_mask", padding_mask)
        if padding_mask.dtype != torch.bool or padding_mask.shape != shape:
            received = padding_mask.dtype, padding_mask.shape
            refuse(f"a boolean padding mask (B, S) = {shape}", *received)
    return shape[1]
