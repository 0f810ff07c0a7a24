"""The reader's three functions: `check`, `solution` and `progress`."""

import os
import warnings
from dataclasses import replace
from html import escape

from utils.checks import catalogue, cells, records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show, show_block
from utils.checks.examine import Result, examine
from utils.checks.guard import untouched
from utils.checks.saved import saved_answers
from utils.checks.values import safe_text
from utils.pages import NOTEBOOKS

STATES = {"passed": PASSED, "not-attempted": NOT_ATTEMPTED}
SAME = "This is the version that you have checked before. If you have edited its cell, run that first."

_checked_answers = {}  # name of an exercise: the answer that was checked last
_passed_answers = {}  # name: the reader's answer, once it has passed


def check(exercise: str, answer, record: bool = True) -> Result:
    """Show in one short block what is right or wrong, and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class, which runs
    many times. Nothing is raised, no argument and no setting is changed. A passed
    exercise is recorded, unless `record` is False, and from then on `solution` returns
    the answer.
    """
    known = _find(exercise)
    if known is None:
        ids = ", ".join(each.id for each in catalogue.exercises())
        text = f"There is no such exercise. Expected one of the ids {ids}."
        if type(exercise) in (int, float):
            text += f'\nPut quotes around the id: check("{exercise}", …).'
        result = Result(False, "no-such-exercise", text)
        return _show(f"Exercise {safe_text(exercise)}", result)
    result = _examine(known, answer)
    message = result.message
    if result.diagnosis not in ("not-attempted", "newer-cell-failed"):
        if _checked_answers.get(known.name, known) is answer:
            message = f"{SAME}\n{message}"
        _checked_answers[known.name] = answer
    if result.diagnosis == "not-attempted" and known.name in records.load():
        message += "\n(You have passed it before.)"
    if result.passed and record:
        _passed_answers[known.name] = answer
        records.add(known.name)
        ending = f"It also counts as {known.id} of the numbered notebooks."
        if exercise not in catalogue.HOUR:
            ending = _say_what_is_next(known.name)
        message += f"\n{ending}"
    return _show(f"{_label(exercise)} {known.name}", replace(result, message=message))


def _find(id):
    """Return the exercise with this id, or None."""
    exercises = catalogue.exercises() if type(id) is str else []
    id = catalogue.HOUR.get(id, id) if exercises else id
    return next((exercise for exercise in exercises if exercise.id == id), None)


def _label(id):
    """Return what a message calls an exercise: 6.3, but Exercise 3 in the hour."""
    return f"Exercise {id}" if id in catalogue.HOUR else id


def _examine(known, answer):
    """Return the result of an answer, whatever it is."""
    if answer is not None and answer is catalogue.course_version(known.name):
        text = f"This is the course's own function, so it doesn't count. {cells.AGAIN}"
        return Result(False, "not-yours", text)
    try:
        # A warning of PyTorch's would be shown in red below a message that explains it.
        with untouched(), warnings.catch_warnings(action="ignore"):
            if failure := cells.describe_failure(getattr(answer, "__name__", "")):
                text = f"{failure}\n{cells.CORRECT}"
                return Result(False, "newer-cell-failed", text)
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
    """Return how many exercises have passed, this one included, and the next one.

    The next one is a later one of this notebook, or else the first that is left.
    """
    tasks, passed = catalogue.tasks(), records.load() | {name}
    left = [task for task in tasks if task.name not in passed]
    text = f"{len(tasks) - len(left)} of {len(tasks)} exercises"
    if not left:
        return f"{text}: all of them."
    place = [task.name for task in tasks].index(name)
    here = tasks[place].page
    later = [task for task in tasks[place:] if task in left and task.page == here]
    task = (later or left)[0]
    where = "" if task.page == here else f", in {_title(task.page)}"
    return f"{text}; next: {task.label}{where}."


def solution(exercise: str):
    """Return the reader's answer if it has passed, else the course's.

    An answer that passed in another session is read from the notebook that asks for it,
    as it was saved, and must pass again. Says in one line whose version it is.

    Raises ValueError if there is no such exercise, or none that later cells use.
    """
    known = _find(exercise)
    finished = catalogue.course_version(known.name) if known else None
    if finished is None:
        text = "expected the id of an exercise whose function utils has as well, got "
        raise ValueError(text + safe_text(exercise))
    if known.name in _passed_answers:
        print(f"Using your own {known.name}.")
        return _passed_answers[known.name]
    label = _label(exercise)
    until = f"until yours passes {label}"
    if known.name in records.load():  # in another session
        for title, answer in saved_answers(known):
            if _examine(known, answer).passed:
                print(f"Using your own {known.name}, as saved in {title}.")
                _passed_answers[known.name] = answer
                return answer
        until = f"until you run your cell and its check, {label}, again"
    print(f"Using the course's {known.name} {until}.")
    return finished


def progress():
    """Show what has passed of each notebook, and the minutes that it takes."""
    tasks, passed = catalogue.tasks(), records.load()
    left = [task for task in tasks if task.name not in passed]
    start, *pages = [path.name for path in catalogue.numbered_notebooks()]
    states, all_minutes = {start: "✓"}, 0  # 00 counts as done: it shows this list
    deeper = [task.page for task in tasks if task.page not in pages]
    for page in dict.fromkeys([*pages, catalogue.HOUR_PAGE, *deeper]):
        asked = [task for task in tasks if task.page == page]
        if page == catalogue.HOUR_PAGE:  # its exercises are those of other notebooks
            asked = [task for task in tasks if task.label in catalogue.HOUR.values()]
        open_here = [task for task in asked if task in left]
        minutes = catalogue.read_opening(page)[1]
        time = f"{minutes} minutes"
        if asked:
            count = f"{len(asked) - len(open_here)} of {len(asked)} passed"
            time = f"{count}, {time}" if open_here else f"{count} ✓"
            minutes *= bool(open_here)
        all_minutes += minutes if page in pages else 0  # deeper ones are extra
        states[page] = time
    num_passed = len(tasks) - len(left)
    text, next_page = f"{num_passed} of {len(tasks)} exercises passed", None
    if left:
        hours = round(all_minutes / 60)
        time = f"{hours} hours" if hours > 1 else "an hour"
        text += f", about {time} left. Next: {left[0].label}"
        next_page = left[0].page
    bar = f'<progress value="{num_passed}" max="{len(tasks)}"></progress>'
    style = "list-style: none; padding: 0"
    rows = "".join(f"<li>{_link(page)}: {state}</li>" for page, state in states.items())
    link, title = (f" in {of(next_page)}" if left else "" for of in (_link, _title))
    html = f'{bar} <b>{text}</b>{link}<ul style="{style}">{rows}</ul>'
    lines = [f"{_title(page)}: {state}" for page, state in states.items()]
    show("\n".join([f"{text}{title}.", *lines]), html)


def _link(page):
    """Return a link to a notebook, with its title."""
    link = os.path.relpath(NOTEBOOKS / page).replace(os.sep, "/")
    return f'<a href="{link}">{escape(_title(page))}</a>'


def _title(page):
    return "Deeper: " * page.startswith("deeper/") + catalogue.read_opening(page)[0]
