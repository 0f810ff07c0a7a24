"""Known mistakes: lines of a right answer that are written wrong.

A mistake replaces lines of a right answer, which then returns what a reader with this
mistake returns. The one, or the pair, that gives all of an answer's results is named.
"""

import ast
import inspect
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import NamedTuple

from utils.checks.engine.values import agrees, safe_text


class Diagnosis(NamedTuple):
    """A name, as in `tests/answers`, and the text for the reader."""

    name: str
    text: str


class Mistake:
    """A mistake that the check knows: its diagnosis, and the lines that it changes.

    name, text: of its diagnosis; in braces, variables of the wrong function, or {returns}
    variants: each is one line of the right answer written wrong, or several with
        semicolons between; what readers may get wrong needs a line of its own there
    """

    def __init__(self, name: str, text: str, *variants: str):
        self.name, self.text, self.variants = name, text, variants


@dataclass(frozen=True, eq=False)
class Variant:
    """A mistake as readers may write it, in one of several ways.

    function: whose lines are replaced, the right answer or `forms.as_is`
    lines: what a line assigns (or "return") -> the line that replaces it, parsed
    """

    mistake: Mistake
    function: object
    lines: dict

    @property
    def name(self):
        return self.mistake.name

    def is_compatible_with(self, other):
        """Return whether both can be made in one answer, in different lines."""
        is_elsewhere = self.function is not other.function
        return is_elsewhere or self.lines.keys().isdisjoint(other.lines)


def read_variants(function, mistakes: list[Mistake]) -> list[Variant]:
    """Return the variants of these mistakes; raise ValueError if one doesn't fit."""
    variants, names = [], _assigned_names(_read_definition(function))
    for mistake in mistakes:
        for code in mistake.variants:
            lines = {_assigned_name(line): line for line in ast.parse(code).body}
            if None in lines:
                raise ValueError(f"expected `name = …` or `return …`, got `{code}`")
            for name in lines.keys() - names:
                raise ValueError(f"expected a name of {function.__name__}, got `{name}`")  # fmt: skip
            variants.append(Variant(mistake, function, lines))
    return variants


def apply_variants(right, *variants):
    """Return the right answer with the lines of these variants, and its variables.

    A line of a variant replaces every line that assigns the same name. If the name is a
    parameter, it is put at the top of the function. Variants of another function change
    what the right answer returns. A call fills the dict that is returned as well, with
    the right answer's variables.
    """
    answer, variables = _rewrite(right, *(v for v in variants if v.function is right))
    in_form = [v for v in variants if v.function is not right]
    change_form, _ = _rewrite(in_form[0].function, *in_form) if in_form else (None, {})

    def mistaken(*args):
        variables.clear()
        result = answer(*args)
        return change_form(result) if in_form else result

    return mistaken, variables


[RECORD] = ast.parse("try: pass\nfinally: _variables.update(locals())").body


@lru_cache(maxsize=256)  # of pairs, those with one mistake in common follow each other
def _rewrite(function, *variants):
    """Return a function with the lines of variants, and the dict of its variables."""
    lines = {name: line for variant in variants for name, line in variant.lines.items()}
    definition, record, variables = copy(_read_definition(function)), copy(RECORD), {}
    record.body = _replace_lines(definition.body, lines)
    definition.body = [record]
    names = function.__globals__ | {"_variables": variables}
    return define(definition, names), variables


def define(definition, names):
    """Return the function that a syntax tree defines, with these global names."""
    exec(compile(ast.Module([definition], []), "<changed>", "exec"), names)
    return names[definition.name]


@cache
def _read_definition(function):
    """Return the definition of a function, with a line also for each parameter."""
    [definition] = ast.parse(inspect.getsource(function)).body
    assigned = _assigned_names(definition)
    names = [p.arg for p in definition.args.args if p.arg not in assigned]
    lines = [f"{name} = {name}\n" for name in names]
    definition.body[:0] = ast.parse("".join(lines)).body
    return definition


def _assigned_names(definition):
    return {_assigned_name(node) for node in ast.walk(definition)}


def _replace_lines(body, lines):
    """Return statements with these lines in the place of theirs."""
    statements = [lines.get(_assigned_name(line), line) for line in body]
    for i, line in enumerate(statements):
        if isinstance(line, ast.For | ast.While | ast.If):
            statements[i] = block = copy(line)
            block.body = _replace_lines(line.body, lines)
            block.orelse = _replace_lines(line.orelse, lines)
    return statements


@cache
def _assigned_name(node):
    """Return what a line assigns, such as "a" or "(a, b)"; "return"; or None."""
    if isinstance(node, ast.Return):
        return "return"
    return ast.unparse(node.targets) if isinstance(node, ast.Assign) else None


def find_single_mistake(trial):
    """Name the mistake that gives all results."""
    wrong_first = sorted(trial.runs, key=lambda run: run.is_right)  # rule out the most
    for variant in trial.exercise.variants:
        if reproduces(trial.exercise, wrong_first, variant):
            yield from _make_diagnoses(trial, variant)
            return


def find_mistake_pair(trial):
    """Name two mistakes that give all results together.

    If several pairs fit that have no name in common, none is named.
    """
    variants, runs = trial.exercise.variants, trial.runs
    informative = [run for run in runs if not (run.is_right or run.hides_others)]
    first = informative[0] if informative else trial.shown_run  # rules out the most
    pairs = [p for p in combinations(variants, 2) if p[0].is_compatible_with(p[1])]
    pairs = [p for p in pairs if reproduces(trial.exercise, [first, *runs], *p)]
    names = [{variant.name for variant in pair} for pair in pairs]
    num_shared = 2 if first.hides_others else 1
    if pairs and len(set.intersection(*names)) >= num_shared:
        best_pair = min(pairs, key=lambda pair: variants.index(pair[1]))
        yield from _make_diagnoses(trial, *best_pair)


def _make_diagnoses(trial, *variants):
    """Yield the diagnoses of these mistakes, with values of the run that is shown."""
    exercise = trial.exercise
    mistaken, values = apply_variants(exercise.right, *variants)
    exercise.call(mistaken, trial.shown_run.args)
    for variant in variants:
        text = variant.mistake.text.format(**values, returns=exercise.returns)
        yield Diagnosis(variant.name, text)


def reproduces(exercise, runs, *variants):
    """Return whether mistakes together give what the answer gave in these runs."""
    mistaken, _ = apply_variants(exercise.right, *variants)
    return all(_is_same_outcome(run, exercise.call(mistaken, run.args)) for run in runs)


def _is_same_outcome(run, outcome):
    if isinstance(outcome.error, KeyboardInterrupt):  # of the search for mistakes
        raise outcome.error
    if outcome.error is None or run.error is None:
        return outcome.error is run.error and agrees(run.value, outcome.value)
    text, answer_text = (safe_text(error, 300) for error in (outcome.error, run.error))
    return type(outcome.error) is type(run.error) and text in answer_text
