"""Notebook 15: how long attention takes on one core."""

import time
from collections.abc import Callable

import torch


def processor_seconds(attend: Callable, num_tokens: int) -> float:
    """Return the processor's shortest time for four heads of width 64.

    attend: function (query, key, value) -> output, of tensors (1, 4, num_tokens, 64);
        it is called three times, and then until 0.3 seconds are over
    """
    heads, shortest = torch.randn(3, 1, 4, num_tokens, 64).unbind(), float("inf")
    begin, calls = time.monotonic(), 0
    while calls < 3 or time.monotonic() - begin < 0.3:
        calls += 1
        start = time.process_time()
        attend(*heads)
        shortest = min(shortest, time.process_time() - start)
    return shortest
