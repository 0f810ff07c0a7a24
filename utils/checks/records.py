"""Keep the names of passed exercises, one a line, in a file in the course's folder."""

import os
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2]


def path() -> Path:
    """Return the file; `COURSE_PROGRESS` in the environment names another folder."""
    folder = os.environ.get("COURSE_PROGRESS") or COURSE
    return Path(folder).expanduser() / "progress.txt"


def load() -> set[str]:
    """Return the names of passed exercises: none if the file can't be read."""
    return {name for name in _read_lines() if name}


def _read_lines():
    try:
        return path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def latest(names: set[str]) -> str | None:
    """Return which of these names passed last, or None."""
    return next((name for name in reversed(_read_lines()) if name in names), None)


def add(name: str):
    """Append a name to the file; if that isn't possible, say so and raise nothing."""
    if name in load():
        return
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with open(path(), "a", encoding="utf-8") as file:
            file.write(f"\n{name}\n")  # a line of its own, whatever stands before
    except OSError as error:
        print(f"Your progress isn't saved: can't write {path()} ({error.strerror}).")
        print("To save it, name a folder of your own: %env COURSE_PROGRESS=FOLDER")
