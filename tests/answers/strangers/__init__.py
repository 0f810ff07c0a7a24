"""Answers by authors who had never seen the checks: they say how good the checks are.

153 right answers, often unusual ones, 255 with one mistake, 227 with two, by four
authors. `later_…` are of the last two, to all exercises; the others are of the first
two. A mistake is in its author's words. `names.toml` lists the names that describe it
rightly; whoever reads a new message decides, and adds the name or does not.
"""

import tomllib
from collections import Counter
from pathlib import Path

from utils.checks import check
from utils.checks.catalogue import exercises

NAMES = tomllib.loads((Path(__file__).parent / "names.toml").read_text("utf-8"))


def judge(answer):
    """Return the verdict on what a check tells an answer, and its message.

    The verdict is `passed`, `unnamed`, `named`, `both named` or `misleading`.
    """
    id = next(e.id for e in exercises() if e.name == answer.exercise)
    result = check(id, answer.answer)
    names = NAMES.get(answer.exercise, {}).get(" + ".join(answer.mistakes), ())
    if result.passed:
        return "passed", result.message
    if result.diagnosis is None:
        return "unnamed", result.message
    count = len({result.diagnosis, result.also} & {*names})
    return ("misleading", "named", "both named")[count], result.message


def scoreboard(verdicts):
    """Return how often each verdict fell on answers with one mistake, and with two.

    verdicts: (answer, verdict) for each answer
    """
    counts = Counter(), Counter(), Counter()
    for answer, verdict in verdicts:
        counts[len(answer.mistakes)][verdict] += 1
    return counts[1:]
