"""Find answers of another session in the notebooks where the reader saved them."""

import ast
import json
from contextlib import suppress

from utils.checks import catalogue

DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def saved_answers(exercise):
    """Yield title and answer for each notebook that asks `exercise` and defines one.

    Of the cells down to the check, only imports, functions and classes run.
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
                if isinstance(node, DEFINITIONS):
                    with suppress(Exception):
                        exec(ast.unparse(node), names)
        if check in source:
            return names
    return {}
