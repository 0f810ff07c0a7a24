"""Measure what the course says of its speed: `python -m tests.benchmarks`.

Prints tables and writes nothing into the tree.
"""

import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bank  # noqa: E402

from utils.checks import check  # noqa: E402


def seconds_of_check(entry):
    """Return how long one check of an answer of the bank takes."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        check(entry.exercise, entry.answer)
        return time.perf_counter() - start


def checks():
    """Print how long the checks of each exercise take, over all answers of the bank."""
    print("exercise  answers  median ms  slowest ms")
    entries = bank.answers()
    for exercise in sorted({entry.exercise for entry in entries}, key=float):
        mine = [entry for entry in entries if entry.exercise == exercise]
        seconds_of_check(mine[0])  # the first call imports what the exercise needs
        taken = [1000 * seconds_of_check(entry) for entry in mine]
        print(
            f"{exercise:>8} {len(mine):8} {statistics.median(taken):10.1f} "
            f"{max(taken):11.1f}"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COURSE_PROGRESS"] = folder
        checks()
