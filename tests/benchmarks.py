"""Measure speed and print the rows of benchmarks.md.

    python -m tests.benchmarks [attention ...]

Compared layers must first give the same results. The load of the machine is printed,
because times from a busy machine mean little.
"""

import argparse
import datetime
import os
import platform
import statistics
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.benchmark import Timer

from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss
from utils.training import TrainingConfig, train

WIDTH, HEADS = 768, 12


class Bound(nn.Module):
    """What no layer can leave out: matrix products and attention."""

    def __init__(self, sizes):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(n, WIDTH) / 28 for n in sizes)
        self.bias = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        *inputs, out = self.weights
        parts = [F.linear(x, weight) for weight in inputs]
        parts = parts if len(parts) == 3 else parts[0].chunk(3, dim=-1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts]
        output = F.scaled_dot_product_attention(*heads, is_causal=True)
        return F.linear(output.transpose(1, 2).flatten(2), out, self.bias)


def step(layer, x):
    """Run forward and backward; return the output and the gradient of x."""
    layer.zero_grad()
    x.grad = None
    output = layer(x)
    output.square().sum().backward()
    return output.detach(), x.grad


def layer_rows(bound, ours, x):
    """Yield times, forward and backward, relative to the lower bound, in turns."""
    runs = [{"run": partial(step, layer, x)} for layer in (bound, ours)]
    timers = [Timer("run()", globals=run, num_threads=2) for run in runs]
    seconds = [[], []]
    for i in 9 * [0, 1]:
        seconds[i].append(timers[i].blocked_autorange(min_run_time=0.5).median)
    seconds = [*map(statistics.median, seconds)]
    for name, taken in zip(("the lower bound", "`MultiHeadAttention`"), seconds):
        relative = f"{taken / seconds[0]:.2f} times the lower bound"
        about = f"(B, T) = {tuple(x.shape[:2])}: {name}"
        yield about, f"{1000 * taken:.3g} ms, {relative}"


def attention():
    """`MultiHeadAttention`, causal, width 768, forward and backward."""
    for batch_size, num_tokens in ((8, 256), (4, 1024), (1, 4096)):
        ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, 0.0, HEADS)
        bound = Bound([WIDTH] * 4)
        x = torch.randn(batch_size, num_tokens, WIDTH, requires_grad=True)
        weights = *bound.weights, bound.bias
        for copy, weight in zip(ours.parameters(), weights, strict=True):
            copy.data.copy_(weight)
        expected = step(bound, x)
        torch.testing.assert_close(step(ours, x), expected, atol=1e-3, rtol=1e-3)
        yield from layer_rows(bound, ours, x)


def gpu():
    """On a GPU: the layer against its bound, and training GPT-2 small."""
    for batch_size, num_tokens in ((32, 256), (16, 1024), (4, 4096), (1, 16384)):
        x = torch.randn(batch_size, num_tokens, WIDTH).cuda().requires_grad_()
        ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, 0.0, HEADS).cuda()
        bound = Bound([3 * WIDTH, WIDTH]).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            yield from layer_rows(bound, ours, x)
    ways = {"as it is": next_token_loss, "compiled": torch.compile(next_token_loss)}
    for name, loss in ways.items():
        model, times = GPT(50304, 1024, WIDTH, HEADS, 12).cuda(), []
        ids = torch.randint(50304, (16, 1025), device="cuda")

        def note_time(losses, times=times):
            torch.cuda.synchronize()
            times.append(time.perf_counter())

        batches, config = [(ids[:, :-1], ids[:, 1:])], TrainingConfig(clip=1.0)
        train(model, batches, loss, 25, 1e-4, on_step=note_time, config=config)
        taken = statistics.median(b - a for a, b in zip(times[5:], times[6:]))
        yield f"GPT-2 small, {name}", f"{16 * 1024 / taken:,.0f} tokens per second"


def main():
    """Run the benchmarks that are named on the command line, or all."""
    benchmarks = {f.__name__: f for f in (attention, gpu)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(benchmarks))
    torch.set_num_threads(2)
    processors = f"{os.cpu_count()} processors ({platform.machine()})"
    for name in parser.parse_args().names or benchmarks:
        if name == "gpu" and not torch.cuda.is_available():
            print("gpu: needs a GPU")
            continue
        machine = torch.cuda.get_device_name() if name == "gpu" else processors
        for what, measured in benchmarks[name]():
            end = f"{machine} | {datetime.date.today()}"
            print(f"| {name} | {what} | {measured} | {end} |", flush=True)
        print(f"load of the last minute: {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
