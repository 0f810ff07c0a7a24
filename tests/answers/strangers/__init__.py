"""Answers by authors who had never seen the checks: they say how good the checks are.

Right answers, often unusual ones, and answers with one mistake or two, by four authors;
README.md says how many. The last two authors wrote `later_…`, for all exercises, and
the first two the other files. A mistake is described in its author's words. `names.toml`
lists the names that fit it; whoever reads a new message decides whether its name fits.
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
