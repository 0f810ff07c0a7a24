"""Run a reader's code so that its errors and settings don't harm the session."""

import ctypes
import linecache
import os
import random
import sysconfig
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from utils.checks.values import clean, copied, same_input

SECONDS = 3.0  # of the processor's time, for one call of an answer
LIBRARIES = (
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""),
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
)


class NeverEnds(BaseException):
    """Raised in the middle of an answer that has used up its time."""

    def __str__(self):
        return f"stopped after {SECONDS:.0f} seconds"


@dataclass(eq=False)
class Outcome:
    """What one call gave: a value, or an error with the reader's line."""

    value: object = None
    error: BaseException | None = None
    where: str = ""
    changed: int | None = None  # position of the first argument that was changed

    @property
    def is_unfinished(self):
        """Whether the call ended at the stub's own `raise NotImplementedError`."""
        return type(self.error) is NotImplementedError and not self.error.args

    @property
    def is_stopped(self):
        """Whether the reader, the answer or the time limit stopped the whole run."""
        return self.error is not None and not isinstance(self.error, Exception)


def attempt(function, *args):
    """Call `function` on copies of `args` and return the `Outcome` in any case."""
    copies = [copied(arg) for arg in args]
    try:
        value = function(*copies)
        changed = [i for i, arg in enumerate(args) if not same_input(arg, copies[i])]
        return Outcome(value, changed=min(changed, default=None))
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        outcome = Outcome(error=error, where=_line_of(error))
        if isinstance(error, NeverEnds):  # let go of the memory that the answer took
            error.__traceback__ = None
        return outcome


@contextmanager
def time_limit():
    """Raise `NeverEnds` in this thread if the block takes too long.

    A second thread looks at the processor's time, which works on every system. A single
    call into C can't be stopped. Only a reader's code needs it: it is slow to start.
    """
    thread, has_ended = threading.get_ident(), threading.Event()

    def watch():
        start = time.process_time()
        while not has_ended.wait(0.1):
            if time.process_time() - start > SECONDS:
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(thread), ctypes.py_object(NeverEnds))
                start = time.process_time()  # a bare `except` may have caught it

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()  # so that it raises nothing later


def seeded(function, args):
    """Attempt to call `function` from one fixed random state; clean what it returns."""
    torch.default_generator.manual_seed(789)  # the processor's alone, not the GPU's
    random.seed(789)
    np.random.seed(789)
    return attempt(lambda *args: clean(function(*args)), *args)


SETTINGS = [  # how each is read, how it is put back
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
]


@contextmanager
def untouched():
    """Put the random state and the global settings back when the block ends."""
    before = [read() for read, _ in SETTINGS]
    try:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_num_threads(1)  # for small tensors the others only wait
        if torch.get_default_device().type == "cpu":
            yield
        else:  # not in any case, because in this context all of PyTorch is slower
            with torch.device("cpu"):
                yield
    finally:
        for (_, put_back), value in zip(SETTINGS, before):
            put_back(value)


def _line_of(error):
    """Return `line 3: scores = query @ key.T`, the last line that the reader wrote."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            line = " ".join(linecache.getline(file, number).split())
            return f"line {number}: {line}" if line else f"line {number}"
    return ""
