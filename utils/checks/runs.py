"""What an answer did on one case, beside what is right there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

from utils.checks.guard import Outcome, quietly
from utils.checks.values import agrees, all_finite, same_form


@dataclass(eq=False)
class Run:
    """An answer on one case.

    args: what the oracle and the variants take: the inputs, for a module after its
        weights
    outcome: what the answer returned or raised
    expected: what is right, or None where an error is
    call: the answer, or the module that it built
    observe: where results are random, the function that makes them comparable
    """

    case: SimpleNamespace
    args: tuple
    outcome: Outcome
    expected: object
    call: Callable
    observe: Callable | None = None
    right_states: list = field(default_factory=list)  # the search computes them once

    @property
    def got(self):
        return self.outcome.value

    @property
    def inputs(self):
        return self.case.args

    @property
    def error(self):
        return self.outcome.error

    @property
    def special(self):
        return self.case.special

    @property
    def is_comparable(self):
        """Whether a value is right here, and not an error, and the answer ran."""
        return self.case.raises is None and self.expected is not None

    @property
    def has_right_form(self):
        """Whether the answer gave something of the right type, shape and kind."""
        return self.error is None and same_form(self.got, self.expected)

    @property
    def is_right(self):
        if self.case.raises is not None:
            return isinstance(self.error, self.case.raises)
        return self.error is None and agrees(self.got, self.expected)

    @property
    def is_finite(self):
        """Whether the answer gave something, all of it finite numbers."""
        return self.error is None and all_finite(self.got)

    def outcome_of(self, function):
        """Return the outcome of a function on this case, observed like the answer."""
        call = partial(self.observe, function) if self.observe else function
        return quietly(call, self.args)
