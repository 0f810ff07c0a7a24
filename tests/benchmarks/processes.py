"""Two processes of one thread against one process of two threads: tokens a second.

The GPT of `gpt` learns from the same batches; two processes share each batch and
average their gradients. The first round of steps is not counted.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from tests.benchmarks import gpt
from utils.data import load_text
from utils.model import GPT, next_token_loss
from utils.parallel import processes, split_batch_over_processes
from utils.training import train

STEPS, ROUNDS = 10, 6
ROOT = Path(__file__).resolve().parents[2]


def work():
    """Train as one of several processes; the first prints seconds and last loss."""
    with processes() as (rank, count):
        seconds, last = trained(count)
        if rank == 0:
            print(json.dumps([seconds, last]))


def trained(count):
    """Return the seconds of each round of a process, and its last loss."""
    text = load_text()
    letters = sorted(set(text))
    batches = gpt.stream(torch.tensor([letters.index(c) for c in text]), 0, STEPS)
    torch.manual_seed(0)
    model = GPT(len(letters), gpt.CONTEXT, gpt.WIDTH, gpt.HEADS, gpt.LAYERS)
    loss = next_token_loss
    if count > 1:
        loss = split_batch_over_processes(model, next_token_loss)
    seconds = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        losses = train(model, batches, loss, STEPS)
        seconds.append(time.perf_counter() - start)
    return seconds[1:], losses[-1]


def measured(count):
    """Return the seconds of each round of `count` processes, and the last loss."""
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command = [sys.executable, "-m", *torchrun, "-m", "tests.benchmarks.processes"]
    env = os.environ | {"OMP_NUM_THREADS": str(2 // count)}
    said = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    return json.loads(said.stdout)


def main():
    """Print a row for each number of processes, after a look at what they learned."""
    found = {count: measured(count) for count in (1, 2)}
    torch.testing.assert_close(found[2][1], found[1][1], rtol=1e-3, atol=0)
    tokens = STEPS * gpt.BATCH * gpt.CONTEXT
    print("processes  threads each  tokens/s")
    for count, (seconds, _) in found.items():
        print(f"{count:9}{2 // count:14}{tokens / statistics.median(seconds):10,.0f}")


if __name__ == "__main__":
    work()
