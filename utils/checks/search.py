"""Find what explains an answer: the mistake, or the two, that give what it gave.

In this order: one mistake that gives on every case what the answer gave
(`on_every_case`); two wrong steps that do, there or on two thirds of what is wrong, or
one wherever the answer gave finite numbers (`further`); one that does so on half
of what is wrong, or whose results have the same shapes so often (`on_most_cases`).
"""

import warnings
from dataclasses import dataclass
from itertools import chain, combinations, product

from utils.checks.guard import quietly
from utils.checks.slips import read, returned
from utils.checks.steps import Mistake, Named, as_many, in_time
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


def further(exercise, trials):
    """Return what else explains the answer, the simplest first, or None.

    Where an answer has a known mistake and another one that makes NaN or fails, the
    known one is seen alone in the results that are finite.
    """
    usual = [trial for trial in trials if trial.comparable]
    finite = [trial for trial in usual if trial.finite]
    seen = [t for t in usual if not t.right and t.outcome.error is None]
    seen = [trial for trial in seen if not all_nan(trial.outcome.value)]
    searches = [_double, _slip, _likely_two] if seen else []
    if len(finite) < len(usual):
        place = 1 if usual[0].outcome.error is None else 0
        searches.insert(place, lambda exercise, usual, shown: _single(exercise, finite))
    shown = min(seen, key=lambda trial: trial.special, default=None)
    with warnings.catch_warnings(action="ignore"):
        found = (search(exercise, usual, shown) for search in searches)
        return next(filter(None, found), None)


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


def _double(exercise, some, shown):
    """Return the first two wrong steps that do so together.

    An answer that fails wherever it is wrong, or gives NaN alone, has one mistake to
    mend before a second can be seen. One mistake beside a harmless form is likelier
    than two; where several pairs fit that have no mistake in common, nobody knows which
    it is.
    """
    pipeline = exercise.pipeline
    wrong, harmless = (_giving(one, pipeline, shown) for one in ("forms", "harmless"))
    results = [pipeline.result(shown, one) for one in (*wrong, *harmless)]
    share = 1.0 if shown.observed or as_many(shown, results) else 0.2
    candidates = chain(product(wrong, harmless), combinations(wrong, 2))
    shown.near = [*pipeline.pairs(shown, in_time(candidates, share))]
    pairs = _fitting(shown.near, some, shown)
    pairs = [pair for pair in pairs if len(pair.slugs) == 1] or pairs
    shared = pairs and set.intersection(*({*pair.slugs} for pair in pairs))
    return _found(pairs[0], shown) if shared else None


def _giving(forms, pipeline, shown):
    """Return the forms that give something on a case: the answer did."""
    forms = getattr(pipeline, forms)
    return [one for one in forms if pipeline.result(shown, one) is not None]


def _fitting(mistakes, some, shown):
    """Return those that give what the answer gave.

    Where none fits the special cases, those that fit the ordinary ones are taken: a
    further mistake may show in the special ones.
    """
    ordinary = [shown, *(trial for trial in some if not trial.special)]
    fitting = [one for one in mistakes if _all(one, ordinary)]
    return [one for one in fitting if _all(one, some)] or fitting


def _slip(exercise, some, shown):
    """Return a slip that any exercise knows, alone or beside a wrong form."""
    pipeline, got = exercise.pipeline, shown.outcome.value
    given = exercise.parts, exercise.parameters(), shown.args
    wrong = _giving("forms", pipeline, shown)
    reads = [*read(pipeline, shown, exercise.parameters())]

    def ended(*forms):
        for one in returned(got, pipeline.result(shown, *forms), *given):
            yield Mistake(pipeline, (*forms, one))

    alone = (Mistake(pipeline, (one,)) for one in reads)
    for likely in (
        () if shown.observed else ended(),
        (one for one in in_time(alone, 0.2) if pipeline.at_a_glance(one.forms, shown)),
        () if shown.observed else chain.from_iterable(map(ended, wrong)),
        pipeline.pairs(shown, in_time(product(wrong, reads), 0.4)),
    ):
        fitting = _fitting(likely, some, shown)
        if fitting:
            return _found(fitting[0], shown)
    return None


def _likely_two(exercise, some, shown):
    """Return two mistakes that fit two thirds of what is wrong, and more than one does.

    It has to be three cases; where other two fit as many, nobody knows which it is.
    """
    wrong = [trial for trial in some if not trial.right]
    fitting = {
        pair: sum(matches(pair, trial) for trial in wrong) for pair in shown.near
    }
    most = max(fitting.values(), default=0)
    best = [pair for pair, fits in fitting.items() if fits == most]
    if most < 3 or 3 * most < 2 * len(wrong) or len({one.slugs for one in best}) > 1:
        return None
    if shown.observed or _fitting(shown.near, some, shown):
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
