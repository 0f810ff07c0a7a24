"""The bank: right and wrong answers to every exercise, written as a reader would.

One module per notebook. `@right("4.1")` registers an answer that must pass;
`@wrong("4.1", "scale-missing")` one that must be refused under this name;
`@wrong("4.1", named=False)` one that must be refused and is known to stay unnamed.
"""

import importlib
import pkgutil
from dataclasses import dataclass

ANSWERS = []


@dataclass(frozen=True)
class Answer:
    """One answer of the bank; `slug` is the name that a wrong one must get."""

    exercise: str
    label: str
    answer: object
    right: bool
    slug: str | None = None
    named: bool = True


def right(exercise):
    """Register the decorated function or class as a right answer."""

    def register(answer):
        label = f"{exercise}-right-{answer.__name__}"
        ANSWERS.append(Answer(exercise, label, answer, right=True))
        return answer

    return register


def wrong(exercise, slug=None, *, named=True):
    """Register the decorated function or class as a wrong answer."""

    def register(answer):
        label = f"{exercise}-wrong-{answer.__name__}"
        ANSWERS.append(Answer(exercise, label, answer, False, slug, named))
        return answer

    return register


def answers():
    """Return every answer of the bank."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith(("test_", "score", "second")):
            importlib.import_module(f"{__name__}.{module.name}")
    return ANSWERS


def counts():
    """Return how many answers are right, wrong, and wrong with a name expected."""
    rights = sum(answer.right for answer in answers())
    named = sum(answer.named and not answer.right for answer in answers())
    return rights, len(answers()) - rights, named
