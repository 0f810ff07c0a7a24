"""Examine an answer: run it on all cases, and say what is wrong with it.

A finder is a function of a `Trial` that yields one `Diagnosis`, two of them, or none.
"""

import inspect
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

from utils.checks.engine import mistakes, probes, reasons, repair
from utils.checks.engine.messages import describe_difference
from utils.checks.submission import AnswerRejected

# What explains wrong results, the surest first; what it finds ends the search.
EXPLANATIONS = [
    mistakes.find_single_mistake,
    reasons.find_python_error,
    mistakes.find_mistake_pair,
    reasons.find_notebook_tensor,
    repair.find_repair,
]
# What else may be wrong, even if all results are right: all of it is looked for.
ALWAYS = [probes.find_changed_input, probes.find_by_probes, probes.find_lost_gradient, probes.find_precision]  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What a check found: the names of up to two mistakes, and the message."""

    passed: bool
    diagnosis: str | None
    message: str
    also: str | None = None

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


class Trial(NamedTuple):
    """An `Exercise`, an answer that `Exercise.prepare` returned, its `Run` on each case."""

    exercise: object
    answer: object
    runs: list

    @property
    def source(self):
        """Return the reader's code, "" if it is in no cell and no file."""
        try:
            return textwrap.dedent(inspect.getsource(self.answer.submitted))
        except (OSError, TypeError):
            return ""

    @property
    def diagnoses(self):
        """Return the diagnoses that are certain, whatever the results are."""
        return sum((run.diagnoses for run in self.runs), self.answer.diagnoses)

    @property
    def is_right(self):
        return all(run.is_right for run in self.runs)

    @property
    def shown_run(self):
        """Return the run that the message shows, or None: one that is wrong."""
        stopped = [run for run in self.runs if run.is_stopped]
        return next((run for run in stopped or self.runs if not run.is_right), None)

    @property
    def changed_run(self):
        """Return the first run that changed an argument in place, or None."""
        return next((run for run in self.runs if run.changed_arg is not None), None)


def examine(exercise, answer):
    """Return the `Result` of an answer; its text has no heading yet."""
    try:
        prepared_answer = exercise.prepare(answer)
        trial = Trial(exercise, prepared_answer, _run_cases(exercise, prepared_answer))
    except AnswerRejected as rejected:
        name, text = rejected.args
        return Result(False, name, f"{text}\nExpected {exercise.expectation}.")
    if trial.runs[0].is_unfinished:
        return _explain_stub(trial)
    diagnoses, is_explained = _diagnose(trial)
    if diagnoses:
        return _name_mistakes(trial, diagnoses, is_explained)
    if run := trial.shown_run:
        text = describe_difference(exercise, run)
        if run.error is None:
            text += f"\nThis check has no name for it, or it is more than two things: compare line by line with the card. Expected {exercise.expectation}."
        return Result(False, None, text)
    return Result(True, None, f"{len(trial.runs)} inputs tried, all right.")


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


def _explain_stub(trial):
    """Return the result of an answer that ended at the stub's own line."""
    code_below = trial.source.partition("raise NotImplementedError\n")[2].strip()
    if code_below and trial.exercise.kind == "function":
        text = f"Your code is there, but a line of the stub still stops it:\n{trial.runs[0].excerpt}\nDelete that line."
        return Result(False, "stub-line-left", text)
    text = f"Expected: {trial.exercise.expectation}.\nOnce you have written it, run its cell and then this one again."
    return Result(False, "not-attempted", text)


def _diagnose(trial):
    """Return all diagnoses, the most certain first, and whether they explain results."""
    if trial.runs[-1].is_stopped:
        return [*trial.diagnoses, *reasons.find_python_error(trial)], True
    others = [diagnosis for find in ALWAYS for diagnosis in find(trial)]
    if trial.is_right:
        return trial.diagnoses + others, True
    explanations = next(filter(None, ([*find(trial)] for find in EXPLANATIONS)), [])
    # What is changed or random may be the cause, though nothing explains it.
    is_explained = bool(explanations or trial.changed_run or trial.answer.is_random)
    return trial.diagnoses + explanations + others, is_explained


def _name_mistakes(trial, diagnoses, is_explained):
    """Return the result that names one mistake, or two of several."""
    texts = {}  # of several with the same name, the first
    for name, text in diagnoses:
        texts.setdefault(name, text)
    (first, text), *further = texts.items()
    opening = "" if is_explained else "The check can't say why, but it found this: "
    also = None
    if further:
        also, second_text = further[0]
        count = "Two" if len(further) == 1 else "More than two"
        opening = opening or f"{count} things are wrong. " * (first != "one-change")
        text = f"{text}\nAnd: {second_text}"
    text = opening + text
    if trial.is_right:
        text += " Otherwise your results are right."
    else:
        text = f"{describe_difference(trial.exercise, trial.shown_run)}\n{text}"
    return Result(False, first, text, also)
