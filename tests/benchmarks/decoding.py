"""One token after 4,096: `MultiHeadAttention` with a cache against attention alone.

No gradients, one text, width 512, 8 heads that share 8, 2 or 1 key-value heads.
`attention` is that of one query on the shared heads, as they lie in the cache; `with
cache` is what our layer does for it: write into the cache, then attend. `layer` is a
call of our layer, and `floor` the attention with the layer's four products.
"""

import statistics
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.benchmarks import race, ratio
from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache

WIDTH, HEADS, CACHED, ROUNDS = 512, 8, 4096, 200


def attend(query, key, value):
    """Attend on the shared heads alone: (B, H, 1, K) to (B, H, 1, K)."""
    rows = query.view(1, key.shape[1], -1, key.shape[-1])  # (B, H_kv, H / H_kv, K)
    return scaled_dot_product_attention(rows, key, value).view(query.shape)


def attend_with_cache(layer, cache, query, new_key, new_value):
    """Do the part of the layer that lies between its products."""
    key, value = cache.append(new_key, new_value)
    return layer._attend_fused(query, key, value, None, True)[0]


def floor(layer, x, key, value):
    """Do what no step can leave out: four products and the attention."""
    query, _, _ = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    output = attend(query.view(1, HEADS, 1, -1), key, value)
    return layer.out_proj(output.view(x.shape))


def filled_cache(layer):
    """Return a cache that holds random tokens, with room for those of the race."""
    cache = KeyValueCache(layer.context_length)
    cache.append(*torch.randn(2, 1, layer.num_kv_heads, CACHED, WIDTH // HEADS))
    return cache


def measure(num_kv_heads):
    """Return the seconds of each, round by round."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(
        WIDTH, WIDTH, CACHED + ROUNDS + 1, 0.0, HEADS, num_kv_heads=num_kv_heads
    )
    x, query = torch.randn(1, 1, WIDTH), torch.randn(1, HEADS, 1, WIDTH // HEADS)
    cache = filled_cache(layer)
    output = layer(x, cache=cache)
    held = (t[:, :, : len(cache)] for t in (cache.key, cache.value))
    torch.testing.assert_close(output, floor(layer, x, *held))
    mine, other = filled_cache(layer), filled_cache(layer)
    key, value = (t[:, :, :CACHED] for t in (mine.key, mine.value))
    news = key[:, :, :1], value[:, :, :1]
    runs = {
        "attention": partial(attend, query, key, value),
        "with cache": partial(attend_with_cache, layer, mine, query, *news),
        "floor": partial(floor, layer, x, key, value),
        "layer": partial(layer, x, cache=other),
    }
    return race(runs, ROUNDS)


@torch.no_grad()
def main():
    """Print a row for each number of key-value heads."""
    for num_kv_heads in (8, 2, 1):
        seconds = measure(num_kv_heads)
        print(f"{HEADS}/{num_kv_heads} heads:", end="")
        for name, taken in seconds.items():
            print(f"  {name} {1000 * statistics.median(taken):.3f} ms", end="")
        for ours, least in (("with cache", "attention"), ("layer", "floor")):
            middle, error = ratio(seconds[ours], seconds[least])
            print(f"  {ours} / {least} {middle:.2f} ± {error:.2f}", end="")
        print(flush=True)
