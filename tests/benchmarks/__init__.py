"""What the course says of its speed, measured on this machine with two threads.

    python -m tests.benchmarks [attention gpt ...]

Each table is a module with a function `main`. What is compared in time is also shown
to compute the same (byte pairs on the smaller text, the sliding window up to 2,048
tokens). Rivals take turns in one process, in another order each round; medians are
printed, and a ratio is the median of the ratios of single rounds. `growth` and
`decoding` use a GPU where there is one; the rest is of the CPU. Nothing is written
into the tree. A table is worth what the machine is quiet: the load is printed with it.
"""

import os
import random
import statistics
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # PyTorch's profiler talks otherwise

TABLES = (
    "byte_pairs",
    "attention",
    "gpt",
    "decoding",
    "today",
    "busy",
)


def place():
    """Return the device and the type of numbers for which it has a fused kernel.

    Below compute capability 8.0, as on a T4, no fused kernel takes bfloat16.
    """
    import torch  # only here: its threads are set before it is imported

    if not torch.cuda.is_available():
        return "cpu", torch.float32
    new = torch.cuda.get_device_capability() >= (8, 0)
    return "cuda", torch.bfloat16 if new else torch.float16


def clock():
    """Return the time in seconds, after a GPU has done all that it was given."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def race(runs, rounds):
    """Let functions take turns; return the seconds of each, round by round."""
    seconds = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name in random.sample(list(runs), len(runs)):
            start = clock()
            runs[name]()
            taken = clock() - start
            if number:  # the first round warms up
                seconds[name].append(taken)
    return seconds


def ratio(seconds, others):
    """Return the median of the ratios of rounds, and half the width of its error.

    The half-width is two standard errors of a median of as many normal values.
    """
    ratios = [ours / theirs for ours, theirs in zip(seconds, others)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, 2 * 1.25 * (high - low) / 1.35 / len(ratios) ** 0.5
