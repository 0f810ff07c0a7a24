"""Run a reader's code so that its errors and settings don't harm the session."""

import ctypes
import linecache
import math
import os
import random
import sys
import sysconfig
import textwrap
import threading
import time
import traceback
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch._tensor_str import PRINT_OPTS

from utils.checks.engine.values import agrees, clean, copy_argument, is_unchanged

SECONDS = 3.0  # of the processor's time, for one call of an answer
PATIENCE = 30.0  # seconds of any kind until a line says that the call still runs
WAITING = "This check has run for half a minute: your code waits, as with `time.sleep` or `input`, or it takes very long. You may stop it with the stop button or Ctrl-C."
UTILS = os.path.join(Path(__file__).absolute().parents[2], "")
LIBRARIES = UTILS, *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))


class NeverEnds(BaseException):
    """Raised in the middle of an answer that has used up its time."""

    def __str__(self):
        return "stopped, because it took too long"


@dataclass(eq=False)
class Run:
    """What one call gave, a value or an error, and for an answer what is right."""

    value: object = None
    error: BaseException | None = None
    excerpt: str = ""  # the reader's line that raised it, between its neighbours
    changed_arg: int | None = None  # position of the first argument that was changed
    case: object = None  # of an exercise; what follows is about it
    args: tuple = ()  # of the right answer; for a module, `learned` is first
    expected: object = None
    diagnoses: list = field(default_factory=list)  # of the value's form

    @property
    def is_right(self):
        """Whether the answer gave what is right, up to rounding."""
        return self.error is None and agrees(self.value, self.expected)

    @property
    def hides_others(self):
        """Whether it is an error or all NaN, which a second mistake wouldn't change."""
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        nan = [part.isnan().all() for part in parts if torch.is_tensor(part)]
        return self.error is not None or any(nan)

    @property
    def is_unfinished(self):
        """Whether the call ended at the stub's own `raise NotImplementedError`."""
        return type(self.error) is NotImplementedError and not self.error.args

    @property
    def is_stopped(self):
        """Whether the reader, the answer or the time limit stopped the whole run."""
        return self.error is not None and not isinstance(self.error, Exception)


def attempt(function, *args):
    """Call `function` on copies of `args` and return the `Run` in any case."""
    copies = [copy_argument(arg) for arg in args]
    try:
        value = function(*copies)
        changed = [i for i, arg in enumerate(args) if not is_unchanged(arg, copies[i])]
        return Run(value, changed_arg=min(changed, default=None))
    except BaseException as error:  # SystemExit and KeyboardInterrupt included
        run = Run(error=error, excerpt=read_excerpt(error))
        if isinstance(error, NeverEnds):
            # Drop the frames, which keep the answer's tensors alive.
            error.__traceback__ = None
        return run


@contextmanager
def supervise():
    """Stop a reader's code if it takes too long, and undo the settings it changes.

    A second thread raises `NeverEnds` in this one. It looks at the processor's time,
    which works on every system. A single call into C can't be stopped. If the code only
    waits, a line says so.
    """
    thread, has_ended = threading.get_ident(), threading.Event()
    output = sys.stdout  # the present one, whatever the code redirects

    def watch():
        start, end = time.process_time(), time.monotonic() + PATIENCE
        while not has_ended.wait(0.1):
            if time.process_time() - start > SECONDS:
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(thread), ctypes.py_object(NeverEnds))
                start = time.process_time()  # a bare `except` may have caught it
            if time.monotonic() > end:
                print(WAITING, file=output)
                end = math.inf

    watcher = threading.Thread(target=watch, daemon=True)
    with restore_on_exit(SETTINGS):
        watcher.start()
        try:
            yield
        finally:
            has_ended.set()
            watcher.join()  # so that it raises nothing later


def run_seeded(function, args):
    """Attempt to call `function` from one fixed random state; clean what it returns."""
    torch.default_generator.manual_seed(789)  # the processor's alone, not the GPU's
    random.seed(789)
    np.random.seed(789)
    return attempt(lambda *args: clean(function(*args)), *args)


def _read_default_device():
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context and context.device


SETTINGS = [  # how each is read, how it is put back
    (torch.get_default_dtype, torch.set_default_dtype),
    (_read_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (lambda: dict(vars(PRINT_OPTS)), vars(PRINT_OPTS).update),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
]
RANDOM_STATES = [
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
]
ONE_CHECK = threading.RLock()  # because settings are global


@contextmanager
def restore_on_exit(settings):
    """Put settings back when the block ends, NumPy's and the current folder as well."""
    before = [read() for read, _ in settings]
    try:
        with np.errstate(), np.printoptions(), chdir("."):
            yield
    finally:
        for (_, put_back), value in zip(settings, before):
            put_back(value)


@contextmanager
def isolate_session():
    """Put the random state and all settings back when the block ends.

    One thread at a time may be in the block. In it, `torch.compile` compiles nothing.
    """
    settings = restore_on_exit(SETTINGS + RANDOM_STATES)
    with ONE_CHECK, settings, _disable_compiling(), _use_cpu():
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_num_threads(1)  # for small tensors the others only wait
        yield


def _disable_compiling():
    is_loaded = "torch._dynamo" in sys.modules  # which takes a second
    return torch.compiler.set_stance("force_eager") if is_loaded else nullcontext()


def _use_cpu():
    # Not in any case, because in this context all of PyTorch is slower.
    on_cpu = torch.get_default_device().type == "cpu"
    return nullcontext() if on_cpu else torch.device("cpu")


def read_excerpt(error):
    """Return the last line that the reader wrote, between the lines next to it."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            lines = linecache.getlines(file)
            span = range(max(0, number - 2), min(len(lines), number + 1))
            excerpt = textwrap.dedent("".join(lines[i].rstrip() + "\n" for i in span))
            marks = ("> " if i == number - 1 else "  " for i in span)
            pairs = zip(marks, excerpt.splitlines())
            return "\n".join(mark + line for mark, line in pairs if line)
    return ""
