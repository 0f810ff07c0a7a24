"""An answer as a pipeline of steps, and a mistake as a step done another way.

A step is a function from the state to one value (or several), which the state then
holds under the step's name. A variant replaces a few steps (or inputs) by wrong ones,
so it gives what an answer with this mistake gives.
"""

from contextlib import suppress
from dataclasses import dataclass
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
    """Raised when the object isn't the kind of answer that is asked for."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A wrong way to do some steps.

    name: of the mistake
    text: the explanation for the reader; in braces, values of the state, or {returns}
    overrides: step -> function of the state that takes the place of the right one
    """

    name: str
    text: str
    overrides: dict


def variants(*entries):
    """Return variants, in the order in which they are tried.

    Each text "name: explanation" is followed by the ways to make this mistake, each a
    dict of the steps that it overrides.

    >>> [one] = variants("off-by-one: You counted one too few.", {"n": lambda s: 2})
    >>> one.name, one.text
    ('off-by-one', 'You counted one too few.')
    """
    made = []
    for entry in entries:
        if type(entry) is str:
            name, text = entry.split(": ", 1)
        else:
            made.append(Variant(name, text, entry))
    return made


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The steps of an exercise, right and wrong.

    inputs: names of the arguments -> defaults; a variant may replace arguments too
    steps: name -> right step, in order; the last one returns the result. A step that
        returns several values has several names, "keys, values"
    variants: known mistakes; two with different names must differ in some case
    """

    inputs: dict
    steps: dict
    variants: list = ()

    def run(self, args, *variants):
        """Return the result with these variants; raise what a step raises."""
        return self._walk(SimpleNamespace(), args, variants)

    def explain(self, args, *variants, **fields):
        """Return the text of each variant, all of them at work together.

        Braces in a text are filled in from `fields` and the last state that is reached.
        """
        state = SimpleNamespace()
        with suppress(Exception):
            self._walk(state, args, variants)
        fields = vars(state) | fields
        return [variant.text.format(**fields) for variant in variants]

    def _walk(self, state, args, variants):
        """Take all steps, so that the state holds their values; return the last."""
        vars(state).update(self.inputs | dict(zip(self.inputs, args)))
        steps = dict(self.steps)
        for variant in variants:
            steps |= variant.overrides
        inputs = steps.keys() - self.steps.keys()
        vars(state).update({name: steps.pop(name)(state) for name in inputs})
        for name, step in steps.items():
            value = step(state)
            if ", " in name:
                vars(state).update(zip(name.split(", "), value))
            else:
                setattr(state, name, value)
        return value
