"""Answers by authors who had never seen the checks: they say how good the checks are.

Right answers, often unusual ones, and answers with one mistake or two, by four authors;
README.md says how many. The last two authors wrote `later_…`, for nearly all exercises,
and the first two the other files. A mistake is described in its author's words.
`names.toml` lists the diagnoses that fit it; whoever reads a new message decides whether
its diagnosis fits.
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


def load_answers():
    """Return all answers of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return ANSWERS
