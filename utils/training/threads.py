"""How many threads a small model trains with, on a machine that has other work, too."""

import statistics
import time

import torch

TRIES = 3  # steps that are timed with each number of threads
ROUND, LONGEST = 100, 800  # steps until that is done again
_left = None  # the number of threads before the last choice, and what it left


def own_threads():
    """Return the reader's number of threads: not what the last training left."""
    now = torch.get_num_threads()
    return _left[0] if _left and now == _left[1] else now


class FasterThreads:
    """Run the steps of a training with all threads, or with one where that is faster.

    The threads of a small step wait for each other hundreds of times. If another
    program keeps one of two cores busy, each wait may last until that program pauses,
    and a step takes many times as long; one thread alone waits for nobody. So three
    steps are timed with one thread, then three with all, or fewer where the first is
    slow, and the rest of a round runs with what was faster. A round has 100 steps, and
    twice as many each time that one thread is faster again. `settle` leaves it so for
    what follows a training. Sums may differ in their last digits with the number of
    threads.

    >>> threads = FasterThreads()
    >>> for step in range(9):
    ...     with threads:
    ...         pass
    >>> threads.settle()

    Measured: `python -m tests.benchmarks busy`.
    """

    def __init__(self):
        self.all = self.best = own_threads()
        self.round, self.known = ROUND, False
        self.seconds = []  # of the steps of this round

    def __enter__(self):
        trying = 1 if len(self.seconds) < TRIES else self.all
        torch.set_num_threads(self.best if self.known else trying)
        self.start = time.perf_counter()

    def __exit__(self, *error):
        self.seconds.append(time.perf_counter() - self.start)
        if not self.known and len(self.seconds) > TRIES:
            self._compare(self.seconds[:TRIES], self.seconds[TRIES:])
        if len(self.seconds) == self.round:
            self.seconds.clear()
            self.round = min(2 * self.round, LONGEST) if self.best == 1 else ROUND
            self.known = False

    def _compare(self, one, many):
        one = statistics.median(one)
        if len(many) == TRIES or many[0] > 2 * one:
            self.best = self.all if statistics.median(many) <= one else 1
            self.known = True

    def settle(self):
        """Let what follows, such as an evaluation, run with what was faster."""
        global _left
        torch.set_num_threads(self.best)
        _left = self.all, self.best


def faster_threads(batches):
    """Yield batches for a training loop whose steps run as `FasterThreads` says.

    >>> for batch in faster_threads([1, 2]):
    ...     pass
    """
    threads = FasterThreads()
    try:
        for batch in batches:
            with threads:
                yield batch
    finally:
        threads.settle()
