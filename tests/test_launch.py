"""Each test pins one sentence about how several processes are started."""

import time

import pytest
import torch
import torch.distributed as dist
from torch.nn import functional as F

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
