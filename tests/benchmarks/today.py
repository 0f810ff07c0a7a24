"""Small caches and states: bytes and time of one token, and how reading grows with T.

No gradients, one text. `one token` is a call of a layer of width 1,024 with 16 heads
after 4,096 and 32,768 tokens, drawn at random. `reading` is the attention of 4 heads of
width 64 alone; the ratio says how many times as long T = 8,192 takes as T = 2,048.
"""

import statistics
from functools import partial

import torch
import torch.nn.functional as F

from tests.benchmarks import race, ratio, row
from utils.attention import MultiHeadAttention
from utils.delta import DeltaAttention, attend_in_chunks, delta_rule
from utils.latent import LatentAttention

WIDTH, HEADS, ROUNDS = 1024, 16, 30
LENGTHS = 2048, 8192


def filled(layer, num_tokens):
    """Return a cache that has read so many tokens, 1,024 at a time."""
    cache = layer.new_cache(num_tokens + ROUNDS + 2)  # a token is added in each round
    for _ in range(num_tokens // 1024):
        layer(torch.randn(1, 1024, WIDTH), cache=cache)
    return cache


def one_token(num_tokens):
    """Print bytes and milliseconds of each layer for one token after `num_tokens`."""
    torch.manual_seed(0)
    sizes = WIDTH, WIDTH, num_tokens + ROUNDS + 2, 0.0, HEADS
    latent = LatentAttention(*sizes, latent_dim=256, rotary=True)
    layers = {
        "heads": (MultiHeadAttention(*sizes), {}),
        "2 shared heads": (MultiHeadAttention(*sizes, num_kv_heads=2), {}),
        "latents, keys made": (latent, {"absorbed": False}),
        "latents, absorbed": (latent, {"absorbed": True}),
        "a window": (MultiHeadAttention(*sizes, window=1024), {}),
        "a state": (DeltaAttention(*sizes), {}),
    }
    word, runs, sizes = torch.randn(1, 1, WIDTH), {}, {}
    for name, (layer, options) in layers.items():
        cache = filled(layer, num_tokens)
        sizes[name] = cache.nbytes
        runs[name] = partial(layer, word, cache=cache, **options)
    seconds = race(runs, ROUNDS)
    print(f"one token after {num_tokens:,}")
    for name, taken in seconds.items():
        print(f"{row(name, taken, seconds['heads'])} {sizes[name]:13,} bytes")


def reading():
    """Print how long each way reads for both lengths, and their ratio."""
    seconds = {}
    for num_tokens in LENGTHS:
        torch.manual_seed(0)
        query, key, value = torch.randn(3, 1, 4, num_tokens, 64).unbind()
        key, beta = F.normalize(key, dim=-1), torch.rand(1, 4, num_tokens)
        first = [t[..., :99, :] for t in (query, key, value)]
        by_chunks, _ = attend_in_chunks(*first, beta[..., :99])
        torch.testing.assert_close(by_chunks, delta_rule(*first, beta[..., :99]))
        softmax = F.scaled_dot_product_attention
        runs = {
            "softmax": partial(softmax, query, key, value, is_causal=True),
            "sum": partial(attend_in_chunks, query, key, value),
            "delta rule": partial(attend_in_chunks, query, key, value, beta),
        }
        seconds[num_tokens] = race(runs, ROUNDS)
    short, long = (seconds[num_tokens] for num_tokens in LENGTHS)
    print(f"reading {LENGTHS[0]:,} and {LENGTHS[1]:,} tokens")
    for name in short:
        times = [1000 * statistics.median(each[name]) for each in (short, long)]
        growth, error = ratio(long[name], short[name])
        print(f"{name:23} {times[0]:9.3f} ms {times[1]:9.3f} ms", end="")
        print(f" {growth:7.2f} ± {error:.2f} times as long")


@torch.no_grad()
def main():
    for num_tokens in (4096, 32_768):
        one_token(num_tokens)
    reading()
