"""What functions and layers expect of their inputs.

Each raises ValueError for a wrong value and TypeError for another class.

Shapes: B batch, T tokens (queries), S tokens attended to (keys).
"""

import math
from numbers import Integral, Real

import torch
from torch import Tensor


def expect(condition: bool, expected: str, *received):
    """Raise ValueError unless the condition is true.

    The message is built even when nothing is wrong. In hot paths, or if it contains a
    number of tokens (which would make `torch.compile` specialise), write an `if`
    instead.
    """
    if not condition:
        received = [tuple(r) if isinstance(r, torch.Size) else r for r in received]
        got = " and ".join(map(str, received))
        raise ValueError(f"expected {expected}, got {got}")


def check_type(name: str, x, kind: type = Tensor):
    """Expect a tensor, or an object of another class; raise TypeError otherwise."""
    if not isinstance(x, kind):
        names = kind.__name__.lower(), type(x).__name__
        raise TypeError(f"expected {name} as a {names[0]}, got {names[1]}")


def check_axes(name: str, x: Tensor, axes: str):
    """Expect a tensor with these axes, such as "..., T, D" or "B, C, height, width"."""
    check_type(name, x)
    num_leading = x.dim() - axes.count(",") - (axes[0] != ".")
    if num_leading < 0 or num_leading > 0 and axes[0] != ".":
        raise ValueError(f"expected {name} ({axes}), got {tuple(x.shape)}")


def check_floating(name: str, x: Tensor):
    """Expect a tensor of floating-point numbers."""
    check_type(name, x)
    expect(x.is_floating_point(), f"{name} of floating-point numbers", x.dtype)


def check_positive(name: str, number: int, least: int = 1):
    """Expect an int of `least` or more."""
    is_whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_whole or number < least:  # no `expect`: it may be a number of tokens
        expected = f"{name} to be a whole number of {least} or more"
        raise ValueError(f"expected {expected}, got {number!r}")


def is_number(x, low: float = -math.inf, high: float = math.inf) -> bool:
    """Return whether x is a finite number in a range; booleans and tensors are not."""
    is_real = isinstance(x, Real) and not isinstance(x, bool)
    return is_real and math.isfinite(x) and low <= x <= high


def check_probability(p: float):
    """Expect a dropout probability from 0 to 1."""
    expect(is_number(p, 0, 1), "a dropout probability from 0 to 1", repr(p))


def check_logits(logits: Tensor) -> Tensor:
    """Expect floats (..., V), on the CPU with a finite largest one; return that."""
    check_floating("logits", logits)
    largest = logits.amax(dim=-1, keepdim=True)
    if largest.is_cpu:  # a GPU would have to wait
        wrong = largest[~largest.isfinite()].tolist()
        expect(not wrong, "a finite largest logit", *wrong[:1])
    return largest


def check_mask(name: str, mask: Tensor, shape: tuple):
    """Expect booleans whose shape broadcasts to another."""
    check_type(f"a boolean {name}", mask)
    expect(mask.dtype == torch.bool, f"a boolean {name}", mask.dtype)
    check_broadcastable(name, mask, shape)


def check_token_ids(ids: Tensor, vocab_size: int):
    """Expect integers from 0 to `vocab_size - 1`.

    On a GPU, under `torch.compile` and inside `vmap`, the embedding itself checks their
    values.
    """
    check_type("token ids", ids)
    is_integer = ids.dtype in (torch.int32, torch.int64)  # what an embedding takes
    expect(is_integer, "token ids as int64 or int32", ids.dtype)
    if ids.device.type != "cpu" or torch.compiler.is_compiling():
        return  # looking at the values would wait for the GPU, or break the graph
    if torch._C._functorch.is_functorch_wrapped_tensor(ids):
        return  # they have no values of their own
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside):
        raise ValueError(
            f"expected token ids from 0 to {vocab_size - 1}, got {outside[0].item()}"
        )


