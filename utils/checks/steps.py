"""An answer as a pipeline of steps: the right way of each, and wrong forms of it.

A step is a function from the state to one value (or several), which the state keeps
under the name that the step gives. A wrong form puts another way in the place of a
step, or of a few that go wrong together. So one description of the steps gives every
answer with one mistake, with two, and with harmless variants of the right way.
"""

import time
import tomllib
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, combinations, product
from pathlib import Path
from types import SimpleNamespace

from utils.checks.values import alike, amount

LIMIT = 1.0  # seconds for the search of two mistakes


@dataclass(frozen=True, eq=False)
class Form:
    """A wrong form: `ways` says what some steps do instead.

    `text` explains it; what stands in braces is filled in from `words`, its own and
    the pipeline's: each a text, or a function of what the wrong form has computed. A
    form without a slug is harmless: another right way, which changes what a mistake
    beside it gives.
    """

    slug: str | None
    text: str
    ways: dict
    words: dict = field(default_factory=dict)


def form(slug, text="", /, **ways):
    """Return the `Form` in which these steps go another way."""
    return Form(slug, text, ways)


@dataclass(frozen=True)
class Named:
    """The name of a mistake that no wrong form gives: a slug and a text."""

    slug: str
    text: str


class Refused(Exception):
    """Raised with a `Named`, the one argument: the answer needs no further look."""


class Texts(dict):
    """A group of texts by key.

    A key is a slug; where one slug has several texts, what follows a space tells them
    apart.
    """

    def name(self, key, /, **words):
        """Return the `Named` of a key: its slug, and its text with these words."""
        return Named(key.split()[0], self[key].format_map(words))

    def refusal(self, key, /, **words):
        """Return the error that refuses an answer under the name of this key."""
        return Refused(self.name(key, **words))


def texts_of(file):
    """Return the groups of texts of a module: those of the .toml beside it."""
    path = Path(file).with_suffix(".toml")
    groups = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Texts(group) for name, group in groups.items()}


class Forms(list):
    """A group of wrong forms, in the order in which they are looked for.

    `texts`, a group of them, explain the forms by key.
    """

    def __init__(self, texts=None):
        super().__init__()
        self.texts = texts

    def wrong(self, key, words=None, /, **ways):
        """Add the form in which these steps go another way.

        `words` are its own, for what stands in braces in its text.
        """
        self.append(Form(key.split()[0], self.texts[key], ways, words or {}))

    def also(self, **ways):
        """Add a harmless form: these steps go another way that is right as well."""
        self.append(Form(None, "", ways))


class State(SimpleNamespace):
    """What the steps have computed so far."""


def store(state, name, value):
    """Store a value in the state under its name, or each of several under one."""
    if type(name) is str:
        setattr(state, name, value)
    else:
        vars(state).update(zip(name, value))


def upon(right, first, second, state):
    """Return what a step makes by `second` of what it makes by `first`.

    That is known where the right way hands on what it finds in the state.
    """
    handed, made = right(state), first(state)
    if type(handed) is not tuple:
        handed, made = (handed,), (made,)
    found = {}
    for old, new in zip(handed, made, strict=True):
        names = [name for name, value in vars(state).items() if value is old]
        listed = names and hasattr(old, "__len__")  # equal numbers are one object
        if not listed or type(made) is not tuple:
            raise LookupError("this step makes something new")
        found |= dict.fromkeys(names, new)
    return second(State(**vars(state) | found))


