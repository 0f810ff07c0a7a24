"""Latents and states: what they cost beside a cache of keys and values.

No gradients, one text in float32. `new token` is a call of a layer of width 1,024 with
16 heads for one token after so many: our layer with a cache, and `LatentAttention`
(latents of 256 numbers) both ways. `reading` is the attention of 4 heads of width 64
alone: PyTorch's fused softmax, and a state in chunks of 64, with and without the delta
rule. What is compared is first shown to give the same, where it should.
"""

import statistics
from functools import partial

import torch
import torch.nn.functional as F

from tests.benchmarks import race, ratio
from utils.attention import MultiHeadAttention
from utils.delta import attend_in_chunks, delta_rule
from utils.latent import LatentAttention

WIDTH, HEADS, ROUNDS = 1024, 16, 12


def new_token(num_tokens):
    """Return the seconds of each layer for one token after `num_tokens`."""
    torch.manual_seed(0)
    room = num_tokens + ROUNDS + 2  # a token is added in each round
    sizes = WIDTH, WIDTH, room, 0.0, HEADS
    plain = MultiHeadAttention(*sizes)
    latent = LatentAttention(*sizes, latent_dim=256, rotary=True)
    text, word = torch.randn(1, num_tokens, WIDTH), torch.randn(1, 1, WIDTH)
    runs = {}
    for name, layer, options in (
        ("keys and values", plain, {}),
        ("keys made", latent, {"absorbed": False}),
        ("absorbed", latent, {"absorbed": True}),
    ):
        layer(text, cache=(cache := layer.new_cache(room)))
        runs[name] = partial(layer, word, cache=cache, **options)
    same = runs["keys made"](), runs["absorbed"]()
    torch.testing.assert_close(*same, atol=1e-4, rtol=1e-3)
    return race(runs, ROUNDS)


def reading(num_tokens):
    """Return the seconds of each way to read so many tokens."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 4, num_tokens, 64).unbind()
    key = F.normalize(key, dim=-1)
    beta = torch.rand(1, 4, num_tokens)
    first = [t[..., :99, :] for t in (query, key, value)]
    by_chunks, _ = attend_in_chunks(*first, beta[..., :99])
    torch.testing.assert_close(by_chunks, delta_rule(*first, beta[..., :99]))
    softmax = F.scaled_dot_product_attention
    runs = {
        "softmax": partial(softmax, query, key, value, is_causal=True),
        "sum": partial(attend_in_chunks, query, key, value),
        "delta rule": partial(attend_in_chunks, query, key, value, beta),
    }
    return race(runs, ROUNDS)


@torch.no_grad()
def main():
    """Print a table for each."""
    for measure, lengths in ((new_token, (1024, 4096)), (reading, (1024, 4096, 8192))):
        for num_tokens in lengths:
            seconds = measure(num_tokens)
            least = next(iter(seconds))
            print(f"{measure.__name__:10} {num_tokens:6,}", end="")
            for name, taken in seconds.items():
                middle, error = ratio(taken, seconds[least])
                print(f"  {name} {1000 * statistics.median(taken):.2f} ms", end="")
                print(f" ({middle:.2f} ± {error:.2f})", end="")
            print(flush=True)
