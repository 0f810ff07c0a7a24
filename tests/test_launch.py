"""Each test pins one sentence about how several processes are started: by a function of
`utils.launch`, and by `torchrun` as a reader types it.
"""

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
from torch.nn import functional as F

from utils.data import load_text
from utils.launch import in_processes, torchrun
from utils.model import next_token_loss

STEP = 3


def half(x):
    return x / 2


def add_up(rank, count, x, words):
    """Add up over the processes, with all that a function may use from elsewhere."""
    total = half(x[rank])
    dist.all_reduce(total)
    return rank, count, F.relu(total), words, next_token_loss.__name__


def test_each_process_calls_the_function_and_what_they_return_comes_in_their_order():
    x = torch.tensor([[-8.0, 2.0], [4.0, 6.0], [2.0, 2.0]])
    total = torch.tensor([0.0, 5.0])
    found = in_processes(3, add_up, x, ["a", "b"])
    for rank, results in enumerate(found):
        assert results[2].equal(total)
        assert results[:2] + results[3:] == (rank, 3, ["a", "b"], "next_token_loss")


def fail(rank, count):
    """Let one process fail while the others wait for it."""
    if rank == 1:
        raise IndexError("nothing at 7")
    dist.all_reduce(torch.ones(1))


def test_if_one_process_fails_the_others_end_soon_and_its_error_is_shown():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="IndexError: nothing at 7"):
        in_processes(2, fail)
    assert time.monotonic() - start < 50


def step(rank, count):
    return STEP * rank


def test_a_variable_that_cannot_travel_with_the_function_is_refused():
    with pytest.raises(
        ValueError, match="expected STEP, which step uses, among its in"
    ):
        in_processes(2, step)


def test_a_program_that_fails_raises_with_what_it_complained_of(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('no such file')")
    with pytest.raises(RuntimeError, match="no such file"):
        torchrun(1, str(program))


TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
TWO += ["--nproc-per-node=2"]
HERE = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT)}, "text": True}


def complaint(*words):
    """Return all that two processes complain of when they fail."""
    done = subprocess.run([*TWO, *words], stderr=subprocess.PIPE, timeout=120, **HERE)
    assert done.returncode != 0
    return done.stderr


def test_a_process_that_dies_ends_the_run_within_30_seconds_with_its_error():
    said = complaint("tests/parallel_worker.py")
    died = re.search(r"the second process ended at ([\d.]+)", said)
    assert time.time() - float(died[1]) < 30


SMALL = "--width 16 --heads 2 --layers 1 --context 16 --merges 9 --dropout 0".split()
SMALL += "--steps 30 --save-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:9000])
    return str(path)


def train(count, text, *words):
    """Train in so many processes; return the lines that are printed."""
    return torchrun(count, "-m", "utils.training", text, *SMALL, *words).splitlines()


def kill_after_the_first_report(text, file):
    """Train in two processes and kill `torchrun` when it says `step 10`.

    What it started is soon gone, too: nobody reads any more what they print.
    """
    command = [*TWO, "-m", "utils.training", text, *SMALL, "--checkpoint", file]
    options = {"stdout": subprocess.PIPE, "start_new_session": True} | HERE
    with subprocess.Popen(command, **options) as training:
        next(line for line in training.stdout if line.startswith("step 10 "))
        os.killpg(training.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def undisturbed(text):
    """Return the lines of a training in one process."""
    command = [sys.executable, "-m", "utils.training", text, *SMALL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_two_processes_print_what_one_prints_and_the_first_alone_does(
    text, undisturbed
):
    assert train(2, text) == undisturbed


def test_what_two_processes_began_one_ends_though_they_were_killed(
    text, undisturbed, tmp_path
):
    file = str(tmp_path / "training.pt")
    kill_after_the_first_report(text, file)
    assert train(1, text, "--checkpoint", file)[-1] == undisturbed[-1]


def test_a_batch_that_the_processes_cannot_share_is_refused_once(text):
    said = "error: expected a batch that 2 processes can share equally, got 7"
    words = "-m", "utils.training", text, *SMALL, "--batch", "7"
    assert complaint(*words).count(said) == 1
