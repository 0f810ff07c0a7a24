"""Run a reader's code so that nothing it does can harm the check or the session."""

import dis
import gc
import inspect
import linecache
import os
import random
import sys
import sysconfig
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from utils.checks.limit import WATCH, NeverEnds
from utils.checks.values import clean, copied, one_line, safe_text, same_input

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
    unfinished: bool = False  # the stub's own NotImplementedError
    changed: int | None = None  # position of the first argument that was changed

    @property
    def stopped(self):
        """Whether the reader (or the answer) asked the whole run to stop."""
        return self.error is not None and not isinstance(self.error, Exception)

    @property
    def endless(self):
        """Whether the call had to be stopped because it did not end."""
        return isinstance(self.error, NeverEnds)


def attempt(function, *args, tidy=clean):
    """Call `function` on copies of `args` and return the `Outcome` in any case."""
    mine = [copied(arg) for arg in args]
    try:
        value = WATCH.call(lambda: tidy(function(*mine)))
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        where, unfinished = _where(error), _is_stub(error)
        if isinstance(error, NeverEnds):  # let go of what the answer has heaped up
            error.__traceback__ = error.__context__ = None
            gc.collect()  # the library that it was stopped in may hold its frames
        return Outcome(error=error, where=where, unfinished=unfinished)
    pairs = enumerate(zip(args, mine))
    changed = next((i for i, (old, new) in pairs if not same_input(old, new)), None)
    return Outcome(value=value, changed=changed)


def quietly(function, args):
    """Call a function of ours as `seeded` does, without a word of warning."""
    with warnings.catch_warnings(action="ignore"):
        return seeded(function, args)


def seeded(function, args):
    """Call `function` as `attempt` does, from one fixed random state."""
    torch.default_generator.manual_seed(789)  # the processor's alone, not the GPU's
    random.seed(789)
    np.random.seed(789)
    return attempt(function, *args)


def accepts(function, args):
    """Say whether `function` can be called with `args`; True where nobody can know."""
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        return "supported callable" in safe_text(error)
    except BaseException:
        return True
    return True


@contextmanager
def untouched():
    """Put the random state and the global settings back when the block ends."""
    before = [(put_back, read()) for read, put_back in SETTINGS]
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_num_threads(1)  # for small tensors the others only wait
        with torch.device("cpu"):  # whatever the reader's default device is
            yield
    finally:
        for (read, put_back), (_, value) in zip(SETTINGS, before):
            if put_back in RANDOM or read() != value:
                put_back(value)
        if on_gpu is not None:
            torch.cuda.set_rng_state_all(on_gpu)


def _set_device(device):
    torch.set_default_device(None if device.type == "cpu" else device)


def _folder():
    try:
        return os.getcwd()
    except OSError:  # it was deleted under our feet
        return None


def _set_folder(folder):
    if folder is not None:
        os.chdir(folder)


def _set_streams(streams):
    sys.stdout, sys.stderr = streams


def _set_printing(options):
    vars(torch._tensor_str.PRINT_OPTS).update(options)


RANDOM = (torch.set_rng_state, random.setstate, np.random.set_state)
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
    (lambda: (sys.stdout, sys.stderr), _set_streams),
    (lambda: vars(torch._tensor_str.PRINT_OPTS).copy(), _set_printing),
    (_folder, _set_folder),
]


def _where(error):
    """Return `line 3: scores = query @ key.T`, the last line that the reader wrote."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            line = one_line(linecache.getline(file, number), 70)
            return f"line {number}: {line}" if line else f"line {number}"
    return ""


def _is_stub(error):
    """Say whether a plain `raise NotImplementedError` of the reader's ended the call.

    PyTorch raises the same type for operations that it lacks and for a module without
    `forward`; those come from C++ or from PyTorch's own files.
    """
    if type(error) is not NotImplementedError:
        return False
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    raised = code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and not code.co_filename.startswith(LIBRARIES[0])
