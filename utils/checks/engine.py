"""Compare an answer with the right result and with what each known mistake gives.

An exercise is data: an oracle, a list of cases, a list of mistakes. The answer runs on
every case; a mistake is named when it gives what the answer gives on every case.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from utils.checks.guard import Outcome, accepts, attempt
from utils.checks.values import Other, agrees, clean, close, kind, numbers, safe_text
from utils.checks.values import one_line, shape, sort


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


@dataclass(frozen=True)
class Case:
    """One small input. `note` says what is special about it, `settings` how to run it."""

    args: tuple
    note: str
    settings: dict


def case(*args, note="", **settings):
    """Return a case with these positional arguments."""
    return Case(args, note, settings)


class Named(Exception):
    """Raised while an answer is being run, where a plain fact names the mistake."""

    def __init__(self, slug, text):
        super().__init__(text)
        self.slug = slug


@dataclass(frozen=True)
class Exercise:
    """An exercise whose answer is a function.

    `returns` ends the sentence "expected a function … that returns …"; `parts` names the
    entries of a returned tuple; `properties` are functions `(evidence) -> text or None`
    that say in words what is wrong where no mistake is recognised.
    """

    id: str
    signature: str
    returns: str
    oracle: Callable
    cases: list
    mistakes: list
    parts: tuple = ()
    properties: tuple = ()

    noun = "function"

    @property
    def name(self):
        return self.signature.partition("(")[0]

    @property
    def expectation(self):
        return f"a {self.noun} {self.signature} that returns {self.returns}"

    def refuse(self, answer):
        """Raise `Named` where the answer is not the kind of object that is asked for."""
        if not callable(answer) or inspect.isclass(answer):
            what = "the class" if inspect.isclass(answer) else "got"
            raise Named("not-a-function", f"{what} {safe_text(answer)}".replace("the", "got the"))
        if not accepts(answer, self.cases[0].args):
            raise Named("wrong-signature", _arity(answer))

    def observe(self, answer, case):
        """Run the answer on a case; return what the oracle needs, and the outcome."""
        return case.args, attempt(answer, *case.args)

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        names = [*inspect.signature(self.oracle).parameters][: len(case.args)]
        return dict(zip(names, case.args, strict=True))


@dataclass
class Trial:
    """The answer on one case: what it gave and what is right."""

    case: Case
    args: tuple
    outcome: Outcome
    expected: Outcome

    @property
    def right(self):
        got, expected = self.outcome, self.expected
        if got.error is not None or expected.error is not None:
            return isinstance(got.error, type(expected.error or 0))
        return agrees(got.value, expected.value)

    @property
    def evidence(self):
        return SimpleNamespace(
            args=self.args, got=self.outcome.value, expected=self.expected.value
        )


def examine(exercise, answer):
    """Return the `Result` of an answer; the text has no heading yet."""
    try:
        exercise.refuse(answer)
        trials = _run(exercise, answer)
    except Named as fact:
        return _refusal(exercise, fact.slug, str(fact))
    first = trials[0].outcome
    if first.unfinished:
        return Result(False, "not-attempted", f"Expected: {exercise.expectation}.")
    if first.error is None and first.value is None and trials[0].expected.value is not None:
        text = "The answer returns None. Is a `return` missing, or a print in its place?"
        return _refusal(exercise, "returns-nothing", text)
    wrong = [trial for trial in trials if not trial.right]
    changed = next((t for t in trials if t.outcome.changed is not None), None)
    if not wrong and changed is None:
        return Result(True, None, f"{len(trials)} inputs tried, all right.")
    if wrong:
        for mistake in exercise.mistakes:
            if not wrong[-1].outcome.stopped and all(_matches(mistake, t) for t in trials):
                return _explained(exercise, mistake, wrong[0])
    if changed is not None:
        name = [*exercise.inputs(changed.case)][changed.outcome.changed]
        text = f"`{name}` is not what it was before the call: work on a new tensor or list."
        return Result(False, "input-changed", text)
    return Result(False, None, describe(exercise, wrong))


def _run(exercise, answer):
    """Run every case, or stop where the answer is unfinished or wants to end the run."""
    trials = []
    for case in exercise.cases:
        args, outcome = exercise.observe(answer, case)
        trials.append(Trial(case, args, outcome, attempt(exercise.oracle, *args)))
        if outcome.unfinished or outcome.stopped:
            break
    return trials


def _matches(mistake, trial):
    """Say whether a mistake gives on this case what the answer gave."""
    theirs = attempt(mistake.compute, *trial.args)
    got = trial.outcome
    if theirs.error is None or got.error is None:
        return theirs.error is got.error and agrees(got.value, theirs.value)
    said = safe_text(theirs.error)
    same_text = said in ("", safe_text(got.error))
    return type(theirs.error) is type(got.error) and same_text


def _explained(exercise, mistake, trial):
    text = mistake.explain
    if callable(text):
        said = attempt(text, trial.evidence)
        text = said.value if said.error is None else mistake.slug.replace("-", " ") + "."
    return Result(False, mistake.slug, f"{difference(exercise, trial)}\n{text}")


def _refusal(exercise, slug, text):
    return Result(False, slug, f"Expected {exercise.expectation}.\n{text}")


def _arity(answer):
    try:
        return f"The answer takes {inspect.signature(answer)}."
    except BaseException:
        return "The answer does not take these arguments."


def describe(exercise, wrong):
    """Say which property fails first, on the smallest input where it does."""
    for look in (_form, _finite, *map(_property, exercise.properties)):
        for trial in wrong:
            text = look(exercise, trial)
            if text:
                return text
    return difference(exercise, wrong[0])


def _form(exercise, trial):
    """Report an error, or another type, length, shape or dtype than expected."""
    got, expected = trial.outcome, trial.expected
    if got.error is None and expected.error is None and _same_form(got.value, expected.value):
        return None
    text = difference(exercise, trial)
    if isinstance(got.value, Other) or type(got.value) is not type(expected.value):
        text = f"Expected {exercise.expectation}.\n{text}"
    return text


def _same_form(got, expected):
    if type(got) is not type(expected):
        return False
    if isinstance(expected, torch.Tensor):
        return got.shape == expected.shape and sort(got) == sort(expected)
    if isinstance(expected, tuple):
        return len(got) == len(expected) and all(map(_same_form, got, expected))
    return True


def _finite(exercise, trial):
    for got in _tensors(trial.outcome.value):
        if got.is_floating_point() and not got.isfinite().all():
            return difference(exercise, trial)
    return None


def _tensors(value):
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _property(look):
    def report(exercise, trial):
        if trial.outcome.error is not None:
            return None
        text = attempt(look, trial.evidence).value
        return f"{difference(exercise, trial)}\n{text}" if isinstance(text, str) else None

    return report


def difference(exercise, trial):
    """Return the lines that show one case: its input, what is expected, what came."""
    on = f"On {_inputs(exercise, trial.case)}"
    got, expected = trial.outcome, trial.expected
    if expected.error is not None:
        came = _raised(got) if got.error else "no error"
        return f"{on}\n  expected {type(expected.error).__name__}\n  got      {came}"
    if got.error is not None:
        return f"{on} your code raised\n  {_raised(got)}"
    what, right, came = _first_difference(exercise, got.value, expected.value)
    return f"{on}{what}\n  expected {right}\n  got      {came}"


def _raised(outcome):
    text = f"{type(outcome.error).__name__}: {safe_text(outcome.error, 160)}"
    return f"{text}\n  at {outcome.where}" if outcome.where else text


def _inputs(exercise, case):
    shown = []
    for name, value in exercise.inputs(case).items():
        if isinstance(value, torch.Tensor) and (value.dim() != 1 or len(value) > 6):
            shown.append(f"{name} {shape(value)}")
        else:
            small = isinstance(value, torch.Tensor)
            shown.append(f"{name} = {numbers(value, 6) if small else safe_text(value)}")
    return ", ".join(shown) + (f" ({case.note})" if case.note else "")


def _first_difference(exercise, got, expected):
    """Return where two values differ first, and the two in text."""
    names = exercise.parts or ("",)
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            return "", f"({', '.join(exercise.parts)})", _summary(got)
        i = next((i for i, e in enumerate(expected) if not agrees(got[i], e)), 0)
        got, expected, what = got[i], expected[i], f" the {names[i]}"
    else:
        what = ""
    if not _same_form(got, expected) or not isinstance(expected, torch.Tensor):
        return what, _summary(expected), _summary(got)
    if expected.dim() == 0:
        return what, numbers(expected)[1:-1], numbers(got)[1:-1]
    row = tuple((~close(got, expected)).nonzero()[0].tolist()[:-1])
    where = f"[{', '.join(map(str, row))}]" if row else ""
    what = f"{what or ' the result'}{where} {'is' if not what or where else 'are'}"
    return what, numbers(expected[row]), numbers(got[row])


def _summary(value):
    if isinstance(value, torch.Tensor):
        return f"a {kind(value)} of shape {shape(value)}".replace("a int", "an int")
    if isinstance(value, tuple):
        return f"({', '.join(map(_summary, value[:4]))})"
    return value.text if isinstance(value, Other) else safe_text(value, 80)


def wrapped(text, width=88):
    """Wrap each line of `text` at `width`, keeping its indent."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        lines += textwrap.wrap(line, width, subsequent_indent=indent) or [""]
    return "\n".join(lines)
