"""Each test pins one sentence about `utils.latent`."""

from functools import partial

import pytest
import torch
from small_layers import leak_test, random

from utils.attention import (
    causal_mask,
    scaled_dot_product_attention,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import apply_rope
from utils.latent import LatentAttention, absorbed_scores, latent_keys_values
from utils.model import GPT, generate

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


def made(B=2, S=7, R=5, H=3, K=11, V=13):
    parts = random(B, S, R), random(H, R, K, seed=1), random(H, R, V, seed=2)
    return parts, random(B, H, 2, K, seed=3)


def test_keys_and_values_are_those_of_each_head_and_sample_alone():
    (latent, W_uk, W_uv), _ = made()
    keys, values = latent_keys_values(latent, W_uk, W_uv)
    for b in range(2):
        for h in range(3):
            torch.testing.assert_close(keys[b, h], latent[b] @ W_uk[h])
            torch.testing.assert_close(values[b, h], latent[b] @ W_uv[h])


def test_absorbed_scores_are_those_of_the_keys():
    (latent, W_uk, W_uv), query = made()
    keys, _ = latent_keys_values(latent, W_uk, W_uv)
    torch.testing.assert_close(
        absorbed_scores(query, latent, W_uk), query @ keys.mT, atol=1e-10, rtol=0
    )


@pytest.mark.parametrize(
    "sizes, said",
    [
        (((7, 5), (3, 5, 11), (3, 5, 13)), r"latents \(B, S, R\), got \(7, 5\)"),
        (
            ((2, 7, 4), (3, 5, 11), (3, 5, 13)),
            r"W_uk \(H, 4, width\), got \(3, 5, 11\)",
        ),
        (((2, 7, 5), (3, 5, 11), (5, 13)), r"W_uv \(H, 5, width\), got \(5, 13\)"),
    ],
)
def test_latents_and_matrices_that_do_not_fit_are_named(sizes, said):
    with pytest.raises(ValueError, match=said):
        latent_keys_values(*(torch.zeros(size) for size in sizes))


def test_a_query_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"query \(B, 3, T, 11\), got \(2, 4, 1, 11\)"):
        absorbed_scores(
            torch.zeros(2, 4, 1, 11), torch.zeros(2, 7, 5), torch.zeros(3, 5, 11)
        )


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(2, 7), (1, 1), (3, 13)], ids=str)
def test_both_ways_give_the_same(kind, need_weights, shape):
    for dtype, near in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        model, x = layer(**kind).to(dtype), random(*shape, 5, dtype=dtype)
        found = [model(x, None, need_weights, absorbed=way) for way in (True, False)]
        torch.testing.assert_close(*found, atol=near, rtol=0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("absorbed", [True, False])
def test_weights_and_the_fused_way_give_the_same(kind, absorbed):
    model, x = layer(**kind), random(2, 7, 5)
    output, weights = model(x, need_weights=True, absorbed=absorbed)
    torch.testing.assert_close(model(x, absorbed=absorbed), output)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 7).double())


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


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("absorbed", [True, False, None])
@pytest.mark.parametrize("changed", [3, 6])
def test_the_past_does_not_move_when_a_later_token_changes(kind, absorbed, changed):
    model, x = layer(**kind), random(2, 7, 5)
    other = x.clone()
    other[:, changed] = random(2, 5, seed=9)
    before, after = (model(t, absorbed=absorbed) for t in (x, other))
    torch.testing.assert_close(after[:, :changed], before[:, :changed])
    assert not torch.allclose(after[:, changed], before[:, changed])


