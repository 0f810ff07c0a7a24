"""Find answers of another session in the notebooks where the reader saved them."""

import ast
import io
import json
from contextlib import redirect_stdout, suppress

from utils.checks import catalogue

DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def saved_answers(exercise):
    """Yield title and answer for each notebook that asks `exercise` and defines one.

    Of the cells down to the check, only imports, functions, classes and lines with a
    `solution(…)` run, and what these print isn't shown.
    """
    page = next(t.page for t in catalogue.tasks() if t.name == exercise.name)
    places = [(page, exercise.id)]
    hour = "attention_in_an_hour.ipynb"
    places += [
        (hour, label) for label, id in catalogue.HOUR.items() if id == exercise.id
    ]
    for page, label in places:
        with suppress(OSError, ValueError, LookupError, TypeError):  # a damaged file
            text = (catalogue.NOTEBOOKS / page).read_text(encoding="utf-8")
            names = _define(json.loads(text)["cells"], f'check("{label}"')
            if exercise.name in names:
                yield catalogue.read_opening(page)[0], names[exercise.name]


def _define(cells, check):
    """Return what the code cells define, down to the one that has `check` in it."""
    names = {"__name__": "saved"}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        with suppress(SyntaxError):  # a magic, or a cell that isn't finished
            for node in ast.parse(source).body:
                if isinstance(node, DEFINITIONS) or _is_solution(node):
                    with suppress(Exception), redirect_stdout(io.StringIO()):
                        exec(ast.unparse(node), names)
        if check in source:
            return names
    return {}


def _is_solution(node):
    """Return whether a line names an answer, as in `split = solution("6.1")`."""
    return isinstance(node, ast.Assign) and "solution(" in ast.unparse(node.value)
