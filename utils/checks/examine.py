"""Examine an answer: run it on all cases, and name what is wrong with it."""

import dis
import inspect
import sys
from collections import namedtuple
from dataclasses import dataclass

import torch

from utils.checks.answers import AnswerRejected
from utils.checks.guard import NeverEnds, attempt, supervised
from utils.checks.messages import describe, difference
from utils.checks.mistakes import (
    Diagnosis,
    find_mistake_pair,
    find_single_mistake,
    first_wrong,
)
from utils.checks.repair import find_repair
from utils.checks.values import Other, agrees

IMPORTS = {name: f"import {name}" for name in ("torch", *sys.stdlib_module_names)}
IMPORTS |= {"np": "import numpy as np", "nn": "from torch import nn"}
IMPORTS |= {"F": "from torch.nn import functional as F"}


@dataclass(frozen=True)
class Result:
    """What a check found: `passed`, the name of a mistake (or None), the message.

    If two mistakes are named, `also` is the name of the second.
    """

    passed: bool
    diagnosis: str | None
    message: str
    also: str | None = None

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


def examine(exercise, answer):
    """Return the `Result` of an answer; its text has no heading yet."""
    try:
        prepared = exercise.prepare(answer)
        runs = _run_cases(exercise, prepared)
    except AnswerRejected as rejected:
        name, text = rejected.args
        return Result(False, name, f"{text}\nExpected {exercise.expectation}.")
    if runs[0].outcome.is_unfinished:
        return _say_what_is_expected(exercise, answer, runs[0].outcome)
    mistakes = {}  # of several with the same name, the first
    for mistake in _find_mistakes(Trial(exercise, prepared, runs)):
        mistakes.setdefault(mistake.name, mistake)
    if mistakes:
        return _name_mistakes(exercise, [*mistakes.values()][:2], runs)
    if not all(run.is_right for run in runs):
        return Result(False, None, describe(exercise, runs))
    return Result(True, None, f"{len(runs)} inputs tried, all right.")


def _run_cases(exercise, answer):
    """Run every case, or stop if the answer is unfinished or wants to exit."""
    runs = []
    for case in exercise.cases:
        runs.append(exercise.run_case(answer, case))
        if runs[-1].outcome.is_unfinished or runs[-1].outcome.is_stopped:
            break
    return runs


def _say_what_is_expected(exercise, answer, outcome):
    """Return the result of an answer that ended at the stub's own line."""
    if inspect.isfunction(answer) and _has_code_below_the_stub(answer):
        text = f"Your code is there, but a line of the stub still stops it:\n{outcome.where}\nDelete that line."
        return Result(False, "stub-line-left", text)
    text = f"Expected: {exercise.expectation}.\nOnce you have written it, run its cell and then this one again."
    return Result(False, "not-attempted", text)


def _has_code_below_the_stub(function):
    try:
        source = inspect.getsource(function)
    except OSError:  # written in no cell and no file
        return False
    return bool(source.partition("raise NotImplementedError\n")[2].strip())


# An `Exercise`, a prepared answer to it, and its runs on the cases.
Trial = namedtuple("Trial", "exercise answer runs")


def _find_mistakes(trial):
    """Return what is wrong with an answer, the most certain first."""
    exercise, answer, runs = trial
    if runs[-1].outcome.is_stopped:
        return answer.mistakes + _never_ends(runs[-1])
    besides = _changed_inputs(trial) + _find_facts(trial)
    if all(run.is_right for run in runs):
        return answer.mistakes + besides
    found = (find(trial) for find in FINDERS)
    return answer.mistakes + next(filter(None, found), []) + besides


def _never_ends(run):
    """Name an answer that had to be stopped."""
    text = "Your code doesn't end: each round of a loop must come nearer to its end, as a counter in a `while` does with `i += 1`."
    is_endless = isinstance(run.error, NeverEnds)
    return [Diagnosis("never-ends", text, run)] if is_endless else []


def find_notebook_tensor(trial):
    """Name a function that computes with a tensor of the notebook."""
    function = getattr(trial.answer.written, "forward", trial.answer.written)
    code = dis.get_instructions(function) if inspect.isfunction(function) else ()
    for name in [each.argval for each in code if each.opname == "LOAD_GLOBAL"]:
        if isinstance(function.__globals__.get(name), torch.Tensor):
            own = ", ".join(inspect.signature(function).parameters)
            text = f"Your code uses `{name}`, a tensor of the notebook: compute with the arguments only, {own}."
            return [Diagnosis("notebook-tensor", text)]
    return []


