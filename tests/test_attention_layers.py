"""Each test pins one sentence about the layers of `utils.attention`."""

import pytest
import torch
import torch.nn.functional as F
from small_layers import Made, random
from torch import nn

from utils.attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
    masked_softmax,
    merge_heads,
    padding_mask,
    project_together,
    scaled_dot_product_attention,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, apply_rope


def grouped(num_kv_heads=2, **options):
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 24, 13, 0.0, 6, num_kv_heads=num_kv_heads, **options)
    return layer.double()


KINDS = [
    {},
    {"num_kv_heads": 6},
    {"rotary": True},
    {"alibi": True},
    {"window": 3},
    {"window": 4, "alibi": True, "num_kv_heads": 1},
]


def test_self_attention_equals_torch_on_its_projections():
    layer, x = SelfAttention(5, 7, qkv_bias=True).double(), random(2, 3, 11, 5)
    assert layer.W_query.bias is not None
    expected = F.scaled_dot_product_attention(
        layer.W_query(x), layer.W_key(x), layer.W_value(x)
    )
    torch.testing.assert_close(layer(x), expected)


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
    found = layer(x, context, padding, need_weights=True)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)


def test_the_mask_of_causal_attention_follows_the_module_and_is_not_saved():
    layer = CausalAttention(3, 2, 6, 0.0)
    assert layer.to("meta").mask.is_meta
    assert "mask" not in layer.state_dict()


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"alibi": True}, {"rotary": True}], ids=str)
def test_a_layer_keeps_the_precision_of_its_input(options, need_weights):
    layer, x = grouped(**options), random(2, 5, 5)
    output = layer.bfloat16()(x.bfloat16(), need_weights=need_weights)
    assert (output[0] if need_weights else output).dtype == torch.bfloat16


def test_the_weights_returned_are_those_used_after_dropout():
    inputs = [random(2, 5, 6, seed=seed) for seed in range(3)]
    output, weights = scaled_dot_product_attention(*inputs, dropout_p=0.5)
    assert (weights == 0).any()
    torch.testing.assert_close(output, weights @ inputs[2])


X, ONLY = random(2, 5, 5), "only with causal self-attention"


@pytest.mark.parametrize(
    "options, inputs, said",
    [
        ({"causal": False, "window": 3}, None, "window and alibi only with"),
        ({"causal": False, "alibi": True}, None, "window and alibi only with"),
        ({"causal": False}, {"cache": KeyValueCache(13)}, ONLY),
        ({}, {"context": X, "causal": True, "cache": KeyValueCache(13)}, ONLY),
        ({"window": 3}, {"cache": KeyValueCache(13)}, "with window=3, got None"),
        ({"causal": False}, {"context": X[0]}, r"\(B, T, 5\), got \(5, 5\)$"),
        ({"causal": False}, {"context": X[:, None]}, r"got \(2, 1, 5, 5\)$"),
        ({"causal": False}, {"context": X[..., :4]}, r"got \(2, 5, 4\)$"),
    ],
)
def test_what_a_layer_cannot_do_is_named(options, inputs, said):
    with pytest.raises(ValueError, match=said):
        grouped(**options)(X, **inputs)


def test_a_causal_layer_told_so_attends_to_the_past_of_a_context():
    layer, x = grouped(), random(2, 7, 5)
    torch.testing.assert_close(layer(x, context=x, causal=True), layer(x))
    _, weights = layer(x[:, 4:], context=x, causal=True, need_weights=True)
    assert torch.equal(weights > 0, causal_mask(7)[4:].expand(2, 6, 3, 7))


@pytest.mark.parametrize("bias", [False, True])
def test_layers_applied_as_one_product_give_what_each_of_them_gives(bias):
    x, layers = random(2, 7, 5), [nn.Linear(5, n, bias).double() for n in (24, 8, 6)]
    expected = torch.cat([layer(x) for layer in layers], dim=-1)
    torch.testing.assert_close(project_together(x, layers), expected)


def test_a_projection_with_a_hook_is_called_on_every_device():
    layer, widths = grouped().to("meta"), []
    layer.W_key.register_forward_hook(lambda *call: widths.append(call[2].shape[-1]))
    assert layer(X.to("meta")).shape == (2, 5, 24)
    assert widths == [8]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_compiles_into_one_graph_padded_or_not(kind, device):
    layer, x = grouped(**kind).to(device), random(3, 7, 5).to(device)
    padding = padding_mask([7, 4, 0], 7).to(device)
    torch.compiler.reset()  # of what other tests compiled, which counts to a limit
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for mask in (None, padding):
        found = compiled(x, padding_mask=mask)
        assert found.shape == (3, 7, 24)
        if device == "cpu":
            torch.testing.assert_close(found, layer(x, padding_mask=mask))


class LowRank(nn.Sequential):
    """A linear layer as the product of two narrow ones, with no `in_features`."""

    def __init__(self, d_in, rank, d_out):
        super().__init__(nn.Linear(d_in, rank, bias=False), nn.Linear(rank, d_out))


def test_projections_may_be_replaced():
    torch.manual_seed(0)
    layer = MultiHeadAttention(10, 10, 11, 0.0, num_heads=2).double()
    x = random(2, 7, 10)
    layer.W_query = layer.W_value = nn.Identity()
    layer.W_key = LowRank(10, 3, 10).double()
    heads = [split_heads(t, 2) for t in (x, layer.W_key(x), x)]
    expected = F.scaled_dot_product_attention(*heads, is_causal=True)
    torch.testing.assert_close(layer(x), layer.out_proj(merge_heads(expected)))


@pytest.mark.parametrize("kind", [*KINDS, {"rotary": True, "rope_base": 50.0}], ids=str)
def test_every_kind_follows_its_formula(kind):
    layer, x, places = grouped(**kind), random(2, 7, 5), torch.arange(7)
    query, key, value = (
        split_heads(W(x), W.out_features // 4)
        for W in (layer.W_query, layer.W_key, layer.W_value)
    )
    if "rotary" in kind:
        base = kind.get("rope_base", 10000.0)
        query, key = (apply_rope(t, places, base) for t in (query, key))
    key, value = (t.repeat_interleave(6 // t.shape[1], dim=1) for t in (key, value))
    scores = query @ key.mT / 2
    if "alibi" in kind:
        scores = scores + alibi_bias(6, 7)
    back = places[:, None] - places
    expected = masked_softmax(scores, (back >= 0) & (back < kind.get("window", 7)))
    output, weights = layer(x, need_weights=True)
    near = 1e-6 if "rotary" in kind else 1e-10  # a layer's angles are float32
    torch.testing.assert_close(weights, expected, atol=near, rtol=0)
    by_hand = layer.out_proj(merge_heads(expected @ value))
    torch.testing.assert_close(output, by_hand, atol=near, rtol=0)


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
