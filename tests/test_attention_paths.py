"""Each test pins one sentence about the two paths through `MultiHeadAttention`.

The fast one, and the one that returns weights.
"""

import pytest
import torch
from small_layers import KINDS, Made, grouped, random

from utils.attention import MultiHeadAttention, padding_mask
from utils.cache import KeyValueCache

CALLS = {
    "alone": lambda layer, x, n: layer(x, need_weights=n),
    "padded": lambda layer, x, n: layer(x, None, padding_mask([7, 4, 0], 7), n),
    "context": lambda layer, x, n: layer(x[:, :5], x, None, n, causal=False),
    "padded context": lambda layer, x, n: layer(
        x[:, :5], x, padding_mask([7, 4, 1], 7), n, causal=False
    ),
    "causal context": lambda layer, x, n: layer(x[:, :5], x, None, n, causal=True),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_path_gives_the_same_output_and_gradients(call, kind):
    results = []
    for need_weights in (False, True):
        layer, x = grouped(**kind), random(3, 7, 5).requires_grad_()
        output = CALLS[call](layer, x, need_weights)
        output = output[0] if need_weights else output
        output.square().sum().backward()
        results.append([output, x.grad, *(p.grad for p in layer.parameters())])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_nothing_of_tokens_by_tokens_is_made_unless_weights_are_asked_for(
    need_weights, rotary
):
    layer, x = grouped(rotary=rotary), random(3, 11, 5)
    with Made() as made:
        output = layer(x, need_weights=need_weights)
        (output[0] if need_weights else output).square().sum().backward()
    squares = [t for t in made.tensors if list(t.shape).count(11) > 1]
    assert bool(squares) == need_weights


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("num_kv_heads", [1, 2])
@pytest.mark.parametrize("num_new", [1, 3])
def test_shared_keys_and_the_cache_are_not_copied(need_weights, num_kv_heads, num_new):
    layer = MultiHeadAttention(5, 384, 400, 0.0, 6, num_kv_heads=num_kv_heads)
    x, cache = random(1, 303, 5, dtype=torch.float32), KeyValueCache(400)
    layer(x[:, :300], cache=cache)
    known = (cache.key, cache.value, *layer.parameters())
    places = {tensor.untyped_storage().data_ptr() for tensor in known}
    with Made() as made:
        layer(x[:, :num_new], cache=cache, need_weights=need_weights)
    copies = [t for t in made.tensors if t.untyped_storage().data_ptr() not in places]
    assert max(tensor.numel() for tensor in copies) < 300 * 64  # the keys of one head
