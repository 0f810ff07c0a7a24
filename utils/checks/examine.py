"""Examine an answer: run it on all cases, and name what is wrong with it."""

import inspect
from collections import namedtuple
from dataclasses import dataclass

from utils.checks.engine import mistakes as known
from utils.checks.engine import reasons
from utils.checks.engine.facts import lost_gradient
from utils.checks.engine.guard import attempt, supervised
from utils.checks.engine.messages import describe, difference
from utils.checks.engine.mistakes import Diagnosis
from utils.checks.engine.repair import find_repair
from utils.checks.engine.values import Other, first_wrong
from utils.checks.submission import AnswerRejected

# What explains wrong results, from the surest to the slowest: the first that finds
# something ends the search. Each is a function of a `Trial` that returns diagnoses.
FINDERS = [
    known.find_single_mistake,
    reasons.find_reason,
    reasons.find_unpacked_axes,
    known.find_mistake_pair,
    reasons.find_notebook_tensor,
    find_repair,
]


@dataclass(frozen=True)
class Result:
    """What a check found: the names of up to two mistakes, and the message."""

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
    if runs[0].is_unfinished:
        return _say_what_is_expected(exercise, answer, runs[0])
    found, is_explained = _find_mistakes(Trial(exercise, prepared, runs))
    mistakes = {}  # of several with the same name, the first
    for mistake in found:
        mistakes.setdefault(mistake.name, mistake)
    if mistakes:
        return _name_mistakes(exercise, [*mistakes.values()], runs, is_explained)
    if not all(run.is_right for run in runs):
        return Result(False, None, describe(exercise, runs))
    return Result(True, None, f"{len(runs)} inputs tried, all right.")


def _run_cases(exercise, answer):
    """Run every case, or stop if the answer is unfinished or wants to exit.

    The smallest case, with axes of length 1, is tried if the others are right: there,
    what is wrong elsewhere may look like another mistake.
    """
    runs = []
    for case in exercise.cases:
        runs.append(exercise.run_case(answer, case))
        if runs[-1].is_unfinished or runs[-1].is_stopped:
            return runs
    if exercise.smallest and all(run.is_right for run in runs):
        runs.append(exercise.run_case(answer, exercise.smallest))
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
    """Return what is wrong with an answer, the most certain first.

    Return also whether this explains the results.
    """
    exercise, answer, runs = trial
    if runs[-1].is_stopped:
        return answer.mistakes + reasons.find_reason(trial), True
    changed = reasons.find_changed_input(trial)
    besides = changed + _find_facts(trial)
    if all(run.is_right for run in runs):
        return answer.mistakes + besides, True
    found = next(filter(None, (find(trial) for find in FINDERS)), [])
    # What is changed or random may be the cause, though no finder names it.
    return answer.mistakes + found + besides, found or changed or answer.is_random


def _find_facts(trial):
    """Return the diagnoses of the exercise's facts, unless a result is unusable."""
    exercise, answer, runs = trial
    arguments = answer.fact_arguments()
    if arguments is None or any(isinstance(run.value, Other) for run in runs):
        return []
    results = [attempt(supervised()(fact), *arguments).value for fact in exercise.facts]
    is_trained = exercise.is_trained or exercise.noun == "class"
    is_sound = all(run.is_right and run.changed is None for run in runs)
    # What is changed in place or in another form has no gradient to compare.
    if is_trained and is_sound and not answer.mistakes:
        results.append(lost_gradient(exercise, answer))
    return [Diagnosis(text) for text in results if text]


def _name_mistakes(exercise, mistakes, runs, is_explained):
    """Return the result that names one mistake, or two of several."""
    first, also = mistakes[0], None
    text, shown = first.text, first.run or first_wrong(runs)
    begin = "" if is_explained else "The check can't say why, but it found this: "
    if len(mistakes) > 1:
        count = "Two" if len(mistakes) == 2 else "More than two"
        begin = begin or f"{count} things are wrong. " * (first.name != "one-change")
        also = mistakes[1].name
        told, colon, remedy = text.partition(": ")
        if colon and mistakes[1].text.endswith(f": {remedy}"):  # say it once
            text = f"{told}."
        text = f"{text}\nAnd: {mistakes[1].text}"
    text = begin + text
    if shown is None:
        text += " Otherwise your results are right."
    else:
        text = f"{difference(exercise, shown)}\n{text}"
    return Result(False, first.name, text, also)