def find_reason(trial):
    """Explain common errors of Python."""
    run = first_wrong(trial.runs)
    if run.got is None and not run.error:
        text = "Your code returns None: a `return` is missing, perhaps in one branch."
        return [Diagnosis("returns-nothing", text, run)]
    if isinstance(run.error, TypeError) and "Linear" in str(run.error):
        text = "You multiply by a layer: call it, as in self.W_query(x), and it multiplies x by its matrix."
        return [Diagnosis("layer-not-called", text, run)]
    if isinstance(run.error, NameError) and run.error.name in IMPORTS:
        name, line = run.error.name, IMPORTS[run.error.name]
        text = (
            f"You use `{name}` without an import: put `{line}` at the top of your cell."
        )
        return [Diagnosis("import-missing", text, run)]
    if isinstance(run.error, TypeError) and "torch.return_types" in str(run.error):
        text = "You compute with a pair: with `dim`, `max` and `min` return the values and their positions, so take `.values`, or call `amax` and `amin`."
        return [Diagnosis("pair-not-taken-apart", text, run)]
    return []


# What explains wrong results, from the surest to the slowest: the first that finds
# something ends the search. Each is a function of a `Trial` that returns diagnoses.
FINDERS = [
    find_single_mistake,
    find_reason,
    find_mistake_pair,
    find_notebook_tensor,
    find_repair,
]


def _changed_inputs(trial):
    """Name an answer that changes an input in place."""
    for run in trial.runs:
        if run.outcome.changed is not None:
            name = trial.exercise.inputs[run.outcome.changed]
            is_tensor = isinstance(run.args[run.outcome.changed], torch.Tensor)
            copy = f"`{name}.clone()`" if is_tensor else "a copy"
            text = f"Your code changes its argument `{name}`: `+=`, `{name}[i] = …`, `append` and methods ending in `_` do that. Make a new one, or work on {copy}."
            return [Diagnosis("input-changed", text)]
    return []


def _find_facts(trial):
    """Return the diagnoses of the exercise's facts, unless a result is unusable."""
    exercise, answer, runs = trial
    arguments = answer.fact_arguments()
    if arguments is None or any(isinstance(run.got, Other) for run in runs):
        return []
    results = [attempt(supervised()(fact), *arguments).value for fact in exercise.facts]
    is_trained = exercise.is_trained or exercise.noun == "class"
    is_sound = all(run.is_right and run.outcome.changed is None for run in runs)
    if is_trained and is_sound:  # what is changed in place has no gradient to compare
        results.append(_find_lost_gradient(exercise, answer))
    return [diagnosis for diagnosis in results if diagnosis]


def _find_lost_gradient(exercise, answer):
    """Name an input that doesn't get the gradient it gets from the right answer."""
    call, args = answer.bind(exercise.cases[0])
    got = attempt(supervised()(_gradients), call, args).value or [None] * len(args)
    right = _gradients(exercise.right, args)
    for name, gradient, expected in zip(exercise.inputs, got, right):
        if not agrees(gradient, expected):
            text = f"No gradient reaches `{name}`, or only a part of it, so nothing before it would be trained: look for .detach(), .data, torch.no_grad(), .item(), .tolist() and torch.tensor(…)."
            return Diagnosis("no-gradient", text)
    return None


def _gradients(function, args):
    """Return for each argument the gradient of the sum of all squares, or None."""
    given = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    floats = [g for g in given if torch.is_tensor(g) and g.is_floating_point()]
    for tensor in floats:
        tensor.requires_grad_()
    value = attempt(function, *given).value
    parts = value if isinstance(value, tuple) else (value,)
    torch.autograd.backward([part.square().sum() for part in parts])
    return [getattr(each, "grad", None) for each in given]


def _name_mistakes(exercise, mistakes, runs):
    """Return the result that names one mistake or two."""
    first, also = mistakes[0], None
    text, shown = first.text, first.run or first_wrong(runs)
    if len(mistakes) == 2:
        also = mistakes[1].name
        text = f"Two things are wrong. {text}\nAnd: {mistakes[1].text}"
    if shown is None:
        text += " Otherwise your results are right."
    else:
        text = f"{difference(exercise, shown)}\n{text}"
    return Result(False, first.name, text, also)
