"""Tests of how several processes are started: by `utils.launch`, and by `torchrun`."""

import multiprocessing
import re
import subprocess
import sys
from pathlib import Path

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


def test_two_processes_print_once_what_one_prints(tmp_path, capsys, monkeypatch):
    text = str(tmp_path / "text.txt")
    Path(text).write_text(load_text()[:9000])
    monkeypatch.setattr(command, "has_own_gpu", lambda: False)
    command.main([text, *SMALL])
    program = [*TWO, "-m", "utils.training", text, *SMALL]
    assert subprocess.check_output(program, **HERE) == capsys.readouterr().out
