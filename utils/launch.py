"""Start several processes: a function of yours, or a program as `torchrun` starts it.

A function and what it calls are written into a file, which each process runs. So it
works in a notebook as in a program, and on every system.
"""

import contextlib
import dis
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import CodeType, FunctionType, ModuleType

import torch

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import sys
from datetime import timedelta
from pathlib import Path
import torch, torch.distributed

{code}

if __name__ == "__main__":
    folder, rank, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    inputs = torch.load(folder / "inputs", weights_only=False)
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=(folder / "store").as_uri(),
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=120),  # for a process that does not answer
    )
    torch.save({name}(rank, count, *inputs), folder / str(rank))
    torch.distributed.destroy_process_group()
"""


def in_processes(count, function, *inputs):
    """Let each of several processes call a function; return what they return.

    count: how many processes
    function: called as `function(rank, count, *inputs)`, with ranks from 0. Between the
        processes it may use what `torch.distributed` offers. What it takes from
        elsewhere are modules, what they define, and functions of its own file.
    inputs: the same for all, and a copy for each
    returns: a list with an entry for each process, in the order of their ranks

    They talk through gloo, on this machine. If one fails, the others are ended, and a
    RuntimeError says what it complained of. Raises ValueError where the function uses
    a variable that could not travel with it: make it one of the inputs.
    """
    code = "\n\n".join(dict.fromkeys(_program(function, set())))
    with TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        text = PROGRAM.format(code=code, name=function.__name__)
        program.write_text(text, encoding="utf-8")
        torch.save(inputs, Path(folder, "inputs"))
        words = [sys.executable, str(program), folder]
        _run([[*words, str(rank), str(count)] for rank in range(count)])
        files = [Path(folder, str(rank)) for rank in range(count)]
        return [torch.load(file, weights_only=False) for file in files]


def torchrun(count, *words):
    """Start a program `count` times, as `torchrun` in a shell; return what it says.

    words: the program and its arguments, or `-m`, a module and its arguments

    Raises RuntimeError with the end of what it complained of.
    """
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    return _run([[sys.executable, *start, *words]])[0].strip()


def _run(commands):
    """Run commands at once; return what each prints. If one fails, the others end."""
    env = {"OMP_NUM_THREADS": "1"} | os.environ
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with contextlib.ExitStack() as stack:
        running, printed = [], []
        for command in commands:
            said, errors = (stack.enter_context(TemporaryFile("w+")) for _ in range(2))
            options = {"stdout": said, "stderr": errors, "cwd": ROOT, "env": env}
            running.append(stack.enter_context(subprocess.Popen(command, **options)))
            stack.callback(running[-1].terminate)  # also if you interrupt the cell
            printed.append((said, errors))
        codes = [None]
        while None in codes and not any(codes):
            time.sleep(0.02)
            codes = [process.poll() for process in running]
        if any(codes):  # who failed first may take longest to end
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)
            codes = [process.poll() for process in running]
        complaints = []
        for code, (_, errors) in zip(codes, printed):
            if code:
                errors.seek(0)
                complaints.append(errors.read()[-8000:])
        if complaints:
            raise RuntimeError("\n".join(complaints))
        for said, _ in printed:
            said.seek(0)
        return [said.read() for said, _ in printed]


def _program(function, seen):
    """Yield the source of a function, and before it that of all it uses."""
    seen.add(function)
    for name in sorted(_names(function.__code__)):
        if name not in function.__globals__:
            continue  # it is built in
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            yield f"import {value.__name__} as {name}"
        elif getattr(value, "__globals__", None) is function.__globals__:
            if value not in seen:
                yield from _program(value, seen)
        elif isinstance(value, FunctionType | type) and value.__module__ != "__main__":
            yield f"from {value.__module__} import {value.__name__} as {name}"
        else:
            raise ValueError(
                f"expected {name}, which {function.__name__} uses, among its inputs"
            )
    yield inspect.getsource(function)


def _names(code):
    """Return the names that a function, or one inside it, takes from outside."""
    steps = dis.get_instructions(code)
    own = {step.argval for step in steps if step.opname == "LOAD_GLOBAL"}
    return own.union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))
