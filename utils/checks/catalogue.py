"""All exercises, the notebooks that ask them, and the course's own functions."""

import importlib
import re
from pathlib import Path
from typing import NamedTuple

import torch

from utils.pages import NOTEBOOKS, read_cells

# Where `utils` holds the functions that the exercises ask for, under the same names.
LIBRARY = ["tokenizer", "data", "embeddings", "attention", "model", "parallel"]
LIBRARY += ["latent", "delta", "experiments"]
CLINIC, TWO_MISTAKES = "07_the_clinic", "deeper/two_mistakes_at_once"
PATIENTS = {10: CLINIC, 212: CLINIC, 512: TWO_MISTAKES}  # that are exercises, and where
# *Attention in an hour* counts its exercises from 1. They are those of other notebooks,
# and count there, except the one that asks for a part only.
HOUR, HOUR_PART = {"1": "3.1", "2": "5.1", "3": "6.3"}, "3"
HOUR_PAGE = "attention_in_an_hour.ipynb"
EXCURSIONS = "15", "16"  # numbered, but the course ends before them
NEEDS = re.compile(r"Needs \[[^]]+\]\(([^)]+\.ipynb)\)")


class Task(NamedTuple):
    """What a reader is asked to do: name in the records, label, notebook."""

    name: str
    label: str
    page: str  # as in "deeper/shared_heads.ipynb"


def tasks() -> list[Task]:
    """Return all tasks in order; those of deeper notebooks are last."""
    asked = []
    for page in numbered_notebooks():
        if page.stem == CLINIC:
            for number, place in PATIENTS.items():
                name = f"patient {number}"
                asked.append(Task(name, name, f"{place}.ipynb"))
        for each in _load(page):
            place = each.page or page.stem
            asked.append(Task(each.name, each.id, f"{place}.ipynb"))
    return sorted(asked, key=lambda task: task.page.startswith("deeper"))


def hour_tasks() -> list[Task]:
    """Return what *Attention in an hour* asks."""
    asked = {exercise.id: exercise for exercise in exercises()}
    names = {label: record_name(label, asked[id]) for label, id in HOUR.items()}
    return [Task(name, label, HOUR_PAGE) for label, name in names.items()]


def record_name(label: str, exercise) -> str:
    """Return the name under which a pass is recorded."""
    return exercise.name + " in an hour" * (label == HOUR_PART)


def read_opening(page: str) -> tuple[str, int]:
    """Return title and minutes of a notebook, or its name and 0 if it is damaged."""
    try:
        opening = "".join(read_cells(page)[0]["source"])
        title = re.search(r"^# (?:Deeper: )?(.+)$", opening, re.MULTILINE)[1]
        title = title[:1].upper() + title[1:]
        return title, int(re.search(r"About (\d+) minutes", opening)[1])
    except (OSError, ValueError, LookupError, TypeError):
        return page, 0


def deeper_notebooks() -> dict[str, str]:
    """Return for each deeper notebook the number of the one after which it comes."""
    names = [f"deeper/{path.name}" for path in NOTEBOOKS.glob("deeper/*.ipynb")]
    numbers = {name: (_number_before(name), read_opening(name)[0]) for name in names}
    return {name: numbers[name][0] for name in sorted(names, key=numbers.get)}


def _number_before(page):
    """Return the number of the notebook that a deeper one needs, "" if it is damaged."""
    try:
        needed = NEEDS.search("".join(read_cells(page)[0]["source"]))[1]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    name = needed.removeprefix("../")
    return _number_before(f"deeper/{name}") if name == needed else name[:2]


def exercises() -> list:
    """Return every exercise, in the order of the course."""
    return [exercise for page in numbered_notebooks() for exercise in _load(page)]


def numbered_notebooks() -> list[Path]:
    """Return the notebooks 00 to 16."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def _load(page):
    """Return the exercises of a notebook, from the module of the same name."""
    name = page.stem[3:]
    if not (Path(__file__).parent / f"exercises/{name}.py").exists():
        return []
    with torch.device("cpu"):  # its cases are drawn there, whatever the default is
        return importlib.import_module(f"utils.checks.exercises.{name}").EXERCISES


def course_version(name: str):
    """Return the function or class that `utils` has under this name, or None."""
    modules = (importlib.import_module(f"utils.{module}") for module in LIBRARY)
    return next((vars(m)[name] for m in modules if name in vars(m)), None)
