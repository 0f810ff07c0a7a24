"""Put into a few lines what differs between an answer and the right result."""

import textwrap

import torch

from utils.checks.engine import values


def describe(exercise, run):
    """Return what is wrong in a run of which nothing is known."""
    text = difference(exercise, run)
    if run.error or type(run.value) is type(run.expected):
        return text
    return f"{text}\nExpected {exercise.expectation}."


def difference(exercise, run):
    """Return the lines that show one case: its input, what is expected, what came."""
    on = f"On {shown_inputs(exercise, run.case)}"
    if run.error is not None:
        error = f"{type(run.error).__name__}: {values.safe_text(run.error, 160)}"
        where = textwrap.indent(run.where, "    ")
        return f"{on} your code raised\n  {error}\n{where}".rstrip()
    what, right, came = _first_difference(exercise.parts, run.value, run.expected)
    return f"{on}{what}\n  expected {right}\n  got      {came}"


def shown_inputs(exercise, case):
    """Return the inputs of a case: short ones as they are, tensors by their shape."""
    names, shown = exercise.inputs, []
    if case.build:
        asked = exercise.signature.partition("(")[2].strip(")").split(", ")
        given = map("{}={}".format, asked, map(values.safe_text, case.build))
        names = [f"{exercise.name}({', '.join(given)}), x"]
    for name, value in zip(names, case.args):
        if not isinstance(value, torch.Tensor):
            shown.append(f"{name} = {_summary(value)}")
        elif value.dim() == 1 and len(value) <= 6:
            shown.append(f"{name} = {values.numbers(value)}")
        else:
            shown.append(f"{name} of shape {tuple(value.shape)}")
    return ", ".join(shown) + (f" ({case.note})" if case.note else "")


def _first_difference(names, got, expected):
    """Return where two values differ, and both as text."""
    what = ""
    while isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            wanted = _summary(expected) if what else in_parentheses(names)
            return what, wanted, _summary(got)
        wrong = [i for i, x in enumerate(expected) if not values.agrees(got[i], x)]
        last = wrong[-1] if wrong else 0
        i = next((i for i in wrong if not values.same_form(got[i], expected[i])), last)
        got, expected, names = got[i], expected[i], names[i]
        what = f" the {in_parentheses(names)}"
    if not values.same_form(got, expected) or not isinstance(expected, torch.Tensor):
        return what, _summary(expected), _summary(got)
    if expected.dim() == 0:
        return what, *_with_enough_digits(values.number, expected.item(), got.item())
    *row, entry = (~values.close(got, expected)).nonzero()[0].tolist()
    # An entry that may be anything, NaN on both sides, isn't shown, nor is what comes
    # more than five entries before the one that differs.
    kept = ~(expected[(*row,)].isnan() & got[(*row,)].isnan())
    kept = kept.nonzero().flatten()
    kept = kept[max(0, int((kept < entry).sum()) - 5) :]
    start = kept[0].item()
    where = [*map(str, row), *([f"{start}:"] if start else [])]
    where = f"[{', '.join(where)}]" if where else ""
    what = f"{what or ' the result'}{where} {'is' if not what or where else 'are'}"
    rows = (side[(*row,)][kept] for side in (expected, got))
    return what, *_with_enough_digits(values.numbers, *rows)


def in_parentheses(names):
    """Return the name of a result's part, or of several: `(output, weights)`."""
    if type(names) is str:
        return names
    return f"({', '.join(map(in_parentheses, names))})"


def _with_enough_digits(as_text, expected, got):
    """Return two numbers or rows with as many digits as it takes to see a difference."""
    for digits in (4, 8):
        texts = as_text(expected, digits), as_text(got, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _summary(value):
    if isinstance(value, torch.Tensor):
        return f"{values.kind_of(value)} tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"({_listed(value)})"
    if isinstance(value, list) and any(map(torch.is_tensor, value)):
        return f"[{_listed(value)}]"
    return values.safe_text(value, 80)


def _listed(parts):
    return ", ".join([*map(_summary, parts[:4]), *["…"] * (len(parts) > 4)])


def wrapped(text):
    """Wrap each line of `text` at 88 characters, keeping its indent."""
    wrapper = textwrap.TextWrapper(88, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.splitlines():
        wrapper.subsequent_indent = " " * (len(line) - len(line.lstrip()))
        lines.append(wrapper.fill(line))
    return "\n".join(lines)
