"""Examine an answer: run it on all cases, and name what is wrong with it."""

import ast
import inspect
import textwrap
from dataclasses import dataclass

import torch

from utils.checks import search
from utils.checks.guard import attempt
from utils.checks.messages import describe, difference, shown_inputs
from utils.checks.pipeline import AnswerRejected, Diagnosis
from utils.checks.values import Other

ONCE_WRITTEN = "Once you have written it, run its cell and then this one again."
LOOP = "A loop never reaches its end: each round must come nearer to it, as a counter in a `while` does with `i += 1`."


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
    written = answer
    try:
        answer = exercise.prepare(answer)
        runs = _run_cases(exercise, answer)
    except AnswerRejected as rejected:
        name, text = rejected.args
        return Result(False, name, f"{text}\nExpected {exercise.expectation}.")
    if runs[0].outcome.is_unfinished:
        if _has_code_beside_the_stub(written):
            text = f"Your code is there, but a line of the stub still stops it\n  at {runs[0].outcome.where}\nDelete that line."
            return Result(False, "stub-line-left", text)
        text = f"Expected: {exercise.expectation}.\n{ONCE_WRITTEN}"
        return Result(False, "not-attempted", text)
    are_right = all(run.is_right for run in runs)
    mistakes = {}  # of several with the same name, the first
    for mistake in _find_mistakes(exercise, answer, runs, are_right):
        mistakes.setdefault(mistake.name, mistake)
    if mistakes:
        return _name_mistakes(exercise, [*mistakes.values()][:2], runs)
    if not are_right:
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


def _has_code_beside_the_stub(answer):
    """Return whether every function is written, though one still has the stub's line.

    In a function of one's own the line counts if it is the first or the last, because a
    stub with given lines has it between them. A function with no other line isn't
    written yet.
    """
    is_class = isinstance(answer, type)
    functions = vars(answer).values() if is_class else [answer]
    bodies = []
    for function in filter(inspect.isfunction, functions):
        try:
            source = textwrap.dedent(inspect.getsource(function))
            [definition] = ast.parse(source).body
        except (OSError, SyntaxError, ValueError):  # written in no cell and no file
            return False
        statements = definition.body[ast.get_docstring(definition) is not None :]
        bodies.append([ast.unparse(statement) for statement in statements])
    left = "raise NotImplementedError", "raise NotImplementedError()"
    places = [body if is_class else (body[0], body[-1]) for body in bodies if body]
    stops = any({*left}.intersection(place) for place in places)
    return stops and not any(len(body) < 2 and body[0] in left for body in bodies)


def _find_mistakes(exercise, answer, runs, are_right):
    """Return what is wrong with an answer, the most certain first.

    A fact that also holds for an answer with the mistakes found is no further mistake.
    """
    certain, pipeline = exercise.certain_mistakes(answer), exercise.pipeline
    if runs[-1].outcome.is_stopped:
        return certain + _never_ends(exercise, runs[-1])
    if not (are_right or certain):
        certain = _returns_nothing(runs)
    variants = search.find_variants(pipeline, runs, at_most=1 if certain else 2)
    explained = set()
    if variants:

        def mistaken(*args):
            return pipeline.run(args, *variants)

        certain = certain + search.make_diagnoses(pipeline, runs, variants)
        explained = {fact.name for fact in _find_facts(exercise, mistaken)}
    facts = []
    if not any(isinstance(run.got, Other) for run in runs):  # huge, or no tensor at all
        facts = [f for f in _find_facts(exercise, answer) if f.name not in explained]
    if not (are_right or certain or facts):
        certain = _uses_the_notebook(pipeline, answer)
        certain = certain or search.find_partial_match(pipeline, runs)
    return certain + _changed_inputs(exercise, runs) + facts


def _never_ends(exercise, run):
    """Name an answer that had to be stopped."""
    if not run.outcome.is_endless:
        return []
    where = f"\n  at {run.outcome.where}" if run.outcome.where else ""
    inputs = shown_inputs(exercise, run.case)
    text = f"On {inputs} your code did not end and was stopped{where}\n{LOOP}"
    return [Diagnosis("never-ends", text)]


def _returns_nothing(runs):
    """Name an answer that returns nothing, on all inputs or on some."""
    nothing = [run for run in runs if run.error is None and run.got is None]
    text = "Your code returns None here: a `return` is missing, perhaps in one branch."
    return [Diagnosis("returns-nothing", text, run) for run in nothing[:1]]


def _uses_the_notebook(pipeline, answer):
    """Name a function that computes with a tensor of the notebook."""
    code = getattr(answer, "__code__", None)
    for name in code.co_names if code else ():
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


def _find_facts(exercise, answer):
    """Return what the exercise's facts say of an answer."""
    arguments, mistakes = exercise.fact_arguments(answer), []
    for fact in exercise.facts if arguments else ():
        outcome = attempt(fact, *arguments)
        if outcome.is_endless:
            text = f"Your code did not end. {LOOP}"
            return [*mistakes, Diagnosis("never-ends", text)]
        if outcome.value:
            mistakes.append(outcome.value)
    return mistakes


def _name_mistakes(exercise, mistakes, runs):
    """Return the result that names one mistake or two."""
    first, second = (*mistakes, None)[:2]
    text, shown = first.text, first.run or search.first_wrong(runs)
    if second:
        text = f"Two things are wrong. {text}\nAnd: {second.text}"
    if shown is None:
        text += " Otherwise your results are right."
    elif not runs[-1].outcome.is_endless:
        text = f"{difference(exercise, shown)}\n{text}"
    return Result(False, first.name, text, second and second.name)
