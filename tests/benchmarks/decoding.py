"""One token after 4,096: `MultiHeadAttention` with a cache against attention alone.

No gradients, one text, width 512, 8 heads that share 2 or 1 key-value heads.
`attention` is that of one query on the shared heads, as they lie in the cache; `with
cache` is what our layer does for it: write into the cache, then attend.
"""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.benchmarks import race, row
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


def measure(num_kv_heads):
    """Return the seconds of each, round by round."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(
        WIDTH, WIDTH, CACHED + ROUNDS + 1, 0.0, HEADS, num_kv_heads=num_kv_heads
    )
    cache = KeyValueCache(layer.context_length)  # with room for the tokens of the race
    cache.append(*torch.randn(2, 1, num_kv_heads, CACHED, WIDTH // HEADS))
    query = torch.randn(1, HEADS, 1, WIDTH // HEADS)
    key, value = (t[:, :, :CACHED] for t in (cache.key, cache.value))
    alone = layer._attend_fused(query, key, value, None, True)[0]
    torch.testing.assert_close(alone, attend(query, key, value))
    news = key[:, :, :1], value[:, :, :1]
    runs = {
        "attention": partial(attend, query, key, value),
        "with cache": partial(attend_with_cache, layer, cache, query, *news),
    }
    return race(runs, ROUNDS)


@torch.no_grad()
def main():
    for num_kv_heads in (2, 1):
        seconds = measure(num_kv_heads)
        print(f"{HEADS} heads that share {num_kv_heads}:")
        for name, taken in seconds.items():
            print(row(name, taken, seconds["attention"]), flush=True)
