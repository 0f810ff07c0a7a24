"""Take an answer's values apart safely, compare them and put them into words."""

import reprlib
from dataclasses import dataclass

import numpy as np
import torch

SHORT = reprlib.Repr()
SHORT.maxlist = SHORT.maxtuple = 24
SHORT.maxother = 60
LONGEST_LIST = 5_000  # a longer list is described, not compared
LARGEST_TENSOR = 1_000_000  # a larger tensor is refused by its shape


@dataclass(frozen=True)
class Other:
    """Stand-in for a value that no exercise expects: only its description is kept."""

    text: str


def clean(value, depth=3):
    """Return `value` as plain tensors, tuples, lists, numbers; the rest as `Other`."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if issubclass(kind, np.ndarray):
        return Other(f"a NumPy array of shape {safe_text(value.shape)}")
    if issubclass(kind, np.generic):
        return clean(value.item(), 0)
    if issubclass(kind, torch.Tensor):
        return _plain_tensor(value)
    if issubclass(kind, (tuple, list)) and depth:
        base = tuple if issubclass(kind, tuple) else list
        if base.__len__(value) <= LONGEST_LIST:
            return base(clean(part, depth - 1) for part in base.__iter__(value))
    return Other(f"{a_or_an(kind.__name__)} ({safe_text(value)})")


def _plain_tensor(tensor):
    with torch._C.DisableTorchFunctionSubclass():
        peculiar = [
            (tensor.layout != torch.strided, "a sparse tensor"),
            (
                tensor.device.type == "meta",
                "a tensor on the meta device, without values",
            ),
            (tensor.is_quantized, "a quantized tensor"),
            (tensor.is_complex(), f"a complex tensor {tuple(tensor.shape)}"),
        ]
        for is_peculiar, description in peculiar:
            if is_peculiar:
                return Other(description)
        tensor = tensor.detach().as_subclass(torch.Tensor).cpu()
        return tensor.clone() if tensor.numel() <= LARGEST_TENSOR else tensor


def copied(arg):
    """Return a copy of a case's argument, so that the answer cannot change the case."""
    if isinstance(arg, torch.Tensor):
        return arg.clone()
    if isinstance(arg, tuple):
        return tuple(map(copied, arg))
    return list(arg) if isinstance(arg, list) else arg


def same_input(before, after):
    """Say whether an argument is exactly what it was before the call."""
    if isinstance(before, torch.Tensor):
        same_form = before.shape == after.shape and before.dtype == after.dtype
        return same_form and torch.equal(before, after.detach())
    if isinstance(before, tuple):
        return all(map(same_input, before, after))
    return not isinstance(before, list) or before == after


def kind_of(tensor):
    """Return `float`, `bool` or `integer`; precision is not compared."""
    if tensor.is_floating_point():
        return "float"
    return "bool" if tensor.dtype == torch.bool else "integer"


def same_form(got, expected):
    """Say whether two cleaned values agree in type, length, shape and kind."""
    if type(got) is not type(expected):
        return False
    if isinstance(expected, torch.Tensor):
        return got.shape == expected.shape and kind_of(got) == kind_of(expected)
    if isinstance(expected, tuple):
        return len(got) == len(expected) and all(map(same_form, got, expected))
    return True


def sizes_of(value):
    """Return how many numbers a value holds, or its type where it holds none."""
    if isinstance(value, tuple):
        return (*map(sizes_of, value),)
    return value.numel() if isinstance(value, torch.Tensor) else type(value)


def all_finite(value):
    """Say whether a cleaned value holds no NaN and no infinity."""
    if isinstance(value, tuple):
        return all(map(all_finite, value))
    if not isinstance(value, torch.Tensor) or value.numel() > LARGEST_TENSOR:
        return True
    return not value.is_floating_point() or bool(value.isfinite().all())


def all_nan(value):
    """Say whether a cleaned value holds nothing but NaN."""
    if isinstance(value, tuple):
        return all(map(all_nan, value))
    small = isinstance(value, torch.Tensor) and value.numel() <= LARGEST_TENSOR
    return small and bool(value.isnan().all())


