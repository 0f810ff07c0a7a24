"""Known mistakes: lines of a right answer that are written wrong.

A right answer is an ordinary function. A mistake replaces one of its lines, or a few,
so the changed function returns what a reader with this mistake returns.
"""

import ast
import inspect
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import FunctionType

from utils.checks.shared.returned import deliver
from utils.checks.values import copied

CHECKS = "utils.checks."
LINES = ast.Assign | ast.Return  # that may be written wrong


@dataclass(frozen=True)
class Diagnosis:
    """The name of a mistake and the text that explains it to the reader.

    `run` is the run of the answer that shows the mistake, where there is one.
    """

    name: str
    text: str
    run: object = None


class AnswerRejected(Exception):
    """Raised when the object isn't the kind of answer that is asked for."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """Wrong lines for a right answer.

    name: of the mistake
    text: the explanation for the reader; in braces, local variables, or {returns}
    lines: what a line assigns (or `return`) -> the line that replaces it
    """

    name: str
    text: str
    lines: dict


def read_mistakes(known: dict) -> list[Mistake]:
    """Return mistakes from wrong line -> "name: explanation".

    A tuple of lines has several ways to make the mistake, and a way that takes more
    than one line has semicolons between them.

    >>> [one] = read_mistakes({"n = 3; m = n": "off-by-one: You counted one too few."})
    >>> one.name, one.text, one.lines
    ('off-by-one', 'You counted one too few.', {'n': 'n = 3', 'm': 'm = n'})
    """
    mistakes = []
    for ways, heading in known.items():
        name, text = heading.split(": ", 1)
        for way in [ways] if type(ways) is str else ways:
            lines = {_key(line): ast.unparse(line) for line in ast.parse(way).body}
            mistakes.append(Mistake(name, text, lines))
    return mistakes


def apply_mistakes(right, *mistakes):
    """Return the right answer, a function, with the lines of these mistakes.

    Replaces every assignment to the same name, in `right` or in the first helper that
    has one. For a parameter, the line is put at the top. Raises ValueError if nothing
    has the name.
    """
    functions, changed = _called_functions(right), {}
    lines = {key: line for m in mistakes for key, line in m.lines.items()}
    places = {key: _find_function(key, functions) for key in lines}
    for function in functions:
        wrong = frozenset((k, lines[k]) for k in lines if places[k] is function)
        names = dict(function.__globals__)
        code, defaults = _compile(function, wrong), function.__defaults__
        changed[function] = FunctionType(code, names, function.__name__, defaults)
    for function in changed.values():  # each calls the others as they are now
        names = function.__globals__
        names |= {
            n: changed[f] for n, f in names.items() if _is_helper(f) and f in changed
        }
    return lambda *args: changed[deliver](changed[right](*args))


def explain(right, args, *mistakes, **fields):
    """Return the text of each mistake, with the values that its braces ask for.

    They come from `fields` and the local variables of the answer with all mistakes.
    """

    def note(frame, event, value):
        if event == "return" and frame.f_globals.get("__name__", "").startswith(CHECKS):
            values.update(frame.f_locals)

    values, function = {}, apply_mistakes(right, *mistakes)
    args, before = [copied(arg) for arg in args], sys.getprofile()
    sys.setprofile(note)
    with suppress(Exception):
        function(*args)
    sys.setprofile(before)
    return [mistake.text.format(**values | fields) for mistake in mistakes]


def _find_function(key, functions):
    """Return the function that assigns this name, or else has it as a parameter."""
    for names in (_assigned_names, _parameter_names):
        for function in functions:
            if key in names(function):
                return function
    raise ValueError(f"expected a name of {functions[0].__name__}, got `{key}`")


@cache
def _called_functions(right):
    """Return a right answer, the functions of the checks that it calls, `deliver`."""
    functions = [right]
    for function in functions:
        names = [n.id for n in ast.walk(_parse(function)) if isinstance(n, ast.Name)]
        called = filter(_is_helper, map(function.__globals__.get, names))
        functions += [f for f in dict.fromkeys(called) if f not in functions]
    return [*functions, deliver]


def _is_helper(value):
    return inspect.isfunction(value) and value.__module__.startswith(CHECKS)


def _parse(function):
    return ast.parse(_read_source(function)).body[0]


_read_source = cache(inspect.getsource)


@cache
def _assigned_names(function):
    nodes = ast.walk(_parse(function))
    return {_key(node) for node in nodes if isinstance(node, LINES)}


def _parameter_names(function):
    return inspect.signature(function).parameters.keys()


def _key(line):
    """Return what a line assigns: "a", or "(a, b)"; of a return, that word."""
    if not isinstance(line, LINES):
        text = ast.unparse(line)
        raise ValueError(f"expected `name = …` or `return …`, got `{text}`")
    return "return" if isinstance(line, ast.Return) else ast.unparse(line.targets[0])


@cache
def _compile(function, lines):
    """Return the code of a function in which these lines are others."""
    if not lines:
        return function.__code__
    wrong = {key: ast.parse(line).body[0] for key, line in lines}
    tree = _Replacing(wrong).visit(_parse(function))
    tree.body[:0] = [wrong[key] for key in wrong.keys() - _assigned_names(function)]
    module = compile(ast.fix_missing_locations(ast.Module([tree], [])), "", "exec")
    return next(code for code in module.co_consts if inspect.iscode(code))


class _Replacing(ast.NodeTransformer):
    """Put lines in the place of those that assign the same."""

    def __init__(self, lines):
        self.lines = lines

    def visit(self, node):
        if isinstance(node, LINES):
            return self.lines.get(_key(node), node)
        return self.generic_visit(node)
