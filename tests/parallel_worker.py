"""What processes of `tests/test_parallel.py` do together, and how they are started."""

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

PATIENCE = timedelta(seconds=20)
# A forked process has PyTorch already. Where a fork is not safe, as on macOS, a process
# begins anew and imports it, which takes some seconds.
START = "fork" if sys.platform == "linux" else "spawn"


def in_processes(count, work, *inputs):
    """Call a function in so many processes, each as if `torchrun` had started it.

    returns: what it returned, a list with an entry for each process
    """
    if START == "fork":
        importlib.import_module("torch._dynamo")  # once, else later in every process
    ports = torch.multiprocessing.get_context(START).SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        inputs = count, ports, folder, work, inputs
        started = torch.multiprocessing.start_processes(
            _begin, inputs, count, join=False, start_method=START
        )
        # A process forked while a thread serves the store may wait for ever (1 of 75).
        store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        for _ in range(count):
            ports.put(store.port)
        while not started.join():
            pass
        files = [f"{folder}/{rank}" for rank in range(count)]
        return [torch.load(file, weights_only=False) for file in files]


def _begin(rank, count, ports, folder, work, inputs):
    # Should it wait for ever, it ends after a minute, and says where it was.
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(ports.get()),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # who has started us listens there
    }
    torch.set_num_threads(1)  # the threads of the first process are not in a fork
    torch.save(work(*inputs), f"{folder}/{rank}")


# As a decorator: what a function made is gone when its processes part (see there, why).
joined = parallel.processes(PATIENCE)


@joined
def compare():
    """Return what is said of each split, after a comparison with one process."""
    lines = {}
    for what, split in parallel.SPLITS.items():
        torch.manual_seed(0)
        lines[what] = split()
    return lines


@joined
def attend_with_some_heads(layer, x):
    """Return sizes, outputs and gradients of a layer whose heads are split."""
    parallel.split_heads_over_processes(layer)
    matrices = layer.W_query.weight, layer.out_proj.weight
    sizes = [layer.num_heads, layer.num_kv_heads]
    sizes += [tuple(matrix.to_local().shape) for matrix in matrices]
    output = layer(x)
    output.square().sum().backward()
    return sizes, [output.detach(), *parallel._gradients(layer)]


def fenced_lines():
    """Return the programs and lines that stand in the text of notebook 13."""
    cells = nbformat.read(
        ROOT / "notebooks/13_several_machines.ipynb", as_version=4
    ).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    texts = [text for text in texts if "<summary>Solution" not in text]
    return re.findall(r"^```python\n(.*?)^```$", "\n".join(texts), re.M | re.S)


def run_program(number):
    """Run a whole program that stands in the text; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(fenced_lines()[number], {})
    return printed.getvalue()


@joined
def run_fenced(number, model, sentences):
    """Run lines that stand in the text of notebook 13; return the gradients."""
    own = sentences.chunk(dist.get_world_size())[dist.get_rank()]
    own_batch, loss = (own[:, :-1], own[:, 1:]), next_token_loss
    names = {"model": model, "own_batch": own_batch, "next_token_loss": loss}
    exec(fenced_lines()[number], names)
    if "loss" not in names:
        loss(names["model"], own_batch).backward()
    return [g.clone() for g in parallel._gradients(names["model"])]


@joined
def refuse():
    """Return the answers to what two processes cannot share."""
    layer = MultiHeadAttention(6, 6, 8, 0.0, num_heads=3)
    alibi = MultiHeadAttention(6, 6, 8, 0.0, num_heads=2, alibi=True)
    answers = []
    for function, given in (
        (parallel.own_positions, 7),
        (parallel.split_heads_over_processes, layer),
        (parallel.split_heads_over_processes, alibi),
    ):
        try:
            function(given)
        except ValueError as answer:
            answers.append(str(answer))
    return answers


@joined
def interrupt_second_process(folder):
    """Train, with a Ctrl-C in step 3 of the second process; return their steps."""
    rank, model, losses = dist.get_rank(), nn.Linear(1, 1), []

    def compute_loss(model, batch):
        losses.append(model(batch).square().mean())
        if rank == 1 and len(losses) == 3:
            signal.raise_signal(signal.SIGINT)
        dist.all_reduce(torch.ones(1))  # nobody can take a step alone
        return losses[-1]

    with contextlib.suppress(KeyboardInterrupt):
        config = TrainingConfig(checkpoint=folder / f"{rank}.pt")
        train(model, [torch.ones(5, 1)], compute_loss, 9, 0.1, config=config)
    return len(losses)


def die():
    """Let the second process end while the first one waits for it."""
    with parallel.processes(parallel.PATIENCE) as (rank, _):
        if rank == 1:
            sys.exit(f"the second process ended at {time.time()}")
        dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    die()
