"""Known mistakes: lines of a right answer that are written wrong.

A right answer is an ordinary function. A mistake replaces one of its lines, or a few,
so the changed function returns what a reader with this mistake returns. The mistake, or
the pair, that gives an answer's results on all cases is named.
"""

import ast
import inspect
import re
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import combinations

from utils.checks.engine import returned
from utils.checks.engine.values import agrees, safe_text


@dataclass(frozen=True, eq=False)
class Mistake:
    """Wrong lines for a right answer.

    name: of the mistake
    text: the explanation for the reader; in braces, variables, or {returns}
    lines: what a line assigns (or "return") -> the line that replaces it, parsed
    of: the function whose lines they are, if it isn't the right answer
    """

    name: str
    text: str
    lines: dict
    of: object = None

    def goes_with(self, other):
        """Return whether both can be made in one answer, in different lines."""
        return self.of is not other.of or self.lines.keys().isdisjoint(other.lines)


def read_mistakes(known: dict, of=None) -> list[Mistake]:
    """Return mistakes from wrong line -> "name: explanation".

    Several ways to make a mistake have OR between them, and a way that takes more than
    one line has semicolons between its lines.

    >>> [one] = read_mistakes({"n = 3; m = n": "off-by-one: You counted one too few."})
    >>> one.name, one.text, [*one.lines]
    ('off-by-one', 'You counted one too few.', ['n', 'm'])
    """
    mistakes = []
    for ways, heading in known.items():
        name, text = heading.split(": ", 1)
        for way in ways.split(" OR "):
            lines = {_assigned(line): line for line in ast.parse(way).body}
            if None in lines:
                raise ValueError(f"expected `name = …` or `return …`, got `{way}`")
            mistakes.append(Mistake(name, text, lines, of))
    return mistakes


def apply_mistakes(right, *mistakes):
    """Return the right answer, a function, with the lines of these mistakes.

    A line replaces each one that assigns the same name; for a parameter, it is put at
    the top. A call puts all variables into a dictionary that it is given, `variables`.
    """
    answer = _rewrite(right, *(m for m in mistakes if not m.of))
    form = _rewrite(returned.form, *(m for m in mistakes if m.of))

    def mistaken(*args, variables=None):
        variables = {} if variables is None else variables
        return form(answer(*args, _variables=variables), _variables={})

    return mistaken


def expect_lines(right, mistake):
    """Raise ValueError if a right answer has no line for a line of a mistake."""
    function = mistake.of or right
    for name in mistake.lines.keys() - _names(_read(function)):
        raise ValueError(f"expected a name of {function.__name__}, got `{name}`")


[RECORDED] = ast.parse("""
def recorded(*, _variables):
    try: pass
    finally: _variables.update(locals(), _variables=None)
""").body


@lru_cache(maxsize=256)  # of pairs, those with one mistake in common follow each other
def _rewrite(function, *mistakes):
    """Return a function with the lines of these mistakes, which records its variables."""
    lines = {name: line for m in mistakes for name, line in m.lines.items()}
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


IN_FORM = read_mistakes(returned.RETURNED, returned.form)


def find_single_mistake(trial):
    """Name the mistake that gives all results."""
    wrong_first = sorted(trial.runs, key=lambda run: run.is_right)  # rule out the most
    for mistake in trial.exercise.known:
        if reproduces(trial.exercise, wrong_first, mistake):
            yield from _diagnoses(trial, mistake)
            return


def find_mistake_pair(trial):
    """Name two mistakes that give all results together.

    If several pairs fit that have no name in common, none is named.
    """
    known, runs = trial.exercise.known, trial.runs
    telling = [run for run in runs if not (run.is_right or run.hides_others)]
    first = telling[0] if telling else trial.shown  # rules out the most
    pairs = [
        (one, other)
        for one, other in combinations(known, 2)
        if one.goes_with(other)
        and reproduces(trial.exercise, [first, *runs], one, other)
    ]
    names = [{mistake.name for mistake in pair} for pair in pairs]
    needed = 2 if first.hides_others else 1
    if pairs and len(set.intersection(*names)) >= needed:
        named = min(pairs, key=lambda pair: known.index(pair[1]))
        yield from _diagnoses(trial, *named)


def _diagnoses(trial, *mistakes):
    """Return the diagnoses of these mistakes, with values of the run that is shown."""
    exercise, values = trial.exercise, {}
    mistaken = partial(apply_mistakes(exercise.right, *mistakes), variables=values)
    exercise.call(mistaken, trial.shown.args)
    values["returns"] = exercise.returns
    for mistake in mistakes:
        code, other = exercise.in_code.get(mistake.name, (None, ""))
        is_other = code and re.search(code, trial.answer.source)
        named = f"{mistake.name}: {mistake.text.format(**values)}"
        yield other if is_other else named


def reproduces(exercise, runs, *mistakes):
    """Return whether mistakes together give what the answer gave in these runs."""
    mistaken = apply_mistakes(exercise.right, *mistakes)
    return all(_same_outcome(run, exercise.call(mistaken, run.args)) for run in runs)


def _same_outcome(run, other):
    if isinstance(other.error, KeyboardInterrupt):  # of the search for mistakes
        raise other.error
    if other.error is None or run.error is None:
        return other.error is run.error and agrees(run.value, other.value)
    text, whole_text = (safe_text(error, 300) for error in (other.error, run.error))
    return type(other.error) is type(run.error) and text in whole_text
