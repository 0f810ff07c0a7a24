"""Put into a few lines what differs between an answer and the right result."""

import textwrap

import torch

from utils.checks.engine import values


def describe_difference(exercise, run):
    """Return the lines that show one case: its input, what is expected, what came."""
    inputs = f"On {describe_inputs(exercise, run.case)}"
    if run.error is not None:
        error = f"{type(run.error).__name__}: {values.safe_text(run.error, 160)}"
        where = textwrap.indent(run.excerpt, "    ")
        return f"{inputs} your code raised\n  {error}\n{where}".rstrip()
    place, right, got = _first_difference(exercise.parts, run.value, run.expected)
    return f"{inputs}{place}\n  expected {right}\n  got      {got}"


def describe_inputs(exercise, case):
    """Return the inputs of a case: short ones as they are, tensors by their shape."""
    names, texts = exercise.inputs, []
    if case.build:
        parameters = exercise.class_signature.partition("(")[2].strip(")").split(", ")
        arguments = map("{}={}".format, parameters, map(values.safe_text, case.build))
        names = [f"{exercise.name}({', '.join(arguments)}), x"]
    for name, value in zip(names, case.args):
        if not isinstance(value, torch.Tensor):
            texts.append(f"{name} = {_summary(value)}")
        elif value.dim() == 1 and len(value) <= 6:
            texts.append(f"{name} = {values.format_row(value)}")
        else:
            texts.append(f"{name} of shape {tuple(value.shape)}")
    return ", ".join(texts) + (f" ({case.note})" if case.note else "")


def _first_difference(names, got, expected):
    """Return where two values differ, and both as text."""
    place = ""
    while isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            expected_text = _summary(expected) if place else format_names(names)
            return place, expected_text, _summary(got)
        diffs = [i for i, x in enumerate(expected) if not values.agrees(got[i], x)]
        last = diffs[-1] if diffs else 0
        i = next((i for i in diffs if not values.fits_form(got[i], expected[i])), last)
        got, expected, names = got[i], expected[i], names[i]
        place = f" the {format_names(names)}"
    if not values.fits_form(got, expected) or not isinstance(expected, torch.Tensor):
        return place, _summary(expected), _summary(got)
    if expected.dim() == 0:
        numbers = expected.item(), got.item()
        return place, *_format_differing(values.format_number, *numbers)
    *row, entry = (~values.are_close(got, expected)).nonzero()[0].tolist()
    # An entry that may be anything, NaN on both sides, isn't shown, nor is what comes
    # more than five entries before the one that differs.
    columns = ~(expected[(*row,)].isnan() & got[(*row,)].isnan())
    columns = columns.nonzero().flatten()
    columns = columns[max(0, int((columns < entry).sum()) - 5) :]
    start = columns[0].item()
    index = [*map(str, row), *([f"{start}:"] if start else [])]
    index = f"[{', '.join(index)}]" if index else ""
    place = f"{place or ' the result'}{index} {'is' if not place or index else 'are'}"
    rows = (side[(*row,)][columns] for side in (expected, got))
    return place, *_format_differing(values.format_row, *rows)


def format_names(names):
    """Return the name of a result's part, or of several: `(output, weights)`."""
    if type(names) is str:
        return names
    return f"({', '.join(map(format_names, names))})"


def _format_differing(as_text, expected, got):
    """Return two numbers or rows with as many digits as it takes to see a difference."""
    for digits in (4, 8):
        texts = as_text(expected, digits), as_text(got, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _summary(value):
    if isinstance(value, torch.Tensor):
        return f"{values.dtype_kind(value)} tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"({_join_summaries(value)})"
    if isinstance(value, list) and any(map(torch.is_tensor, value)):
        return f"[{_join_summaries(value)}]"
    return values.safe_text(value, 80)


def _join_summaries(parts):
    return ", ".join([*map(_summary, parts[:4]), *["…"] * (len(parts) > 4)])


def wrap_lines(text):
    """Wrap each line of `text` at 88 characters, keeping its indent."""
    wrapper = textwrap.TextWrapper(88, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.splitlines():
        wrapper.subsequent_indent = " " * (len(line) - len(line.lstrip()))
        lines.append(wrapper.fill(line))
    return "\n".join(lines)
