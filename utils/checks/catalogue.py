"""All exercises and patients, and the notebooks that ask for them."""

import importlib
import pkgutil
from functools import cache
from typing import NamedTuple

import torch

from utils.checks import exercises as modules
from utils.checks.definition import Exercise
from utils.pages import NOTEBOOKS, number_before, read_opening

HOUR_PAGE = "attention_in_an_hour.ipynb"
CLINIC = {  # its patients are no exercises, but their diagnoses are recorded as well
    "07_the_clinic.ipynb": ["patient 10", "patient 212"],
    "deeper/two_mistakes_at_once.ipynb": ["patient 512"],
}
COURSE, EXCURSIONS = range(15), range(15, 100)  # numbers of notebooks


class Task(NamedTuple):
    """What a reader is asked to do: name in the records, label, notebook."""

    name: str
    label: str
    page: str  # as in "deeper/shared_heads.ipynb"
    number: int  # of the notebook, or of the one before a deeper notebook


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise by its id, in the order of the ids."""
    found = []
    with torch.device("cpu"):  # cases are drawn there, whatever the default is
        for info in pkgutil.iter_modules(modules.__path__):
            module = importlib.import_module(f"{modules.__name__}.{info.name}")
            found += [e for e in vars(module).values() if isinstance(e, Exercise)]
    found.sort(key=lambda exercise: [*map(int, exercise.id.split("."))])
    return {exercise.id: exercise for exercise in found}


def tasks() -> list[Task]:
    """Return all tasks in order; those of deeper notebooks are last."""
    found = [task for task in _exercise_tasks() if task.page != HOUR_PAGE]
    found += [Task(p, p, page, 7) for page, names in CLINIC.items() for p in names]
    return sorted(found, key=lambda task: ("deeper" in task.page, task.number))


def hour_tasks() -> list[Task]:
    """Return what *Attention in an hour* asks."""
    return [task for task in _exercise_tasks() if task.page == HOUR_PAGE]


def _exercise_tasks():
    for exercise in exercises().values():
        page, number = f"{exercise.page}.ipynb", int(exercise.id.partition(".")[0])
        yield Task(exercise.counts_as, exercise.id, page, number)


def numbered_notebooks(numbers: range) -> list[str]:
    """Return the notebooks with these numbers in order: COURSE or EXCURSIONS."""
    pages = {task.page for task in tasks() if "deeper" not in task.page}
    pages.add("14_looking_back.ipynb")  # which has no exercise
    return sorted(page for page in pages if int(page[:2]) in numbers)


def deeper_notebooks() -> dict[str, str]:
    """Return for each deeper notebook the number of the one after which it comes."""
    order = {t.page: f"{t.number:02}" for t in tasks() if "deeper" in t.page}
    for path in NOTEBOOKS.glob("deeper/*.ipynb"):
        name = f"deeper/{path.name}"
        order[name] = order.get(name) or number_before(name)
    pairs = sorted(order.items(), key=lambda pair: (pair[1], read_opening(pair[0])[0]))
    return dict(pairs)
