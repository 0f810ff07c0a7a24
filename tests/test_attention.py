"""Functions and layers of `utils.attention`."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.small_layers import everywhere, random
from utils.attention import (
    MultiHeadAttention,
    attention_weights,
    context_vectors,
    dropout,
    masked_softmax,
    merge_heads,
    online_softmax_attention,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from utils.delta import DeltaAttention
from utils.embeddings import apply_rope

# ---- functions --------------------------------------------------------------------


@everywhere
@given(st.sampled_from([(), (2,), (2, 3)]), st.integers(1, 9), st.booleans())
def test_attention_equals_torch_in_values_and_gradients(leading, slice_size, masked):
    """T = 5 queries, S = 7 keys, d_k = 11, d_v = 13."""
    sizes = [(5, 11), (7, 11), (7, 13)]
    inputs = [random(*leading, *size, seed=i) for i, size in enumerate(sizes)]
    inputs = [x.requires_grad_() for x in inputs]
    mask = random(*leading[:1], 1, 5, 7, seed=4) > 0 if masked and leading else None
    if mask is not None:
        mask[..., 0] = True  # PyTorch leaves open what a row without any key returns
        mask = mask if len(leading) == 2 else mask[:, 0]
    expected = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    outputs = [scaled_dot_product_attention(*inputs, mask)[0]]
    if mask is None:
        outputs.append(online_softmax_attention(*inputs, slice_size))
    gradients = torch.autograd.grad(expected.square().sum(), inputs)
    for output in outputs:
        torch.testing.assert_close(output, expected)
        actual = torch.autograd.grad(output.square().sum(), inputs)
        torch.testing.assert_close(actual, gradients)


def test_integers_do_not_wrap_around():
    for dtype, x in ((torch.uint8, [0, 255]), (torch.int16, [-30_000, 30_000])):
        assert softmax(torch.tensor(x, dtype=dtype)).tolist() == [0, 1]
    assert padding_mask(torch.tensor([50], dtype=torch.uint8), 300).sum() == 50
    assert padding_mask(torch.tensor([100], dtype=torch.int8), 200).sum() == 100


def test_in_float16_scores_beyond_its_range_are_no_nan():
    """The products of queries and keys are 230,400; float16 ends at 65,504."""
    assert softmax(torch.zeros(70_000).half()).float().sum() > 0.99
    assert context_vectors(torch.full((5, 64), 60.0).half()).eq(60).all()
    inputs = torch.full((3, 5, 64), 60.0, dtype=torch.float16)
    inputs[2] = random(5, 64, dtype=torch.float16)
    expected = F.scaled_dot_product_attention(*inputs)
    output, weights = scaled_dot_product_attention(*inputs)
    assert weights.dtype == output.dtype == torch.float16
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(online_softmax_attention(*inputs, 2), expected)
    layer = MultiHeadAttention(64, 64, 8, 0.0, 4).half()
    x = 400 * random(2, 8, 64, dtype=torch.float16)
    output = layer(x, need_weights=True)[0]
    torch.testing.assert_close(output, layer(x), atol=0.5, rtol=0.01)


def test_in_bfloat16_scores_are_not_rounded():
    """Sums over 600 keys, as exact as PyTorch's own kernel."""
    inputs = random(3, 600, 64, dtype=torch.bfloat16).unbind()
    expected = F.scaled_dot_product_attention(*(t.float() for t in inputs))
    output = scaled_dot_product_attention(*inputs)[0]
    for actual in (output, online_softmax_attention(*inputs, slice_size=16)):
        torch.testing.assert_close(actual.float(), expected, atol=0.02, rtol=0)


@pytest.mark.parametrize("num_kv_heads", [2, 6])
@pytest.mark.parametrize("need_weights", [False, True])
def test_no_tokens_and_no_keys_give_nothing_and_zeros(num_kv_heads, need_weights):
    assert padding_mask([], 3).shape == (0, 3)
    assert attention_weights(torch.ones(2, 0, 5)).shape == (2, 0, 0)
    output = grouped(num_kv_heads)(CONTEXT[:, :0], need_weights=need_weights)
    shapes = [t.shape for t in output] if need_weights else [output.shape]
    assert shapes == [(2, 0, 24), (2, 6, 0, 0)][: len(shapes)]
    assert DeltaAttention(5, 8, 6, 0.0, 2)(torch.ones(2, 0, 5)).shape == (2, 0, 8)
    inputs = torch.ones(3, 2), torch.ones(4, 0, 2), torch.ones(4, 0, 5)
    assert online_softmax_attention(*inputs, 2).equal(torch.zeros(4, 3, 5))


@pytest.mark.parametrize("scores", [[-1, -1, 2, 3], [3, -1, -1, 2]])
def test_a_slice_of_scores_at_minus_infinity_counts_for_nothing(scores):
    scores = torch.tensor(scores, dtype=torch.float32)
    key = scores.masked_fill(scores < 0, -torch.inf)[:, None]
    inputs = torch.ones(1, 1), key, random(4, 3, dtype=torch.float32)
    expected = scaled_dot_product_attention(*inputs)[0]
    output = online_softmax_attention(*inputs, slice_size=2)
    torch.testing.assert_close(output, expected)


def test_the_weights_returned_are_those_used_after_dropout():
    inputs = [random(2, 5, 6, seed=seed) for seed in range(3)]
    output, weights = scaled_dot_product_attention(*inputs, dropout_p=0.5)
    assert (weights == 0).any()
    torch.testing.assert_close(output, weights @ inputs[2])