@dataclass(frozen=True)
class Words:
    """The words that a text asks for, each a text or found in a state."""

    known: dict
    state: State

    def __getitem__(self, name):
        word = self.known[name]
        return word(self.state) if callable(word) else word


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The steps of an exercise: `start(*args)` gives what the first step needs.

    `steps` are the right ways by name, in order. What each stores in the state has the
    name of the step, or that in `gives`; the last stores `result`. `forms` are the
    wrong forms: where two give the same, the first is named. `harmless` are other right
    ways. `words` are for all texts of the forms.
    """

    start: object
    steps: dict
    forms: list
    gives: dict = field(default_factory=dict)
    harmless: list = ()
    words: dict = field(default_factory=dict)

    @cached_property
    def mistakes(self):
        """The wrong forms alone, in the order in which they are looked for."""
        return [Mistake(self, (one,)) for one in self.forms]

    def ways(self, forms):
        """Return the steps with wrong forms, two of one step one upon the other."""
        right, ways = self.steps, dict(self.steps)
        for name, way in chain(*(one.ways.items() for one in forms)):
            met = ways[name] is not right[name]
            ways[name] = partial(upon, right[name], ways[name], way) if met else way
        return ways

    def states(self, args, *forms):
        """Return the states before each step and after the last, or up to an error."""
        states = [State(**self.start(*args))]
        for name, way in self.ways(forms).items():
            state = State(**vars(states[-1]))
            try:
                store(state, self.gives.get(name, name), way(state))
            except Exception as error:
                return [*states, error]
            states.append(state)
        return states

    def run(self, args, *forms):
        """Return the result with these wrong forms; raise what a step raises."""
        return self.go_on(State(**self.start(*args)), 0, forms)

    def go_on(self, state, place, forms):
        """Return the result from the state before the step at `place` on."""
        state, ways = State(**vars(state)), self.ways(forms)
        for name in [*ways][place:]:
            store(state, self.gives.get(name, name), ways[name](state))
        return state.result

    def first(self, one):
        """Return the place of the first step that a form changes."""
        return min([*self.steps].index(name) for name in one.ways)

    def explain(self, args, forms, one):
        """Return the text of one of the wrong forms that gave a result together."""
        states = [s for s in self.states(args, *forms) if isinstance(s, State)]
        return one.text.format_map(Words(self.words | one.words, states[-1]))

    def at_a_glance(self, forms, trial):
        """Say, by a few entries, whether wrong forms may give what the answer gave."""
        place = min(map(self.first, forms))
        state = self.right_states(trial)[place]
        return self.gives_the_same(forms, state, place, trial)

    def right_states(self, trial):
        """Return the states of the right way on a case, computed once."""
        if not trial.right_states:
            trial.right_states.extend(self.states(trial.args))
        return trial.right_states

    def pairs(self, trial):
        """Yield wrong forms beside a harmless one, then two wrong ones, that fit.

        The answer gave something here, so a form that fails is none of them. The time
        is the processor's: a busy machine finds the same.
        """
        place = {one: self.first(one) for one in (*self.forms, *self.harmless)}
        states = {one: self.states(trial.args, one) for one in place}
        results = {o: s[-1].result for o, s in states.items() if type(s[-1]) is State}
        likely = trial.observed or as_many(trial, results.values())
        end = time.thread_time() + (LIMIT if likely else LIMIT / 5)
        wrong = [one for one in self.forms if one in results]
        harmless = [one for one in self.harmless if one in results]
        for pair in chain(product(wrong, harmless), combinations(wrong, 2)):
            if time.thread_time() > end:
                return
            early, late = sorted(pair, key=place.get)
            meet = not early.ways.keys().isdisjoint(late.ways)
            at = place[early if meet else late]
            for two in ((early, late), (late, early))[: 1 + meet]:
                if self.gives_the_same(two, states[early][at], at, trial):
                    yield Mistake(self, two)

    def gives_the_same(self, forms, state, place, trial):
        """Say, at a glance, whether the forms give what the answer gave on a case."""
        if trial.observed:
            return True
        failed = trial.outcome.error is not None
        try:
            result = self.go_on(state, place, forms)
        except Exception:
            return failed
        return not failed and alike(trial.outcome.value, result)


def as_many(trial, results):
    """Say whether the answer gave as many numbers as the right way or one of these."""
    amounts = map(amount, (trial.expected.value, *results))
    return amount(trial.outcome.value) in amounts


@dataclass(frozen=True)
class Mistake:
    """One wrong form of steps, or two together: what an answer with them gives."""

    pipeline: Pipeline
    forms: tuple

    @property
    def slugs(self):
        return tuple(one.slug for one in self.forms if one.slug)

    def compute(self, *args):
        """Return what the answer gives; take what the oracle takes."""
        return self.pipeline.run(args, *self.forms)

    def explain(self, args):
        """Return the texts of the forms, filled in on a case."""
        wrong = [one for one in self.forms if one.slug]
        return [self.pipeline.explain(args, self.forms, one) for one in wrong]
