"""Find the known mistakes that give what an answer gave."""

from dataclasses import replace
from itertools import combinations

from utils.checks.messages import in_parentheses
from utils.checks.mistakes import Diagnosis, apply_mistakes, explain, read_mistakes
from utils.checks.shared.returned import FORM
from utils.checks.values import agrees, safe_text, same_form

FORMS = read_mistakes(FORM)


def find_single_mistake(trial):
    """Return the diagnosis of the mistake that gives all results, in a list, or []."""
    exercise, _, runs = trial
    wrong_first = sorted(runs, key=lambda run: run.is_right)  # rule out the most
    for mistake in exercise.known:
        if reproduces(exercise.right, wrong_first, mistake):
            return _diagnoses(trial, mistake)
    return []


def find_mistake_pair(trial):
    """Return the diagnoses of two mistakes that give all results together, or [].

    If several pairs fit that have no name in common, none is named.
    """
    known, runs = trial.exercise.known, trial.runs
    shown = first_wrong([run for run in runs if not run.error]) or first_wrong(runs)
    pairs = [
        (one, other)
        for one, other in combinations(known, 2)
        if one.lines.keys().isdisjoint(other.lines)
        and reproduces(trial.exercise.right, [shown, *runs], one, other)
    ]
    names = [{mistake.name for mistake in pair} for pair in pairs]
    needed = 2 if shown.error else 1  # an error may hide other mistakes
    if not pairs or len(set.intersection(*names)) < needed:
        return []
    return _diagnoses(trial, *min(pairs, key=lambda pair: known.index(pair[1])))


def find_form(trial):
    """Return the diagnosis of a wrong form, and of one mistake besides, or []."""
    exercise, _, runs = trial
    wrong = [run for run in runs if not same_form(run.got, run.expected)]
    if any(run.error for run in runs) or not wrong:
        return []
    for form in FORMS:
        right = apply_mistakes(exercise.right, form)
        if all(same_form(run.got, run.outcome_of(right).value) for run in wrong):
            tried = [[form], *([form, mistake] for mistake in exercise.known)]
            fits = (each for each in tried if reproduces(exercise.right, runs, *each))
            return _diagnoses(trial._replace(runs=wrong[:1]), *next(fits, [form]))
    return []


def find_mistake_in_part(trial):
    """Return the diagnosis of the one mistake that gives a part of all results, or []."""
    exercise, _, runs = trial
    size = len(exercise.parts)
    if any(type(run.got) is not tuple or len(run.got) != size for run in runs):
        return []
    for i, part in enumerate(exercise.parts):
        cut = [run.part(i) for run in runs]
        known = exercise.known if first_wrong(cut) else ()
        fitting = [m for m in known if reproduces(exercise.right, cut, m)]
        if len({mistake.name for mistake in fitting}) == 1:
            [diagnosis] = _diagnoses(trial, fitting[0])
            text = f"In the {in_parentheses(part)}: {diagnosis.text}"
            return [replace(diagnosis, text=text)]
    return []


def _diagnoses(trial, *mistakes):
    """Return a `Diagnosis` for each of these mistakes, shown by a run that they fit."""
    exercise, _, runs = trial
    fitting = [run for run in runs if reproduces(exercise.right, [run], *mistakes)]
    run = first_wrong(fitting) or first_wrong(runs)
    texts = explain(exercise.right, run.args, *mistakes, returns=exercise.returns)
    return [Diagnosis(m.name, text, run) for m, text in zip(mistakes, texts)]


def first_wrong(runs):
    """Return the first run that is wrong, or None."""
    return next((run for run in runs if not run.is_right), None)


def reproduces(right, runs, *mistakes):
    """Return whether mistakes together give what the answer gave in these runs."""
    mistaken = apply_mistakes(right, *mistakes)
    return all(_same_outcome(run, run.outcome_of(mistaken)) for run in runs)


def _same_outcome(run, other):
    if other.error is None or run.error is None:
        return other.error is run.error and agrees(run.got, other.value)
    text, whole_text = (safe_text(error, 300) for error in (other.error, run.error))
    return type(other.error) is type(run.error) and text in whole_text
