"""An answer as a pipeline of steps: the right way of each, and wrong forms of it.

A step is a function from the state to one value (or several), which the state keeps
under the name that the step gives. A wrong form puts another way in the place of a
step, or of a few that go wrong together. So one description of the steps gives every
answer with one mistake, with two, and with harmless variants of the right way.
"""

import time
import warnings
from dataclasses import dataclass, field
from types import SimpleNamespace

from utils.checks.values import alike

LIMIT = 1.0  # seconds for the search of two mistakes


@dataclass(frozen=True, eq=False)
class Form:
    """A wrong form: `ways` says what some steps do instead.

    `text` explains it; what stands in braces is filled in from the exercise's words
    and from what the wrong form computes. A form without a slug is harmless: another
    right way, which changes what a mistake beside it gives.
    """

    slug: str | None
    text: str
    ways: dict


def form(slug, text="", **ways):
    """Return the `Form` in which these steps go another way."""
    return Form(slug, text, ways)


class State(SimpleNamespace):
    """What the steps have computed so far."""

    def after(self, name, value):
        """Return the state with one value more, or one for each of several names."""
        made = State(**vars(self))
        if type(name) is str:
            setattr(made, name, value)
        else:
            for one, part in zip(name, value):
                setattr(made, one, part)
        return made


class Words(dict):
    """The words that a text may ask for: the exercise's own, sizes, measured facts."""

    def __init__(self, pipeline, state):
        super().__init__(pipeline.words)
        self.facts, self.state = pipeline.facts, state

    def __missing__(self, name):
        return self.facts[name](self.state)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The steps of an exercise: `start(*args)` gives what the first step needs.

    `steps` are the right ways by name, in order; `gives` says what each leaves in the
    state, and the last leaves `result`. `forms` are the wrong forms: where two give
    the same, the first is named. `harmless` are other right ways.
    """

    start: object
    steps: dict
    gives: dict
    forms: list
    harmless: list = ()
    words: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)

    def states(self, args, *forms):
        """Return the states before each step and after the last, or up to an error."""
        state = State(**self.start(*args))
        return self.go_on([state], forms)

    def go_on(self, states, forms):
        """Return `states` continued with the steps that are still to do."""
        ways = dict(self.steps)
        for one in forms:
            ways.update(one.ways)
        states = [*states]
        for name in [*ways][len(states) - 1 :]:
            try:
                value = ways[name](states[-1])
            except Exception as error:
                return [*states, error]
            states.append(states[-1].after(self.gives[name], value))
        return states

    def run(self, args, *forms):
        """Return the result with these wrong forms; raise what a step raises."""
        last = self.states(args, *forms)[-1]
        if isinstance(last, Exception):
            raise last
        return last.result

    def first(self, one):
        """Return the place of the first step that a form changes."""
        return min([*self.steps].index(name) for name in one.ways)

    def explain(self, args, forms, one):
        """Return the text of one of the wrong forms that gave a result together."""
        states = [s for s in self.states(args, *forms) if isinstance(s, State)]
        return one.text.format_map(Words(self, states[-1]))

    def at_a_glance(self, forms, trial):
        """Say, by a few entries, whether wrong forms may give what the answer gave."""
        if not trial.states:
            trial.states.extend(self.states(trial.args))
        place = min(map(self.first, forms)) + 1
        return self.gives_the_same(forms, trial.states[:place], trial)

    def pairs(self, trial):
        """Yield wrong forms beside a harmless one, then two wrong ones, that fit."""
        end = time.perf_counter() + LIMIT
        for others in (self.harmless, self.forms):
            for i, one in enumerate(self.forms):
                states = self.states(trial.args, one)
                after = self.forms[i + 1 :] if others is self.forms else others
                for other in after:
                    if time.perf_counter() > end:
                        return
                    place = self.first(other) + 1
                    if one.ways.keys() & other.ways.keys() or len(states) <= place:
                        continue
                    both = [one, other]
                    if self.gives_the_same(both, states[:place], trial):
                        yield tuple(sorted(both, key=self.first))

    def gives_the_same(self, forms, states, trial):
        """Say, at a glance, whether the forms give what the answer gave on a case."""
        last = self.go_on(states, forms)[-1]
        if isinstance(last, Exception):
            return trial.outcome.error is not None
        return trial.outcome.error is None and alike(trial.outcome.value, last.result)


class quiet(warnings.catch_warnings):
    """Keep warnings of wrong forms from the reader."""

    def __enter__(self):
        super().__enter__()
        warnings.simplefilter("ignore")
