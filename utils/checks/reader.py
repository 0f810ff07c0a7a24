"""The reader's three functions: `check`, `solution` and `progress`."""

import os
import warnings
from dataclasses import replace
from html import escape
from types import FunctionType

from utils.checks import cells, course, records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show, show_block
from utils.checks.examine import Result, examine
from utils.checks.guard import untouched
from utils.checks.limit import WATCH
from utils.checks.values import safe_text

STATES = {"passed": PASSED, "not-attempted": NOT_ATTEMPTED}

_passed_answers = {}  # name of an exercise: the reader's answer, once it has passed
_failed_answers = {}  # name: the answer that was checked last, if it didn't pass
SAME = "This is the version that you have checked before. If you have edited its cell, run that first."


def check(exercise: str, answer, record: bool = True) -> Result:
    """Show in one short block what is right or wrong, and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class. Nothing is
    raised, and nothing of the reader's is changed. A passed exercise is recorded,
    unless `record` is False, and from then on `solution` returns the answer.
    """
    known = _find(exercise)
    if known is None:
        ids = ", ".join(known.id for known in course.exercises())
        text = f"There is no such exercise. Expected one of the ids {ids}."
        result = Result(False, "no-such-exercise", text)
        return _show(f"Exercise {safe_text(exercise)}", result)
    result, failure = _examine(known, answer)
    if failure:
        result = Result(False, "newer-cell-failed", f"{failure}\n{cells.CORRECT}")
    elif result.passed and record:
        _passed_answers[known.name] = answer
        records.add(known.name)
        message = f"{result.message}\n{_say_what_is_next(known.name)}"
        result = replace(result, message=message)
    elif not result.passed and result.diagnosis != "not-attempted":
        if _failed_answers.get(known.name) is answer:
            result = replace(result, message=f"{result.message}\n{SAME}")
        _failed_answers[known.name] = answer
    return _show(f"{known.id} {known.name}", result)


def _find(id):
    """Return the exercise with this id, or None."""
    exercises = course.exercises() if type(id) is str else []
    return next((exercise for exercise in exercises if exercise.id == id), None)


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
        text = f"The answer could not be examined ({type(error).__name__})."
        return Result(False, None, f"{text}\nExpected {known.expectation}."), ""


def _find_owner(known, answer):
    """Return "the course's" or "PyTorch's" if the reader didn't write an answer."""
    if not isinstance(answer, FunctionType | type):
        return None
    if answer is course.course_version(known.name):
        return "the course's"
    return "PyTorch's" if str(answer.__module__).startswith("torch.") else None


def _show(heading, result):
    """Show the block and return the result with the whole of it as its message."""
    state = "passed" if result.passed else result.diagnosis
    text = show_block(heading, STATES.get(state, NOT_YET), result.message)
    return replace(result, message=text)


def _say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next one.

    The next one is a later one of this notebook, or else the first of all that are left,
    where those of deeper notebooks come last.
    """
    asks = [ask for chapter in course.chapters() for ask in chapter.asks]
    names = [ask.name for ask in asks]
    passed, place = records.load() | {name}, names.index(name)
    text = f"{len(passed.intersection(names))} of {len(names)} exercises"
    left = [ask for ask in asks if ask.name not in passed]
    if not left:
        return f"{text}: all of them."
    here = asks[place].page
    later = [ask for ask in asks[place:] if ask in left and ask.page == here]
    numbered = [ask for ask in left if ask.page.parent.name != "deeper"]
    ask = (later or numbered or left)[0]
    where = "" if ask.page == here else f", in {_title(ask.page)}"
    return f"{text}; next: {ask.label}{where}."


def _title(path):
    title = course.read_opening(path)[0].removeprefix("Deeper: ")
    return title[:1].upper() + title[1:]


def solution(exercise: str):
    """Return the reader's answer if it has passed in this session, else the course's.

    Says in one line which of the two it is.

    Raises ValueError if there is no such exercise, or none that later cells use.
    """
    known = _find(exercise)
    finished = course.course_version(known.name) if known else None
    if finished is None:
        text = "expected the id of an exercise whose function utils has as well, got "
        raise ValueError(text + safe_text(exercise))
    if known.name in _passed_answers:
        print(f"Using your own {known.name}.")
        return _passed_answers[known.name]
    until = f"until yours passes {known.id}"
    if known.name in records.load():  # in another session
        until = f"until you run your cell and its check, {known.id}, again"
    print(f"Using the course's {known.name} {until}.")
    return finished


def progress():
    """Show what has been passed, with links to the notebooks and the minutes left."""
    passed, total, minutes_left, open_labels = records.load(), 0, 0, []
    title, minutes = course.read_opening(course.HOUR)
    done = "6.3 passed, " if "MultiHeadAttention" in passed else ""
    hour = f"{_link(course.HOUR, title)}: {done}{minutes} minutes, for a single evening"
    rows = [hour]
    for chapter in course.chapters():
        left = [ask for ask in chapter.asks if ask.name not in passed]
        count = len(chapter.asks)
        time = f"{chapter.minutes} minutes"
        if count:
            here = [ask for ask in chapter.asks if ask.page == chapter.path]
            left_here = len({*here} & {*left})  # the others are in deeper notebooks
            minutes = chapter.minutes * left_here / len(here)
            time = f"{'' if left_here else '✓ '}{count - len(left)} of {count} passed"
            time += f", {5 * round(minutes / 5)} minutes left" if left_here else ""
            minutes_left += minutes
        rows.append(f"{_link(chapter.path, chapter.title)}: {time}{_deeper(chapter)}")
        total += count
        open_labels += [ask.label for ask in left]
    text = f"{total - len(open_labels)} of {total} exercises passed"
    if open_labels:
        hours = round(minutes_left / 60)
        text += f", about {hours} hours left. Next: {open_labels[0]}"
    rows = "".join(f"<li>{row}</li>" for row in rows)
    style = "list-style: none; padding: 0"
    show(f"{text}.", f'<b>{text}.</b><ul style="{style}">{rows}</ul>')


def _link(path, title):
    """Return a link to a notebook, as HTML that works from the notebook in use."""
    place = os.path.relpath(path).replace(os.sep, "/")
    return f'<a href="{escape(place)}">{escape(title)}</a>'


def _deeper(chapter):
    """Return where those exercises of a chapter are that a deeper notebook asks."""
    labels = {}
    for ask in chapter.asks:
        if ask.page != chapter.path:
            labels.setdefault(ask.page, []).append(ask.label)
    links = [
        f"{' and '.join(some)} in {_link(page, _title(page))}"
        for page, some in labels.items()
    ]
    return f" ({', '.join(links)})" if links else ""
