"""Compare an answer with the right result and with what each known mistake gives.

An exercise is data: an oracle, a list of cases, a list of mistakes. The answer runs on
every case; a mistake is named when it gives what the answer gives on every case.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

from utils.checks.guard import Outcome, accepts, attempt, quietly, seeded
from utils.checks.messages import describe, difference
from utils.checks.values import agrees, all_finite, safe_text, same_form


@dataclass(frozen=True)
class Result:
    """What a check found: `passed`, the slug of a named mistake or None, the text."""

    passed: bool
    diagnosis: str | None
    message: str

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


@dataclass(frozen=True)
class Mistake:
    """A known mistake: what it computes, and a sentence or two that explain it.

    `compute` takes what the oracle takes. `explain` is a text, or a function from the
    evidence (`args`, `got`, `expected` on the first case that shows it) to a text.
    """

    slug: str
    compute: Callable
    explain: str | Callable


@dataclass(frozen=True, eq=False)
class Case:
    """One small input: made by `case`."""

    args: tuple
    note: str
    raises: type | None
    otherwise: tuple
    settings: dict


def case(*args, note="", raises=None, otherwise=(None, ""), **settings):
    """Return a case with these positional arguments.

    `note` says what is special about it. Where an error is the right result, `raises`
    is its type and `otherwise` the slug and text for an answer that raises none.
    """
    return Case(args, note, raises, otherwise, settings)


class Named(Exception):
    """Raised while an answer is being run, where a plain fact names the mistake."""

    def __init__(self, slug, text):
        super().__init__(text)
        self.slug = slug


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise whose answer is a function.

    `returns` ends the sentence "expected a function … that returns …"; `parts` names
    the entries of a returned tuple. Where no mistake is recognised, `facts`, functions
    `(answer) -> (slug, text) or None`, may still name one that is seen otherwise, and
    `properties`, functions `(evidence) -> text or None`, say in words what is wrong.
    `observe_as(call, *args)` uses a function as it likes and returns what is compared:
    for results that are random. It is given the answer, the oracle and each mistake.
    """

    id: str
    signature: str
    returns: str
    oracle: Callable
    cases: list
    mistakes: list
    parts: tuple = ()
    facts: tuple = ()
    properties: tuple = ()
    observe_as: Callable | None = None

    noun = "function"

    @property
    def name(self):
        return self.signature.partition("(")[0]

    @property
    def expectation(self):
        return f"a {self.noun} {self.signature} that returns {self.returns}"

    def refuse(self, answer):
        """Raise `Named` where the answer is not the kind of object asked for."""
        is_class = issubclass(type(answer), type)
        if is_class or not callable(answer):
            what = "the class " if is_class else ""
            raise Named("not-a-function", f"Got {what}{safe_text(answer)}.")
        if not all(accepts(answer, case.args) for case in self.cases):
            raise Named("wrong-signature", _arity(answer))

    def observe(self, answer, case, memory):
        """Run the answer on a case; return the `Trial`."""
        got, expected = seeded(answer, case.args), quietly(self.oracle, case.args)
        if self.parts and type(got.value) is list:
            got.value = tuple(got.value)
        trial = Trial(case, case.args, got, expected, answer)
        if self.observe_as and trial.same_form:
            trial.through = partial(partial, self.observe_as)
            trial.outcome = seeded(trial.through(answer), case.args)
            trial.expected = quietly(trial.through(self.oracle), case.args)
        return trial

    def subject(self, answer, memory):
        """Return what the facts look at, or None where there is nothing to look at."""
        return (answer,)

    def looks(self, right):
        """Return the facts to look at where all results are right, or not all."""
        return self.facts

    def parameters(self):
        """Return the names of the inputs."""
        return [*inspect.signature(self.oracle).parameters]

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        return dict(zip(self.parameters(), case.args))


def unchanged(function):
    """Return the function itself: its plain result is what is compared."""
    return function


@dataclass(eq=False)
class Trial:
    """The answer on one case: what it gave and what is right."""

    case: Case
    args: tuple
    outcome: Outcome
    expected: Outcome
    call: Callable = None
    through: Callable = unchanged  # how a function is run to be compared

    @property
    def same_form(self):
        """Whether the answer gave something of the right type, shape and kind."""
        got = self.outcome
        return got.error is None and same_form(got.value, self.expected.value)

    @property
    def right(self):
        got = self.outcome
        if self.case.raises is not None:
            return isinstance(got.error, self.case.raises)
        return got.error is None and agrees(got.value, self.expected.value)

    @property
    def finite(self):
        """Whether the answer gave something, all of it finite numbers."""
        return self.outcome.error is None and all_finite(self.outcome.value)

    @property
    def evidence(self):
        return SimpleNamespace(
            args=self.args,
            got=self.outcome.value,
            expected=self.expected.value,
            inputs=self.case.args,
            call=self.call,
        )


