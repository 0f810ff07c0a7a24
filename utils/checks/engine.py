"""Compare an answer with the right result and with what each known mistake gives.

An exercise is data: an oracle, a list of cases, a pipeline of steps with wrong forms.
The answer runs on every case; a mistake is named when it gives what the answer gives.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

from utils.checks import search
from utils.checks.guard import Outcome, accepts, attempt, quietly, seeded
from utils.checks.messages import describe, difference, inputs
from utils.checks.steps import Named, Pipeline, Refused, texts_of
from utils.checks.values import (
    agrees,
    all_finite,
    factor_of,
    first_axis,
    number,
    safe_text,
    same_form,
    sample,
)

FACTS = texts_of(__file__)["FACTS"]


@dataclass(frozen=True)
class Result:
    """What a check found: `passed`, the slug of a named mistake or None, the text.

    Where two mistakes together give what the answer gave, `also` is the second slug.
    """

    passed: bool
    diagnosis: str | None
    message: str
    also: str | None = None

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


@dataclass(frozen=True, eq=False)
class Case:
    """One small input: made by `case`."""

    args: tuple
    note: str
    raises: type | None
    otherwise: Named | None
    settings: dict


def case(*args, note="", raises=None, otherwise=None, **settings):
    """Return a case with these positional arguments.

    `note` says what is special about it. Where an error is the right result, `raises`
    is its type and `otherwise` names an answer that raises none.
    With `special=True` a failure here is shown only where no other case fails.
    """
    return Case(args, note, raises, otherwise, settings)


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise whose answer is a function.

    `returns` ends the sentence "expected a function … that returns …"; `parts` names
    the entries of a returned tuple, and those of a tuple in it. Where no mistake is
    recognised, `facts`, functions `(answer) -> Named or None`, may still name one that
    is seen otherwise (`when_right`: only where all results are right), and
    `properties`, functions `(evidence) -> text or None`, say in words what is wrong.
    Mistakes are the wrong forms of the `pipeline`, and two of them together.
    `observe_as(call, *args)` uses a function as it likes and returns what is compared:
    for results that are random. It is given the answer, the oracle and each mistake.
    """

    id: str
    signature: str
    returns: str
    oracle: Callable
    cases: list
    pipeline: Pipeline
    parts: tuple = ()
    facts: tuple = ()
    when_right: tuple = ()
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
        """Raise `Refused` where the answer is not the kind of object asked for."""
        is_class = issubclass(type(answer), type)
        if is_class or not callable(answer):
            what = f"{'the class ' if is_class else ''}{safe_text(answer)}"
            raise FACTS.refusal("not-a-function", what=what)
        if not all(accepts(answer, case.args) for case in self.cases):
            raise FACTS.refusal("wrong-signature", taken=taken(answer))

    def observe(self, answer, case, memory):
        """Run the answer on a case; return the `Trial`."""
        got, expected = seeded(answer, case.args), quietly(self.oracle, case.args)
        if self.parts and type(got.value) is list:
            got.value = tuple(got.value)
        trial = Trial(case, case.args, got, expected, answer)
        if self.observe_as and trial.same_form:
            trial.observe_as = self.observe_as
            trial.outcome = seeded(trial.observer(answer), case.args)
            trial.expected = quietly(trial.observer(self.oracle), case.args)
        return trial

    def subject(self, answer, memory):
        """Return what the facts look at, or None where there is nothing to look at."""
        return (answer,)

    def facts_for(self, right):
        """Return the facts to look at where all results are right, or not all."""
        return (*self.facts, *(self.when_right if right else ()))

    def parameters(self):
        """Return the names of the inputs."""
        return [*inspect.signature(self.oracle).parameters]

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        return dict(zip(self.parameters(), case.args))


@dataclass(eq=False)
class Trial:
    """The answer on one case: what it gave and what is right."""

    case: Case
    args: tuple
    outcome: Outcome
    expected: Outcome
    call: Callable = None
    observe_as: Callable | None = None  # that of the exercise, where results have form
    right_states: list = field(default_factory=list)  # which the pipeline fills

    def observer(self, function):
        """Return what is called in place of a function, for what is compared."""
        if self.observe_as is None:
            return function
        return partial(self.observe_as, function)

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
    def observed(self):
        """Whether something else than the plain result is compared."""
        return self.observe_as is not None

    @property
    def finite(self):
        """Whether the answer gave something, all of it finite numbers."""
        return self.outcome.error is None and all_finite(self.outcome.value)

    @property
    def comparable(self):
        """Whether a value is the right result here, and the answer came so far."""
        return self.case.raises is None and self.expected.value is not None

    @property
    def special(self):
        return bool(self.case.settings.get("special"))

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
            _endless(exercise, trials[-1])
            or _unfinished(exercise, trials[0])
            or _named(exercise, search.on_every_case(exercise, trials))
            or _nothing_in_a_branch(exercise, trials)
            or _errors_missing(exercise, trials)
        )
        if early is None and not trials[-1].outcome.stopped:
            right = all(t.right and t.outcome.changed is None for t in trials)
            _look_at_facts(exercise, exercise.subject(answer, memory), right)
            early = _multiplied(exercise, trials) or _named(
                exercise, search.with_another(exercise, trials)
            )
    except Refused as refused:
        return _refusal(exercise, *refused.args)
    return early or _judged(exercise, trials)


