"""Each test pins one sentence about `utils.latent`."""

import pytest
import torch
from small_layers import Made, computed, random

from utils.attention import (
    causal_mask,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import apply_rope
from utils.latent import (
    LatentAttention,
    absorbed_attention,
    absorbed_scores,
    latent_keys_values,
)

KINDS = [
    {},
    {"rotary": True},
    {"latent_dim": 3},
    {"latent_dim": 1, "rotary": True, "rotary_dim": 4, "rope_base": 50.0},
    {"qkv_bias": True, "rotary": True},
]


def layer(num_heads=3, dropout=0.0, **options):
    torch.manual_seed(0)
    built = LatentAttention(5, 24, 13, dropout, num_heads, **options).double()
    torch.nn.init.normal_(built.norm.weight, std=1.0)
    return built


@pytest.mark.parametrize("absorbed", [True, False])
def test_latent_attention_is_that_of_deepseek_v3(absorbed):
    given = computed("latent")
    layer = LatentAttention(
        24, 24, 32, 0.0, 3, latent_dim=10, rotary=True, rotary_dim=4
    )
    down = given["kv_a_proj_with_mqa.weight"]  # the latent, then the rotated key
    up = given["kv_b_proj.weight"].view(3, 2, 8, 10)  # per head: its keys, its values
    weights = {
        "W_query.weight": given["q_proj.weight"],
        "W_latent.weight": down[:10],
        "W_rotary.weight": down[10:],
        "norm.weight": given["kv_a_layernorm.weight"],
        "W_up_key.weight": up[:, 0].flatten(0, 1),
        "W_up_value.weight": up[:, 1].flatten(0, 1),
        "out_proj.weight": given["o_proj.weight"],
        "out_proj.bias": torch.zeros(24),
    }
    layer.load_state_dict(weights)
    output = layer(given["x"], absorbed=absorbed)
    torch.testing.assert_close(output, given["output"], atol=1e-5, rtol=0)


def step(turned_query, turned_key, W_uv, said):
    sizes = [(2, 3, 1, 11), turned_query, (2, 7, 5), turned_key, (3, 5, 11), W_uv]
    return absorbed_attention, sizes, said


@pytest.mark.parametrize(
    "function, sizes, said",
    [
        (latent_keys_values, [(7, 5), (3, 5, 11), (3, 5, 13)], r"\(B, S, R\), got \(7"),
        (latent_keys_values, [(2, 7, 4), (3, 5, 11), (3, 5, 13)], r"W_uk \(H, 4, w"),
        (latent_keys_values, [(2, 7, 5), (3, 5, 11), (5, 13)], r"W_uv \(H, 5, width\)"),
        (absorbed_scores, [(2, 4, 1, 11), (2, 7, 5), (3, 5, 11)], r"3, 1, 11\), got"),
        (absorbed_scores, [(4, 3, 1, 11), (2, 7, 5), (3, 5, 11)], r"3, 1, 11\), got"),
        step((2, 3, 4), (2, 7, 4), (3, 5, 13), r"turned_query \(2, 3, 1, 4\), got"),
        step((2, 3, 1, 4), (2, 7, 6), (3, 5, 13), r"turned_key \(2, 7, 4\), got"),
        step((2, 3, 1, 4), (2, 7, 4), (4, 5, 13), r"W_uv \(3, 5, 13\), got \(4"),
    ],
)
def test_shapes_that_do_not_fit_are_named(function, sizes, said):
    with pytest.raises(ValueError, match=said):
        function(*map(torch.zeros, sizes))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("padded", [True, False])
def test_both_ways_give_the_same_with_weights_and_without(kind, padded):
    real = torch.tensor([[False] * 3 + [True] * 4, [True] * 7]) if padded else None
    for dtype, near in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        model, x = layer(**kind).to(dtype), random(2, 7, 5, dtype=dtype)
        near = {"atol": near, "rtol": 0}
        output, weights = model(x, real, need_weights=True, absorbed=True)
        twin = model(x, real, need_weights=True, absorbed=False)
        torch.testing.assert_close((output, weights), twin, **near)
        for absorbed in (True, False):
            alone = model(x, real, absorbed=absorbed)
            torch.testing.assert_close(alone, output, **near)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_ways_go_on_from_a_cache_that_holds_latents_alone(kind):
    model, x = layer(**kind), random(2, 13, 5)
    for way in (True, False):
        cache = model.new_cache(13)
        parts = [model(p, cache=cache, absorbed=way) for p in x.split((5, 1, 7), 1)]
        torch.testing.assert_close(torch.cat(parts, 1), model(x), atol=1e-10, rtol=0)
        kept = cache.key.shape, cache.value.shape
        assert kept == ((2, 1, 13, model.latent_dim), (2, 1, 13, model.rotary_dim))
    with pytest.raises(ValueError, match="window=None, got 3"):
        model(x, cache=KeyValueCache(13, 3))


def test_the_layer_is_attention_with_a_part_that_is_rotated_and_one_that_is_not():
    model, x = layer(rotary=True, rope_base=50.0), random(2, 7, 5)
    query, turned = split_heads(model.W_query(x), 3).split((8, 4), dim=-1)
    latent, places = model.norm(model.W_latent(x)), torch.arange(7)
    keys, values = latent_keys_values(latent, *model.up_matrices())
    turned_key = apply_rope(model.W_rotary(x), places, 50.0)[:, None]
    query = torch.cat((query, apply_rope(turned, places, 50.0)), dim=-1)
    keys = torch.cat((keys, turned_key.expand(-1, 3, -1, -1)), dim=-1)
    _, expected = scaled_dot_product_attention(query, keys, values, causal_mask(7))
    _, weights = model(x, need_weights=True)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)


def test_one_new_token_makes_no_keys():
    """The absorbed way is taken where it needs fewer multiplications."""
    model, x = layer(latent_dim=6, num_heads=3), random(1, 12, 5)
    cache = model.new_cache(13)
    model(x, cache=cache)
    with Made() as seen:
        model(random(1, 1, 5), cache=cache)
    assert not any(t.shape == (1, 3, 13, 8) for t in seen.tensors)
    with Made() as seen:
        model(x)
    assert any(t.shape == (1, 3, 12, 8) for t in seen.tensors)


def test_one_new_token_is_a_step_of_absorbed_attention():
    model, x = layer(rotary=True, rope_base=50.0), random(2, 12, 5)
    cache, places = model.new_cache(12), torch.arange(12)
    model(x[:, :-1], cache=cache)
    query, turned = split_heads(model.W_query(x[:, -1:]), 3).split((8, 4), dim=-1)
    turned = apply_rope(turned, places[-1:], 50.0)
    turned_key = apply_rope(model.W_rotary(x), places, 50.0)
    kept = model.norm(model.W_latent(x)), turned_key, *model.up_matrices()
    output = model.out_proj(merge_heads(absorbed_attention(query, turned, *kept)))
    expected = model(x[:, -1:], cache=cache, absorbed=False)
    torch.testing.assert_close(output, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"latent_dim": 0}, "latent_dim of 1 or more, got 0"),
        ({"rotary": True, "rotary_dim": 3}, "an even width"),
    ],
)
def test_a_layer_that_cannot_be_built_is_named(options, said):
    with pytest.raises(ValueError, match=said):
        layer(**options)