def check_num_ids(num_ids: int, context_length: int):
    """Expect enough token ids for a window and its last target."""
    expected = f"more than context_length = {context_length} token ids"
    expect(num_ids > context_length, expected, num_ids)


def check_query_key_value(query: Tensor, key: Tensor, value: Tensor) -> tuple:
    """Expect (..., T, d_k), (..., S, d_k) and (..., S, d_v).

    returns: the sizes of their leading axes, broadcast to each other
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_floating(name, x)
    shapes = [tuple(t.shape) for t in (query, key, value)]
    expect(min(map(len, shapes)) >= 2, "(..., tokens, width) three times", shapes)
    is_one_width = query.shape[-1] == key.shape[-1] > 0
    expect(is_one_width, "query and key of one width d_k", *shapes[:2])
    expect(key.shape[-2] == value.shape[-2], "a value for each key", *shapes[1:])
    try:  # not `broadcast_shapes`, which first imports sympy for half a second
        leading = [t.new_empty(t.shape[:-2]) for t in (query, key, value)]
        return torch.broadcast_tensors(*leading)[0].shape
    except RuntimeError:
        raise ValueError(f"expected leading axes that fit, got {shapes}") from None


def check_broadcastable(name: str, x: Tensor, shape: tuple):
    """Expect a shape that broadcasts to another."""
    try:
        x.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"expected {name} of a shape that broadcasts to {tuple(shape)}, "
            f"got {tuple(x.shape)}"
        ) from None


def check_width(name: str, x: Tensor, width: int, dims: int | None = None):
    """Expect floats (..., T, width), with `dims` axes if that is given."""
    check_floating(name, x)
    if x.dim() < 2 or x.shape[-1] != width or dims not in (None, x.dim()):
        axes = "B, T" if dims else "..., T"
        raise ValueError(f"expected {name} ({axes}, {width}), got {tuple(x.shape)}")


def check_length(num_tokens: int, limit: int, name: str = "context_length"):
    """Expect no more tokens than a layer is built for."""
    expect(num_tokens <= limit, f"up to {name} = {limit} tokens", num_tokens)


def check_positions(start: int, end: int, limit: int, name: str = "context_length"):
    """Expect positions that a table has."""
    check_length(end, limit, name)
    expect(start >= 0, "a first position of 0 or more", start)


def check_rotary(rotary: bool, rope_base: float, rotary_dim: int | None = None):
    """Without rotary=True, rope_base and rotary_dim must keep their defaults."""
    is_default = rope_base == 10000.0 and rotary_dim is None
    expect(rotary or is_default, "rotary=True with a rope_base or rotary_dim", rotary)


def check_cache(cache, kind: type) -> int:
    """Expect a cache of this class, or None; return the number of its tokens."""
    if not isinstance(cache, kind | None):
        raise TypeError(f"expected a {kind.__name__}, got {type(cache).__name__}")
    return 0 if cache is None else len(cache)


def check_divisible(width: int, num_heads: int):
    """Expect a width that the heads can share equally."""
    check_positive("num_heads", num_heads)
    is_valid = width > 0 and width % num_heads == 0
    expected = "a width above 0 that is divisible by the number of heads"
    expect(is_valid, expected, f"width {width}", f"{num_heads} heads")


def check_tokens(
    name: str, x: Tensor, width: int, padding_mask: Tensor | None, num_cached: int = 0
) -> int:
    """Expect x (B, T, width), and a boolean padding mask (B, S) or None.

    returns: S, the number of tokens of x and of those in the cache
    """
    check_width(name, x, width, dims=3)
    shape = x.shape[0], num_cached + x.shape[1]
    if padding_mask is not None:
        check_type("padding_mask", padding_mask)
        if padding_mask.dtype != torch.bool or padding_mask.shape != shape:
            raise ValueError(
                f"expected a boolean padding mask (B, S) = {shape}, "
                f"got {padding_mask.dtype} {tuple(padding_mask.shape)}"
            )
    return shape[1]