def _run(exercise, answer, memory):
    """Run every case, or stop where the answer is unfinished or wants to exit."""
    trials = []
    for case in exercise.cases:
        trials.append(exercise.observe(answer, case, memory))
        if trials[-1].outcome.unfinished or trials[-1].outcome.stopped:
            break
    return trials


def _endless(exercise, trial):
    """Return the result of an answer that had to be stopped."""
    if not trial.outcome.endless:
        return None
    at = f"\n  at {trial.outcome.where}" if trial.outcome.where else ""
    name = FACTS.name("never-ends", inputs=inputs(exercise, trial.case), at=at)
    return Result(False, name.slug, name.text)


def _unfinished(exercise, trial):
    """Return the result of an answer that is not written yet or returns nothing."""
    got = trial.outcome
    if got.unfinished:
        return Result(False, "not-attempted", f"Expected: {exercise.expectation}.")
    if got.error is None and got.value is None:
        return _refusal(exercise, FACTS.name("returns-nothing"))
    return None


def _nothing_in_a_branch(exercise, trials):
    """Return the result of an answer that returns nothing on some inputs."""
    for trial in trials:
        if trial.comparable and trial.outcome.error is None:
            if trial.outcome.value is None:
                return _shown_on(exercise, trial, FACTS.name("returns-nothing 2"))
    return None


def _multiplied(exercise, trials):
    """Return the result where all is right but for a factor on it."""
    wrong = [t for t in trials if not t.right and not t.special and t.comparable]
    if len(wrong) < 2 or any(trial.observed for trial in wrong):
        return None
    factors = [factor_of(t.outcome.value, t.expected.value) for t in wrong]
    if None in factors:
        return None
    same = max(factors) - min(factors) < 1e-3 * abs(factors[0])
    key = "multiplied" if same else "multiplied 2"
    return _shown_on(exercise, wrong[0], FACTS.name(key, factor=number(factors[0])))


def _samples_mixed(exercise, trials):
    """Return the result where each sample alone is right, and the batch is not."""
    for trial in trials:
        if trial.right or trial.special or trial.observed or not trial.same_form:
            continue
        count = first_axis(trial.expected.value)
        if count > 1 and all(_alone(exercise, trial, i, count) for i in range(count)):
            return _shown_on(exercise, trial, FACTS.name("samples-mixed", count=count))
    return None


def _alone(exercise, trial, i, count):
    """Say whether the answer is right on sample i alone, if the oracle has samples."""
    args = sample(trial.case.args, i, count)
    weights = trial.args[: len(trial.args) - len(args)]  # none, or those of a module
    right = quietly(exercise.oracle, (*weights, *args)).value
    if not agrees(right, sample(trial.expected.value, i, count)):
        return False
    return agrees(quietly(trial.call, args).value, right)


def _errors_missing(exercise, trials):
    """Return the result where all is right but for an error that is to be raised."""
    wrong = [trial for trial in trials if not trial.right]
    in_place = any(trial.outcome.changed is not None for trial in trials)
    if in_place or not wrong or wrong[0].case.raises is None:
        return None
    name = wrong[0].case.otherwise
    return name and _shown_on(exercise, wrong[0], name)


def _look_at_facts(exercise, subject, right):
    """Raise `Refused` for the first fact that is found."""
    for look in exercise.facts_for(right) if subject else ():
        found = attempt(look, *subject, tidy=lambda found: found)
        if found.endless:
            raise FACTS.refusal("never-ends 2")
        if search.STRICT and right and found.error and not found.where:
            raise found.error
        if found.value:
            raise Refused(found.value)


def _judged(exercise, trials):
    """Return the result where nothing was recognised: passed, or what differs."""
    wrong = [trial for trial in trials if not trial.right]
    for trial in trials:
        if trial.outcome.changed is not None:
            changed = exercise.parameters()[trial.outcome.changed]
            name = FACTS.name("input-changed", input=changed)
            return Result(False, name.slug, name.text)
    if wrong:
        return (
            _samples_mixed(exercise, trials)
            or _named(exercise, search.on_most_cases(exercise, trials))
            or Result(False, None, describe(exercise, wrong))
        )
    return Result(True, None, f"{len(trials)} inputs tried, all right.")


def _named(exercise, found):
    """Return the result of a mistake that was found, if there is one."""
    if found is None:
        return None
    text = f"{difference(exercise, found.trial)}\n{found.text}"
    return Result(False, found.slugs[0], text, *found.slugs[1:])


def _shown_on(exercise, trial, name):
    """Return the result of a mistake with this name, shown on one case."""
    return Result(False, name.slug, f"{difference(exercise, trial)}\n{name.text}")


def _refusal(exercise, name):
    return Result(False, name.slug, f"{name.text}\nExpected {exercise.expectation}.")


def taken(answer):
    """Return in words what arguments an answer takes."""
    try:
        return str(inspect.signature(answer))
    except BaseException:
        return "other arguments"
