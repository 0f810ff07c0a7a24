"""Exercises, their cases, and the runs of an answer on these.

An exercise is data: a list of cases, the steps to the right result, and their wrong
variants.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from utils.checks.answers import FunctionAnswer, ModuleAnswer
from utils.checks.guard import Outcome, seeded, supervised
from utils.checks.pipeline import Pipeline
from utils.checks.steps.returned import RETURNED, RETURNING_STEPS
from utils.checks.values import agrees, clean, copied, safe_text, same_form


class Case:
    """Inputs on which answers are tried: the positional arguments.

    note: what is special about them, for the message
    build: for a module, the arguments that build it
    """

    def __init__(self, *args, note="", build=None):
        self.args, self.note, self.build = args, note, build


def draw(*shape, seed=0, scale=1.0, shift=0.0):
    """Draw from a normal distribution, seeded by shape and seed."""
    drawn = torch.randn(*shape, generator=_generator(shape, seed), device="cpu")
    return drawn * scale + shift


def integers(low, high, shape):
    """Return random integers from `low` up to `high` (excluded)."""
    return torch.randint(low, high, shape, generator=_generator(shape), device="cpu")


def _generator(shape, seed=0):
    """Return a generator that depends on shape and seed."""
    for size in shape:
        seed = 1009 * seed + size + 1
    return torch.Generator(device="cpu").manual_seed(seed % 2**32)


@dataclass(eq=False)
class Run:
    """What an answer did on one case, and what is right there.

    args: the arguments of the steps; for a module, `learned` is first
    outcome: what the answer returned or raised
    expected: what is right
    compared: the exercise's method of that name
    """

    case: Case
    args: tuple
    outcome: Outcome
    expected: object
    compared: Callable

    @property
    def got(self):
        return self.outcome.value

    @property
    def error(self):
        return self.outcome.error

    @property
    def is_right(self):
        """Whether the answer gave what is right, up to rounding."""
        return self.error is None and agrees(self.got, self.expected)

    def outcome_of(self, function):
        """Return the outcome of a function on this case, compared like the answer."""
        outcome = seeded(partial(self.compared, function), self.args)
        if isinstance(outcome.error, KeyboardInterrupt):  # of the search for mistakes
            raise outcome.error
        return outcome


@dataclass(eq=False)
class Exercise:
    """An exercise whose answer is a function or a class.

    id: as in the notebook, "4.1"
    signature: the name and the parameters
    returns: ends the sentence "Expected a function … that returns …"
    cases: of type `Case`; of those that fail a message shows the first
    steps, variants: of the `Pipeline`, whose inputs are the parameters of the signature,
        or for a module `learned` and `x`; ValueError for a variant of other steps
    without: names of shared variants that this exercise leaves out
    is_trained: whether a function is part of layers that are trained, so that gradients
        must pass through it, as they must through every class
    parts: names of the entries of a returned tuple, and of those of a tuple in it
    facts: functions (answer) -> Diagnosis or None, for what no variant shows
    observe: if results are random, function (answer, *args) that returns what is
        compared; the right result and the variants go through it too
    projections: if the answer is an `nn.Module` class, the names of the matrices that
        it learns, see `ModuleAnswer`; each case states how it is built
    page: the deeper notebook that asks it, "deeper/shared_heads"
    """

    id: str
    signature: str
    returns: str
    cases: list
    steps: dict
    variants: list
    without: tuple = ()
    parts: tuple = ()
    facts: tuple = ()
    is_trained: bool = False
    observe: Callable | None = None
    projections: tuple | None = None
    page: str = ""

    def __post_init__(self):
        inputs = {"learned": None, "x": None}
        if self.projections is None:
            arguments = ast.parse(f"def {self.signature}: 0").body[0].args
            names = [argument.arg for argument in arguments.args]
            defaults = [ast.literal_eval(node) for node in arguments.defaults]
            defaults = [None] * (len(names) - len(defaults)) + defaults
            inputs = dict(zip(names, defaults))
        steps = self.steps | RETURNING_STEPS
        every = (*self.variants, *RETURNED)
        variants = [v for v in every if v.name not in self.without]
        for variant in variants:
            if unknown := variant.overrides.keys() - inputs.keys() - steps.keys():
                where = f"{variant.name} of {self.id}"
                raise ValueError(f"expected known steps in {where}, got {unknown}")
        self.pipeline = Pipeline(inputs, steps, variants)

    @property
    def name(self):
        return self.signature.partition("(")[0]

    @property
    def noun(self):
        return "function" if self.projections is None else "class"

    @property
    def expectation(self):
        return f"a {self.noun} {self.signature} that returns {self.returns}"

    def right(self, *args):
        """Return the right result for the arguments of a case."""
        return self.pipeline.run(args)

    def prepare(self, answer):
        """Return an answer ready to be tried; raise `AnswerRejected` if it is none."""
        if self.projections is None:
            return FunctionAnswer(answer)
        return ModuleAnswer(answer, self.projections)

    def run_case(self, answer, case):
        """Run a prepared answer on a case; return the `Run`."""
        call, args = answer.bind(case)
        outcome = seeded(partial(self.compared, supervised()(call)), args)
        expected = seeded(partial(self.compared, self.right), args).value
        return Run(case, args, outcome, expected, self.compared)

    def compared(self, function, *args):
        """Return what is compared of a function: its result, or what `observe` returns.

        The latter if results are random, and this one looks like the right one.
        """
        if self.observe is None:
            return function(*args)
        result = function(*map(copied, args))
        if same_form(clean(result), self.right(*args)):
            return self.observe(function, *args)
        return result

    def inputs(self, case):
        """Return the names and values of the inputs that a message shows."""
        if self.projections is None:
            return dict(zip(self.pipeline.inputs, case.args))
        built = ", ".join(map(safe_text, case.build))
        return {f"{self.name}({built}), x": case.args[0]}
