"""Put into a few lines what differs between an answer and the right result."""

import textwrap

import torch

from utils.checks.guard import quietly
from utils.checks.values import (
    Other,
    a_or_an,
    agrees,
    all_finite,
    close,
    kind_of,
    numbers,
    safe_text,
    same_form,
    shape,
)


def describe(exercise, wrong):
    """Say which property fails first, on the first ordinary input where it does."""
    reports = (_wrong_form, _not_finite, *exercise.properties)
    ordinary = [run for run in wrong if not run.special] or wrong
    for report in reports:
        for run in ordinary:
            text = quietly(report, [run]).value
            if text is not None:
                break
        if text is not None:
            break
    else:
        run, text = ordinary[0], ""
    if isinstance(run.got, Other) or type(run.got) is not type(run.expected):
        text = "" if run.error else f"Expected {exercise.expectation}."
    return f"{difference(exercise, run)}\n{text}".rstrip()


def _wrong_form(run):
    """Report an error, or another type, length, shape or dtype than expected."""
    return None if run.has_right_form else ""


def _not_finite(run):
    """Report NaN and infinity."""
    return None if all_finite(run.got) else "Some of your entries are NaN or infinite."


def difference(exercise, run):
    """Return the lines that show one case: its input, what is expected, what came."""
    on = f"On {shown_inputs(exercise, run.case)}"
    got = run.outcome
    if run.case.raises is not None:
        came = _raised(got) if got.error else "no error"
        return f"{on}\n  expected {run.case.raises.__name__}\n  got      {came}"
    if got.error is not None:
        return f"{on} your code raised\n  {_raised(got)}"
    what, right, came = _first_difference(exercise, got.value, run.expected)
    return f"{on}{what}\n  expected {right}\n  got      {came}"


def _raised(outcome):
    text = f"{type(outcome.error).__name__}: {safe_text(outcome.error, 160)}"
    if isinstance(outcome.error, RuntimeError) and " device" in text:
        text += "\n  The inputs are on the CPU: put new tensors on the inputs' device."
    return f"{text}\n  at {outcome.where}" if outcome.where else text


def shown_inputs(exercise, case):
    """Return the inputs of a case: short ones as they are, tensors by their shape."""
    shown = []
    for name, value in exercise.inputs(case).items():
        if isinstance(value, torch.Tensor) and (value.dim() != 1 or len(value) > 6):
            shown.append(f"{name} {shape(value)}")
        else:
            small = isinstance(value, torch.Tensor)
            shown.append(
                f"{name} = {numbers(value) if small else safe_text(value, 90)}"
            )
    return ", ".join(shown) + (f" ({case.note})" if case.note else "")


def _first_difference(exercise, got, expected):
    """Return where two values differ, of several parts in the last, and the two."""
    names, what = exercise.parts or ("",), ""
    while isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            wanted = _summary(expected) if what else _names(names)
            return what, wanted, _summary(got)
        i = max((i for i, e in enumerate(expected) if not agrees(got[i], e)), default=0)
        got, expected, names = got[i], expected[i], names[i]
        what = f" the {_names(names)}"
    if not same_form(got, expected) or not isinstance(expected, torch.Tensor):
        return what, _summary(expected), _summary(got)
    if expected.dim() == 0:
        return what, *(text[1:-1] for text in _told_apart(expected, got))
    *row, entry = (~close(got, expected)).nonzero()[0].tolist()
    start = max(0, entry - 5)  # the entry that differs is among the six shown
    where = [*map(str, row), *([f"{start}:"] if start else [])]
    where = f"[{', '.join(where)}]" if where else ""
    what = f"{what or ' the result'}{where} {'is' if not what or where else 'are'}"
    return what, *_told_apart(expected[(*row,)][start:], got[(*row,)][start:])


def _names(parts):
    """Return the name of a result's part, or of several: `(output, weights)`."""
    return parts if type(parts) is str else f"({', '.join(map(_names, parts))})"


def _told_apart(expected, got):
    """Return two rows as text, with as many digits as it takes to see a difference."""
    for digits in (4, 6, 8):
        texts = numbers(expected, digits), numbers(got, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _summary(value):
    if isinstance(value, torch.Tensor):
        return f"{a_or_an(kind_of(value))} tensor of shape {shape(value)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_summary, value[:4]))})"
    return value.text if isinstance(value, Other) else safe_text(value, 80)


def wrapped(text, width=88):
    """Wrap each line of `text` at `width`, keeping its indent."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)
