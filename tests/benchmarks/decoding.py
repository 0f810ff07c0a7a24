"""One token after many: `MultiHeadAttention` with a cache against its floor.

No gradients, one text in float32; on a GPU 64 texts in 16 bits. `attention` is that of
one query on the shared heads alone, as they lie in the cache; `with cache` is what our
layer does for it: write into the cache, then attend. `floor` is the attention with the
four products of the layer, `layer` is a call of it. A layer that copies the shared
heads, or the cache, cannot come near.
"""

import statistics
from functools import partial

import torch
import torch.nn.functional as F

from tests.benchmarks import place, race, ratio
from utils.attention import MultiHeadAttention
from utils.cache import KeyValueCache

SIZES = ((512, 4096, (8, 2, 1)), (1024, 8192, (16, 4, 1)))  # D, cached, key heads
HEAD_DIM, ROUNDS = 64, 200
DEVICE, DTYPE = place()
PLACE = {"device": DEVICE, "dtype": DTYPE}
TEXTS, TOLERANCE = (1, {}) if DEVICE == "cpu" else (64, {"atol": 2e-3, "rtol": 2e-2})
PAIRS = ("with cache", "attention"), ("layer", "floor")


def attend(query, key, value):
    """Attend on the shared heads alone: (B, H, 1, K) to (B, H, 1, K)."""
    rows = query.view(TEXTS, key.shape[1], -1, HEAD_DIM)  # (B, H_kv, H / H_kv, K)
    return F.scaled_dot_product_attention(rows, key, value).view(query.shape)


def attend_with_cache(layer, cache, query, new_key, new_value):
    """Do the part of the layer that lies between its products."""
    key, value = cache.append(new_key, new_value)
    return layer._attend_fused(query, key, value, None, True)[0]


def floor(layer, x, key, value):
    """Do what no step can leave out: four products and the attention."""
    query, _, _ = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    output = attend(query.view(TEXTS, -1, 1, HEAD_DIM), key, value)
    return layer.out_proj(output.view(x.shape))


def filled_cache(layer, num_tokens):
    """Return a cache that holds random tokens, with room for those of the race."""
    cache = KeyValueCache(layer.context_length)
    shape = TEXTS, layer.num_kv_heads, num_tokens, HEAD_DIM
    cache.append(torch.randn(shape, **PLACE), torch.randn(shape, **PLACE))
    return cache


def assert_equal(layer, x, num_tokens):
    """Assert that a step of the layer is its floor, on the same keys and values."""
    cache = filled_cache(layer, num_tokens)
    output = layer(x, cache=cache)
    held = (t[:, :, : len(cache)] for t in (cache.key, cache.value))
    torch.testing.assert_close(output, floor(layer, x, *held), **TOLERANCE)


def measure(width, num_tokens, num_kv_heads):
    """Return the seconds of each, round by round."""
    torch.manual_seed(0)
    sizes = width, width, num_tokens + ROUNDS + 1
    heads = {"num_heads": width // HEAD_DIM, "num_kv_heads": num_kv_heads}
    layer = MultiHeadAttention(*sizes, dropout=0.0, **heads).to(DEVICE, DTYPE)
    x = torch.randn(TEXTS, 1, width, **PLACE)
    query = torch.randn(TEXTS, width // HEAD_DIM, 1, HEAD_DIM, **PLACE)
    assert_equal(layer, x, num_tokens)
    mine, other = filled_cache(layer, num_tokens), filled_cache(layer, num_tokens)
    key, value = (t[:, :, :num_tokens] for t in (mine.key, mine.value))
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
    """Print a row for each width and number of key heads."""
    print("   D  cached  heads   attention  with cache       floor       layer", end="")
    print("   with cache / attention    layer / floor")
    for width, num_tokens, key_heads in SIZES:
        for num_kv_heads in key_heads:
            seconds = measure(width, num_tokens, num_kv_heads)
            heads = f"{width // HEAD_DIM}/{num_kv_heads}"
            print(f"{width:4} {num_tokens:7,} {heads:>6}", end="")
            for taken in seconds.values():
                print(f"{1000 * statistics.median(taken):9.3f} ms", end="")
            for ours, least in PAIRS:
                middle, error = ratio(seconds[ours], seconds[least])
                print(f"{middle:17.3f} ± {error:.3f}", end="")
            print(flush=True)
