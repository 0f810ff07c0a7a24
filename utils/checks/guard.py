"""Run a reader's code so that nothing it does can harm the check or the session."""

import gc
import linecache
import os
import random
import sys
import sysconfig
import traceback
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from utils.checks.limit import WATCH, NeverEnds
from utils.checks.values import clean, copied, same_input

LIBRARIES = (
    os.path.dirname(torch.__file__),
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),  # utils
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
)


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
    def is_endless(self):
        """Whether the call had to be stopped because it did not end."""
        return isinstance(self.error, NeverEnds)

    @property
    def is_stopped(self):
        """Whether the reader, the answer or the time limit stopped the whole run."""
        return self.error is not None and not isinstance(self.error, Exception)


def attempt(function, *args):
    """Call `function` on copies of `args` and return the `Outcome` in any case."""
    try:
        copies = [copied(arg) for arg in args]
        value = WATCH.call(lambda: function(*copies))
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        outcome = Outcome(error=error, where=_line_of(error))
        if outcome.is_endless:  # let go of the memory that the answer took
            error.__traceback__ = error.__context__ = None
            gc.collect()  # the library that it was stopped in may hold its frames
        return outcome
    changed = [i for i, arg in enumerate(args) if not same_input(arg, copies[i])]
    return Outcome(value, changed=min(changed, default=None))


def seeded(function, args):
    """Attempt to call `function` from one fixed random state; clean what it returns."""
    torch.default_generator.manual_seed(789)  # the processor's alone, not the GPU's
    random.seed(789)
    np.random.seed(789)
    return attempt(lambda *args: clean(function(*args)), *args)


@contextmanager
def untouched():
    """Put the random state and the global settings back when the block ends."""
    before = [read() for read, _ in SETTINGS]
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
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
        if on_gpu is not None:
            torch.cuda.set_rng_state_all(on_gpu)


def _set_device(device):
    if device != torch.get_default_device():
        torch.set_default_device(None if device.type == "cpu" else device)


PRINTING = vars(torch._tensor_str.PRINT_OPTS)
SETTINGS = [  # how each is read, how it is put back
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _set_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (lambda: {"stdout": sys.stdout, "stderr": sys.stderr}, vars(sys).update),
    (PRINTING.copy, PRINTING.update),
    (os.getcwd, os.chdir),
]


def _line_of(error):
    """Return `line 3: scores = query @ key.T`, the last line that the reader wrote."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            line = " ".join(linecache.getline(file, number).split())
            return f"line {number}: {line}" if line else f"line {number}"
    return ""
