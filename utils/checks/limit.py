"""Stop an answer that does not end: in a kernel too, and on every system.

A second thread looks at the clock and asks the interpreter to raise `NeverEnds` in the
thread that runs the answer. What counts is the processor's time, so an answer that
waits, for a debugger say, is left alone. The memory that an answer takes is limited as
well. A single call into C cannot be stopped.
"""

import ctypes
import threading
import time

import psutil

SECONDS = 3.0  # of the processor's time, for one call of an answer
BYTES = 1e9  # by which the memory in use may grow during a check


class NeverEnds(BaseException):
    """Raised in the middle of an answer that has used up its time."""


class Watch:
    """The second thread, and the call that it watches: which thread, since when."""

    def __init__(self):
        self.lock = threading.Lock()
        self.thread = self.since = None
        self.asked = False  # to raise `NeverEnds` in this call

    def __enter__(self):
        """Begin to look, until the block ends."""
        self.end = threading.Event()
        self.memory = psutil.Process().memory_info().rss
        threading.Thread(target=self._look, args=[self.end], daemon=True).start()

    def __exit__(self, *error):
        self.end.set()

    def _look(self, end):
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        while not end.wait(0.1):
            with self.lock:
                since = self.since
                if since and self._exceeds_limit(since):
                    self.asked = True
                    raise_in(ctypes.c_ulong(self.thread), ctypes.py_object(NeverEnds))

    def _exceeds_limit(self, since):
        grown = psutil.Process().memory_info().rss - self.memory
        return time.process_time() - since > SECONDS or grown > BYTES

    def call(self, function):
        """Return what `function` returns, unless it takes too long.

        The interpreter raises `NeverEnds` a little after the other thread has asked for
        it, perhaps when `function` has just returned. We then wait here for it, so that
        it doesn't interrupt the check itself.
        """
        if self.since:  # within another call
            return function()
        self.asked, self.thread = False, threading.get_ident()
        self.since = time.process_time()
        try:
            return function()
        finally:
            self.since = None
            try:
                self._wait()
            except NeverEnds:
                try:
                    self._wait()
                except NeverEnds:
                    pass

    def _wait(self):
        with self.lock:
            if self.asked:
                time.sleep(0)


WATCH = Watch()
