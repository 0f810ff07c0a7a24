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
    numbers,
    safe_text,
    same_form,
    shape,
    sort,
)


def describe(exercise, wrong):
    """Say which property fails first, on the first ordinary input where it does."""
    reports = (_form, _finite, *map(_property, exercise.properties))
    ordinary = [trial for trial in wrong if not trial.special]
    for report in reports:
        for trial in ordinary or wrong:
            text = report(exercise, trial)
            if text:
                return text
    return difference(exercise, (ordinary or wrong)[0])


def _form(exercise, trial):
    """Report an error, or another type, length, shape or dtype than expected."""
    got, expected = trial.outcome, trial.expected
    if trial.same_form:
        return None
    text = difference(exercise, trial)
    if isinstance(got.value, Other) or type(got.value) is not type(expected.value):
        text = f"{text}\nExpected {exercise.expectation}."
    return text


def _finite(exercise, trial):
    """Report NaN and infinity."""
    if all_finite(trial.outcome.value):
        return None
    return f"{difference(exercise, trial)}\nNot every entry is a finite number."


def _property(look):
    """Return the report of one of the exercise's own properties."""

    def report(exercise, trial):
        if trial.outcome.error is not None:
            return None
        text = quietly(look, [trial.evidence]).value
        return text and f"{difference(exercise, trial)}\n{text}"

    return report


def difference(exercise, trial):
    """Return the lines that show one case: its input, what is expected, what came."""
    on = f"On {inputs(exercise, trial.case)}"
    got = trial.outcome
    if trial.case.raises is not None:
        came = _raised(got) if got.error else "no error"
        return f"{on}\n  expected {trial.case.raises.__name__}\n  got      {came}"
    if got.error is not None:
        return f"{on} your code raised\n  {_raised(got)}"
    what, right, came = _first_difference(exercise, got.value, trial.expected.value)
    return f"{on}{what}\n  expected {right}\n  got      {came}"


def _raised(outcome):
    text = f"{type(outcome.error).__name__}: {safe_text(outcome.error, 160)}"
    if isinstance(outcome.error, RuntimeError) and " device" in text:
        text += "\n  The inputs are on the CPU: put new tensors on the inputs' device."
    return f"{text}\n  at {outcome.where}" if outcome.where else text


def inputs(exercise, case):
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
        return f"{a_or_an(sort(value))} tensor of shape {shape(value)}"
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
