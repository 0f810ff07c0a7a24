"""Functions that the processes of `tests/test_parallel.py` call, and their start."""

import contextlib
import faulthandler
import importlib
import io
import os
import re
import signal
import sys
import tempfile
import time
from datetime import timedelta

import nbformat
import torch
import torch.distributed as dist
from repository import ROOT
from torch import nn

from utils import parallel
from utils.attention import MultiHeadAttention
from utils.model import next_token_loss
from utils.training import TrainingConfig, train

TIMEOUT = timedelta(seconds=20)
# A forked process has PyTorch already. On systems where a fork isn't safe, like macOS,
# a process starts afresh and imports it, which takes some seconds.
START = "fork" if sys.platform == "linux" else "spawn"


def in_processes(count, function, *inputs):
    """Call a function in several processes, each as if `torchrun` had started it.

    returns: list of what each process returned
    """
    if START == "fork":
        importlib.import_module("torch._dynamo")  # once, instead of in every process
    ports = torch.multiprocessing.get_context(START).SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        arguments = count, ports, folder, function, inputs
        started = torch.multiprocessing.start_processes(
            _call, arguments, count, join=False, start_method=START
        )
        # A process forked while a thread serves the store may wait forever (1 of 75).
        store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        for _ in range(count):
            ports.put(store.port)
        while not started.join():
            pass
        files = [f"{folder}/{rank}" for rank in range(count)]
        return [torch.load(file, weights_only=False) for file in files]


def _call(rank, count, ports, folder, function, inputs):
    # A process that waits forever ends after a minute, and shows where it was.
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(ports.get()),
        "CUDA_VISIBLE_DEVICES": "",  # a fork can't use a GPU
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store of the first process
    }
    torch.set_num_threads(1)  # a fork doesn't have the threads of the first process
    torch.save(function(*inputs), f"{folder}/{rank}")


# As a decorator: what a function created is gone when the group ends, see `processes`.
in_group = parallel.processes(TIMEOUT)


@in_group
def run_comparisons():
    """Return the lines of every comparison."""
    lines = {}
    for name, compare in parallel.COMPARISONS.items():
        torch.manual_seed(0)
        lines[name] = compare()
    return lines


@in_group
def attend_with_some_heads(layer, x):
    """Return sizes, outputs and gradients of a layer whose heads are split."""
    parallel.split_heads_over_processes(layer)
    matrices = layer.W_query.weight, layer.out_proj.weight
    sizes = [layer.num_heads, layer.num_kv_heads]
    sizes += [tuple(matrix.to_local().shape) for matrix in matrices]
    output = layer(x)
    output.square().sum().backward()
    return sizes, [output.detach(), *parallel._gradients(layer)]


def fenced_code():
    """Return the programs and lines of code in the text of notebook 13."""
    path = ROOT / "notebooks/13_several_machines.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    texts = [text for text in texts if "<summary>Solution" not in text]
    return re.findall(r"^```python\n(.*?)^```$", "\n".join(texts), re.M | re.S)


def run_program(index):
    """Run a program from the text of notebook 13; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(fenced_code()[index], {})
    return output.getvalue()


@in_group
def run_fenced_code(index, model, sentences):
    """Run lines from the text of notebook 13; return the gradients."""
    local = sentences.chunk(dist.get_world_size())[dist.get_rank()]
    own_batch, loss = (local[:, :-1], local[:, 1:]), next_token_loss
    names = {"model": model, "own_batch": own_batch, "next_token_loss": loss}
    exec(fenced_code()[index], names)
    if "loss" not in names:
        loss(names["model"], own_batch).backward()
    return [g.clone() for g in parallel._gradients(names["model"])]


@in_group
def errors():
    """Return the messages about what two processes can't share."""
    layer = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
    alibi = MultiHeadAttention(6, 6, 8, 0.0, num_heads=2, alibi=True)
    messages = []
    for function, argument in (
        (parallel.local_positions, 7),
        (parallel.split_heads_over_processes, layer),
        (parallel.split_heads_over_processes, alibi),
    ):
        try:
            function(argument)
        except ValueError as error:
            messages.append(str(error))
    return messages


@in_group
def interrupt_second_process(folder):
    """Train, with Ctrl-C in step 3 of the second process; return the steps taken."""
    rank, model, losses = dist.get_rank(), nn.Linear(1, 1), []

    def compute_loss(model, batch):
        losses.append(model(batch).square().mean())
        if rank == 1 and len(losses) == 3:
            signal.raise_signal(signal.SIGINT)
        dist.all_reduce(torch.ones(1))  # no process can take a step alone
        return losses[-1]

    config = TrainingConfig(checkpoint=folder / f"{rank}.pt")
    with contextlib.suppress(KeyboardInterrupt):
        train(model, [torch.ones(5, 1)], compute_loss, 9, 0.1, config=config)
    return len(losses)


def end_early():
    """End the second process while the first one waits for it."""
    with parallel.processes(parallel.TIMEOUT) as (rank, _):
        if rank == 1:
            sys.exit(f"the second process ended at {time.time()}")
        dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    end_early()
