"""Tests of how several processes are started: by `utils.launch`, and by `torchrun`."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
from repository import ROOT
from torch.multiprocessing import ProcessRaisedException
from torch.nn import functional as F

from utils.data import load_text
from utils.launch import in_processes, torchrun

FACTOR = 0.5


@pytest.fixture(autouse=True, scope="module")
def environment():
    """Hide GPUs from the processes: one and two then compute on the same device."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


def add_up(rank, count, x, words):
    total = FACTOR * x[rank]
    dist.all_reduce(total)
    return rank, count, F.relu(total), words, torch.get_num_threads()


def test_results_are_in_the_order_of_ranks():
    x = torch.tensor([[-8.0, 2.0], [4.0, 6.0], [2.0, 2.0]])
    for expected_rank, results in enumerate(in_processes(3, add_up, x, ["a", "b"])):
        rank, count, total, words, num_threads = results
        assert (rank, count, words, num_threads) == (expected_rank, 3, ["a", "b"], 1)
        assert total.equal(torch.tensor([0.0, 5.0]))


def test_a_function_of_a_notebook_takes_what_it_uses_along():
    notebook = {"__name__": "__main__"}
    exec(
        "import torch\nstep = 3\ndef times(n): return step * torch.tensor(n)", notebook
    )
    exec("def function(rank, count): return times(rank)", notebook)
    assert in_processes(2, notebook["function"]) == [0, 3]


def fail(rank, count):
    if rank == 1:
        raise IndexError("nothing at 7")
    dist.all_reduce(torch.ones(1))  # the other processes wait for this one


def test_if_one_process_fails_the_others_end_soon_and_its_error_is_shown():
    start = time.monotonic()
    with pytest.raises(ProcessRaisedException, match="IndexError: nothing at 7"):
        in_processes(2, fail)
    assert time.monotonic() - start < 50


def test_a_program_that_fails_raises_with_its_error(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('no such file')")
    with pytest.raises(RuntimeError, match="no such file"):
        torchrun(1, str(program))


# PyTorch chooses a backend by itself if `init_process_group` gets none. On a machine
# with a GPU that is one for GPUs only, and tensors on the CPU then can't be sent.
PRETENDED_GPU = """
import torch, torch.distributed as dist

torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
torch.accelerator.device_count = lambda: 1
init_process_group = dist.init_process_group

def init_on_one_gpu(backend=None, **options):
    if backend is None or "nccl" in backend:
        raise RuntimeError("No backend type associated with device type cpu")
    init_process_group(backend, **options)

dist.init_process_group = init_on_one_gpu
"""


def backend(rank, count):
    return torch.cuda.device_count(), dist.get_backend()


def test_two_processes_on_a_machine_with_one_gpu_use_gloo(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(PRETENDED_GPU)  # run by every Python
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert in_processes(2, backend) == [(1, "gloo"), (1, "gloo")]
    lines = torchrun(2, "-m", "utils.parallel", "batch", "weights", "striped")
    assert lines.count("over 2 processes, equal to one process") == 3


TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
TWO += ["--nproc-per-node=2"]
HERE = {"cwd": ROOT, "text": True}


def stderr_of_two(*words):
    """Return what two processes write to stderr when they fail."""
    done = subprocess.run([*TWO, *words], stderr=subprocess.PIPE, timeout=120, **HERE)
    assert done.returncode != 0
    return done.stderr


def test_a_process_that_ends_early_ends_the_run_within_30_seconds():
    stderr = stderr_of_two("tests/parallel_worker.py")
    ended = re.search(r"the second process ended at ([\d.]+)", stderr)
    assert time.time() - float(ended[1]) < 30


SMALL = "--width 16 --heads 2 --layers 1 --context 16 --merges 9 --dropout 0".split()
SMALL += "--steps 30 --save-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:9000])
    return str(path)


def train(count, text, *options):
    """Train in several processes; return the printed lines."""
    words = "-m", "utils.training", text, *SMALL, *options
    return torchrun(count, *words).splitlines()


def kill_after_step_10(text, file):
    """Train in two processes and kill `torchrun` after the report of step 10.

    The processes that it started end soon after, when nobody reads what they print.
    """
    command = [*TWO, "-m", "utils.training", text, *SMALL, "--checkpoint", file]
    options = {"stdout": subprocess.PIPE, "start_new_session": True} | HERE
    with subprocess.Popen(command, **options) as training:
        next(line for line in training.stdout if line.startswith("step 10 "))
        os.killpg(training.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def expected(text):
    """Return the lines of an undisturbed training run in one process."""
    command = [sys.executable, "-m", "utils.training", text, *SMALL]
    done = subprocess.run(command, capture_output=True, check=True, **HERE)
    return done.stdout.splitlines()


def test_two_processes_print_once_what_one_process_prints(text, expected):
    assert train(2, text) == expected


def test_one_process_ends_what_two_killed_processes_began(text, expected, tmp_path):
    file = str(tmp_path / "training.pt")
    kill_after_step_10(text, file)
    assert train(1, text, "--checkpoint", file)[-1] == expected[-1]


def test_a_batch_that_processes_cannot_share_is_one_error(text):
    message = "error: expected a batch that 2 processes can share equally, got 7"
    words = "-m", "utils.training", text, *SMALL, "--batch", "7"
    assert stderr_of_two(*words).count(message) == 1
