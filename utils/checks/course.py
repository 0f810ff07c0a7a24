"""The reader's two functions: `check` an answer, and look at one's `progress`."""

import importlib
import json
import re
from dataclasses import replace

import torch

from utils.checks import records, search
from utils.checks.engine import Result, examine
from utils.checks.guard import untouched
from utils.checks.limit import WATCH
from utils.checks.messages import wrapped
from utils.checks.values import safe_text

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
CASES = 10, 512  # patients of 12
HEADINGS = {"passed": "passed", "not-attempted": "not attempted yet"}


def check(exercise, answer):
    """Print one short block about an answer and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class. Nothing
    is raised, nothing of the reader's is changed; what is passed is kept.
    """
    known = find(exercise)
    if known is None:
        ids = ", ".join(known.id for known in exercises())
        text = f"There is no such exercise. Expected one of the ids {ids}."
        found = Result(False, "no-such-exercise", text)
        return _shown(f"Exercise {safe_text(exercise)}", found)
    try:
        with untouched(), WATCH:
            found = examine(known, answer)
    except BaseException as error:  # an answer that breaks even its own description
        if search.STRICT:
            raise
        text = f"The answer could not be examined ({type(error).__name__})."
        found = Result(False, None, f"{text}\nExpected {known.expectation}.")
    result = _shown(f"{known.id} {known.name}", found)
    if result.passed:
        records.add(known.id)
    return result


def _shown(heading, found):
    """Print the block and return the result with the whole of it as its message."""
    state = "passed" if found.passed else found.diagnosis
    text = wrapped(f"{heading}: {HEADINGS.get(state, 'not yet')}.\n{found.message}")
    print(text)
    return replace(found, message=text)


def progress():
    """Draw the map of the course with what is passed; return the passed ids."""
    from utils import plots  # only here: a check needs no pictures

    passed, status = records.load(), []
    for number, name, minutes, needs in notebooks():
        ids = ids_of(number)
        status.append((number, name, minutes, len(passed & ids), len(ids), needs))
    for name, minutes, needs in deeper():  # its exercises are counted above
        status.append((None, name, minutes, 0, 0, needs))
    done, total = (sum(row[i] for row in status) for i in (3, 4))
    plots.course_map(status, title=f"{done} of {total} exercises passed")
    return sorted(passed)


def ids_of(number):
    """Return the ids that a notebook asks for: its exercises, or the clinic's cases."""
    if number == 12:
        return {f"patient {case}" for case in CASES}
    return {exercise.id for exercise in load(str(number))}


def notebooks():
    """Return number, name, minutes and needed numbers of each notebook, as it says."""
    paths = sorted((records.COURSE / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return [(int(path.name[:2]), *_facts(path, path.stem[3:])) for path in paths]


def deeper():
    """Return name, minutes and needed numbers of those for another evening."""
    paths = (records.COURSE / "notebooks").glob("deeper/*.ipynb")
    found = [_facts(path, path.stem) for path in paths]
    return sorted(found, key=lambda facts: (max(facts[2], default=0), facts[0]))


def _facts(path, fallback):
    """Return name, minutes and needed numbers that a notebook's first cell states."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        opening = "".join(cells[0]["source"])
    except (OSError, ValueError, LookupError, TypeError):  # a damaged file
        opening = ""
    title = re.search(r"^# (?:\d\d |Deeper: )?(.+)$", opening, re.MULTILINE)
    name = title[1] if title else fallback.replace("_", " ")
    said = re.search(r"About (\d+) minutes(.*)", opening) or ("", 0, "")
    needs = re.findall(r"\((?:\.\./)?(\d\d)_\w+\.ipynb\)", said[2])
    return name[:1].upper() + name[1:], int(said[1]), [*map(int, needs)]


def exercises():
    """Return every exercise, in the order of the course."""
    return [exercise for number in FILES for exercise in load(number)]


def find(id):
    """Return the exercise with this id, or None."""
    number = id.partition(".")[0] if type(id) is str else ""
    return next((known for known in load(number) if known.id == id), None)


def load(number):
    """Return the exercises of a notebook, from the file of this package."""
    if number not in FILES:
        return []
    with torch.device("cpu"):  # its cases are drawn there, whatever the default is
        file = importlib.import_module(f"utils.checks.{FILES[number]}")
    return file.EXERCISES
