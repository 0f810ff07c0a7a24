"""`MultiHeadAttention`, forward and backward, against the floor and other libraries.

Causal, width 768, 12 heads, float32, no dropout. Bytes are those that PyTorch's
allocator hands out beyond weights and input.
"""

import itertools
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from tests.benchmarks import race, rivals, row
from utils.attention import MultiHeadAttention

WIDTH, HEADS = 768, 12
SIZES = ((8, 256, 30), (4, 1024, 16), (1, 4096, 12))  # B, T and the rounds


def layers(num_tokens):
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, dropout=0.0, num_heads=HEADS)
    torch.nn.init.zeros_(ours.out_proj.bias)  # not all of them have one
    known = {
        "floor": rivals.Floor(WIDTH, HEADS),
        "nn.MultiheadAttention": rivals.PyTorchAttention(WIDTH, HEADS, num_tokens),
        "like nanoGPT": rivals.LikeNanoGPTAttention(WIDTH, HEADS),
    }
    for layer in known.values():
        copy_matrices(ours, layer)
    return {"ours": ours} | known


def matrices(layer):
    """Return the matrices of a layer: query, key, value, output, one or several."""
    return [parameter for parameter in layer.parameters() if parameter.dim() == 2]


@torch.no_grad()
def copy_matrices(source, target):
    """Copy the matrices, whichever of them each of the layers holds in one."""
    rows = torch.cat(matrices(source))
    sizes = [len(matrix) for matrix in matrices(target)]
    for matrix, part in zip(matrices(target), rows.split(sizes)):
        matrix.copy_(part)


def forget(layer, x):
    layer.zero_grad()
    x.grad = None


def step(layer, x):
    """Run forward and backward; return the output and all gradients."""
    forget(layer, x)
    output = layer(x)
    output.square().sum().backward()
    return output.detach(), x.grad, [matrix.grad for matrix in matrices(layer)]


def assert_equal(layer, floor, x):
    """Assert that a layer gives the output and the gradients of the floor."""
    output, of_x, of_weights = step(layer, x)
    expected, expected_of_x, expected_of_weights = step(floor, x)
    assert_close = partial(torch.testing.assert_close, atol=1e-3, rtol=1e-3)
    assert_close(output, expected)
    assert_close(of_x, expected_of_x)
    assert_close(torch.cat(of_weights), torch.cat(expected_of_weights))


def peak_bytes(layer, x):
    """Return the bytes in use at the peak of a step, beyond those before it."""
    forget(layer, x)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step(layer, x)
    events = profiled.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(itertools.accumulate(changes))


def table(batch_size, num_tokens, rounds):
    """Print a row for each layer."""
    known = layers(num_tokens)
    x = torch.randn(batch_size, num_tokens, WIDTH, requires_grad=True)
    for layer in known.values():
        assert_equal(layer, known["floor"], x)
    runs = {name: partial(step, layer, x) for name, layer in known.items()}
    seconds, least = race(runs, rounds), peak_bytes(known["floor"], x)
    print(f"B = {batch_size}, T = {num_tokens}: the same output and gradients")
    print(f"{'':33}ms     / floor        MiB  / floor")
    for name, layer in known.items():
        peak = peak_bytes(layer, x)
        print(
            row(name, seconds[name], seconds["floor"]),
            f"{peak / 2**20:9.1f} {peak / least:8.3f}",
        )


def main():
    for batch_size, num_tokens, rounds in SIZES:
        table(batch_size, num_tokens, rounds)
