"""What results don't show: inputs that change, gradients that get lost, precision."""

import torch
from torch import nn

from utils.checks.engine.guard import attempt, supervise
from utils.checks.engine.mistakes import Diagnosis
from utils.checks.engine.values import OpaqueValue, agrees, copy_argument


def find_changed_input(trial):
    """Name an answer that changes an input in place."""
    if run := trial.changed_run:
        name, value = trial.exercise.inputs[run.changed_arg], run.args[run.changed_arg]
        copy = f"`{name}.clone()`" if torch.is_tensor(value) else "a copy"
        yield Diagnosis("input-changed", f"Your code changes its argument `{name}`: `+=`, `*=`, `{name}[i] = …`, `append` and methods ending in `_` do that. Make a new one, or work on {copy}.")  # fmt: skip


def find_by_probes(trial):
    """Name what the exercise's own probes find, unless a result can't be used."""
    if not any(isinstance(run.value, OpaqueValue) for run in trial.runs):
        yield from run_probes(trial.exercise, *trial.answer.probe_arguments())


def run_probes(exercise, *arguments):
    """Yield what the probes of an exercise find in an answer."""
    outcomes = [attempt(supervise()(probe), *arguments) for probe in exercise.probes]
    yield from filter(None, (outcome.value for outcome in outcomes))


def find_precision(trial):
    """Name results of a function in other floats than expected.

    Of wrong results only those of float64 inputs, for which the code is too narrow.
    """
    for run in trial.runs if trial.exercise.kind == "function" else ():
        for got, right in zip(*map(_float_tensors, (run.value, run.expected))):
            is_double = right.dtype == torch.float64
            if got.dtype != right.dtype and (is_double or trial.is_right):
                cure = "give each tensor that you make the input's type, as in `.to(x.dtype)`, and leave the input as it is" if is_double else "end with `.float()`"  # fmt: skip
                yield Diagnosis("other-precision", f"Your result is {str(got.dtype)[6:]} and should be {str(right.dtype)[6:]}, because PyTorch doesn't multiply matrices of two types: {cure}.")  # fmt: skip
                return


def find_lost_gradient(trial):
    """Name an input that doesn't get the gradient it gets from the right answer.

    A result in another form, or of inputs that were changed, has none to compare.
    """
    exercise, skip = trial.exercise, trial.exercise.skip_probes
    is_comparable = trial.is_right and not (trial.changed_run or trial.diagnoses)
    if "no-gradient" in skip or not is_comparable:
        return
    call, args = trial.answer.bind(exercise.cases[0])
    run = attempt(supervise()(_gradients), call, args)
    if "inplace operation" in str(run.error):
        if "changed-in-place" not in skip:
            yield Diagnosis("changed-in-place", "Your code changes a tensor in place after it was computed with, so training would raise an error: `+=`, `*=`, `x[i] = …` and methods ending in `_` do that. Make a new tensor, as in x = x + 1.")  # fmt: skip
        return
    got = run.value or [()] * len(args)
    right = _gradients(exercise.right, args)
    for name, gradient, expected in zip(exercise.inputs, got, right):
        if not agrees(gradient, expected):
            yield Diagnosis("no-gradient", f"No gradient reaches `{name}`, or only a part of it, so nothing before it would be trained: look for .detach(), .data, torch.no_grad(), .item(), .tolist() and torch.tensor(…).")  # fmt: skip
            return


def _gradients(function, args):
    """Return for each argument the gradients of the sum of all squares, in a tuple."""
    inputs = [*map(copy_argument, args)]
    leaves = [[x.requires_grad_() for x in _float_tensors(arg)] for arg in inputs]
    loss = sum(x.square().sum() for x in _float_tensors(function(*inputs)))
    options = {"allow_unused": True, "retain_graph": True}
    return [torch.autograd.grad(loss, xs, **options) if xs else () for xs in leaves]


def _float_tensors(value):
    """Return the tensors of floats in a value: a tensor, parts of a tuple, a module."""
    if isinstance(value, nn.Module):
        return [*value.parameters()]
    if isinstance(value, tuple):
        return sum(map(_float_tensors, value), [])
    return [value] if torch.is_tensor(value) and value.is_floating_point() else []
