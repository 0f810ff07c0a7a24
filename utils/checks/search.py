"""Find the mistakes that explain an answer: the variants that give what it gave."""

from itertools import combinations

from utils.checks.pipeline import Diagnosis
from utils.checks.values import agrees, safe_text


def find_single_mistake(trial):
    """Return the diagnosis of the variant that gives all results, in a list, or []."""
    pipeline = trial.exercise.pipeline
    wrong_first = sorted(trial.runs, key=lambda run: run.is_right)  # rule out the most
    for variant in pipeline.variants:
        if reproduces(pipeline, wrong_first, variant):
            return _diagnoses(trial, variant)
    return []


def find_mistake_pair(trial):
    """Return the diagnoses of two variants that give all results together, or [].

    If several pairs fit that have no name in common, none is named.
    """
    pipeline, runs = trial.exercise.pipeline, trial.runs
    shown = first_wrong([run for run in runs if not run.error]) or first_wrong(runs)
    pairs = [
        (one, other)
        for one, other in combinations(pipeline.variants, 2)
        if one.overrides.keys().isdisjoint(other.overrides)
        and reproduces(pipeline, [shown, *runs], one, other)
    ]
    names = [{variant.name for variant in pair} for pair in pairs]
    needed = 2 if shown.error else 1  # an error may hide other mistakes
    if not pairs or len(set.intersection(*names)) < needed:
        return []
    first = min(pairs, key=lambda pair: pipeline.variants.index(pair[1]))
    return _diagnoses(trial, *first)


def _diagnoses(trial, *variants):
    """Return a `Diagnosis` for each of these variants, shown by a run that they fit."""
    pipeline, runs = trial.exercise.pipeline, trial.runs
    fitting = [run for run in runs if reproduces(pipeline, [run], *variants)]
    run = first_wrong(fitting) or first_wrong(runs)
    texts = pipeline.explain(run.args, *variants, returns=trial.exercise.returns)
    return [Diagnosis(v.name, text, run) for v, text in zip(variants, texts)]


def first_wrong(runs):
    """Return the first run that is wrong, or None."""
    return next((run for run in runs if not run.is_right), None)


def reproduces(pipeline, runs, *variants):
    """Return whether variants together give what the answer gave in these runs."""

    def mistaken(*args):
        return pipeline.run(args, *variants)

    return all(_same_outcome(run, run.outcome_of(mistaken)) for run in runs)


def _same_outcome(run, other):
    if other.error is None or run.error is None:
        return other.error is run.error and agrees(run.got, other.value)
    said, told = (safe_text(error, 300) for error in (other.error, run.error))
    return type(other.error) is type(run.error) and said in told  # or a part of it
