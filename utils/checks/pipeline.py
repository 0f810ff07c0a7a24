"""An answer as a pipeline of steps, and a mistake as a step done another way.

A step is a function from the state to one value (or several), which the state then
holds under the step's name. A variant replaces a few steps by wrong ones, so it gives
what an answer with this mistake gives.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from types import SimpleNamespace


@dataclass(frozen=True)
class Diagnosis:
    """The name of a mistake and the text that explains it to the reader.

    `run` is the run of the answer that shows the mistake, where there is one.
    """

    name: str
    text: str
    run: object = None


class AnswerRejected(Exception):
    """Raised where an answer isn't the kind of object that the exercise asks for."""

    def __init__(self, name, text):
        self.diagnosis = Diagnosis(name, text)


@dataclass(frozen=True, eq=False)
class Variant:
    """A wrong way to do some steps.

    name: of the mistake
    text: what the reader is told; in braces, words of the pipeline or of the state
    overrides: step -> function of the state that takes the place of the right one
    """

    name: str
    text: str
    overrides: dict


def variants(*entries):
    """Return variants, in the order in which they are tried.

    Each text "name: what the reader is told" is followed by the ways to make this
    mistake, each a dict of the steps that it overrides.

    >>> [one] = variants("off-by-one: You counted one too few.", {"n": lambda s: 2})
    >>> one.name, one.text
    ('off-by-one', 'You counted one too few.')
    """
    found = []
    for entry in entries:
        if type(entry) is str:
            name, text = entry.split(": ", 1)
        else:
            found.append(Variant(name, text, entry))
    return found


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The steps of an exercise, right and wrong.

    start: function of the oracle's arguments; returns what the state holds at first
    steps: name -> right step, in order; the last one returns the result
    variants: the wrong ways; of two that give the same the first is named
    outputs: step -> the name under which it stores its value, if not its own, or the
        names of several values
    words: for the texts, name -> text, or function of the last state
    """

    start: Callable
    steps: dict
    variants: list
    outputs: dict = field(default_factory=dict)
    words: dict = field(default_factory=dict)

    def run(self, args, *variants):
        """Return the result with these variants; raise what a step raises."""
        return self.run_from(SimpleNamespace(**self.start(*args)), 0, variants)

    def run_from(self, state, index, variants):
        """Return the result from the state before the step at `index` on."""
        state = SimpleNamespace(**vars(state))
        for name, step in islice(self._steps_with(variants).items(), index, None):
            value = step(state)
            self._store(state, name, value)
        return value

    def states(self, args, *variants):
        """Return the states before each step and after the last, or up to an error."""
        states = [SimpleNamespace(**self.start(*args))]
        for name, step in self._steps_with(variants).items():
            state = SimpleNamespace(**vars(states[-1]))
            try:
                self._store(state, name, step(state))
            except Exception:
                break
            states.append(state)
        return states

    def first_step(self, variant):
        """Return the index of the first step that a variant changes."""
        return min([*self.steps].index(name) for name in variant.overrides)

    def explain(self, args, *variants):
        """Return the text of each variant, all of them at work together."""
        state = self.states(args, *variants)[-1]
        return [self._filled_in(variant.text, state) for variant in variants]

    def _filled_in(self, text, state):
        known = {n: word for n, word in self.words.items() if f"{{{n}}}" in text}
        known = {n: w(state) if callable(w) else w for n, w in known.items()}
        return text.format(**vars(state) | known)

    def _steps_with(self, variants):
        steps = dict(self.steps)
        for variant in variants:
            steps.update(variant.overrides)
        return steps

    def _store(self, state, name, value):
        output = self.outputs.get(name, name)
        if type(output) is str:
            setattr(state, output, value)
        else:
            vars(state).update(zip(output, value))
