"""How many threads a small model trains with, on a machine that has other work, too."""

import statistics
import time

import torch

ROUND, TRIES = 100, 3  # of so many steps so many are timed with each number of threads
CLEARLY = 1.25  # times as long: one thread is left to what follows, too
PATIENCE = 10  # times the seconds lost by a trial pass before the next one
_left = None  # the number of threads before the last choice, and what it left
_next_trial = 0.0  # not before then, on the clock of `time.perf_counter`


def own_threads():
    """Return the reader's number of threads: not what the last training left."""
    now = torch.get_num_threads()
    return _left[0] if _left and now == _left[1] else now


class FasterThreads:
    """Run the steps of a training with all threads, or with one where that is faster.

    The threads of a small step wait for each other hundreds of times. If another
    program keeps one of two cores busy, each wait may last until that program pauses,
    and a step takes many times as long; one thread alone waits for nobody. So three
    steps in a hundred are timed with one thread, then three with all, or fewer where
    the first is slow, and the others run with what was faster. Trials in vain take a
    tenth of the time at most: one that lost a second is repeated ten seconds later, in
    the next training, too. `settle` leaves one thread to what follows a training where
    it was clearly faster, else all: an evaluation with large batches gains more from
    them. Sums may differ in their last digits with the number of threads.

    >>> threads = FasterThreads()
    >>> for step in range(9):
    ...     with threads:
    ...         pass
    >>> threads.settle()

    Measured: `python -m tests.benchmarks busy`.
    """

    def __init__(self):
        self.all = own_threads()
        self.best = self.left = torch.get_num_threads()
        self.known = False
        self.seconds = []  # of the steps of this round

    def __enter__(self):
        self.start = time.perf_counter()
        self.waits = self.best == 1 and not self.seconds and self.start < _next_trial
        trying = 1 if len(self.seconds) < TRIES else self.all
        torch.set_num_threads(self.best if self.known or self.waits else trying)

    def __exit__(self, *error):
        if self.waits:
            return
        self.seconds.append(time.perf_counter() - self.start)
        if not self.known and len(self.seconds) > TRIES:
            self._compare(statistics.median(self.seconds[:TRIES]), self.seconds[TRIES:])
        if len(self.seconds) == ROUND:
            self.seconds.clear()
            self.known = False

    def _compare(self, one, many):
        global _next_trial
        if len(many) == TRIES or many[0] > 2 * one:
            all_of_them = statistics.median(many)
            self.best = self.all if all_of_them <= one else 1
            self.left = self.all if all_of_them <= CLEARLY * one else 1
            self.known = True
            lost = sum(many) - len(many) * one
            _next_trial = time.perf_counter() + PATIENCE * lost

    def settle(self):
        """Let what follows, such as an evaluation, run with one thread or all."""
        global _left
        torch.set_num_threads(self.left)
        _left = self.all, self.left


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
