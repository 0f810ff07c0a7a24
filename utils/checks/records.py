"""Keep the ids of passed exercises in a small file beside the course."""

import functools
import itertools
import json
import os
import shutil
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
    return (Path(os.path.expanduser(folder)) if folder else COURSE) / "progress.json"


def load():
    """Return the set of passed ids; empty, and said once, where they can't be read."""
    try:
        return _read()
    except OSError as error:
        _say_once("not-kept", file=path(), reason=error.strerror)
    except ValueError:
        _say_once("damaged", file=path())
    return set()


def add(id):
    """Add an id to the file; where that cannot be, say so once and raise nothing.

    A second kernel waits for the first one, so that both their ids are kept. A damaged
    file is copied to a new name before it is written anew.
    """
    if id in load():
        return
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path().with_name(".progress.lock"), timeout=10):
            try:
                passed = _read()
            except ValueError:
                shutil.copyfile(path(), _unused_name())
                passed = set()
            content = json.dumps({"passed": sorted(passed | {id})})
            write_atomically(path(), content.encode())
    except OSError as error:
        _say_once("not-kept", file=path(), reason=error.strerror or str(error))


def _read():
    """Return the passed ids, none if there is no file; ValueError: it is damaged."""
    try:
        passed = json.loads(path().read_text(encoding="utf-8"))["passed"]
    except FileNotFoundError:
        return set()
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("expected the ids of exercises") from error
    if type(passed) is list and all(type(id) is str for id in passed):
        return set(passed)
    raise ValueError("expected a list of exercise ids")


def _unused_name():
    names = (path().with_suffix(f".damaged{n}") for n in itertools.count(1))
    return next(name for name in names if not name.exists())


@functools.cache
def _say_once(text, **known):
    print(wrapped(TEXTS[text].format(**known)))
