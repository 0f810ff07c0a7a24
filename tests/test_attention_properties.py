"""What holds for `MultiHeadAttention` in every combination of its options."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_layers import random

from utils.attention import MultiHeadAttention

WIDTH, MAX_TOKENS = 24, 9
# The same examples in every run, however busy the machine is.
everywhere = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@st.composite
def layers(draw):
    """Draw a layer (B, T, 5) -> (B, T, 24) that computes in float64."""
    num_heads = draw(st.sampled_from([1, 2, 6]))
    divisors = [n for n in (1, 2, 3, 6) if num_heads % n == 0]
    options = {
        "num_kv_heads": draw(st.sampled_from(divisors)),
        "window": draw(st.none() | st.integers(1, MAX_TOKENS + 1)),
        "qkv_bias": draw(st.booleans()),
        **draw(st.sampled_from([{}, {"rotary": True}, {"alibi": True}])),
    }
    torch.manual_seed(0)
    return MultiHeadAttention(5, WIDTH, MAX_TOKENS, 0.0, num_heads, **options).double()


num_tokens = st.integers(1, MAX_TOKENS)
# Which of up to nine tokens of two sentences are real: padding anywhere.
padding = st.none() | st.lists(st.booleans(), min_size=18, max_size=18)


def mask_of(padding, num_tokens):
    return padding and torch.tensor(padding).view(2, MAX_TOKENS)[:, :num_tokens]


@everywhere
@given(layers(), num_tokens, padding)
def test_weights_sum_to_one_over_exactly_the_allowed_keys(layer, num_tokens, padding):
    x, mask = random(2, num_tokens, 5), mask_of(padding, num_tokens)
    _, weights = layer(x, padding_mask=mask, need_weights=True)
    token = torch.arange(num_tokens)
    distance = token[:, None] - token
    allowed = (distance >= 0) & (distance < (layer.window or MAX_TOKENS))
    if mask is not None:
        allowed = allowed & mask[:, None, None]
    allowed = allowed.expand(weights.shape)
    assert torch.equal(weights > 0, allowed)
    has_key = allowed.any(dim=-1).double()  # a row without any is zero
    torch.testing.assert_close(weights.sum(dim=-1), has_key)


@everywhere
@given(layers(), num_tokens, padding, st.data())
def test_the_past_does_not_move_when_later_tokens_change(
    layer, num_tokens, padding, data
):
    x, mask = random(2, num_tokens, 5), mask_of(padding, num_tokens)
    changed, first = x.clone(), data.draw(st.integers(0, num_tokens - 1))
    changed[:, first:] = random(2, num_tokens - first, 5, seed=9)
    before, after = layer(x, padding_mask=mask), layer(changed, padding_mask=mask)
    torch.testing.assert_close(after[:, :first], before[:, :first])


@everywhere
@given(layers(), st.lists(st.integers(1, 3), min_size=1, max_size=3), padding)
def test_with_a_cache_the_outputs_are_the_same(layer, sizes, padding):
    num_tokens = sum(sizes)
    x, mask = random(2, num_tokens, 5), mask_of(padding, num_tokens)
    cache, outputs = layer.new_cache(num_tokens), []
    for piece in x.split(sizes, dim=1):
        stop = len(cache) + piece.shape[1]
        past = None if mask is None else mask[:, :stop]
        outputs.append(layer(piece, padding_mask=past, cache=cache))
    expected = layer(x, padding_mask=mask)
    torch.testing.assert_close(torch.cat(outputs, dim=1), expected, atol=1e-6, rtol=0)


@everywhere
@given(layers(), num_tokens, padding)
def test_shared_heads_equal_a_layer_that_repeats_them(layer, num_tokens, padding):
    head_width = WIDTH // layer.num_heads
    repeats = layer.W_query.out_features // layer.W_key.out_features
    state = layer.state_dict()
    for name in [name for name in state if name.startswith(("W_key", "W_value"))]:
        heads = state[name].unflatten(0, (-1, head_width))
        state[name] = heads.repeat_interleave(repeats, dim=0).flatten(0, 1)
    twin = MultiHeadAttention(
        *(5, WIDTH, MAX_TOKENS, 0.0, layer.num_heads),
        qkv_bias=layer.W_query.bias is not None,
        window=layer.window,
        rotary=layer.rotary,
        alibi=layer.alibi,
    ).double()
    twin.load_state_dict(state)
    x, mask = random(2, num_tokens, 5), mask_of(padding, num_tokens)
    torch.testing.assert_close(
        layer(x, padding_mask=mask), twin(x, padding_mask=mask), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("options", [{}, {"rotary": True}, {"alibi": True}], ids=str)
def test_autocast_computes_in_half_precision_what_float32_computes(
    options, is_compiled
):
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, WIDTH, MAX_TOKENS, 0.0, 6, num_kv_heads=2, **options)
    x, mask = (
        random(2, 7, 5, dtype=torch.float32),
        torch.arange(7) >= torch.tensor([[2], [0]]),
    )
    expected = layer(x, padding_mask=mask)
    torch.compiler.reset()  # PyTorch compiles a limited number of times
    run = (
        torch.compile(layer, fullgraph=True, backend="eager") if is_compiled else layer
    )
    with torch.autocast("cpu", torch.bfloat16):
        output = run(x, padding_mask=mask)
        cache = layer.new_cache(7)
        pieces = [layer(piece, cache=cache) for piece in x.split([4, 1, 2], dim=1)]
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected, atol=0.02, rtol=0.02)
    torch.testing.assert_close(
        torch.cat(pieces, 1).float(), layer(x), atol=0.02, rtol=0.02
    )
