"""Explain results by errors of Python, and by what a function does with other tensors."""

import dis
import inspect
import re
import sys

import torch

from utils.checks.engine.diagnosis import Diagnosis
from utils.checks.engine.guard import NeverEnds
from utils.checks.engine.returned import LOST_AXIS
from utils.checks.engine.values import safe_text

IMPORTS = {name: f"import {name}" for name in ("torch", *sys.stdlib_module_names)}
IMPORTS |= {"np": "import numpy as np", "nn": "from torch import nn", "F": "from torch.nn import functional as F"}  # fmt: skip
ERRORS = {  # an error with its lines and all code, as `_match_error` joins them: what explains it
    r"TypeError: (\w+\(\): argument '(sizes?|shape|split_sizes|chunks|repeats|n)' .*float|view\(\) received .* got \([^)]*float|'float' object cannot be .* integer\n[\s\S]*> .*\brange\()": Diagnosis("float-for-size", "You give a size that isn't whole, perhaps because `/` makes a float even of 8 / 2: divide with `//`."),
    r'TypeError: (log_)?softmax\(\) missing 1 .* "dim"': Diagnosis("dim-missing", "You don't say along which axis the softmax runs: `dim=-1` is along each row."),
    r"TypeError: (.* for [@*]: .*'Linear'|(matmul|mm|bmm|linear)\(\): .* not Linear)|AttributeError: 'Linear' .* '(T|mT|t|transpose)'": Diagnosis("layer-not-called", "You multiply by a layer: call it, as in self.W_query(x), and it multiplies x by its matrix."),
    r"TypeError: sqrt\(\): .* must be Tensor, not (int|float)": Diagnosis("sqrt-of-a-number", "`torch.sqrt` takes a tensor: write d_k ** 0.5, or math.sqrt(d_k)."),
    r"RuntimeError: .* at non-singleton dimension .*\n[\s\S]*> .* \* [\w.]+\.(T|mT|transpose)\b": Diagnosis("entrywise", "You multiply with `*`, which takes entry by entry: a matrix product is `@`."),
    r"IndexError: index \d is out of bounds for dimension 0 with size [12]\n[\s\S]*\brange\(3\)": Diagnosis("fixed-count", "You count to 3: there may be any number of rows, len() of the argument."),
    r"RuntimeError: value cannot be converted to type u?int\w+ without overflow": Diagnosis("type-too-small", "You give a tensor a type that can't hold all of its numbers: leave the type out, and torch.tensor takes int64 for integers."),
    r"(TypeError: tril\(\): .* must be Tensor, not (bool|int|float)|RuntimeError: tril: input)": Diagnosis("tril-of-no-matrix", "`tril` needs a matrix: make one first, such as torch.ones(T, T, dtype=torch.bool)."),
    r"(Type|Attribute)Error: .*\btorch\.return_types\.(max|min)\b": Diagnosis("pair-not-taken-apart", "You compute with a pair: with `dim`, `max` and `min` return the values and their positions, so take `.values`, or call `amax` and `amin`."),
    r"TypeError: expected Tensor as element \d+ in argument 0, but got tuple": Diagnosis("pairs-joined", "You join pairs: a function that returns (output, weights) gives two tensors, so take the first. (In the hour, `masked_attention` returns the output alone, and hides later words.)"),
    r"IndexError: tuple index out of range\n[\s\S]*\.chunk\([^,()]*\)": Diagnosis("batch-cut", "Your `chunk` cuts the first axis, the batch, because it has no `dim`: .chunk(num_heads, dim=-1) cuts the features."),
    r"(Index|Runtime)Error: [\s\S]*\.chunk\(self\.\w+, (dim=)?1\)": Diagnosis("tokens-cut", "It looks as if your `chunk` cuts axis 1, the tokens: .chunk(num_heads, dim=-1) cuts the features."),
    r"AttributeError: '(tuple|list)' .* '(shape|m?T)'|TypeError: linear\(\): argument 'input' .* not (tuple|list)": Diagnosis("several-for-one", "You pass several tensors where one is needed: take one of them, such as q[h], or join them, torch.cat(heads, dim=-1)."),
}  # fmt: skip


def find_reason(trial):
    """Explain common errors of Python."""
    run, error = trial.shown_run, trial.shown_run.error
    if isinstance(error, NeverEnds):
        yield Diagnosis("never-ends", "Your code doesn't end: each round of a loop must come nearer to its end, as a counter in a `while` does with `i += 1`.")  # fmt: skip
    elif run.value is None and not error:
        yield Diagnosis("returns-nothing", "Your code returns None: a `return` is missing, perhaps in one branch.")  # fmt: skip
    elif isinstance(error, TypeError) and not run.where:  # the call itself failed
        yield Diagnosis("other-parameters", "Your parameters aren't those of the card, which later cells pass: take those of the stub.")  # fmt: skip
    elif known := _match_error(error, f"{run.where}\n{trial.source}"):
        yield known
    elif isinstance(error, NameError) and (line := IMPORTS.get(error.name)):
        yield Diagnosis("import-missing", f"You use `{error.name}` without an import: put `{line}` at the top of your cell.")  # fmt: skip
    elif isinstance(error, NameError) and trial.exercise.kind == "class":
        module_run, _ = trial.answer.build(run.case.build)
        if hasattr(module_run.value, name := error.name):
            yield Diagnosis("self-missing", f"You use `{name}` without `self.`: __init__ stored it in the module, so write `self.{name}`.")  # fmt: skip
    elif (function := _function_of(trial)) and "squeeze" in function.__code__.co_names:
        if all(map(_is_right_or_cut, trial.runs)):
            yield LOST_AXIS


def _match_error(error, code):
    """Return the first of ERRORS that fits an error with the reader's code, or None."""
    text = f"{type(error).__name__}: {safe_text(error, 300)}\n{code}"
    matches = (d for pattern, d in ERRORS.items() if re.match(pattern, text))
    return next(matches, None)


def _function_of(trial):
    """Return the reader's function, of a class `forward`; None if it has no code."""
    function = getattr(trial.answer.submitted, "forward", trial.answer.submitted)
    return function if inspect.isfunction(function) else None


def _is_right_or_cut(run):
    """Return whether a run is right, or an axis of its inputs has length 1."""
    return run.is_right or any(1 in getattr(arg, "shape", (arg,)) for arg in run.args)


def find_notebook_tensor(trial):
    """Name a function that computes with a tensor of the notebook."""
    function = _function_of(trial)
    steps = dis.get_instructions(function) if function else ()
    for name in [step.argval for step in steps if step.opname == "LOAD_GLOBAL"]:
        value = function.__globals__.get(name)
        if isinstance(value, torch.Tensor) and value.numel() > 1:  # no constant
            yield Diagnosis("notebook-tensor", f"Your code uses `{name}`, a tensor of the notebook: compute with the arguments only, {', '.join(inspect.signature(function).parameters)}.")  # fmt: skip
            return


def find_changed_input(trial):
    """Name an answer that changes an input in place."""
    if run := trial.changed:
        name, value = trial.exercise.inputs[run.changed_arg], run.args[run.changed_arg]
        copy = f"`{name}.clone()`" if torch.is_tensor(value) else "a copy"
        yield Diagnosis("input-changed", f"Your code changes its argument `{name}`: `+=`, `*=`, `{name}[i] = …`, `append` and methods ending in `_` do that. Make a new one, or work on {copy}.")  # fmt: skip
