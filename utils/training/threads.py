"""How many threads a small model trains with, on a machine that has other work, too."""

import statistics
import time

import torch

ROUND, TRIES = 100, 3  # of so many steps, so many are timed with each number of threads
ALL = torch.get_num_threads()  # what PyTorch takes by itself


class FasterThreads:
    """Run the steps of a training with all threads, or with one where that is faster.

    The threads of a small step wait for each other hundreds of times. If another
    program keeps one of two cores busy, each wait may last until that program pauses,
    and a step takes many times as long; one thread alone waits for nobody. So of every
    100 steps three are timed with all threads and three with one, and the rest runs
    with what was faster. `settle` leaves it so for what follows a training.

    >>> threads = FasterThreads()
    >>> for step in range(9):
    ...     with threads:
    ...         pass
    >>> threads.settle()

    Measured: `python -m tests.benchmarks busy`.
    """

    def __init__(self):
        self.seconds = []

    def __enter__(self):
        if len(self.seconds) == ROUND:
            self.seconds.clear()
        done = len(self.seconds)
        trying = done < 2 * TRIES
        number = (ALL if done < TRIES else 1) if trying else self.faster()
        torch.set_num_threads(number)
        self.start = time.perf_counter()

    def __exit__(self, *error):
        self.seconds.append(time.perf_counter() - self.start)

    def faster(self):
        """Return the number of threads that was faster, all where that is not known."""
        many, one = self.seconds[:TRIES], self.seconds[TRIES : 2 * TRIES]
        known = len(one) == TRIES
        return 1 if known and statistics.median(one) < statistics.median(many) else ALL

    def settle(self):
        """Let what follows, such as an evaluation, run with what was faster."""
        torch.set_num_threads(self.faster())
