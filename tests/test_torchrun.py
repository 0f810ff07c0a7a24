"""Each test pins one sentence about what `torchrun` starts, as a reader types it.

Notebook 13 starts `utils.parallel`.
"""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from repository import ROOT

from utils.data import load_text
from utils.launch import torchrun

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


# ---- training -----------------------------------------------------------------------

SMALL = "--width 16 --heads 2 --layers 1 --context 16 --merges 9 --dropout 0".split()
SMALL += "--steps 30 --save-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Return a short text."""
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
