"""What the course has and asks: its exercises, its functions, its notebooks."""

import importlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import torch

from utils.checks.records import COURSE

FILES = {  # number of a notebook: the file of its exercises here
    "1": "tokens",
    "2": "embeddings",
    "3": "context_vectors",
    "4": "scaled_dot_product_attention",
    "5": "causal_masks",
    "6": "multi_head_attention",
    "7": "positions",
    "8": "translation",
    "9": "tiny_gpt",
    "10": "attention_at_speed",
    "11": "beyond_text",
    "13": "several_machines",
    "14": "a_cache_that_stays_small",
    "15": "attention_without_a_softmax",
}
# Where `utils` holds the functions that the exercises ask for, under the same names.
LIBRARY = (
    *("tokenizer", "data", "embeddings", "attention", "experiments.translation"),
    *("model", "parallel", "latent", "delta"),
)
CASES = 10, 512  # the patients of 12
HOUR = COURSE / "notebooks/attention_in_an_hour.ipynb"
# Exercises that a deeper notebook asks, and not the numbered one: id and file.
DEEPER = {
    "5.2": "padding_and_empty_rows",
    "5.3": "padding_and_empty_rows",
    "5.4": "dropout_measured",
    "10.3": "shared_heads",
}


class Chapter(NamedTuple):
    """A numbered notebook: what it says of itself, and what it asks the reader to do.

    `asks` are pairs: the name under which a passed exercise is recorded, and its label.
    """

    path: Path
    title: str
    minutes: int
    asks: list


def exercises() -> list:
    """Return every exercise, in the order of the course."""
    return [exercise for number in FILES for exercise in load(number)]


def find(id: str):
    """Return the exercise with this id, or None."""
    number = id.partition(".")[0] if type(id) is str else ""
    return next((known for known in load(number) if known.id == id), None)


def load(number: str) -> list:
    """Return the exercises of a notebook, from the file of this package."""
    if number not in FILES:
        return []
    with torch.device("cpu"):  # its cases are drawn there, whatever the default is
        file = importlib.import_module(f"utils.checks.exercises.{FILES[number]}")
    return file.EXERCISES


def course_version(name: str):
    """Return the function or class that `utils` has under this name, or None."""
    modules = (importlib.import_module(f"utils.{module}") for module in LIBRARY)
    return next((vars(m)[name] for m in modules if name in vars(m)), None)


def chapters() -> list[Chapter]:
    """Return the numbered notebooks in order."""
    paths = sorted((COURSE / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return [_chapter(path) for path in paths]


def _chapter(path):
    number = str(int(path.name[:2]))
    asks = [(known.name, known.id) for known in load(number)]
    if number == "12":
        asks = [(f"patient {case}", f"patient {case}") for case in CASES]
    return Chapter(path, *read_opening(path), asks)


def read_opening(path: Path) -> tuple[str, int]:
    """Return title and minutes of a notebook, or its file's name and 0 if damaged."""
    try:
        opening = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]
        title = re.search(r"^# (.+)$", "".join(opening), re.MULTILINE)[1]
        return title, int(re.search(r"About (\d+) minutes", "".join(opening))[1])
    except (OSError, ValueError, LookupError, TypeError):
        return path.stem.replace("_", " "), 0
