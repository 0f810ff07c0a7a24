"""All exercises, the notebooks that ask them, and the course's own functions."""

import importlib
import re
from typing import NamedTuple

import torch

from utils.pages import NOTEBOOKS, read_cells

# Which notebook asks what, in the order of the pages: 8.4 is on an earlier page than 8.2.
# Exercise 2.2 is `exercise_2_2` in the module of notebook 02, `exercises/embeddings.py`.
# After an id comes the module of `utils` with the course's own version, or None.
TASKS = {
    "00_start_here": {"0.1": None},
    "01_tokens": {"1.1": "tokenizer", "1.2": "data"},
    "02_embeddings": {"2.1": "embeddings"},
    "deeper/who_sat_on_whom": {"2.2": "embeddings"},
    "03_context_vectors": {"3.1": "attention", "3.2": "attention", "3.3": "attention"},
    "04_scaled_dot_product_attention": {"4.1": "attention", "4.2": "attention"},
    "05_causal_masks": {"5.1": "attention", "5.2": "attention"},
    "deeper/padding_and_empty_rows": {"5.3": "attention", "5.4": "attention"},
    "06_multi_head_attention": {"6.1": "attention", "6.2": "attention", "6.3": "attention"},
    "07_the_clinic": {"patient 10": None, "patient 212": None},
    "deeper/two_mistakes_at_once": {"patient 512": None},
    "08_tiny_gpt": {"8.1": "model", "8.4": "model"},
    "deeper/drawing_the_next_token": {"8.2": "model", "8.3": "model"},
    "09_attention_at_speed": {"9.1": "attention", "9.2": "attention"},
    "deeper/shared_heads": {"9.3": "attention"},
    "10_positions": {"10.1": "embeddings", "10.2": "embeddings"},
    "11_a_narrower_cache": {"11.1": "latent", "11.2": "latent"},
    "deeper/latents_and_positions": {"11.3": "latent"},
    "12_translation": {"12.1": "attention", "12.2": "experiments"},
    "13_attention_without_a_softmax": {"13.1": "delta", "13.2": "delta"},
    "deeper/a_layer_with_the_delta_rule": {"13.3": "delta"},
    "14_looking_back": {},
    "15_beyond_text": {"15.1": "embeddings"},
    "16_several_machines": {"16.1": "parallel", "16.2": "parallel"},
}  # fmt: skip
# Labels in 00 and in *Attention in an hour*, and which exercise each is elsewhere.
HOUR = {"1": "3.1", "2": "5.2_in_an_hour", "3": "6.3_in_an_hour"}
BORROWED = {"0.1": "3.3"} | HOUR
PARTS = {
    "0.1": " in 00",
    "2": " in an hour",
    "3": " in an hour",
}  # in part, and recorded with this ending
HOUR_PAGE = "attention_in_an_hour.ipynb"
NUMBERED = [f"{page}.ipynb" for page in TASKS if "deeper" not in page]
EXCURSIONS = "15", "16"  # numbered, but the course ends before them
NEEDS = re.compile(r"Needs \[[^]]+\]\(([^)]+\.ipynb)\)")


class Task(NamedTuple):
    """What a reader is asked to do: name in the records, label, notebook."""

    name: str
    label: str
    page: str  # as in "deeper/shared_heads.ipynb"


def tasks() -> list[Task]:
    """Return all tasks in order; those of deeper notebooks are last."""
    pairs = [(label, page) for page, labels in TASKS.items() for label in labels]
    names = {id: record_name(id, find_exercise(id)) for id, _ in pairs if "." in id}
    all_tasks = [Task(names.get(id, id), id, f"{page}.ipynb") for id, page in pairs]
    return sorted(all_tasks, key=lambda task: task.page.startswith("deeper"))


def hour_tasks() -> list[Task]:
    """Return what *Attention in an hour* asks."""
    return [Task(record_name(id, find_exercise(id)), id, HOUR_PAGE) for id in HOUR]


def record_name(label: str, exercise) -> str:
    """Return the name under which a pass is recorded."""
    return exercise.name + PARTS.get(label, "")


def read_opening(page: str) -> tuple[str, int]:
    """Return title and minutes of a notebook, or its name and 0 if it is damaged or moved."""
    try:
        opening = "".join(read_cells(page)[0]["source"])
        title = re.search(r"^# (?:Deeper: )?(.+)$", opening, re.MULTILINE)[1]
        title = title[:1].upper() + title[1:]
        return title, int(re.search(r"About (\d+) minutes", opening)[1])
    except (OSError, ValueError, LookupError, TypeError):
        return page, 0


def deeper_notebooks() -> dict[str, str]:
    """Return for each deeper notebook the number of the one after which it comes."""
    order, number = {}, ""
    for page in TASKS:
        if page.startswith("deeper"):
            order[f"{page}.ipynb"] = number
        else:
            number = page[:2]
    for path in NOTEBOOKS.glob("deeper/*.ipynb"):
        name = f"deeper/{path.name}"
        order[name] = order.get(name) or _number_before(name)
    pairs = sorted(order.items(), key=lambda pair: (pair[1], read_opening(pair[0])[0]))
    return dict(pairs)


def _number_before(page):
    """Return the number of the notebook that a deeper one needs, "" if it is damaged."""
    try:
        link = NEEDS.search("".join(read_cells(page)[0]["source"]))[1]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    name = link.removeprefix("../")
    return _number_before(f"deeper/{name}") if name == link else name[:2]


def exercises() -> list:
    """Return every exercise, in the order of the course."""
    labels = [label for labels in TASKS.values() for label in labels if "." in label]
    return [find_exercise(label) for label in labels if label not in BORROWED]


def find_exercise(id: str):
    """Return the exercise with this id, or the one that it is in another notebook."""
    id = BORROWED.get(id, id)
    prefix = f"{id.split('.')[0]:0>2}_"
    name = next(page[3:] for page in TASKS if page.startswith(prefix))
    with torch.device("cpu"):  # its cases are drawn there, whatever the default is
        module = importlib.import_module(f"utils.checks.exercises.{name}")
    return getattr(module, f"exercise_{id.replace('.', '_')}")


def course_version(exercise):
    """Return the course's own version of what an exercise asks for, or None."""
    if exercise.course_answer:
        return exercise.course_answer
    [library] = [row[exercise.id] for row in TASKS.values() if exercise.id in row]
    module = library and importlib.import_module(f"utils.{library}")
    return library and getattr(module, exercise.name)
