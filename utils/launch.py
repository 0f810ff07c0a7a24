"""Start several processes: of a function, or of a program as `torchrun` does it."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import cloudpickle
import torch.distributed as dist

ROOT = Path(__file__).resolve().parent.parent


def in_processes(count: int, function: Callable, *inputs) -> list:
    """Call a function in several processes; return what each of them returns.

    function: called as `function(rank, count, *inputs)` with ranks from 0. It may be
        defined in a notebook, and may call the functions of `torch.distributed`.
    inputs: every process gets a copy
    returns: list with one entry per process, in the order of their ranks

    The processes run on this machine and communicate through gloo, on the CPU. What
    they print isn't shown. If one process fails, the others are stopped, and a
    RuntimeError shows its traceback.
    """
    with TemporaryDirectory() as folder, TemporaryFile("w+") as errors:
        Path(folder, "call").write_bytes(cloudpickle.dumps((function, inputs)))
        command = [sys.executable, "-m", "utils.launch", folder, str(count)]
        options = {
            "stdout": subprocess.DEVNULL,
            "stderr": errors,
            "env": _environment(),
        }
        workers = []
        try:
            for rank in range(count):
                workers.append(subprocess.Popen([*command, str(rank)], **options))
            codes = [None]
            while None in codes and not any(codes):
                time.sleep(0.02)
                codes = [worker.poll() for worker in workers]
            if any(codes):
                time.sleep(1)  # the process that failed first may be the last to end
        finally:  # also if the cell is interrupted
            for worker in workers:
                worker.kill()
                worker.wait()
        if any(codes):
            errors.seek(0)
            raise RuntimeError(errors.read()[-8000:])
        results = [Path(folder, str(rank)).read_bytes() for rank in range(count)]
        return [pickle.loads(result) for result in results]


def _call_function(folder, count, rank):
    """Call the function of `in_processes` in this process, and store its result."""
    function, inputs = pickle.loads((folder / "call").read_bytes())
    dist.init_process_group(
        "gloo",
        init_method=(folder / "store").as_uri(),
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=120),  # for a process that doesn't answer
    )
    result = function(rank, count, *inputs)
    (folder / str(rank)).write_bytes(cloudpickle.dumps(result))
    dist.destroy_process_group()


def torchrun(count: int, *arguments: str) -> str:
    """Start a program in several processes, as `torchrun` in a shell does.

    arguments: the program and its arguments, or `-m`, a module and its arguments
    returns: what the processes print

    Raises RuntimeError with the end of what they write to stderr if one of them fails.
    """
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    start.append(f"--nproc-per-node={count}")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*start, *arguments], env=_environment(), **pipes) as process:
        try:
            output, errors = process.communicate()
        finally:
            process.terminate()  # if the cell is interrupted
    if process.returncode:
        raise RuntimeError(errors[-8000:])
    return output.strip()


def _environment():
    """Return environment variables with which a process finds this course."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    _call_function(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
