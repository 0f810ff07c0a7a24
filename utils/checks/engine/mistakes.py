"""Known mistakes: lines of a right answer that are written wrong.

A right answer is an ordinary function. A mistake replaces one of its lines, or a few,
so the changed function returns what a reader with this mistake returns. The mistake, or
the pair, that gives an answer's results on all cases is named.
"""

import ast
import inspect
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import combinations

from utils.checks.engine import returned
from utils.checks.engine.diagnosis import Diagnosis, Mistake
from utils.checks.engine.values import agrees, safe_text


@dataclass(frozen=True, eq=False)
class Way:
    """One way to make a mistake.

    function: whose lines are replaced, the right answer or `returned.form`
    lines: what a line assigns (or "return") -> the line that replaces it, parsed
    """

    mistake: Mistake
    function: object
    lines: dict

    @property
    def name(self):
        return self.mistake.name

    def goes_with(self, other):
        """Return whether both can be made in one answer, in different lines."""
        is_elsewhere = self.function is not other.function
        return is_elsewhere or self.lines.keys().isdisjoint(other.lines)


def read_ways(function, mistakes: list[Mistake]) -> list[Way]:
    """Return all ways of these mistakes; raise ValueError if one doesn't fit.

    >>> no_pair = Mistake("no-pair", "Return both.", "chosen = 1; returned = 2")
    >>> [[*way.lines] for way in read_ways(returned.form, [no_pair])]
    [['chosen', 'returned']]
    """
    ways, names = [], _names(_read(function))
    for mistake in mistakes:
        for code in mistake.ways:
            lines = {_assigned(line): line for line in ast.parse(code).body}
            if None in lines:
                raise ValueError(f"expected `name = …` or `return …`, got `{code}`")
            for name in lines.keys() - names:
                raise ValueError(f"expected a name of {function.__name__}, got `{name}`")  # fmt: skip
            ways.append(Way(mistake, function, lines))
    return ways


def apply_ways(right, *ways):
    """Return the right answer, a function, with the lines of these ways.

    A line of a way replaces every line that assigns the same name. If the name is a
    parameter, it is put at the top of the function. A call fills the dict `variables`.
    """
    answer = _rewrite(right, *(way for way in ways if way.function is right))
    form = _rewrite(returned.form, *(way for way in ways if way.function is not right))

    def mistaken(*args, variables=None):
        variables = {} if variables is None else variables
        return form(answer(*args, _variables=variables), _variables={})

    return mistaken


[RECORDED] = ast.parse("""
def recorded(*, _variables):
    try: pass
    finally: _variables.update(locals(), _variables=None)
""").body


@lru_cache(maxsize=256)  # of pairs, those with one mistake in common follow each other
def _rewrite(function, *ways):
    """Return a function with the lines of these ways, which records its variables."""
    lines = {name: line for way in ways for name, line in way.lines.items()}
    definition, record = copy(_read(function)), copy(RECORDED.body[0])
    definition.args = copy(definition.args)
    definition.args.kwonlyargs = RECORDED.args.kwonlyargs
    definition.args.kw_defaults = RECORDED.args.kw_defaults
    record.body = _replace(definition.body, lines)
    definition.body = [record]
    return build(definition, dict(function.__globals__))


def build(definition, names):
    """Return the function that a syntax tree defines, with these global names."""
    module = ast.fix_missing_locations(ast.Module([definition], []))
    exec(compile(module, "<changed>", "exec"), names)
    return names[definition.name]


@cache
def _read(function):
    """Return the definition of a function, with a line also for each parameter."""
    [definition] = ast.parse(inspect.getsource(function)).body
    own = [parameter.arg for parameter in definition.args.args]
    more = [f"{name} = {name}\n" for name in own if name not in _names(definition)]
    definition.body[:0] = ast.parse("".join(more)).body
    return definition


def _names(definition):
    return {_assigned(node) for node in ast.walk(definition)}


def _replace(body, lines):
    """Return statements with these lines in the place of theirs."""
    replaced = [lines.get(_assigned(line), line) for line in body]
    for i, line in enumerate(replaced):
        if isinstance(line, ast.For | ast.While | ast.If):
            replaced[i] = block = copy(line)
            block.body = _replace(line.body, lines)
            block.orelse = _replace(line.orelse, lines)
    return replaced


@cache
def _assigned(node):
    """Return what a line assigns, such as "a" or "(a, b)"; "return"; or None."""
    if isinstance(node, ast.Return):
        return "return"
    return ast.unparse(node.targets) if isinstance(node, ast.Assign) else None


IN_FORM = read_ways(returned.form, returned.RETURNED)


def find_single_mistake(trial):
    """Name the mistake that gives all results."""
    wrong_first = sorted(trial.runs, key=lambda run: run.is_right)  # rule out the most
    for way in trial.exercise.known:
        if reproduces(trial.exercise, wrong_first, way):
            yield from _diagnoses(trial, way)
            return


def find_mistake_pair(trial):
    """Name two mistakes that give all results together.

    If several pairs fit that have no name in common, none is named.
    """
    known, runs = trial.exercise.known, trial.runs
    telling = [run for run in runs if not (run.is_right or run.hides_others)]
    first = telling[0] if telling else trial.shown  # rules out the most
    pairs = [pair for pair in combinations(known, 2) if pair[0].goes_with(pair[1])]
    pairs = [p for p in pairs if reproduces(trial.exercise, [first, *runs], *p)]
    names = [{way.name for way in pair} for pair in pairs]
    needed = 2 if first.hides_others else 1
    if pairs and len(set.intersection(*names)) >= needed:
        named = min(pairs, key=lambda pair: known.index(pair[1]))
        yield from _diagnoses(trial, *named)


def _diagnoses(trial, *ways):
    """Yield the diagnoses of these mistakes, with values of the run that is shown."""
    exercise, values = trial.exercise, {}
    mistaken = partial(apply_ways(exercise.right, *ways), variables=values)
    exercise.call(mistaken, trial.shown.args)
    values["returns"] = exercise.returns
    for way in ways:
        yield Diagnosis(way.name, way.mistake.text.format(**values))


def reproduces(exercise, runs, *ways):
    """Return whether mistakes together give what the answer gave in these runs."""
    mistaken = apply_ways(exercise.right, *ways)
    return all(_same_outcome(run, exercise.call(mistaken, run.args)) for run in runs)


def _same_outcome(run, other):
    if isinstance(other.error, KeyboardInterrupt):  # of the search for mistakes
        raise other.error
    if other.error is None or run.error is None:
        return other.error is run.error and agrees(run.value, other.value)
    text, whole_text = (safe_text(error, 300) for error in (other.error, run.error))
    return type(other.error) is type(run.error) and text in whole_text
