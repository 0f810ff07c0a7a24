"""Measure speed and renew the table of benchmarks.md.

    python -m tests.benchmarks [attention ...]

Compared layers must first give the same results. The load of the machine is printed,
because times from a busy machine mean little.
"""

import argparse
import datetime
import itertools
import os
import platform
import statistics
import sysconfig
import time
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.benchmark import Timer

from tests import result_tables
from utils.attention import MultiHeadAttention
from utils.delta import DeltaAttention, attend_in_chunks
from utils.latent import LatentAttention
from utils.model import GPT, KERNELS, next_token_loss
from utils.tokenizer import train_bpe
from utils.training import TrainingConfig, train

WIDTH, HEADS = 768, 12
TABLE = "the last benchmarks"
HEAD = "| name | what | measured | machine | day |\n|---|---|---|---|---|\n"


def measure(runs):
    """Return the median seconds of each function, by its name; they take turns."""
    timers = {
        name: Timer("run()", globals={"run": run}, num_threads=2)
        for name, run in runs.items()
    }
    rounds = [
        {n: t.blocked_autorange(min_run_time=0.5).median for n, t in timers.items()}
        for _ in range(9)
    ]
    return {n: statistics.median(taken[n] for taken in rounds) for n in timers}


def relative_rows(about, seconds, notes=None):
    """Yield what was run and its time, relative to the first, and a note on it."""
    reference = next(iter(seconds))
    for name, taken in seconds.items():
        relative = f"{taken / seconds[reference]:.2f} times {reference}"
        note = f", {notes[name]}" if notes else ""
        yield f"{about}: {name}", f"{1000 * taken:.3g} ms, {relative}{note}"


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


class PyTorchAttention(nn.Module):
    """`nn.MultiheadAttention`, told that its mask is the causal one."""

    def __init__(self, num_tokens):
        super().__init__()
        self.layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.mask = nn.Transformer.generate_square_subsequent_mask(num_tokens)

    def forward(self, x):
        options = {"attn_mask": self.mask, "is_causal": True, "need_weights": False}
        return self.layer(x, x, x, **options)[0]


def step(layer, x):
    """Run forward and backward; return the output and the gradient of x."""
    layer.zero_grad()
    x.grad = None
    output = layer(x)
    output.square().sum().backward()
    return output.detach(), x.grad


def peak_bytes(layer, x):
    """Return the bytes in use at the peak of a step, beyond those before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step(layer, x)
    events = profiled.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(itertools.accumulate(changes))


def attention():
    """`MultiHeadAttention`, causal, width 768, forward and backward, and others."""
    for batch_size, num_tokens in ((8, 256), (4, 1024), (1, 4096)):
        ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, 0.0, HEADS)
        layers = {
            "the lower bound": Bound([WIDTH] * 4),
            "`MultiHeadAttention`": ours,
            "`nn.MultiheadAttention`": PyTorchAttention(num_tokens),
            "a layer like nanoGPT's": Bound([3 * WIDTH, WIDTH]),
        }
        x = torch.randn(batch_size, num_tokens, WIDTH, requires_grad=True)
        matrices = torch.cat([*layers["the lower bound"].weights])
        for layer in layers.values():
            of_layer = [p for p in layer.parameters() if p.dim() == 2]
            sizes = [len(matrix) for matrix in of_layer]
            for parameter in layer.parameters():
                nn.init.zeros_(parameter)  # the biases, which not all have
            for matrix, rows in zip(of_layer, matrices.detach().split(sizes)):
                matrix.data.copy_(rows)
            matrices = torch.cat(of_layer)
        expected = step(layers["the lower bound"], x)
        for layer in layers.values():
            torch.testing.assert_close(step(layer, x), expected, atol=1e-3, rtol=1e-3)
        seconds = measure({n: partial(step, layer, x) for n, layer in layers.items()})
        peaks = {n: f"{peak_bytes(lay, x) / 1e6:.1f} MB" for n, lay in layers.items()}
        yield from relative_rows(f"(B, T) = {batch_size, num_tokens}", seconds, peaks)


@torch.no_grad()
def today():
    """One token after many in layers of width 1,024, and 8,192 tokens against 2,048."""
    for num_tokens in (4096, 32_768):
        sizes = 1024, 1024, num_tokens + 20_000, 0.0, 16
        latent = LatentAttention(*sizes, latent_dim=256, rotary=True)
        layers = {
            "all keys and values": (MultiHeadAttention(*sizes), {}),
            "2 shared heads": (MultiHeadAttention(*sizes, num_kv_heads=2), {}),
            "latents of 256 numbers, absorbed": (latent, {"absorbed": True}),
            "latents, keys and values expanded": (latent, {"absorbed": False}),
            "a state": (DeltaAttention(*sizes), {}),
        }
        word, runs, notes = torch.randn(1, 1, 1024), {}, {}
        for name, (layer, options) in layers.items():
            cache = layer.new_cache(sizes[2])
            for _ in range(num_tokens // 1024):
                layer(torch.randn(1, 1024, 1024), cache=cache)
            notes[name] = f"{cache.nbytes / 1e6:.1f} MB"
            runs[name] = partial(layer, word, cache=cache, **options)
        about = f"one token after {num_tokens:,}"
        yield from relative_rows(about, measure(runs), notes)
    times = []
    for num_tokens in (2048, 8192):
        query, key, value = torch.randn(3, 1, 4, num_tokens, 64).unbind()
        inputs = query, F.normalize(key, dim=-1), value
        softmax = partial(F.scaled_dot_product_attention, is_causal=True)
        runs = {
            "fused softmax": partial(softmax, *inputs),
            "the delta rule in chunks": partial(
                attend_in_chunks, *inputs, torch.rand(1, 4, num_tokens)
            ),
        }
        times.append(measure(runs))
    for name, taken in times[1].items():
        yield f"8,192 tokens: {name}", f"{taken / times[0][name]:.1f} times 2,048"


def byte_pairs():
    """Byte-pair training with 1,000 merges on a megabyte of Python's own source."""
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"".join(module.read_bytes() for module in modules)[:1_000_000]
    start = time.perf_counter()
    merges = train_bpe(text.decode("utf-8", errors="ignore"), 1000)
    yield f"{len(merges):,} merges", f"{time.perf_counter() - start:.1f} s"


