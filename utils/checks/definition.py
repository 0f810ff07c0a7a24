"""What an exercise is: a right answer, cases to try an answer on, and known mistakes."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch

from utils.checks.engine.forms import FORM_VARIANTS, adapt_form
from utils.checks.engine.guard import run_seeded, supervise
from utils.checks.engine.mistakes import Diagnosis, Mistake, Variant, read_variants
from utils.checks.engine.values import clean, copy_argument, fits_form
from utils.checks.submission import FunctionAnswer, ModuleAnswer


class Case:
    """Inputs on which answers are tried: the positional arguments.

    note: what is special about them, for the message
    build: for a module, the arguments that build it
    """

    def __init__(self, *args, note="", build=None):
        self.args, self.note, self.build = args, note, build


def smallest_case(exercise):
    """Return a case with axes of length 1: another case, cut to first entries.

    The other is the first with the largest number of axes. In x of a module, the last
    axis stays. Returns None if no input has an axis and the exercise has no `smallest_inputs`.
    """

    def cut(value):
        if isinstance(value, tuple):
            return tuple(map(cut, value))
        if not isinstance(value, torch.Tensor):
            return value
        num_cut = value.dim() - (case.build is not None)
        return value[(slice(1),) * num_cut].clone()

    def count_axes(case):
        return max((x.dim() for x in case.args if torch.is_tensor(x)), default=0)

    case = max(exercise.cases, key=count_axes)
    names = [name for name in exercise.inputs if name != "learned"]
    args = [exercise.smallest_inputs.get(n, cut(x)) for n, x in zip(names, case.args)]
    new_case = Case(*args, note="axes of length 1", build=case.build)
    return new_case if exercise.smallest_inputs or count_axes(case) else None


def draw(*shape, seed=0, scale=1.0, shift=0.0):
    """Draw from a normal distribution, seeded by shape and seed."""
    values = torch.randn(*shape, generator=_generator(shape, seed), device="cpu")
    return values * scale + shift


def draw_ids(low, high, shape):
    """Return random integers from `low` up to `high` (excluded)."""
    return torch.randint(low, high, shape, generator=_generator(shape), device="cpu")


def _generator(shape, seed=0):
    """Return a generator that depends on shape and seed."""
    for size in shape:
        seed = 1009 * seed + size + 1
    return torch.Generator(device="cpu").manual_seed(seed % 2**32)


@dataclass(eq=False)
class Exercise:
    """An exercise whose answer is a function or a class.

    id: as in the notebook, "4.1", and "1" to "3" in *Attention in an hour*
    right: the right answer, a function. If a class is asked for, it takes what the
        reader's module has learned, see `ModuleAnswer`, and x
    returns: ends the sentence "Expected a function … that returns …"
    cases: of type `Case`; of those that fail a message shows the first
    mistakes: known ones; those in the form of a result are added
    skip_mistakes: names of shared mistakes, or of wrong forms, that it leaves out
    skip_probes: names of diagnoses on gradients that it leaves out
    parts: names of the entries of a returned tuple, and of those of a tuple in it
    probes: functions (answer) -> `Diagnosis` or None, which find what no result shows
    observe: if results are random, function (answer, *args) that returns what is
        compared; the right result and the mistakes go through it too
    class_signature: if a class is asked for, its name and the parameters that build it
    projections: the names of the matrices that a class learns
    smallest_inputs: those of the smallest case that can't be cut, see `smallest_case`
    course: the course's own version, which later cells use until the reader's passes
    page: its notebook, "deeper/shared_heads", if it isn't the one of the right answer's
        module, "04_scaled_dot_product_attention"
    same_as: the id of the exercise in a numbered notebook that it repeats
    counts_as: the name under which a pass is recorded, if it isn't that of the function:
        then it is only practice for the other, and passing it doesn't pass both
    """

    id: str
    right: Callable
    returns: str
    cases: list
    mistakes: list[Mistake]
    skip_mistakes: tuple = ()
    skip_probes: tuple = ()
    parts: tuple = ()
    probes: tuple[Callable[..., Diagnosis | None], ...] = ()
    observe: Callable | None = None
    class_signature: str = ""
    projections: tuple = ()
    smallest_inputs: dict = field(default_factory=dict)
    course: Callable | None = None
    page: str = ""
    same_as: str = ""
    counts_as: str = ""
    # What follows from the others: kind is "function" or "class", name that of either.
    kind: str = field(init=False)
    name: str = field(init=False)
    label: str = field(init=False)
    expectation: str = field(init=False)
    inputs: list[str] = field(init=False)
    smallest: Case | None = field(init=False)
    variants: list[Variant] = field(init=False)

    def __post_init__(self):
        self.kind = "class" if self.class_signature else "function"
        parameters = inspect.signature(self.right)
        signature = self.class_signature or f"{self.right.__name__}{parameters}"
        self.name = signature.partition("(")[0]
        self.label = f"Exercise {self.id}" if self.id.isdecimal() else self.id
        self.counts_as = self.counts_as or self.name
        module = self.right.__module__.rpartition(".")[2]
        self.page = self.page or f"{int(self.id.partition('.')[0]):02}_{module}"
        self.expectation = f"a {self.kind} {signature} that returns {self.returns}"
        self.inputs = [*parameters.parameters]
        self.smallest = smallest_case(self)
        mistakes = [m for m in self.mistakes if m.name not in self.skip_mistakes]
        form_variants = [v for v in FORM_VARIANTS if v.name not in self.skip_mistakes]
        self.variants = read_variants(self.right, mistakes) + form_variants

    def prepare(self, answer):
        """Return an answer ready to be tried; raise `AnswerRejected` if it is none."""
        answer_type = ModuleAnswer if self.class_signature else FunctionAnswer
        return answer_type(answer, self)

    def run_case(self, answer, case):
        """Run a prepared answer on a case; return the `Run`."""
        function, args = answer.bind(case)
        run = self.call(supervise()(function), args)
        run.case, run.args = case, args
        run.expected = self.call(self.right, args).value
        run.value, run.diagnoses = adapt_form(run.value, run.expected)
        return run

    def call(self, function, args):
        """Return the run of a function: the reader's, the right or a wrong one."""
        return run_seeded(partial(self._call_observed, function), args)

    def _call_observed(self, function, *args):
        """Return a function's result, or what `observe` returns if its form is right."""
        if self.observe is None:
            return function(*args)
        result = function(*map(copy_argument, args))
        if fits_form(clean(result), self.right(*args)):
            return self.observe(function, *args)
        return result
