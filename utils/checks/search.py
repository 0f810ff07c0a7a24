"""Find what explains an answer: the mistake, or the two, that give what it gave.

In this order: one mistake that gives on every case what the answer gave
(`on_every_case`); two wrong steps that do, there or on two thirds of what is wrong, or
one wherever the answer gave finite numbers (`with_another`); one that does so on half
of what is wrong, or whose results have the same shapes so often (`on_most_cases`).
"""

import warnings
from dataclasses import dataclass

from utils.checks.guard import quietly
from utils.checks.steps import Named
from utils.checks.values import agrees, all_nan, safe_text, same_form

STRICT = False  # the tests set it: a text or fact of ours that fails is then raised
AT_LEAST_HERE = "At least on this input: "
BY_ITS_SHAPE = "The shape is that of this mistake, the numbers are not: "


@dataclass(frozen=True)
class Found:
    """What is found: its names, a case that shows it, the mistake that explains it."""

    names: list
    trial: object = None
    mistake: object = None


def on_every_case(exercise, trials):
    """Return the mistake that gives on every case what the answer gave, or None."""
    if trials[-1].outcome.stopped:
        return None
    with warnings.catch_warnings(action="ignore"):
        return _single(exercise, [t for t in trials if t.case.raises is None])


def with_another(exercise, trials):
    """Return two wrong steps that fit the cases, or one that fits all finite results.

    Where an answer has a known mistake and another one that makes NaN or fails, the
    known one is seen alone in the results that are finite.
    """
    usual = [trial for trial in trials if trial.comparable]
    finite = [trial for trial in usual if trial.finite]
    searches = [lambda: _double(exercise, usual)]
    if len(finite) < len(usual):
        searches.append(lambda: _single(exercise, finite))
    if usual and usual[0].outcome.error is not None:
        searches.reverse()  # it fails: a second mistake is not to be seen yet
    with warnings.catch_warnings(action="ignore"):
        return next(filter(None, (search() for search in searches)), None)


def on_most_cases(exercise, trials):
    """Return the mistake that is like most of what is wrong, or has its shapes."""
    wrong = [trial for trial in trials if not trial.right and not trial.special]
    wrong = [trial for trial in wrong if trial.comparable]
    if not wrong:
        return None
    with warnings.catch_warnings(action="ignore"):
        return _likely(exercise, trials, wrong, fits, AT_LEAST_HERE) or _likely(
            exercise, trials, wrong, _same_shape, BY_ITS_SHAPE
        )


def _likely(exercise, trials, wrong, same, lead):
    """Return the mistake that gives the same on the most cases where it is wrong.

    It has to be two cases, and half of them: a mistake that is not known is like a
    known one here and there. Where two give the same, nobody knows which it is. The
    lead is left out where the mistake fits every ordinary case.
    """
    mistakes = exercise.pipeline.mistakes
    like = {one: [trial for trial in wrong if same(one, trial)] for one in mistakes}
    most = max(map(len, like.values()))
    best = [one for one in mistakes if len(like[one]) == most]
    if most < 2 or 2 * most < len(wrong) or len({one.slugs for one in best}) > 1:
        return None
    ordinary = [t for t in trials if t.comparable and not t.special]
    certain = same is fits and all(fits(best[0], trial) for trial in ordinary)
    return _found(best[0], like[best[0]][0], "" if certain else lead)


def _same_shape(mistake, trial):
    """Say whether a mistake gives the shape that is wrong: that alone says little."""
    got = trial.outcome
    usual = type(got.value) in (type(trial.expected.value), tuple)
    if trial.same_form or trial.observed or got.error or not usual:
        return False
    theirs = _theirs(mistake, trial)
    return theirs.error is None and same_form(got.value, theirs.value)


def _single(exercise, some):
    """Return the first mistake that gives on these cases what the answer gave."""
    wrong = [trial for trial in some if not trial.right]
    for mistake in exercise.pipeline.mistakes if wrong else ():
        if all(fits(mistake, trial) for trial in (wrong[0], *some)):
            return _found(mistake, wrong[0])
    return None


def _double(exercise, some):
    """Return the first two wrong steps that do so together.

    Where no two fit the special cases, those that fit the ordinary ones are taken: a
    third mistake may show in the special ones. An answer that fails wherever it is
    wrong, or gives NaN alone, has one mistake to mend before a second can be seen. One
    mistake beside a harmless form is likelier than two; where several pairs fit that
    have no mistake in common, nobody knows which it is.
    """
    seen = [t for t in some if not t.right and t.outcome.error is None]
    seen = [trial for trial in seen if not all_nan(trial.outcome.value)]
    if not seen:
        return None
    shown = min(seen, key=lambda trial: trial.special)
    ordinary = [shown, *(trial for trial in some if not trial.special)]
    near = [*exercise.pipeline.pairs(shown)]
    pairs = [pair for pair in near if _all(pair, ordinary)]
    pairs = [pair for pair in pairs if _all(pair, some)] or pairs
    pairs = [pair for pair in pairs if len(pair.slugs) == 1] or pairs
    shared = pairs and set.intersection(*({*pair.slugs} for pair in pairs))
    if pairs or shown.observed:
        return _found(pairs[0], shown) if shared else None
    return _two_likely(exercise, near, [t for t in some if not t.right], shown)


def _two_likely(exercise, pairs, wrong, shown):
    """Return two mistakes that fit two thirds of what is wrong, and more than one does.

    It has to be three cases; where other two fit as many, nobody knows which it is.
    """
    fitting = {pair: sum(matches(pair, trial) for trial in wrong) for pair in pairs}
    most = max(fitting.values(), default=0)
    best = [pair for pair in pairs if fitting[pair] == most]
    if most < 3 or 3 * most < 2 * len(wrong) or len({one.slugs for one in best}) > 1:
        return None
    for one in exercise.pipeline.mistakes:
        if sum(fits(one, trial) for trial in wrong) >= most:
            return None
    return _found(best[0], shown, AT_LEAST_HERE)


def _all(mistake, trials):
    return all(matches(mistake, trial) for trial in trials)


def _found(mistake, trial, lead=""):
    said = quietly(mistake.explain, [trial.args])
    if said.error is not None and STRICT:
        raise said.error
    texts = said.value or [f"{slug}." for slug in mistake.slugs]
    texts = [lead + texts[0], *texts[1:]]
    return Found([*map(Named, mistake.slugs, texts)], trial, mistake)


def fits(mistake, trial):
    """Say whether a mistake gives what the answer gave: first at a glance.

    Where the right result is an error, or a class could not be built, there is nothing
    to glance at.
    """
    if trial.comparable and not mistake.pipeline.at_a_glance(mistake.forms, trial):
        return False
    return matches(mistake, trial)


def _theirs(mistake, trial):
    return quietly(trial.observer(mistake.compute), trial.args)


def matches(mistake, trial):
    """Say whether a mistake gives on this case what the answer gave."""
    theirs, got = _theirs(mistake, trial), trial.outcome
    if theirs.error is None or got.error is None:
        return theirs.error is got.error and agrees(got.value, theirs.value)
    same_text = safe_text(theirs.error) in safe_text(got.error)  # or a part of it
    return type(theirs.error) is type(got.error) and same_text
