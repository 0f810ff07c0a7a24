"""What each process of `tests/test_parallel.py` does; torchrun starts several."""

import sys
import time

import torch
import torch.distributed as dist

from utils import parallel
from utils.attention import MultiHeadAttention


def compare():
    """Compare every split with one process, in both precisions."""
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        for what, split in parallel.SPLITS.items():
            torch.manual_seed(0)
            print(f"\n{dtype} {what} {dist.get_rank()} {split()}", flush=True)


def refuse():
    """Ask for what the processes cannot share equally."""
    count = dist.get_world_size()
    layer = MultiHeadAttention(6, 6, 8, 0.0, num_heads=count + 1)
    for ask in (
        lambda: parallel.own_positions(7),
        lambda: parallel.split_heads_over_processes(layer),
    ):
        try:
            ask()
        except ValueError as error:
            print(f"\n{error}", flush=True)


def die():
    """Let the second process end while the first one waits for it."""
    if dist.get_rank() == 1:
        sys.exit(f"the second process ended at {time.time()}")
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    with parallel.processes(parallel.PATIENCE) as (rank, count):
        if parallel.has_own_gpu():
            torch.set_default_device("cuda")
        {"compare": compare, "refuse": refuse, "die": die}[sys.argv[1]]()