@pytest.mark.parametrize("absorbed", [True, False])
def test_the_leak_test_of_05_finds_nothing(absorbed):
    model = layer(rotary=True)
    model.forward = partial(model.forward, absorbed=absorbed)
    assert leak_test()(model, random(2, 7, 5)) < 1e-12


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("absorbed", [True, False, None])
@pytest.mark.parametrize("pieces", [(1,) * 13, (5, 1, 7), (13,)])
def test_a_cache_of_latents_changes_nothing(kind, absorbed, pieces):
    model, x = layer(**kind), random(2, 13, 5)
    cache = model.new_cache(13)
    outputs = [model(p, cache=cache, absorbed=absorbed) for p in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(outputs, 1), model(x), atol=1e-10, rtol=0)
    kept = cache.key.shape, cache.value.shape
    assert kept == ((2, 1, 13, model.latent_dim), (2, 1, 13, model.rotary_dim))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("absorbed", [True, False])
def test_what_is_padded_on_the_left_comes_out_as_alone(kind, absorbed):
    model, x = layer(**kind), random(2, 7, 5)
    real = torch.tensor([[False] * 3 + [True] * 4, [True] * 7])
    output = model(x, padding_mask=real, absorbed=absorbed)
    torch.testing.assert_close(output[0, 3:], model(x[:1, 3:])[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output[1], model(x[1:])[0])
    assert output.isfinite().all()


def test_one_new_token_makes_no_keys():
    """The absorbed way is taken where it needs fewer multiplications."""
    from small_layers import Made

    model, x = layer(latent_dim=6, num_heads=3), random(1, 12, 5)
    cache = model.new_cache(13)
    model(x, cache=cache)
    with Made() as seen:
        model(random(1, 1, 5), cache=cache)
    assert not any(t.shape == (1, 3, 13, 8) for t in seen.tensors)
    with Made() as seen:
        model(x)
    assert any(t.shape == (1, 3, 12, 8) for t in seen.tensors)


def test_dropout_acts_in_training_alone():
    model, x = layer(dropout=0.5), random(2, 7, 5)
    for absorbed in (True, False):
        model.train()
        assert not torch.equal(model(x, absorbed=absorbed), model(x, absorbed=absorbed))
        model.eval()
        assert torch.equal(model(x, absorbed=absorbed), model(x, absorbed=absorbed))


@pytest.mark.parametrize(
    "x, options, said",
    [
        (torch.zeros(2, 7, 4), {}, r"x \(B, T, 5\), got \(2, 7, 4\)"),
        (torch.zeros(7, 5), {}, r"x \(B, T, 5\), got \(7, 5\)"),
        (torch.zeros(2, 14, 5), {}, "context_length = 13 tokens, got 14"),
        (torch.zeros(2, 7, 5), {"cache": KeyValueCache(7, 3)}, "window=None, got 3"),
        (torch.zeros(2, 7, 5), {"padding_mask": torch.ones(2, 7)}, "boolean padding"),
    ],
)
def test_what_a_layer_cannot_read_is_named(x, options, said):
    with pytest.raises(ValueError, match=said):
        layer()(x.double(), **options)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"num_heads": 7}, "width 24 and 7 heads"),
        ({"latent_dim": 0}, "latent_dim of 1 or more, got 0"),
        ({"rotary": True, "rotary_dim": 3}, "an even width"),
    ],
)
def test_a_layer_that_cannot_be_built_is_named(options, said):
    with pytest.raises(ValueError, match=said):
        layer(**options)


@pytest.mark.parametrize("positions", ["rotary", "learned", "none"])
def test_a_gpt_writes_the_same_with_its_caches_and_without(positions):
    torch.manual_seed(0)
    options = {"positions": positions, "attention": LatentAttention, "latent_dim": 7}
    model = GPT(53, 13, d_model=24, num_heads=6, num_layers=2, **options).eval()
    ids = torch.randint(53, (2, 5), generator=torch.Generator().manual_seed(1))
    real = torch.tensor([[False] * 2 + [True] * 3, [True] * 5])
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(5)
        options = {"padding_mask": real, "use_cache": use_cache}
        texts.append(generate(model, ids, 12, **options))  # beyond its context, too
    assert torch.equal(*texts)
