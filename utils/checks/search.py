"""Find the mistakes that explain an answer: the variants that give what it gave.

First one variant that does so on every case; then two together that do; then one that
does so on half of the cases that are wrong. What is found depends on the answer alone:
the search of two counts its steps and reads no clock.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from utils.checks.guard import quietly
from utils.checks.pipeline import Diagnosis, Pipeline
from utils.checks.runs import Run
from utils.checks.values import (
    agrees,
    all_nan,
    may_agree,
    safe_text,
    same_form,
    sizes_of,
)

STRICT = False  # the tests set it: a text or a fact of ours that fails is then raised
MOST_STEPS = 200_000  # that the search of two mistakes takes, at most about a second


@dataclass(frozen=True)
class Match:
    """Variants that explain an answer, a run that shows them, and how to begin."""

    pipeline: Pipeline
    variants: tuple
    run: Run
    lead: str = ""

    def compute(self, *args):
        """Return what the answer would give if these were its only mistakes."""
        return self.pipeline.run(args, *self.variants)

    def diagnoses(self):
        found = quietly(self.pipeline.explain, (self.run.args, *self.variants))
        if found.error is not None and STRICT:
            raise found.error
        texts = found.value or [f"{one.name}." for one in self.variants]
        if self.lead:
            texts = [self.lead + texts[0][0].lower() + texts[0][1:], *texts[1:]]
        names = [one.name for one in self.variants]
        return [Diagnosis(name, text, self.run) for name, text in zip(names, texts)]


def find_single_mistake(pipeline, runs):
    """Return the variant that gives on every case what the answer gave, or None."""
    if runs[-1].outcome.stopped:
        return None
    with warnings.catch_warnings(action="ignore"):
        return _first_match(pipeline, [run for run in runs if run.case.raises is None])


def find_mistake_pair(pipeline, runs):
    """Return two variants that fit the cases, or one that fits all finite results.

    Where an answer has a known mistake and another one that makes NaN or fails, the
    known one is seen alone in the results that are finite.
    """
    usual = [run for run in runs if run.is_comparable]
    finite = [run for run in usual if run.is_finite]
    searches = [lambda: _first_pair(pipeline, usual)]
    if len(finite) < len(usual):
        searches.append(lambda: _first_match(pipeline, finite))
    if len(usual) < len(runs):  # some modules could not be built
        searches.insert(0, lambda: _first_match(pipeline, usual))
    if usual and usual[0].error is not None:
        searches.reverse()  # it fails: a second mistake cannot be seen yet
    with warnings.catch_warnings(action="ignore"):
        return next(filter(None, (search() for search in searches)), None)


def find_partial_match(pipeline, runs):
    """Return the variant that gives most of what is wrong, or its shapes, or None.

    It has to be two cases, and half of them: an unknown mistake is like a known one
    here and there. Where two variants fit equally often, neither is named.
    """
    usual = [run for run in runs if run.is_comparable]
    wrong = [run for run in usual if not run.is_right and not run.special]
    ordinary = [run for run in usual if not run.special]
    variants = pipeline.variants
    with warnings.catch_warnings(action="ignore"):
        for same, lead in (
            (_reproduces_alone, "It looks as if "),
            (_has_same_shape, "Judging by the shape alone, it looks as if "),
        ):
            like = {v: [r for r in wrong if same(pipeline, r, v)] for v in variants}
            most = max(map(len, like.values()))
            best = [variant for variant in variants if len(like[variant]) == most]
            one_name = len({variant.name for variant in best}) == 1
            if most > 1 and 2 * most >= len(wrong) and one_name:
                if all(_reproduces_alone(pipeline, run, best[0]) for run in ordinary):
                    lead = ""  # only special cases differ
                return Match(pipeline, best[:1], like[best[0]][0], lead)
    return None


def _first_match(pipeline, runs):
    """Return the first variant that gives on these cases what the answer gave."""
    wrong = [run for run in runs if not run.is_right]
    for variant in pipeline.variants if wrong else ():
        if all(_reproduces_alone(pipeline, run, variant) for run in (wrong[0], *runs)):
            return Match(pipeline, (variant,), wrong[0])
    return None


def _first_pair(pipeline, runs):
    """Return the first two variants that give together what the answer gave.

    Where no two fit the special cases, those that fit the ordinary ones are taken: a
    third mistake may show in the special ones. An answer that fails wherever it is
    wrong, or gives NaN alone, has one mistake to mend before a second can be seen.
    Where several pairs fit that have no name in common, none is named.
    """
    shown = [run for run in runs if not run.is_right and run.error is None]
    shown = [run for run in shown if not all_nan(run.got)]
    if not shown:
        return None
    shown = min(shown, key=lambda run: run.special)
    ordinary = [run for run in runs if not run.special]
    fits = partial(_all_reproduced, pipeline)
    pairs = [pair for pair in _pairs_like(pipeline, shown) if fits(ordinary, *pair)]
    on_all = [pair for pair in pairs if fits(runs, *pair)]
    if not on_all:  # and no pair of which one alone is enough
        pairs = [p for p in pairs if not any(fits(ordinary, one) for one in p)]
    pairs = on_all or pairs
    if not pairs:
        return None
    if not set.intersection(*({one.name for one in pair} for pair in pairs)):
        return None
    order = pipeline.variants.index
    return Match(pipeline, min(pairs, key=lambda p: max(map(order, p))), shown)


def _all_reproduced(pipeline, runs, *variants):
    return all(_reproduces(pipeline, run, *variants) for run in runs)


def _pairs_like(pipeline, run):
    """Yield pairs of variants that give, at a glance, what the answer gave on a case.

    Two that change the same step are no pair. Pairs that leave few steps to run come
    first, until `MOST_STEPS` are taken; fewer where no variant alone gives as many
    numbers as the answer.
    """
    states = {one: pipeline.states(run.args, one) for one in pipeline.variants}
    works = [one for one in states if len(states[one]) > len(pipeline.steps)]
    sizes = map(sizes_of, (run.expected, *(states[one][-1].returned for one in works)))
    likely = run.observe or sizes_of(run.got) in sizes
    most_steps = MOST_STEPS if likely else MOST_STEPS // 5
    first = {one: pipeline.first_step(one) for one in works}
    pairs = [sorted(pair, key=first.get) for pair in combinations(works, 2)]
    pairs = [(a, b) for a, b in pairs if a.overrides.keys().isdisjoint(b.overrides)]
    steps = 0
    for early, late in sorted(pairs, key=lambda pair: -first[pair[1]]):
        steps += len(pipeline.steps) - first[late]
        if steps > most_steps:
            return
        if _looks_like(pipeline, run, states[early][first[late]], (early, late)):
            yield early, late


def _looks_like(pipeline, run, state, variants):
    """Say at a glance whether the variants give from a state on what the answer gave.

    The state is that before the first step which the last of them changes.
    """
    if run.observe:
        return True
    try:
        result = pipeline.run_from(state, pipeline.first_step(variants[-1]), variants)
    except Exception:
        return run.error is not None
    return run.error is None and may_agree(run.got, result)


def _reproduces(pipeline, run, *variants):
    """Say whether variants give together on a case what the answer gave."""
    theirs = run.outcome_of(lambda *args: pipeline.run(args, *variants))
    if theirs.error is None or run.error is None:
        return theirs.error is run.error and agrees(run.got, theirs.value)
    same_text = safe_text(theirs.error) in safe_text(run.error)  # or a part of it
    return type(theirs.error) is type(run.error) and same_text


def _reproduces_alone(pipeline, run, variant):
    """Say so of one variant: at a glance, then in full.

    Where the right result is an error, or a class could not be built, there is nothing
    to glance at.
    """
    if run.is_comparable:
        run.right_states = run.right_states or pipeline.states(run.args)
        state = run.right_states[pipeline.first_step(variant)]
        if not _looks_like(pipeline, run, state, (variant,)):
            return False
    return _reproduces(pipeline, run, variant)


def _has_same_shape(pipeline, run, variant):
    """Say whether a variant gives the shape that is wrong: that alone says little."""
    usual = type(run.got) in (type(run.expected), tuple)
    if run.has_right_form or run.observe or run.error or not usual:
        return False
    theirs = run.outcome_of(lambda *args: pipeline.run(args, variant))
    return theirs.error is None and same_form(run.got, theirs.value)
