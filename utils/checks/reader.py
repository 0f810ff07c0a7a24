"""The reader's three functions: `check`, `solution` and `progress`."""

import os
import warnings
from dataclasses import replace
from html import escape
from types import FunctionType

from utils.checks import cells, course, records, search
from utils.checks.course import chapters, course_version, exercises, find
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show, show_block
from utils.checks.engine import Result, examine
from utils.checks.guard import untouched
from utils.checks.limit import WATCH
from utils.checks.values import safe_text

STATES = {"passed": PASSED, "not-attempted": NOT_ATTEMPTED}

_passed_answers = {}  # name of an exercise: the reader's answer, once it has passed


# --- check ------------------------------------------------------------------------


def check(exercise: str, answer, record: bool = True) -> Result:
    """Show in one short block what is right or wrong, and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class. Nothing is
    raised, and nothing of the reader's is changed. A passed exercise is recorded,
    unless `record` is False, and from then on `solution` returns the answer.
    """
    known = find(exercise)
    if known is None:
        ids = ", ".join(known.id for known in exercises())
        text = f"There is no such exercise. Expected one of the ids {ids}."
        result = Result(False, "no-such-exercise", text)
        return _show_result(f"Exercise {safe_text(exercise)}", result)
    result, failure = _examine(known, answer)
    message = result.message
    if failure:
        message = f"{failure} So this is about the older definition:\n{message}"
        result = Result(False, "newer-cell-failed", f"{message}\n{cells.CORRECT}")
    elif result.passed and record:
        _passed_answers[known.name] = answer
        records.add(known.name)
        message += f"\n{_say_what_is_next(known.name)}"
        result = replace(result, message=message)
    return _show_result(f"{known.id} {known.name}", result)


def _examine(known, answer):
    """Return the result of an answer, and what to say if its newest cell failed."""
    try:
        if owner := _find_owner(known, answer):
            text = f"This is {owner} own function, so it doesn't count."
            return Result(False, "not-yours", f"{text} {cells.AGAIN}"), ""
        # A warning of PyTorch's would be shown in red below a message that explains it.
        with untouched(), WATCH, warnings.catch_warnings(action="ignore"):
            result = examine(known, answer)
            return result, cells.describe_failure(getattr(answer, "__name__", ""))
    except BaseException as error:  # an answer that breaks even its own description
        if search.STRICT:
            raise
        text = f"The answer could not be examined ({type(error).__name__})."
        return Result(False, None, f"{text}\nExpected {known.expectation}."), ""


def _find_owner(known, answer):
    """Return "the course's" or "PyTorch's" if the reader didn't write an answer."""
    if not isinstance(answer, FunctionType | type):
        return None
    if answer is course_version(known.name):
        return "the course's"
    return "PyTorch's" if str(answer.__module__).startswith("torch.") else None


def _show_result(heading, result):
    """Show the block and return the result with the whole of it as its message."""
    state = "passed" if result.passed else result.diagnosis
    text = show_block(heading, STATES.get(state, NOT_YET), result.message)
    return replace(result, message=text)


def _say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next id."""
    labels = {name: label for chapter in chapters() for name, label in chapter.asks}
    passed, names = records.load() | {name}, [*labels]
    later = names[names.index(name) :] + names
    following = next((labels[n] for n in later if n not in passed), None)
    count = f"{len(passed & labels.keys())} of {len(names)}"
    return f"{count}; next: {following}." if following else f"{count}: all of them."


# --- solution ---------------------------------------------------------------------


def solution(exercise: str):
    """Return the reader's answer if it has passed in this session, else the course's.

    Says in one line which of the two it is.

    Raises ValueError if there is no such exercise, or none that later cells use.
    """
    known = find(exercise)
    finished = course_version(known.name) if known else None
    if finished is None:
        raise ValueError(
            f"expected the id of an exercise whose function utils has as well, got {safe_text(exercise)}"
        )
    if known.name in _passed_answers:
        print(f"Using your own {known.name}.")
        return _passed_answers[known.name]
    print(f"Using the course's {known.name} until yours passes {known.id}.")
    return finished


def progress():
    """Show what has been passed, with links to the notebooks and the minutes left."""
    passed, minutes_left, labels_left = records.load(), 0, []
    title, minutes = course.read_opening(course.HOUR)
    hour = f"{_link(course.HOUR, title)}: {minutes} minutes, for a single evening"
    rows = [f"<li>{hour}</li>"]
    for chapter in chapters():
        left = [label for name, label in chapter.asks if name not in passed]
        minutes = f"{chapter.minutes} minutes"
        if chapter.asks:
            share = len(left) / len(chapter.asks)
            minutes_left += share * chapter.minutes
            count = f"{len(chapter.asks) - len(left)} of {len(chapter.asks)} passed"
            rest = f"{5 * round(share * chapter.minutes / 5)} minutes left"
            minutes = f"{count}, {rest}" if left else f"✓ {count}"
        line = f"{_link(chapter.path, chapter.title)}: {minutes}"
        rows.append(f"<li>{line}{_deeper_exercises(chapter)}</li>")
        labels_left += left
    total = sum(len(chapter.asks) for chapter in chapters())
    text = f"{total - len(labels_left)} of {total} exercises passed"
    if labels_left:
        hours = round(minutes_left / 60)
        text += f", about {hours} hours left. Next: {labels_left[0]}"
    rows = f'<ul style="list-style: none; padding: 0">{"".join(rows)}</ul>'
    show(f"{text}.", f"<b>{text}.</b>{rows}")


def _link(path, title):
    """Return a link to a notebook, as HTML that works from the notebook in use."""
    place = os.path.relpath(path).replace(os.sep, "/")
    return f'<a href="{escape(place)}">{escape(title)}</a>'


def _deeper_exercises(chapter):
    """Return where those exercises of a chapter are that a deeper notebook asks."""
    places = {}
    for _, label in chapter.asks:
        if label in course.DEEPER:
            places.setdefault(course.DEEPER[label], []).append(label)
    links = []
    for name, labels in places.items():
        path = course.COURSE / f"notebooks/deeper/{name}.ipynb"
        title = course.read_opening(path)[0].removeprefix("Deeper: ").capitalize()
        links.append(f"{' and '.join(labels)} in {_link(path, title)}")
    return f" ({', '.join(links)})" if links else ""
