"""Explain results by errors of Python, and by what a function does with other tensors."""

import dis
import inspect
import re

import torch

from utils.checks.engine.forms import LOST_AXIS
from utils.checks.engine.guard import NeverEnds
from utils.checks.engine.mistakes import Diagnosis
from utils.checks.engine.values import safe_text

IMPORTS = {name: f"import {name}" for name in ("torch", "math", "random", "itertools")}
IMPORTS |= {"np": "import numpy as np", "nn": "from torch import nn", "F": "from torch.nn import functional as F"}  # fmt: skip
ERRORS = [  # regular expressions for an error and for the code, and what explains it
    (r"(Type|Attribute)Error: .*( not |')(builtin_function_or_)?method\b", "", Diagnosis("not-called", "You use a function or method without calling it: write its parentheses, as in `x.t()`.")),
    (r"TypeError: (.* for [@*]: .*'Linear'|(matmul|mm|bmm|linear)\(\): .* not Linear)|AttributeError: 'Linear' .* '(T|mT|t|transpose)'", "", Diagnosis("layer-not-called", "You multiply by a layer: call it, as in self.W_query(x), and it multiplies x by its matrix.")),
    (r'TypeError: (log_)?softmax\(\) missing 1 .* "dim"', "", Diagnosis("dim-missing", "You don't say along which axis the softmax runs: `dim=-1` is along each row.")),
    (r"TypeError: (\w+\(\): argument '(sizes?|shape|split_sizes|chunks|repeats|n)' .*float|view\(\) received .* got \([^)]*float|'float' object cannot be .* integer)", "", Diagnosis("float-for-size", "You give a size that isn't whole, perhaps because `/` makes a float even of 8 / 2: divide with `//`.")),
    ("RuntimeError: Boolean value of Tensor with more than one value", "", Diagnosis("not-of-a-tensor", "You ask a whole tensor for one truth value, with `not`, `and`, `or` or `if`: for each of its entries, write ~, & or |, or torch.where.")),
    (r"TypeError: sqrt\(\): .* must be Tensor, not (int|float)", "", Diagnosis("sqrt-of-a-number", "`torch.sqrt` takes a tensor: write d_k ** 0.5, or math.sqrt(d_k).")),
    (r"(Type|Attribute)Error: .*\btorch\.return_types\.(max|min)\b", "", Diagnosis("pair-not-taken-apart", "You compute with a pair: with `dim`, `max` and `min` return the values and their positions, so take `.values`, or call `amax` and `amin`.")),
    (r"TypeError: expected Tensor as element \d+ in argument 0, but got tuple", "", Diagnosis("pairs-joined", "You join pairs: a function that returns (output, weights) gives two tensors, so take the first.")),
    (r"AttributeError: '(tuple|list)' .* '(shape|m?T)'|TypeError: linear\(\): argument 'input' .* not (tuple|list)", "", Diagnosis("several-for-one", "You pass several tensors where one is needed: take one of them, such as q[h], or join them, torch.cat(heads, dim=-1).")),
    (r"IndexError: index \d+ is out of bounds for dimension 0", r"\A(?!.*(chunk|split|flatten|view|reshape)).*\bnum_heads\b", Diagnosis("not-cut", "You take parts of a tensor by an index, but the first axis of a batch counts the sentences: cut the features first, as .chunk(num_heads, dim=-1) does.")),
    ("(Index|Runtime)Error", r"\.chunk\((self\.\w+, (dim=)?1|[^,()]*)\)", Diagnosis("tokens-cut", "It looks as if your `chunk` cuts another axis than the features, because its `dim` is 1 or missing: .chunk(num_heads, dim=-1) cuts the features.")),
]  # fmt: skip


def find_python_error(trial):
    """Explain common errors of Python."""
    run, error = trial.shown_run, trial.shown_run.error
    if isinstance(error, NeverEnds):
        yield Diagnosis("never-ends", "Your code doesn't end: each round of a loop must come nearer to its end, as a counter in a `while` does with `i += 1`.")  # fmt: skip
    elif run.value is None and not error:
        yield Diagnosis("returns-nothing", "Your code returns None: a `return` is missing, perhaps in one branch.")  # fmt: skip
    elif isinstance(error, TypeError) and not run.excerpt:  # the call itself failed
        yield Diagnosis("other-parameters", "Your parameters aren't those of the card, which later cells pass: take those of the stub.")  # fmt: skip
    elif known := _match_error(error, f"{run.excerpt}\n{trial.source}"):
        yield known
    elif isinstance(error, NameError) and (name := re.search(r"'(\w+)'", str(error))):
        yield _explain_unknown_name(trial, name[1])
    elif (function := _function_of(trial)) and "squeeze" in function.__code__.co_names:
        if all(map(_is_right_or_cut, trial.runs)):
            yield LOST_AXIS


def _explain_unknown_name(trial, name):
    """Return what a name lacks that isn't defined where it is used."""
    if line := IMPORTS.get(name):
        return Diagnosis("import-missing", f"You use `{name}` without an import: put `{line}` at the top of your cell.")  # fmt: skip
    if trial.exercise.kind == "class":
        module_run, _ = trial.answer.get_module(trial.shown_run.case.build)
        if name in trial.exercise.projections or hasattr(module_run.value, name):
            return Diagnosis("self-missing", f"You use `{name}` without `self.`: it belongs to the module, so write `self.{name}`.")  # fmt: skip
    return Diagnosis("name-undefined", f"`{name}` isn't defined in your function where you use it: compute it in a line above, or correct its name. (If another cell defines it, run that cell first.)")  # fmt: skip


def _match_error(error, code):
    """Return the first of ERRORS that fits an error and the reader's code, or None."""
    text = f"{type(error).__name__}: {safe_text(error, 300)}"
    for in_error, in_code, diagnosis in ERRORS:
        if re.match(in_error, text) and re.search(in_code, code, re.DOTALL):
            return diagnosis
    return None


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
