"""Examine an answer: run it on all cases, and name what is wrong with it."""

import dis
import inspect
from contextlib import suppress
from dataclasses import dataclass

import torch

from utils.checks import search
from utils.checks.guard import NeverEnds, attempt, time_limit
from utils.checks.messages import describe, difference
from utils.checks.pipeline import AnswerRejected, Diagnosis
from utils.checks.repair import find_repair
from utils.checks.values import Other


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
    for mistake in _find_mistakes(exercise, prepared, runs):
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
        text = f"Your code is there, but a line of the stub still stops it\n  at {outcome.where}\nDelete that line."
        return Result(False, "stub-line-left", text)
    text = f"Expected: {exercise.expectation}.\nOnce you have written it, run its cell and then this one again."
    return Result(False, "not-attempted", text)


def _has_code_below_the_stub(function):
    try:
        source = inspect.getsource(function)
    except OSError:  # written in no cell and no file
        return False
    return bool(source.partition("raise NotImplementedError\n")[2].strip())


def _find_mistakes(exercise, answer, runs):
    """Return what is wrong with an answer, the most certain first."""
    pipeline, certain = exercise.pipeline, exercise.certain_mistakes(answer)
    if runs[-1].outcome.is_stopped:
        return certain + _never_ends(runs[-1])
    facts = _find_facts(exercise, answer, runs)
    also = _changed_inputs(exercise, runs) + facts
    single = search.find_single_mistake(pipeline, runs)
    if single or certain or all(run.is_right for run in runs):
        return certain + single + also
    if pair := search.find_mistake_pair(pipeline, runs):
        return pair + also
    # One mistake, and another that only raises errors.
    returned = [run for run in runs if run.error is None]
    if single := search.find_single_mistake(pipeline, returned):
        return single + also
    if facts:
        return also
    if tensor := _uses_the_notebook(pipeline, answer):
        return tensor + also
    with suppress(NeverEnds):
        return find_repair(exercise, answer, runs) + also
    return also


def _never_ends(run):
    """Name an answer that had to be stopped."""
    text = "Your code doesn't end: each round of a loop must come nearer to its end, as a counter in a `while` does with `i += 1`."
    is_endless = isinstance(run.error, NeverEnds)
    return [Diagnosis("never-ends", text, run)] if is_endless else []


def _uses_the_notebook(pipeline, answer):
    """Name a function that computes with a tensor of the notebook."""
    steps = dis.get_instructions(answer) if inspect.isfunction(answer) else ()
    for name in [step.argval for step in steps if step.opname == "LOAD_GLOBAL"]:
        if isinstance(answer.__globals__.get(name), torch.Tensor):
            own = ", ".join(pipeline.inputs)
            text = f"Your code uses `{name}`, a tensor of the notebook: compute with the arguments only, {own}."
            return [Diagnosis("notebook-tensor", text)]
    return []


def _changed_inputs(exercise, runs):
    """Name an answer that changes an input in place."""
    changed = [run.outcome.changed for run in runs if run.outcome.changed is not None]
    names = [[*exercise.pipeline.inputs][position] for position in changed[:1]]
    text = "Your code changes `{}` in place, as `append`, `pop`, `+=`, assigning to entries and methods that end in _ do. Make a new object, or work on a copy."
    return [Diagnosis("input-changed", text.format(name)) for name in names]


def _find_facts(exercise, answer, runs):
    """Return the diagnoses of the exercise's facts, unless a result is unusable."""
    arguments = exercise.fact_arguments(answer)
    if arguments is None or any(isinstance(run.got, Other) for run in runs):
        return []
    results = [attempt(time_limit()(fact), *arguments).value for fact in exercise.facts]
    return [diagnosis for diagnosis in results if diagnosis]


def _name_mistakes(exercise, mistakes, runs):
    """Return the result that names one mistake or two."""
    first, second = (*mistakes, None)[:2]
    text, shown = first.text, first.run or search.first_wrong(runs)
    if second:
        text = f"Two things are wrong. {text}\nAnd: {second.text}"
    if shown is None:
        text += " Otherwise your results are right."
    else:
        text = f"{difference(exercise, shown)}\n{text}"
    return Result(False, first.name, text, second and second.name)
