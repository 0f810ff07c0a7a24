"""The functions for a reader's answer: `check` and `solution`."""

import warnings
from contextlib import suppress
from dataclasses import replace

from utils.checks import catalogue, display, records
from utils.checks.engine.guard import isolate_session, read_excerpt
from utils.checks.engine.values import safe_text
from utils.checks.examine import Result, examine
from utils.checks.overview import say_what_is_next
from utils.pages import read_cells, read_opening, run_definitions
from utils.validation import check_type, raise_value_error

STATES = {"passed": display.PASSED, "not-attempted": display.NOT_ATTEMPTED}
STATES["passed-before"] = display.PASSED[0], "passed before", display.PASSED[2]
CHECKED_BEFORE = "This is the version that you have checked before. If you have edited its cell, run that first."

_checked_answers = {}  # name of an exercise: the answer that was checked last
_passed_answers = {}  # name: the reader's answer, once it has passed


def check(exercise: str, answer, record: bool = True) -> Result:
    """Show in one short block what is right or wrong, and return the `Result`.

    `exercise` is an id such as `"4.1"`; `answer` is the function or class, which runs
    many times. None of its errors is raised, and settings of PyTorch and NumPy that it
    changes are put back. A passed exercise is recorded, unless `record` is False, and
    from then on `solution` returns the answer.
    """
    check_type("record", record, bool)
    entry = _find_entry(exercise)
    if entry is None:
        ids = ", ".join(e.id for e in catalogue.exercises().values() if not e.same_as)
        text = f"There is no such exercise. Expected one of the ids {ids}."
        result = Result(False, "no-such-exercise", text + _ask_for_quotes(exercise))
        return _show(f"Exercise {safe_text(exercise)}", result)
    result, name = _examine(entry, answer), entry.counts_as
    message = result.message
    if result.diagnosis not in ("not-attempted", "newer-cell-failed"):
        if _checked_answers.get(name, entry) is answer:
            message = f"{CHECKED_BEFORE}\n{message}"
        _checked_answers[name] = answer
    if result.diagnosis == "not-attempted" and name in records.load():
        result = replace(result, diagnosis="passed-before")
        message = "You may leave this cell as it is."
    if result.passed and record:
        _passed_answers[name] = answer
        records.add(name)
        names = {task.name for task in catalogue.hour_tasks()}
        if f"{entry.page}.ipynb" != catalogue.HOUR_PAGE:
            ending = say_what_is_next(name)
        else:
            passed = names & records.load()
            ending = f"{len(passed)} of {len(names)} in the hour{', all of it' * (passed == names)}."
            if entry.counts_as == entry.name:
                ending += f" It has passed as {entry.same_as} of the course as well."
            else:
                ending += f" It prepares {entry.same_as}, which asks for more."
        message += f"\n{ending}"
    return _show(f"{entry.label} {entry.name}", replace(result, message=message))


def _find_entry(key):
    """Return the exercise with this id, or None."""
    return catalogue.exercises().get(key) if type(key) is str else None


def _ask_for_quotes(key):
    """Return what to say of an id that is a number, else ""."""
    return f'\nPut quotes around the id: "{key}".' if type(key) in (int, float) else ""


def _examine(exercise, answer):
    """Return the result of an answer, whatever it is."""
    if answer is not None and answer is exercise.course:
        text = "This is the course's own function, so it doesn't count."
        return Result(False, "not-yours", f"{text} {display.RERUN}")
    try:
        # A warning of PyTorch's would be shown in red below a message that explains it.
        with isolate_session(), warnings.catch_warnings(action="ignore"):
            if failure := display.describe_failure(getattr(answer, "__name__", "")):
                text = f"{failure}\n{display.CORRECT_CELL}"
                return Result(False, "newer-cell-failed", text)
            return examine(exercise, answer)
    except BaseException as error:  # an answer that breaks even its own description
        if isinstance(error, KeyboardInterrupt) or not read_excerpt(error):
            raise  # Ctrl-C, or a mistake of the checks
        text = f"The answer could not be examined ({type(error).__name__})."
        return Result(False, None, f"{text}\nExpected {exercise.expectation}.")


def _show(heading, result):
    """Show the block and return the result with the whole of it as its message."""
    outcome = "passed" if result.passed else result.diagnosis
    state = STATES.get(outcome, display.NOT_YET)
    text = display.show_block(heading, state, result.message)
    return replace(result, message=text)


def solution(exercise: str, passed: bool = True):
    """Return the reader's answer if it has passed, else the course's.

    An answer that passed in another session is read from the notebook that asks for it,
    as it was saved, and must pass again. With `passed=False` it is read there whether it
    passes or not, unless it is the stub. Says in one line whose version it is.

    Raises ValueError if there is no such exercise, or none that later cells use.
    """
    check_type("passed", passed, bool)
    entry = _find_entry(exercise)
    if entry is None or entry.course is None:
        expected = "the id of an exercise whose function utils has as well"
        raise_value_error(expected, safe_text(exercise) + _ask_for_quotes(exercise))
    name, label = entry.counts_as, entry.label
    if name in _passed_answers:
        print(f"Using your own {entry.name}.")
        return _passed_answers[name]
    condition = f"until yours passes {label}"
    if not passed or name in records.load():  # in another session
        for title, answer in _saved_answers(entry):
            result = _examine(entry, answer)
            is_tried = result.diagnosis not in ("not-attempted", "not-yours")
            if result.passed or is_tried and not passed:
                remark = "" if result.passed else f" (it doesn't pass {label} yet)"
                print(f"Using your own {entry.name}, as saved in {title}{remark}.")
                if passed:
                    _passed_answers[name] = answer
                return answer
        condition = f"until you run your cell and its check, {label}, again"
        if not passed:
            condition = "until you have written and saved yours, in a cell that runs"
    print(f"Using the course's {entry.name} {condition}.")
    return entry.course


def _saved_answers(exercise):
    """Yield title and answer for each notebook that asks for one and defines one.

    Of the cells down to the check, only imports, functions, classes and lines with a
    `solution(…)` run, and what these print isn't shown.
    """
    asked = catalogue.tasks() + catalogue.hour_tasks()
    for page, label in [
        (t.page, t.label) for t in asked if t.name == exercise.counts_as
    ]:
        with suppress(OSError, ValueError, LookupError, TypeError):  # a damaged file
            saved, namespace = read_cells(page), {"__name__": "saved"}
            checks = [f'check("{label}"' in "".join(cell["source"]) for cell in saved]
            run_definitions(saved[: checks.index(True) + 1], namespace, constants=False)
            if exercise.name in namespace:
                yield read_opening(page)[0], namespace[exercise.name]