# ---- layers -----------------------------------------------------------------------


def test_cross_attention_equals_torch_with_a_padded_context():
    torch.manual_seed(0)
    layer = MultiHeadAttention(10, 10, 5, 0.0, num_heads=2, causal=False).double()
    twin = nn.MultiheadAttention(10, num_heads=2, batch_first=True).double()
    projections = layer.W_query.weight, layer.W_key.weight, layer.W_value.weight
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat(projections))
    twin.out_proj.load_state_dict(layer.out_proj.state_dict())
    x, context = random(3, 5, 10), random(3, 7, 10, seed=1)
    padding = padding_mask([7, 4, 1], 7)
    # In nn.MultiheadAttention True means "may not attend".
    options = {"key_padding_mask": ~padding, "average_attn_weights": False}
    expected = twin(x, context, context, **options)
    actual = layer(x, context, padding, need_weights=True)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def grouped(num_kv_heads=2, **options):
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 24, 13, 0.0, 6, num_kv_heads=num_kv_heads, **options)
    return layer.double()


CONTEXT = random(2, 5, 5)


def test_one_product_for_all_projections_leaves_out_no_bias_hook_or_own_forward():
    """On a GPU; the device `meta`, too, isn't the CPU."""
    layer = MultiHeadAttention(10, 10, 11, 0.0, num_heads=2, qkv_bias=True).to("meta")
    x, calls = torch.empty(2, 7, 10, device="meta"), []
    layer.W_key = nn.Linear(10, 10, bias=False, device="meta")
    assert layer(x).shape == x.shape
    layer.W_key = nn.Linear(10, 10, device="meta")
    for hook in ("register_forward_hook", "register_forward_pre_hook"):
        getattr(layer.W_key, hook)(lambda *parts: calls.append(parts))
    layer(x)
    assert len(calls) == 2

    class Counted(nn.Linear):
        def forward(self, x):
            calls.append(x)
            return super().forward(x)

    layer.W_key = Counted(10, 10, device="meta")
    layer(x)
    assert len(calls) == 3


# ---- MultiHeadAttention in every combination of its options -------------------------

WIDTH, MAX_TOKENS = 24, 9


@st.composite
def layers(draw, causal=None):
    """Draw a layer (B, T, 5) -> (B, T, 24) that computes in float64."""
    num_heads = draw(st.sampled_from([1, 2, 6]))
    divisors = [n for n in (1, 2, 3, 6) if num_heads % n == 0]
    options = {
        "num_kv_heads": draw(st.sampled_from(divisors)),
        "causal": draw(st.booleans()) if causal is None else causal,
        "qkv_bias": draw(st.booleans()),
        "rotary": draw(st.booleans()),
    }
    if options["causal"]:
        options["window"] = draw(st.none() | st.integers(1, MAX_TOKENS + 1))
    torch.manual_seed(0)
    return MultiHeadAttention(5, WIDTH, MAX_TOKENS, 0.0, num_heads, **options).double()


num_tokens = st.integers(1, MAX_TOKENS)
# Which of up to nine tokens of two sentences are real: padding anywhere.
padding = st.none() | st.lists(st.booleans(), min_size=18, max_size=18)


def mask_of(padding, num_tokens):
    return padding and torch.tensor(padding).view(2, MAX_TOKENS)[:, :num_tokens]


@everywhere
@given(layers(), num_tokens, padding)
def test_a_layer_follows_its_formula(layer, num_tokens, padding):
    x, mask = random(2, num_tokens, 5), mask_of(padding, num_tokens)
    position, num_heads = torch.arange(num_tokens), layer.num_heads
    query, key, value = (
        split_heads(W(x), W.out_features * num_heads // WIDTH)
        for W in (layer.W_query, layer.W_key, layer.W_value)
    )
    if layer.rotary:
        query, key = (apply_rope(t, position) for t in (query, key))
    repeats = num_heads // key.shape[1]
    key, value = (t.repeat_interleave(repeats, dim=1) for t in (key, value))
    scores = query @ key.mT / (WIDTH // num_heads) ** 0.5
    distance = position[:, None] - position
    allowed = (distance >= 0) & (distance < (layer.window or MAX_TOKENS))
    if not layer.causal:
        allowed = scores.isfinite()
    if mask is not None:
        allowed = allowed & mask[:, None, None]
    weights = masked_softmax(scores, allowed)  # a row without any key is zero
    output = layer.out_proj(merge_heads(weights @ value))
    near = {"atol": 1e-6 if layer.rotary else 1e-10, "rtol": 0}  # float32 angles
    actual = layer(x, padding_mask=mask, need_weights=True)
    torch.testing.assert_close(actual, (output, weights), **near)
    torch.testing.assert_close(layer(x, padding_mask=mask), output, **near)


@pytest.mark.parametrize("rotary", [False, True])
def test_a_layer_compiles_into_one_graph_padded_or_not(rotary):
    layer, x = grouped(rotary=rotary), random(3, 7, 5)
    torch.compiler.reset()  # there is a limit, and other tests compile, too
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for mask in (None, padding_mask([7, 4, 0], 7)):
        actual = compiled(x, padding_mask=mask)
        torch.testing.assert_close(actual, layer(x, padding_mask=mask))


def test_half_precision_drops_the_share_that_was_asked_for():
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(10**6, dtype=torch.bfloat16), 0.001) == 0).sum()
    assert 800 < dropped < 1200
