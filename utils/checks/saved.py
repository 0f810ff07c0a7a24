"""Find answers of another session in the notebooks where the reader saved them."""

from contextlib import suppress

from utils.checks import catalogue
from utils.pages import define, read_cells


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
            cells, names = read_cells(page), {"__name__": "saved"}
            checks = [f'check("{label}"' in "".join(cell["source"]) for cell in cells]
            define(cells[: checks.index(True) + 1], names, constants=False)
            if exercise.name in names:
                yield catalogue.read_opening(page)[0], names[exercise.name]