def gpu():
    """On a GPU in bfloat16: the layer against its bound, and training GPT-2 small."""
    for batch_size, num_tokens in ((32, 256), (16, 1024), (4, 4096), (1, 16384)):
        x = torch.randn(batch_size, num_tokens, WIDTH).cuda().requires_grad_()
        ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, 0.0, HEADS).cuda()
        bound = Bound([3 * WIDTH, WIDTH]).cuda()
        layers = {"the lower bound": bound, "`MultiHeadAttention`": ours}
        with torch.autocast("cuda", torch.bfloat16):
            seconds = measure({n: partial(step, lay, x) for n, lay in layers.items()})
        yield from relative_rows(f"(B, T) = {batch_size, num_tokens}", seconds)
    for name, loss in (
        ("as it is", next_token_loss),
        ("compiled", torch.compile(next_token_loss)),
    ):
        model, times = GPT(50304, 1024, WIDTH, HEADS, 12).cuda(), []
        ids = torch.randint(50304, (16, 1025), device="cuda")

        def note_time(losses, times=times):
            torch.cuda.synchronize()
            times.append(time.perf_counter())

        batches, config = [(ids[:, :-1], ids[:, 1:])], TrainingConfig(clip=1.0)
        train(model, batches, loss, 25, 1e-4, on_step=note_time, config=config)
        taken = statistics.median(b - a for a, b in zip(times[5:], times[6:]))
        yield f"GPT-2 small, {name}", f"{16 * 1024 / taken:,.0f} tokens per second"
    model = model.bfloat16().eval()
    with torch.inference_mode(), sdpa_kernel(KERNELS):
        caches = model.new_caches(1024)
        model(ids[:1, :64], caches)
        next_token, graph = partial(model, ids[:1, :1], caches), torch.cuda.CUDAGraph()
        from_python = seconds_to_end(next_token)
        with torch.cuda.graph(graph):
            next_token()
        replayed = seconds_to_end(graph.replay)
    yield "one token of GPT-2 small, from Python", f"{1000 * from_python:.2f} ms"
    yield "one token of GPT-2 small, as a CUDA graph", f"{1000 * replayed:.2f} ms"


def seconds_to_end(run):
    """Return the median time of 200 calls, each until the GPU has done its work."""
    times = []
    for _ in range(200):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    """Run the benchmarks that are named on the command line, or all."""
    benchmarks = {f.__name__: f for f in (byte_pairs, attention, today, gpu)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(benchmarks))
    torch.set_num_threads(2)
    processors = f"{os.cpu_count()} processors ({platform.machine()})"
    for name in parser.parse_args().names or benchmarks:
        if name == "gpu" and not torch.cuda.is_available():
            print("gpu: needs a GPU")
            continue
        machine = torch.cuda.get_device_name() if name == "gpu" else processors
        rows, end = [], f"{machine} | {datetime.date.today()}"
        for what, measured in benchmarks[name]():
            rows.append(f"| {name} | {what} | {measured} | {end} |\n")
            print(rows[-1], end="", flush=True)
        print(f"load of the last minute: {os.getloadavg()[0]:.1f}", flush=True)
        result_tables.store(TABLE, HEAD, rows, list(benchmarks))


if __name__ == "__main__":
    main()