def examine(exercise, answer):
    """Return the `Result` of an answer; its text has no heading yet."""
    memory = {}
    try:
        exercise.refuse(answer)
        trials = _run(exercise, answer, memory)
        early = (
            _nothing(exercise, trials[0])
            or _recognised(exercise, trials)
            or _errors_missing(exercise, trials)
        )
        if early is None and not trials[-1].outcome.stopped:
            right = all(trial.right for trial in trials)
            _look_at_facts(exercise, exercise.subject(answer, memory), right)
    except Named as fact:
        return _refusal(exercise, fact.slug, str(fact))
    return early or _judged(exercise, trials)


def _run(exercise, answer, memory):
    """Run every case, or stop where the answer is unfinished or wants to exit."""
    trials = []
    for case in exercise.cases:
        trials.append(exercise.observe(answer, case, memory))
        if trials[-1].outcome.unfinished or trials[-1].outcome.stopped:
            break
    return trials


def _nothing(exercise, trial):
    """Return the result of an answer that is not written yet or returns nothing."""
    got = trial.outcome
    if got.unfinished:
        return Result(False, "not-attempted", f"Expected: {exercise.expectation}.")
    if got.error is None and got.value is None:
        text = "The answer returns None. Is a `return` missing?"
        return _refusal(exercise, "returns-nothing", text)
    return None


def _recognised(exercise, trials):
    """Return the result of the first mistake that gives what the answer gives.

    If none does on every case, the cases that raise or are not finite are left out:
    where two mistakes meet, the other one is often seen there alone.
    """
    if trials[-1].outcome.stopped:
        return None
    usual = [trial for trial in trials if trial.case.raises is None]
    finite = [trial for trial in usual if trial.finite]
    for some in (usual, finite) if len(finite) < len(usual) else (usual,):
        wrong = [trial for trial in some if not trial.right]
        for mistake in exercise.mistakes if wrong else ():
            if all(_matches(mistake, trial) for trial in some):
                return _explained(exercise, mistake, wrong[0])
    return None


def _errors_missing(exercise, trials):
    """Return the result where all is right but for an error that is to be raised."""
    wrong = [trial for trial in trials if not trial.right]
    if not wrong or wrong[0].case.raises is None:
        return None
    slug, text = wrong[0].case.otherwise
    return slug and Result(False, slug, f"{difference(exercise, wrong[0])}\n{text}")


def _look_at_facts(exercise, subject, right):
    """Raise `Named` for the first fact that is found."""
    for look in exercise.looks(right) if subject else ():
        found = attempt(look, *subject, tidy=lambda found: found).value
        if found:
            raise Named(*found)


def _judged(exercise, trials):
    """Return the result where nothing was recognised: passed, or what differs."""
    wrong = [trial for trial in trials if not trial.right]
    for trial in trials:
        if trial.outcome.changed is not None:
            name = [*exercise.inputs(trial.case)][trial.outcome.changed]
            text = f"`{name}` is not what it was before: make a new one instead."
            return Result(False, "input-changed", text)
    if wrong:
        return Result(False, None, describe(exercise, wrong))
    return Result(True, None, f"{len(trials)} inputs tried, all right.")


def _matches(mistake, trial):
    """Say whether a mistake gives on this case what the answer gave."""
    theirs = quietly(trial.through(mistake.compute), trial.args)
    got = trial.outcome
    if theirs.error is None or got.error is None:
        return theirs.error is got.error and agrees(got.value, theirs.value)
    said = safe_text(theirs.error)
    same_text = said in ("", safe_text(got.error))
    return type(theirs.error) is type(got.error) and same_text


def _explained(exercise, mistake, trial):
    text = mistake.explain
    if callable(text):
        said = quietly(text, [trial.evidence])
        text = said.value if said.error is None else f"{mistake.slug}."
    return Result(False, mistake.slug, f"{difference(exercise, trial)}\n{text}")


def _refusal(exercise, slug, text):
    return Result(False, slug, f"{text}\nExpected {exercise.expectation}.")


def _arity(answer):
    try:
        return f"The answer takes {inspect.signature(answer)}."
    except BaseException:
        return "The answer does not take these arguments."
