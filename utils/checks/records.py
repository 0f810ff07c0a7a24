"""Keep the ids of passed exercises in a small file beside the course."""

import functools
import json
import os
from pathlib import Path

from filelock import FileLock

from utils.checks.messages import wrapped
from utils.checks.steps import texts_of
from utils.files import write_atomically

COURSE = Path(__file__).resolve().parents[2]
TEXTS = texts_of(__file__)["PROGRESS"]


def path():
    """Return the file; `COURSE_PROGRESS` in the environment names another folder."""
    folder = os.environ.get("COURSE_PROGRESS")
    return (Path(folder).expanduser() if folder else COURSE) / "progress.json"


def load():
    """Return the set of passed ids; empty, and said once, where they can't be read."""
    try:
        return _read()
    except OSError as error:
        _say_once(path(), error.strerror)
        return set()


def add(id):
    """Add an id to the file; where that cannot be, say so once and raise nothing.

    A second kernel waits for the first one, so that both their ids are kept.
    """
    try:
        if id in _read():
            return
        path().parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path().with_name(".progress.lock"), timeout=10):
            content = json.dumps({"passed": sorted(_read() | {id})})
            write_atomically(path(), content.encode())
    except OSError as error:
        _say_once(path(), error.strerror or error)


def _read():
    """Return the passed ids; a damaged file is set aside and counts as empty."""
    try:
        passed = json.loads(path().read_text(encoding="utf-8"))["passed"]
        if type(passed) is list and all(type(id) is str for id in passed):
            return set(passed)
        raise ValueError("expected a list of exercise ids")
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError, RecursionError):
        os.replace(path(), path().with_suffix(".damaged"))
        return set()


@functools.cache
def _say_once(file, reason):
    print(wrapped(TEXTS["not-kept"].format(file=file, reason=reason)))