def agrees(got, expected):
    """Say whether two cleaned values are equal up to rounding (NaN equals NaN)."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, torch.Tensor) or got.shape != expected.shape:
            return False
        return kind_of(got) == kind_of(expected) and bool(close(got, expected).all())
    if isinstance(expected, (tuple, list)):
        if type(got) is not type(expected) or len(got) != len(expected):
            return False
        return all(agrees(g, e) for g, e in zip(got, expected))
    if type(expected) is float and type(got) in (int, float):
        return bool(close(torch.tensor(got), torch.tensor(expected)))
    return type(got) is type(expected) and got == expected


def factor_of(got, expected):
    """Return the one number that multiplies a right value, or a part of it, or None.

    Of a tuple some parts may be right as they are.
    """
    if not same_form(got, expected):
        return None
    if isinstance(expected, tuple):
        pairs = [(g, e) for g, e in zip(got, expected) if not agrees(g, e)]
        factors = [factor_of(g, e) for g, e in pairs]
        same = None not in factors and max(factors) - min(factors) < 1e-4
        return factors[0] if same else None
    if not isinstance(expected, torch.Tensor) or kind_of(expected) != "float":
        return None
    right = expected.double()
    factor = float((got.double() * right).sum() / (right * right).sum())
    known = abs(factor) > 1e-6 and agrees(got.double(), (factor * right).float())
    return factor if known else None


def close(got, expected):
    """Compare entry by entry in float64, with room for rounding in the answer.

    A sum of large terms rounds to more than its own size allows, so the room grows
    with the largest entry expected.
    """
    precision = 1e-9 if got.dtype == expected.dtype == torch.float64 else 1e-5
    got, expected = got.double(), expected.double()
    size = expected.nan_to_num(0.0, 0.0, 0.0).abs().max() if expected.numel() else 1.0
    atol = precision * max(1.0, float(size))
    return torch.isclose(got, expected, rtol=10 * precision, atol=atol, equal_nan=True)


def safe_text(value, limit=60):
    """Return one short line of text for any object, even one whose repr fails."""
    try:
        text = str(value) if isinstance(value, BaseException) else SHORT.repr(value)
    except BaseException:
        text = f"{type(value).__name__} object"
    return one_line(text, limit)


def one_line(text, limit=88):
    """Return `text` on one line, cut to `limit` characters."""
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def numbers(row, digits=4):
    """Return a row of numbers as text, the first six: `[0.1192, 0.3, …]`."""
    row = row.tolist()
    row = row if isinstance(row, list) else [row]
    shown = ", ".join(number(entry, digits) for entry in row[:6])
    return f"[{shown}, …]" if len(row) > 6 else f"[{shown}]"


def number(value, digits=4):
    """Return one number as text, with at most `digits` decimals."""
    if not isinstance(value, float):
        return safe_text(value)
    if not abs(value) < 1e6:  # NaN too
        return f"{value:.3g}"
    text = f"{value:.{digits}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def shape(value):
    """Return a tensor's shape, a list's length, or the value itself, as text."""
    if isinstance(value, torch.Tensor):
        return f"({', '.join(map(str, value.shape))}{',' * (value.dim() == 1)})"
    return safe_text(value)


def a_or_an(word):
    """Return a word with its article."""
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def may_agree(got, other):
    """Say at a glance whether two values may agree: by a few entries of tensors."""
    if type(other) is tuple:
        same = type(got) is tuple and len(got) == len(other)
        return same and all(map(may_agree, got[::-1], other[::-1]))
    if not isinstance(other, torch.Tensor) or not isinstance(got, torch.Tensor):
        return type(got) is type(clean(other))
    if got.shape != other.shape:
        return False
    step = max(1, got.numel() // 5)
    pairs = zip(got.flatten()[::step].tolist(), other.flatten()[::step].tolist())
    return all(
        a == b or abs(a - b) <= 1e-3 * (1 + abs(b)) or a != a and b != b
        for a, b in pairs
    )
