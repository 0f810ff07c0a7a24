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
from utils.checks.search import Found
from utils.checks.steps import Pipeline, Refused, texts_of
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

    Where two mistakes are named, `also` is the second slug.
    """

    passed: bool
    diagnosis: str | None
    message: str
    also: str | None = None

    def _ipython_display_(self):
        """Show nothing: the check has printed its message already."""


def case(*args, note="", raises=None, otherwise=None, **settings):
    """Return a case with these positional arguments.

    `note` says what is special about it. Where an error is the right result, `raises`
    is its type and `otherwise` names an answer that raises none.
    With `special=True` a failure here is shown only where no other case fails.
    """
    return SimpleNamespace(
        args=args, note=note, raises=raises, otherwise=otherwise, settings=settings
    )


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise whose answer is a function.

    `returns` ends the sentence "expected a function … that returns …"; `parts` names
    the entries of a returned tuple, and those of a tuple in it. `facts`, functions
    `(answer) -> Named or None`, name what is seen otherwise (`when_right`: only where
    all results are right, or explained by a mistake). Where nothing is recognised,
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

    def noted(self, memory):
        """Return the names of what was wrong before there were results."""
        return []

    def parameters(self):
        """Return the names of the inputs."""
        return [*inspect.signature(self.oracle).parameters]

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        return dict(zip(self.parameters(), case.args))


@dataclass(eq=False)
class Trial:
    """The answer on one case: what it gave and what is right."""

    case: SimpleNamespace
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
    except Refused as refused:
        return _told(exercise, [Found(refused.args)])
    if trials[0].outcome.unfinished:
        return Result(False, "not-attempted", f"Expected: {exercise.expectation}.")
    right = all(trial.right for trial in trials if trial.case.raises is None)
    told = _told(exercise, _findings(exercise, trials, right, answer, memory), right)
    wrong = [trial for trial in trials if not trial.right]
    if told is None and wrong:
        return Result(False, None, describe(exercise, wrong))
    return told or Result(True, None, f"{len(trials)} inputs tried, all right.")


def _run(exercise, answer, memory):
    """Run every case, or stop where the answer is unfinished or wants to exit."""
    trials = []
    for case in exercise.cases:
        trials.append(exercise.observe(answer, case, memory))
        if trials[-1].outcome.unfinished or trials[-1].outcome.stopped:
            break
    return trials


def _findings(exercise, trials, right, answer, memory):
    """Yield what is found, or None where nothing is, the most certain first.

    Facts that need right results are looked at where a mistake explains wrong ones,
    too: what is so with this mistake alone is no second one.
    """
    noted, subject = exercise.noted(memory), exercise.subject(answer, memory)
    yield from (Found([name]) for name in noted)
    found = search.on_every_case(exercise, trials) or _nothing(trials)
    found = found or _endless(exercise, trials[-1])
    unknown = not (noted or right or found or trials[-1].outcome.stopped)
    if unknown:
        fact = next(_facts(exercise.facts, subject), None)
        found = Found([fact]) if fact else _multiplied(trials)
        found = found or search.with_another(exercise, trials)
    yield found
    beside = [*_beside(exercise, trials)]
    yield from beside
    if right or found and found.mistake and not found.trial.outcome.error:
        looks = (*exercise.facts, *exercise.when_right)
        alone = found and exercise.subject(found.mistake.compute, {})
        known = {name.slug for name in _facts(looks, alone)}
        for name in _facts(looks, subject, strict=right and not (noted or beside)):
            if name.slug not in known:
                yield Found([name])
    elif unknown and not found:
        mixed = _samples_mixed(exercise, trials)
        yield mixed or search.on_most_cases(exercise, trials)


def _endless(exercise, trial):
    """Find an answer that had to be stopped."""
    if not trial.outcome.endless:
        return None
    at = f"\n  at {trial.outcome.where}" if trial.outcome.where else ""
    name = FACTS.name("never-ends", inputs=inputs(exercise, trial.case), at=at)
    return Found([name])


def _nothing(trials):
    """Find an answer that returns nothing, on all inputs or on some."""
    usual = [t for t in trials if t.comparable and t.outcome.error is None]
    nothing = [trial for trial in usual if trial.outcome.value is None]
    if not nothing:
        return None
    if len(nothing) == len(usual):
        return Found([FACTS.name("returns-nothing")])
    return Found([FACTS.name("returns-nothing 2")], nothing[0])


def _multiplied(trials):
    """Find a factor where all is right but for it."""
    wrong = [t for t in trials if not t.right and not t.special and t.comparable]
    if len(wrong) < 2 or any(trial.observed for trial in wrong):
        return None
    factors = [factor_of(t.outcome.value, t.expected.value) for t in wrong]
    if None in factors:
        return None
    same = max(factors) - min(factors) < 1e-3 * abs(factors[0])
    key = "multiplied" if same else "multiplied 2"
    return Found([FACTS.name(key, factor=number(factors[0]))], wrong[0])


def _samples_mixed(exercise, trials):
    """Find that each sample alone is right, and the batch is not."""
    for trial in trials:
        if trial.right or trial.special or trial.observed or not trial.same_form:
            continue
        count = first_axis(trial.expected.value)
        if count > 1 and all(_alone(exercise, trial, i, count) for i in range(count)):
            return Found([FACTS.name("samples-mixed", count=count)], trial)
    return None


def _alone(exercise, trial, i, count):
    """Say whether the answer is right on sample i alone, if the oracle has samples."""
    args = sample(trial.case.args, i, count)
    weights = trial.args[: len(trial.args) - len(args)]  # none, or those of a module
    right = quietly(exercise.oracle, (*weights, *args)).value
    if not agrees(right, sample(trial.expected.value, i, count)):
        return False
    return agrees(quietly(trial.call, args).value, right)


def _beside(exercise, trials):
    """Yield what is seen beside the results: a changed input, an error not raised."""
    changed = next((t for t in trials if t.outcome.changed is not None), None)
    if changed:
        name = exercise.parameters()[changed.outcome.changed]
        yield Found([FACTS.name("input-changed", input=name)])
    runs = any(t.comparable and t.outcome.error is None for t in trials)
    for trial in trials if runs else ():
        if trial.case.otherwise and not trial.right:
            yield Found([trial.case.otherwise], trial)


def _facts(looks, subject, strict=False):
    """Yield the names that these facts give."""
    for look in looks if subject else ():
        seen = attempt(look, *subject, tidy=lambda name: name)
        if seen.endless:
            yield FACTS.name("never-ends 2")
            return
        if search.STRICT and strict and seen.error and not seen.where:
            raise seen.error
        if seen.value:
            yield seen.value
            strict = False  # the others may fail where this one holds


def _told(exercise, findings, right=False):
    """Return the result that tells the first two names, or None where there is none."""
    names, trial = {}, None
    for found in filter(None, findings):
        for name in found.names:
            names.setdefault(name.slug, name.text)
        trial = trial or found.trial
        if len(names) > 1:
            break
    if not names:
        return None
    slugs = [*names][:2]
    text = " And: ".join(names[slug] for slug in slugs)
    text = f"Two things are wrong. {text}" if len(slugs) > 1 else text
    text += " Apart from that, the results are right." * right
    if trial:
        text = f"{difference(exercise, trial)}\n{text}"
    else:
        text = f"{text}\nExpected {exercise.expectation}."
    return Result(False, slugs[0], text, *slugs[1:])


def taken(answer):
    """Return in words what arguments an answer takes."""
    try:
        return str(inspect.signature(answer))
    except BaseException:
        return "other arguments"
