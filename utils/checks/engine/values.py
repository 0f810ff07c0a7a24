"""Take an answer's values apart safely, compare them and put them into words."""

from copy import copy
from dataclasses import dataclass

import numpy as np
import torch

LARGEST = 1_000_000  # entries; a larger tensor or list is described, not compared


@dataclass(frozen=True)
class OpaqueValue:
    """Stand-in for a value that no exercise expects: only its description is kept."""

    text: str

    def __repr__(self):
        return self.text


def clean(value, depth=3):
    """Return `value` as plain tensors, tuples, lists, numbers; the rest as `OpaqueValue`."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if issubclass(kind, torch.Tensor):
        return _plain_tensor(value)
    if issubclass(kind, tuple | list) and depth and len(value) <= LARGEST:
        base = tuple if issubclass(kind, tuple) else list
        return base(clean(part, depth - 1) for part in value)
    return OpaqueValue(f"{kind.__name__} ({safe_text(value)})")


def _plain_tensor(tensor):
    has_values = tensor.layout == torch.strided and tensor.device.type != "meta"
    if has_values and tensor.numel() <= LARGEST and not tensor.is_complex():
        return tensor.detach().as_subclass(torch.Tensor).cpu().clone()
    kind = f"{tensor.layout} {tensor.dtype} tensor of shape {tuple(tensor.shape)}"
    return OpaqueValue(f"a {kind} on the {tensor.device} device")


def copy_argument(value):
    """Return a copy of a case's argument, so that the answer cannot change the case."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (tuple, list)):
        return type(value)(map(copy_argument, value))
    return copy(value)


def is_unchanged(before, after):
    """Return whether an argument is exactly what it was before the call."""
    if isinstance(before, torch.Tensor):
        unchanged = before.shape == after.shape and before.dtype == after.dtype
        return unchanged and torch.equal(before, after.detach())
    if isinstance(before, tuple):
        return all(map(is_unchanged, before, after))
    return not isinstance(before, list) or before == after


def dtype_kind(tensor):
    """Return `float`, `bool` or `integer`; precision is not compared."""
    if tensor.is_floating_point():
        return "float"
    return "bool" if tensor.dtype == torch.bool else "integer"


def fits_form(got, expected):
    """Return whether two cleaned values agree in type, length, shape and kind."""
    if type(got) is not type(expected):
        return False
    if isinstance(expected, torch.Tensor):
        return got.shape == expected.shape and dtype_kind(got) == dtype_kind(expected)
    if isinstance(expected, tuple):
        return len(got) == len(expected) and all(map(fits_form, got, expected))
    return True


def agrees(got, expected):
    """Return whether two cleaned values are equal up to rounding (NaN equals NaN)."""
    if type(expected) is float and type(got) in (int, float):
        got, expected = torch.tensor(float(got)), torch.tensor(expected)
    if not fits_form(got, expected):
        return False
    if isinstance(expected, torch.Tensor):
        return bool(are_close(got, expected).all())
    if isinstance(expected, (tuple, list)):
        return len(got) == len(expected) and all(map(agrees, got, expected))
    return got == expected


def are_close(got, expected):
    """Compare entry by entry in float64, with room for rounding in the answer.

    The room grows with the largest entry expected, because large terms may cancel.
    """
    precision = 1e-9 if got.dtype == expected.dtype == torch.float64 else 1e-5
    got, expected = got.detach().double(), expected.detach().double()
    size = expected.nan_to_num(0.0, 0.0, 0.0).abs().max() if expected.numel() else 1.0
    atol = precision * max(1.0, float(size))
    return torch.isclose(got, expected, rtol=10 * precision, atol=atol, equal_nan=True)


def safe_text(value, limit=60):
    """Return one short line of text for any object, even one whose repr fails."""
    try:
        is_error = isinstance(value, BaseException)
        text = str(value) if is_error else getattr(value, "__name__", repr(value))
        text = " ".join(text.split())
    except BaseException:
        text = f"{type(value).__name__} object"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def format_row(row, digits=4):
    """Return a row of numbers as text, the first six: `[0.1192, 0.3, …]`."""
    texts = ", ".join(format_number(entry, digits) for entry in row[:6].tolist())
    return f"[{texts}, …]" if len(row) > 6 else f"[{texts}]"


def format_number(value, digits=4):
    """Return one number as text, with at most `digits` decimals."""
    if not isinstance(value, float):
        return safe_text(value)
    if not abs(value) < 1e6:  # NaN too
        return f"{value:.3g}"
    text = f"{value:.{digits}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text
