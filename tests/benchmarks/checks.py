"""How long the checks of each exercise take, over all answers of the bank."""

import contextlib
import io
import statistics
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bank  # noqa: E402

from utils.checks import check  # noqa: E402


def seconds_of_check(entry):
    """Return how long one check of an answer of the bank takes."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        check(entry.exercise, entry.answer)
        return time.perf_counter() - start


def main():
    """Print a row for each exercise."""
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
