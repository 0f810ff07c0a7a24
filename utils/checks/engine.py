"""Exercises, and how an answer is examined: `examine(exercise, answer)`.

An exercise is data: an oracle, a list of cases, a pipeline of steps with wrong
variants. The answer runs on every case. A mistake is named when the steps with this
mistake give on every case what the answer gave.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace

from utils.checks import search
from utils.checks.guard import accepts, attempt, quietly, seeded
from utils.checks.messages import describe, difference, shown_inputs
from utils.checks.pipeline import AnswerRejected, Diagnosis, Pipeline
from utils.checks.runs import Run
from utils.checks.steps.returned import RETURNED, RIGHT
from utils.checks.values import factor_of, number, safe_text

LOOP = "A loop never reaches its end: each round must come nearer to it, as a counter in a `while` does with `i += 1`."


@dataclass(frozen=True)
class Result:
    """What a check found: `passed`, the name of a mistake (or None), the message.

    Where two mistakes are named, `also` is the name of the second.
    """

    passed: bool
    diagnosis: str | None
    message: str
    also: str | None = None

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


def case(*args, note="", raises=None, otherwise=None, build=None, special=False):
    """Return a case with these positional arguments.

    note: what is special about it, for the message
    raises: the type of the error, where an error is right, and `otherwise` the
        `Diagnosis` of an answer that raises none
    build: for a module, the arguments that build it
    special: a failure here is shown only where no other case fails
    """
    return SimpleNamespace(
        args=args,
        note=note,
        raises=raises,
        otherwise=otherwise,
        build=build,
        special=special,
    )


@dataclass(eq=False)
class Exercise:
    """An exercise whose answer is a function.

    id: as in the notebook, "4.1"
    signature: the name and the parameters
    returns: ends the sentence "Expected a function … that returns …"
    oracle: function of a case's arguments that returns what is right
    cases: made by `case`
    pipeline: the steps and their wrong variants
    parts: names of the entries of a returned tuple, and of those of a tuple in it
    facts: functions (answer) -> Diagnosis or None, for what no variant shows
    facts_when_right: the same, asked only where all results are right, or explained
    properties: functions (run) -> text or None that say what is wrong with a result
        where no mistake is recognised
    observe: function (answer, *args) that returns what is compared, where results are
        random; the oracle and the variants go through it too
    returned: variants of the last steps, which change only what is returned
    """

    id: str
    signature: str
    returns: str
    oracle: Callable
    cases: list
    pipeline: Pipeline
    parts: tuple = ()
    facts: tuple = ()
    facts_when_right: tuple = ()
    properties: tuple = ()
    observe: Callable | None = None
    returned: list = field(default_factory=lambda: RETURNED)

    noun = "function"

    def __post_init__(self):
        self.pipeline = replace(
            self.pipeline,
            steps=self.pipeline.steps | RIGHT,
            variants=[*self.pipeline.variants, *self.returned],
            words=self.pipeline.words | {"returns": self.returns},
        )

    @property
    def name(self):
        return self.signature.partition("(")[0]

    @property
    def expectation(self):
        return f"a {self.noun} {self.signature} that returns {self.returns}"

    def prepare(self, answer):
        """Return what `run_case` takes; raise `AnswerRejected` for another object."""
        if issubclass(type(answer), type):
            text = f"You passed the class {safe_text(answer)}."
            raise AnswerRejected("not-a-function", text)
        if not callable(answer):
            raise AnswerRejected("not-a-function", f"You passed {safe_text(answer)}.")
        if not all(accepts(answer, case.args) for case in self.cases):
            text = f"Your function takes {parameters_of(answer)}."
            raise AnswerRejected("wrong-signature", text)
        return answer

    def run_case(self, answer, case):
        """Run the answer on a case; return the `Run`."""
        outcome, expected = seeded(answer, case.args), quietly(self.oracle, case.args)
        if self.parts and type(outcome.value) is list:
            outcome.value = tuple(outcome.value)
        run = Run(case, case.args, outcome, expected.value, answer)
        if self.observe and run.has_right_form:
            run.observe = self.observe
            run.outcome = seeded(partial(self.observe, answer), case.args)
            run.expected = run.outcome_of(self.oracle).value
        return run

    def known_before(self, answer):
        """Return the diagnoses that are certain before any result is compared."""
        return []

    def fact_arguments(self, answer):
        """Return what the facts take, or None where there is nothing to look at."""
        return (answer,)

    def parameters(self):
        """Return the names of the inputs."""
        return [*inspect.signature(self.oracle).parameters]

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        return dict(zip(self.parameters(), case.args))


def parameters_of(answer):
    """Return in words which arguments an answer takes."""
    try:
        return str(inspect.signature(answer))
    except BaseException:
        return "other arguments"


def examine(exercise, answer):
    """Return the `Result` of an answer; its text has no heading yet."""
    try:
        answer = exercise.prepare(answer)
        runs = _run_cases(exercise, answer)
    except AnswerRejected as rejected:
        name, text = rejected.diagnosis.name, rejected.diagnosis.text
        return Result(False, name, f"{text}\nExpected {exercise.expectation}.")
    if runs[0].outcome.unfinished:
        return Result(False, "not-attempted", f"Expected: {exercise.expectation}.")
    right = all(run.is_right for run in runs if run.case.raises is None)
    two = _first_two(_diagnoses(exercise, answer, runs, right))
    if two:
        return _told(exercise, two, right)
    wrong = [run for run in runs if not run.is_right]
    if wrong:
        return Result(False, None, describe(exercise, wrong))
    return Result(True, None, f"{len(runs)} inputs tried, all right.")


def _run_cases(exercise, answer):
    """Run every case, or stop where the answer is unfinished or wants to exit."""
    runs = []
    for case in exercise.cases:
        runs.append(exercise.run_case(answer, case))
        if runs[-1].outcome.unfinished or runs[-1].outcome.stopped:
            break
    return runs


def _diagnoses(exercise, answer, runs, right):
    """Yield what is wrong with an answer, the most certain first.

    One mistake, or nothing returned, or a fact; else two mistakes; then what is wrong
    besides. A fact that holds for the mistake alone as well is no second mistake.
    """
    known = exercise.known_before(answer)
    yield from known
    match = search.find_single_mistake(exercise.pipeline, runs)
    found = match.diagnoses() if match else _nothing_returned(runs)
    found = found or _endless(exercise, runs[-1])
    unknown = not (known or right or found or runs[-1].outcome.stopped)
    if unknown:
        found = [*_facts(exercise.facts, exercise.fact_arguments(answer))][:1]
        found = found or _multiplied(runs)
    if unknown and not found:
        match = search.find_mistake_pair(exercise.pipeline, runs)
        found = match.diagnoses() if match else []
    yield from found
    besides = [*_besides(exercise, runs)]
    yield from besides
    if right or match and not match.run.error:
        facts = (*exercise.facts, *exercise.facts_when_right)
        expected = set()
        if match:
            mistaken = exercise.fact_arguments(match.compute)
            expected = {fact.name for fact in _facts(facts, mistaken)}
        strict = right and not (known or besides)
        for fact in _facts(facts, exercise.fact_arguments(answer), strict):
            if fact.name not in expected:
                yield fact
    elif unknown and not found:
        match = search.find_partial_match(exercise.pipeline, runs)
        yield from match.diagnoses() if match else []


def _endless(exercise, run):
    """Name an answer that had to be stopped."""
    if not run.outcome.endless:
        return []
    where = f"\n  at {run.outcome.where}" if run.outcome.where else ""
    inputs = shown_inputs(exercise, run.case)
    text = f"On {inputs} your code did not end and was stopped{where}\n{LOOP}"
    return [Diagnosis("never-ends", text)]


def _nothing_returned(runs):
    """Name an answer that returns nothing, on all inputs or on some."""
    usual = [run for run in runs if run.is_comparable and run.error is None]
    nothing = [run for run in usual if run.got is None]
    if not nothing:
        return []
    if len(nothing) == len(usual):
        text = "Your code returns None on every input: is a `return` missing?"
        return [Diagnosis("returns-nothing", text)]
    text = "Here your code returns None: one branch, of an `if` say, has no `return`."
    return [Diagnosis("returns-nothing", text, nothing[0])]


def _multiplied(runs):
    """Name a factor where everything is right except for it."""
    wrong = [r for r in runs if not r.is_right and not r.special and r.is_comparable]
    if len(wrong) < 2 or any(run.observe for run in wrong):
        return []
    factors = [factor_of(run.got, run.expected) for run in wrong]
    if None in factors:
        return []
    factor, same = number(factors[0]), max(factors) - min(factors) < 1e-3
    if same:
        text = f"Your result is {factor} times the right one on every input: look for "
        text += "a factor too many or too few."
    else:
        text = f"Your result is {factor} times the right one here, and another multiple"
        text += " elsewhere: leave out the factor that depends on the sizes."
    return [Diagnosis("multiplied", text, wrong[0])]


def _besides(exercise, runs):
    """Yield what is wrong besides the results: a changed input, an error not raised."""
    changed = next((r for r in runs if r.outcome.changed is not None), None)
    if changed:
        name = exercise.parameters()[changed.outcome.changed]
        yield Diagnosis(
            "input-changed",
            f"Your code changes `{name}` in place, as methods that end in _ do, `+=` and assigning to entries. Make a new object, or work on a copy.",
        )
    runs_at_all = any(run.is_comparable and run.error is None for run in runs)
    for run in runs if runs_at_all else ():
        if run.case.otherwise and not run.is_right:
            yield Diagnosis(*run.case.otherwise, run)


def _facts(facts, arguments, strict=False):
    """Yield what these facts say; where `strict`, raise what one of ours raises."""
    for fact in facts if arguments else ():
        found = attempt(fact, *arguments, tidy=lambda diagnosis: diagnosis)
        if found.endless:
            yield Diagnosis("never-ends", f"Your code did not end. {LOOP}")
            return
        if search.STRICT and strict and found.error and not found.where:
            raise found.error
        if found.value:
            yield found.value
            strict = False  # the others may fail where this one holds


def _first_two(diagnoses):
    """Return the first two diagnoses of different names."""
    found = {}
    for diagnosis in diagnoses:
        found.setdefault(diagnosis.name, diagnosis)
        if len(found) > 1:
            break
    return [*found.values()]


def _told(exercise, diagnoses, right):
    """Return the result that tells one diagnosis, or two."""
    first, second = (*diagnoses, None)[:2]
    text, shown = first.text, first.run
    if second:
        on = ""
        if shown and second.run and second.run is not shown:
            on = f", on {shown_inputs(exercise, second.run.case)}"
        shown = shown or second.run
        text = f"Two things are wrong. {text}\nAnd{on}: {second.text}"
    text += " Otherwise your results are right." * right
    if shown:
        text = f"{difference(exercise, shown)}\n{text}"
    return Result(False, first.name, text, second and second.name)
