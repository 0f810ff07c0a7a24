"""What the course asks: its exercises, in which notebooks, and its own functions."""

import importlib
from pathlib import Path
from typing import NamedTuple

import torch

from utils.checks.records import COURSE

# Where `utils` holds the functions that the exercises ask for, under the same names.
LIBRARY = (
    *("tokenizer", "data", "embeddings", "attention", "experiments.translation"),
    *("model", "parallel", "latent", "delta"),
)
NOTEBOOKS = COURSE / "notebooks"
PATIENTS = 10, 512  # of 12
# Exercises that a deeper notebook asks, and not the numbered one: id and file.
DEEPER = {
    "5.3": "padding_and_empty_rows",
    "5.4": "padding_and_empty_rows",
    "5.5": "dropout_measured",
    "10.3": "shared_heads",
}


class Task(NamedTuple):
    """What a reader is asked to do: name in the records, label, notebook."""

    name: str
    label: str
    page: str  # as in "deeper/shared_heads.ipynb"


def tasks() -> list[Task]:
    """Return all that the course asks, in order; deeper notebooks come last."""
    asked = []
    for page in _numbered_notebooks():
        if page.stem == "12_the_clinic":
            names = [f"patient {number}" for number in PATIENTS]
            asked += [Task(name, name, page.name) for name in names]
        for each in _load(page):
            deeper = DEEPER.get(each.id)
            place = f"deeper/{deeper}.ipynb" if deeper else page.name
            asked.append(Task(each.name, each.id, place))
    return sorted(asked, key=lambda task: task.page.startswith("deeper"))


def exercises() -> list:
    """Return every exercise, in the order of the course."""
    return [exercise for page in _numbered_notebooks() for exercise in _load(page)]


def _numbered_notebooks():
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
