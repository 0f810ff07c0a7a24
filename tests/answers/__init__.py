"""Answers to the exercises: those of strangers, and ours where these are few.

`@right("softmax")` registers an answer that must pass. `@wrong("softmax", "…")`
registers one with these mistakes, each in its author's words. Ours are all right.
"""

import importlib
import pkgutil
from dataclasses import dataclass

ANSWERS = []


@dataclass(frozen=True)
class Answer:
    """An answer to the exercise of this name, and what is wrong with it in words."""

    exercise: str
    answer: object
    mistakes: tuple = ()


def right(exercise):
    """Register the decorated function or class as a right answer."""
    return wrong(exercise)


def wrong(exercise, *mistakes):
    """Register the decorated function or class as an answer with these mistakes."""

    def register(answer):
        ANSWERS.append(Answer(exercise, answer, mistakes))
        return answer

    return register


def answers(package):
    """Return the answers of a package: of this one, or of `strangers`."""
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg and not module.name.startswith("test_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return [
        a for a in ANSWERS if a.answer.__module__.rpartition(".")[0] == package.__name__
    ]
