"""`MultiHeadAttention`, forward and backward, against the floor and other libraries.

Causal, width 768, 12 heads, float32, no dropout. Bytes are those that PyTorch's
allocator hands out beyond weights and input.
"""

import itertools
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

from tests.benchmarks import race, row
from utils.attention import MultiHeadAttention

WIDTH, HEADS = 768, 12
SIZES = ((8, 256, 30), (4, 1024, 16), (1, 4096, 12))  # B, T and the rounds


def attend(query, key, value, num_heads):
    """Attend with every head, causally; (B, T, D) three times, to (B, T, D)."""
    heads = (t.unflatten(-1, (num_heads, -1)) for t in (query, key, value))
    heads = (t.transpose(1, 2) for t in heads)  # (B, H, T, K)
    output = F.scaled_dot_product_attention(*heads, is_causal=True)
    return output.transpose(1, 2).flatten(2)


class Floor(nn.Module):
    """What no layer can leave out: four matrix products and the fused attention."""

    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.weights = nn.ParameterList(torch.empty(width, width) for _ in range(4))

    def forward(self, x):
        query, key, value, out = (weight.T for weight in self.weights)
        return attend(x @ query, x @ key, x @ value, self.num_heads) @ out


class LikeNanoGPTAttention(nn.Module):
    """One layer for queries, keys and values, as Karpathy's nanoGPT has it."""

    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        return self.out(attend(query, key, value, self.num_heads))


class PyTorchAttention(nn.Module):
    """`nn.MultiheadAttention`, told that its mask is the causal one."""

    def __init__(self, width, num_heads, num_tokens):
        super().__init__()
        self.layer = nn.MultiheadAttention(width, num_heads, batch_first=True)
        self.mask = nn.Transformer.generate_square_subsequent_mask(num_tokens)

    def forward(self, x):
        options = {"attn_mask": self.mask, "is_causal": True, "need_weights": False}
        return self.layer(x, x, x, **options)[0]


def layers(num_tokens):
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, WIDTH, num_tokens, dropout=0.0, num_heads=HEADS)
    nn.init.zeros_(ours.out_proj.bias)  # not all of them have one
    known = {
        "floor": Floor(WIDTH, HEADS),
        "nn.MultiheadAttention": PyTorchAttention(WIDTH, HEADS, num_tokens),
        "like nanoGPT": LikeNanoGPTAttention(WIDTH, HEADS),
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
