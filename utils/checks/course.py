"""What the course has and asks: its exercises, its functions, its notebooks."""

import importlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import torch

from utils.checks.records import COURSE

# Where `utils` holds the functions that the exercises ask for, under the same names.
LIBRARY = (
    *("tokenizer", "data", "embeddings", "attention", "experiments.translation"),
    *("model", "parallel", "latent", "delta"),
)
CASES = 10, 512  # the patients of 12
HOUR = COURSE / "notebooks/attention_in_an_hour.ipynb"
# Exercises that a deeper notebook asks, and not the numbered one: id and file.
DEEPER = {
    "5.3": "padding_and_empty_rows",
    "5.4": "padding_and_empty_rows",
    "5.5": "dropout_measured",
    "10.3": "shared_heads",
}


class Ask(NamedTuple):
    """What a reader is asked to do: name in the records, label, and the notebook."""

    name: str
    label: str
    page: Path


class Chapter(NamedTuple):
    """A numbered notebook: what it says of itself, and what it asks.

    Some of this it asks in a deeper notebook.
    """

    path: Path
    title: str
    minutes: int
    asks: list


def chapters() -> list[Chapter]:
    """Return the numbered notebooks in order."""
    return [Chapter(path, *read_opening(path), _asks(path)) for path in _numbered()]


def _asks(path):
    if path.stem == "12_the_clinic":
        return [Ask(f"patient {case}", f"patient {case}", path) for case in CASES]
    pages = {id: path.parent / f"deeper/{name}.ipynb" for id, name in DEEPER.items()}
    return [Ask(each.name, each.id, pages.get(each.id, path)) for each in _load(path)]


def read_opening(path: Path) -> tuple[str, int]:
    """Return title and minutes of a notebook, or its file's name and 0 if damaged."""
    try:
        opening = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
        title = re.search(r"^# (.+)$", "".join(opening), re.MULTILINE)[1]
        return title, int(re.search(r"About (\d+) minutes", "".join(opening))[1])
    except (OSError, ValueError, LookupError, TypeError):
        return path.stem.replace("_", " "), 0


def exercises() -> list:
    """Return every exercise, in the order of the course."""
    return [exercise for path in _numbered() for exercise in _load(path)]


def _numbered():
    return sorted((COURSE / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def _load(path):
    """Return the exercises of a notebook, from the module of the same name."""
    name = path.stem[3:]
    if not (Path(__file__).parent / f"exercises/{name}.py").exists():
        return []
    with torch.device("cpu"):  # its cases are drawn there, whatever the default is
        return importlib.import_module(f"utils.checks.exercises.{name}").EXERCISES


def course_version(name: str):
    """Return the function or class that `utils` has under this name, or None."""
    modules = (importlib.import_module(f"utils.{module}") for module in LIBRARY)
    return next((vars(m)[name] for m in modules if name in vars(m)), None)
