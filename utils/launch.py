"""Call a function in several processes."""

import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import cloudpickle
import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes

from utils.validation import PositiveInt, check_inputs


@check_inputs()
def in_processes(count: PositiveInt, function: Callable, *inputs) -> list:
    """Call a function in several processes; return what each of them returns.

    function: called as `function(rank, count, *inputs)` with ranks from 0. It may be
        defined in a notebook, and may call the functions of `torch.distributed`.
    inputs: every process gets a copy
    returns: list with one entry per process, in the order of their ranks

    The processes run on this machine and communicate through gloo, on the CPU. What
    they print isn't shown. If one of them fails, the others are stopped, and an
    exception shows its traceback. A program (not a notebook) must call this function
    inside `if __name__ == "__main__":`, because every process imports the program.
    """
    method = "spawn"
    if sys.platform == "linux":
        # Fork each from one that has imported these, which saves it three seconds. It
        # has no threads and no GPU, so that forking it is safe.
        method = "forkserver"
        multiprocessing.set_forkserver_preload(["cloudpickle", "torch._dynamo"])
    with TemporaryDirectory() as folder:
        call = cloudpickle.dumps((function, inputs))  # also what it uses of a notebook
        context = start_processes(
            _call, (count, call, Path(folder)), count, join=False, start_method=method
        )
        try:
            while not context.join():
                pass
        finally:  # also if the cell is interrupted
            for process in context.processes:
                process.kill()
        results = [Path(folder, str(rank)).read_bytes() for rank in range(count)]
        return [pickle.loads(result) for result in results]


def _call(rank, count, call, folder):
    """Call a function in this process, as one of `count`, and store its result."""
    for stream in (1, 2):  # the standard output and error
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(folder / "store"), count),
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=120),  # for a process that doesn't answer
    )
    function, inputs = pickle.loads(call)
    try:
        result = function(rank, count, *inputs)
    except (Exception, SystemExit) as error:
        if (folder / "failed").exists():  # then this error follows from another's
            time.sleep(60)  # until this process is stopped
        (folder / "failed").touch()
        if isinstance(error, SystemExit):  # or 0 would pass for success
            raise RuntimeError(f"the function left process {rank}: {error!r}") from None
        raise
    (folder / str(rank)).write_bytes(cloudpickle.dumps(result))
    dist.barrier()  # a process that left would break the connecting of a slower one
    dist.destroy_process_group()
