"""How many threads a small model trains with, on a machine that has other work, too."""

import statistics
import time

import torch

ROUND = 100  # steps from one comparison to the next
TRIES = 3  # steps that are timed with one thread, and as many with all


def faster_threads(batches):
    """Yield the batches of a loop, with one thread where its steps are faster so.

    The threads of a small step wait for each other hundreds of times. If another
    program keeps a core busy, each wait may last until that program pauses, and a step
    takes several times as long; a single thread waits for nobody. So of every hundred
    steps three are timed with one thread and three with all, and the others run with
    the number that was faster. Afterwards the number is what it was. Sums may differ
    in their last digits with the number of threads.

    >>> for batch in faster_threads([1, 2]):
    ...     pass

    Measured: `python -m tests.benchmarks busy`.
    """
    before = torch.get_num_threads()
    try:
        for step, batch in enumerate(batches):
            place = step % ROUND
            if place == 0:
                seconds = {1: [], before: []}
            if place < 2 * TRIES:
                number = 1 if place < TRIES else before
            elif place == 2 * TRIES:
                number = min(seconds, key=lambda n: statistics.median(seconds[n]))
            torch.set_num_threads(number)
            start = time.perf_counter()
            yield batch
            if place < 2 * TRIES:
                seconds[number].append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)
