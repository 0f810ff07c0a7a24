"""Tests of how several processes are started: by `utils.launch`, and by `torchrun`."""

import contextlib
import io
import multiprocessing
import os
import re
import signal
import subprocess
import sys

import nbformat
import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing import ProcessRaisedException
from torch.nn import functional as F

from tests.repository import ROOT
from utils.data import load_text
from utils.launch import in_processes
from utils.training import text as command

pytestmark = pytest.mark.usefixtures("on_cpu")
FACTOR = 0.5


def add_up(rank, count, x, words):
    total = FACTOR * x[rank]
    dist.all_reduce(total)
    return rank, count, words, F.relu(total)


def test_results_are_in_the_order_of_ranks_whatever_the_folder_for_them_is_called(
    tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("a é %20")  # short, because sockets are in it
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    x = torch.tensor([[-8.0, 2.0], [6.0, 8.0]])
    for rank, results in enumerate(in_processes(2, add_up, x, ["a", "b"])):
        assert results[:3] == (rank, 2, ["a", "b"])
        assert results[3].equal(torch.tensor([0.0, 5.0]))


def fail(rank, count):
    if rank == 1:
        raise IndexError("nothing at 7")
    dist.all_reduce(torch.ones(1))  # waits two minutes for the other process


def test_a_process_that_exits_is_an_error():
    with pytest.raises(ProcessRaisedException, match=r"left process 0: SystemExit\(0"):
        in_processes(1, lambda rank, count: sys.exit(0))


def test_if_one_process_fails_its_error_is_shown_and_the_others_are_stopped():
    with pytest.raises(ProcessRaisedException, match="IndexError: nothing at 7"):
        in_processes(2, fail)
    for process in multiprocessing.active_children():
        process.join(60)
    assert multiprocessing.active_children() == []


TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
TWO += ["--nproc-per-node=2"]
HERE = {"cwd": ROOT, "text": True}
SMALL = "--width 16 --heads 2 --layers 1 --context 16 --merges 9 --dropout 0".split()
SMALL += "--steps 30 --save-every 10".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:9000])
    return str(path)


def train(text, *options):
    """Train in this process; return the printed lines."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(command, "has_own_gpu", lambda: False)
        command.main([text, *SMALL, *options])
    return printed.getvalue().splitlines()


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
    return train(text)


def test_the_lines_of_16_run_under_torchrun(tmp_path):
    notebook = nbformat.read(ROOT / "notebooks/16_several_machines.ipynb", 4)
    texts = [cell.source for cell in notebook.cells]
    (page,) = [text for text in texts if "`torchrun --nproc-per-node 2 two.py`" in text]
    lines = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
    (cell,) = [text for text in texts if "def message(" in text]
    function = cell.split("\n\n\n")[0]
    file = tmp_path / "two.py"
    file.write_text(re.sub(r"^\.\.\..*", lambda _: function, lines, flags=re.M))
    # A file for each process, because two can mix what they print on one line.
    apart = [f"--log-dir={tmp_path}", "--redirects=3"]
    subprocess.check_call([*TWO, *apart, file], **HERE)
    assert [file.read_text() for file in sorted(tmp_path.rglob("stdout.log"))] == [
        "process 0 has [1.0, 2.0, 3.0, 4.0]\n",
        "process 1 has [10.0, 20.0, 30.0, 40.0]\n",
    ]


def test_two_processes_print_once_what_one_process_prints(text, expected):
    program = [*TWO, "-m", "utils.training", text, *SMALL]
    assert subprocess.check_output(program, **HERE).splitlines() == expected


def test_one_process_ends_what_two_killed_processes_began(text, expected, tmp_path):
    file = str(tmp_path / "training.pt")
    kill_after_step_10(text, file)
    assert train(text, "--checkpoint", file)[-1] == expected[-1]
