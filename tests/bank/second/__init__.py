"""Answers by authors who had never seen the checks: they say how good the checks are.

153 right answers, often unusual ones, 255 with one mistake, 227 with two. Those to 1.1
to 11.1 are of one author, written before most checks were described by steps, those to
14.1 to 15.2 of another. `later_…` are of two more, to all exercises. No check is made
for one of them: a mistake that is missed here stays missed, unless answers of another
author show it. Four things were mended all the same. One answer passed, since 2.1 did
not look at the type of the result. One was told what is not so, since 5.5 took NaN for
dropped weights. Another was told by 14.2 that its scores are right, though they were
scaled. Two were told by 3.2 that their softmax runs over the queries, though they had
transposed the weights afterwards, which looks the same. And one that its author
called right counts as wrong, since the card now says that hidden scores become −∞.

A mistake stands here in its author's words. `names.toml` says which names that a check
gave say it rightly; whoever reads a new message decides, and adds the name or does not.
"""

import importlib
import pkgutil
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from utils.checks import check

ANSWERS = []


@dataclass(frozen=True)
class Answer:
    """An answer, and what is wrong with it in its author's words."""

    exercise: str
    answer: object
    mistakes: tuple


def right(exercise):
    """Register the decorated function or class as a right answer."""
    return wrong(exercise)


def wrong(exercise, *mistakes):
    """Register the decorated function or class as an answer with these mistakes."""

    def register(answer):
        ANSWERS.append(Answer(exercise, answer, mistakes))
        return answer

    return register


def answers():
    """Return every answer of this bank."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("test_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return ANSWERS


def judged():
    """Return exercise, mistakes, verdict and message of every answer.

    The verdict is `passed`, `unnamed`, `named`, `both named` or `misleading`.
    """
    text = (Path(__file__).parent / "names.toml").read_text(encoding="utf-8")
    names, found = tomllib.loads(text), []
    for entry in answers():
        result = check(entry.exercise, entry.answer)
        right_names = names.get(entry.exercise, {}).get(" + ".join(entry.mistakes), ())
        if result.passed:
            verdict = "passed"
        elif result.diagnosis is None:
            verdict = "unnamed"
        else:
            rightly = {result.diagnosis, result.also} & {*right_names}
            verdict = ("misleading", "named", "both named")[len(rightly)]
        found.append((entry.exercise, entry.mistakes, verdict, result.message))
    return found


def counts(found, mistakes):
    """Return how often each verdict fell on answers with so many mistakes."""
    verdicts = [verdict for _, those, verdict, _ in found if len(those) == mistakes]
    return Counter(verdicts)
