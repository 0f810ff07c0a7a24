"""Keep the names of passed exercises in a small file in the course's folder."""

import functools
import itertools
import json
import os
import shutil
from pathlib import Path

from filelock import FileLock

from utils.checks.messages import wrapped
from utils.files import write_atomically

COURSE = Path(__file__).resolve().parents[2]
NOT_KEPT = """\
Your progress isn't saved: {file} can't be read or written ({reason}).
Everything else works. To save it, name a folder of your own in a cell:
%env COURSE_PROGRESS=FOLDER"""
DAMAGED = """\
{file} is damaged, so nothing counts as passed.
The next exercise that you pass starts a new file, and the damaged one is kept next to \
it."""


def path() -> Path:
    """Return the file; `COURSE_PROGRESS` in the environment names another folder."""
    folder = os.environ.get("COURSE_PROGRESS")
    return (Path(os.path.expanduser(folder)) if folder else COURSE) / "progress.json"


def load() -> set[str]:
    """Return the names of passed exercises; if they can't be read, say so once."""
    try:
        return _read()
    except OSError as error:
        _say_once(NOT_KEPT, file=path(), reason=error.strerror)
    except ValueError:
        _say_once(DAMAGED, file=path())
    return set()


def add(name: str):
    """Add a name to the file; if that isn't possible, say so once and raise nothing.

    A second kernel waits for the first one, so that neither loses a name. A damaged
    file is copied to a new name before a new one is written.
    """
    if name in load():
        return
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path().with_name(".progress.lock"), timeout=10):
            try:
                passed = _read()
            except ValueError:
                shutil.copyfile(path(), _unused_name())
                passed = set()
            content = json.dumps({"passed": sorted(passed | {name})})
            write_atomically(path(), content.encode())
    except OSError as error:
        _say_once(NOT_KEPT, file=path(), reason=error.strerror or str(error))


def _read():
    """Return the passed names; none if there is no file; ValueError if damaged."""
    try:
        passed = json.loads(path().read_text(encoding="utf-8"))["passed"]
    except FileNotFoundError:
        return set()
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("expected the names of exercises") from error
    if type(passed) is list and all(type(name) is str for name in passed):
        return set(passed)
    raise ValueError("expected a list of names of exercises")


def _unused_name():
    names = (path().with_suffix(f".damaged{n}") for n in itertools.count(1))
    return next(name for name in names if not name.exists())


@functools.cache
def _say_once(text, **fields):
    print(wrapped(text.format(**fields)))
