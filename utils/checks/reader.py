"""The reader's three functions: `check`, `solution` and `progress`."""

import os
import warnings
from dataclasses import replace

from utils.checks import course, records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show, show_block
from utils.checks.examine import Result, examine
from utils.checks.guard import untouched
from utils.checks.values import safe_text

STATES = {"passed": PASSED, "not-attempted": NOT_ATTEMPTED}
SAME = "This is the version that you have checked before. If you have edited its cell, run that first."

_checked_answers = {}  # name of an exercise: the answer that was checked last
_passed_answers = {}  # name: the reader's answer, once it has passed


def check(exercise: str, answer, record: bool = True) -> Result:
    """Show in one short block what is right or wrong, and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class. Nothing is
    raised, and nothing of the reader's is changed. A passed exercise is recorded,
    unless `record` is False, and from then on `solution` returns the answer.
    """
    known = _find(exercise)
    if known is None:
        ids = ", ".join(each.id for each in course.exercises())
        text = f"There is no such exercise. Expected one of the ids {ids}."
        result = Result(False, "no-such-exercise", text)
        return _show(f"Exercise {safe_text(exercise)}", result)
    result = _examine(known, answer)
    message = result.message
    if result.passed and record:
        _passed_answers[known.name] = answer
        records.add(known.name)
        message += f"\n{_say_what_is_next(known.name)}"
    if result.diagnosis != "not-attempted":
        if _checked_answers.get(known.name) is answer:
            message += f"\n{SAME}"
        _checked_answers[known.name] = answer
    return _show(f"{known.id} {known.name}", replace(result, message=message))


def _find(id):
    """Return the exercise with this id, or None."""
    exercises = course.exercises() if type(id) is str else []
    return next((exercise for exercise in exercises if exercise.id == id), None)


def _examine(known, answer):
    """Return the result of an answer, whatever it is."""
    if answer is not None and answer is course.course_version(known.name):
        text = "This is the course's own function, so it doesn't count. Run the cell with your definition, then run this cell again."
        return Result(False, "not-yours", text)
    try:
        # A warning of PyTorch's would be shown in red below a message that explains it.
        with untouched(), warnings.catch_warnings(action="ignore"):
            return examine(known, answer)
    except BaseException as error:  # an answer that breaks even its own description
        text = f"The answer could not be examined ({type(error).__name__})."
        return Result(False, None, f"{text}\nExpected {known.expectation}.")


def _show(heading, result):
    """Show the block and return the result with the whole of it as its message."""
    state = "passed" if result.passed else result.diagnosis
    text = show_block(heading, STATES.get(state, NOT_YET), result.message)
    return replace(result, message=text)


def _say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next one."""
    tasks, passed = course.tasks(), records.load() | {name}
    left = [task for task in tasks if task.name not in passed]
    text = f"{len(tasks) - len(left)} of {len(tasks)} exercises"
    if not left:
        return f"{text}: all of them."
    return f"{text}; next: {left[0].label}, in {left[0].page}."


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
    """Show how many exercises of each notebook have passed, and which is the next."""
    tasks, passed = course.tasks(), records.load()
    left = [task for task in tasks if task.name not in passed]
    text = f"{len(tasks) - len(left)} of {len(tasks)} exercises passed."
    if left:
        text += f" Next: {left[0].label}."
    rows = ""
    for page in dict.fromkeys(task.page for task in tasks):
        done = [task.name in passed for task in tasks if task.page == page]
        link = os.path.relpath(course.NOTEBOOKS / page).replace(os.sep, "/")
        sign = "✓ " if all(done) else ""
        count = f"{sign}{sum(done)} of {len(done)} passed"
        rows += f'<li><a href="{link}">{page}</a>: {count}</li>'
    style = "list-style: none; padding: 0"
    show(text, f'<b>{text}</b><ul style="{style}">{rows}</ul>')
