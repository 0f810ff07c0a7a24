"""How many threads a small model trains with, on a machine that has other work, too."""

import statistics
import time

import torch

ROUND, TRIES = 100, 3  # of so many steps, so many are timed with each number of threads
_left = None  # the number of threads before the last choice, and what it left


def own_threads():
    """Return the reader's number of threads: not what the last training left."""
    now = torch.get_num_threads()
    return _left[0] if _left and now == _left[1] else now


class FasterThreads:
    """Run the steps of a training with all threads, or with one where that is faster.

    The threads of a small step wait for each other hundreds of times. If another
    program keeps one of two cores busy, each wait may last until that program pauses,
    and a step takes many times as long; one thread alone waits for nobody. So of every
    100 steps three are timed with all threads and three with one, and the rest runs
    with what was faster. `settle` leaves it so for what follows a training. Sums may
    differ in their last digits with the number of threads.

    >>> threads = FasterThreads()
    >>> for step in range(9):
    ...     with threads:
    ...         pass
    >>> threads.settle()

    Measured: `python -m tests.benchmarks busy`.
    """

    def __init__(self):
        self.all = self.best = own_threads()
        self.seconds = []  # of the steps of this round

    def __enter__(self):
        done = len(self.seconds)
        trying = self.all if done < TRIES else 1
        torch.set_num_threads(trying if done < 2 * TRIES else self.best)
        self.start = time.perf_counter()

    def __exit__(self, *error):
        self.seconds.append(time.perf_counter() - self.start)
        if len(self.seconds) == 2 * TRIES:
            many, one = self.seconds[:TRIES], self.seconds[TRIES:]
            faster = statistics.median(one) < statistics.median(many)
            self.best = 1 if faster else self.all
        if len(self.seconds) == ROUND:
            self.seconds.clear()

    def settle(self):
        """Let what follows, such as an evaluation, run with what was faster."""
        global _left
        torch.set_num_threads(self.best)
        _left = self.all, self.best
