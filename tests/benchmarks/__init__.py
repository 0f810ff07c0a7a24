"""What the README says of speed, measured on this machine with two threads.

    python -m tests.benchmarks [attention today ...]

Each table is a module with a function `main`. What is compared in time is first shown
to compute the same. Rivals take turns in one process, in another order each round;
medians are printed, and a ratio is the median of the ratios of single rounds. Nothing
is written into the tree. The load of the machine is printed with each table, because
a table measured on a busy machine says little.
"""

import os
import random
import statistics
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # PyTorch's profiler talks otherwise

TABLES = ("byte_pairs", "attention", "today", "gpu")


def race(runs, rounds):
    """Let functions take turns; return the seconds of each, round by round."""
    seconds = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name in random.sample(list(runs), len(runs)):
            start = time.perf_counter()
            runs[name]()
            if number:  # the first round warms up
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds, others):
    """Return the median of the ratios of rounds, and half the width of its error.

    The half-width is two standard errors of a median of as many normal values.
    """
    ratios = [ours / theirs for ours, theirs in zip(seconds, others)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, 2 * 1.25 * (high - low) / 1.35 / len(ratios) ** 0.5


def row(name, seconds, others):
    """Return a name, the median in milliseconds, and the ratio to the others."""
    middle, error = ratio(seconds, others)
    milliseconds = 1000 * statistics.median(seconds)
    return f"{name:23} {milliseconds:9.3f} ms {middle:7.3f} ± {error:.3f}"
