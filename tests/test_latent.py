"""Latent attention, `utils.latent`."""

import pytest
import torch

from tests.small_layers import computed, random
from utils.latent import LatentAttention, absorbed_attention

KINDS = [
    {"latent_dim": 3},
    {"latent_dim": 1, "rotary": True, "rotary_dim": 4, "rope_base": 50.0},
    {"rotary": True},
]


def layer(**options):
    torch.manual_seed(0)
    built = LatentAttention(5, 24, 13, 0.0, 3, **options).double()
    torch.nn.init.normal_(built.norm.weight, std=1.0)
    return built


@pytest.mark.parametrize("absorbed", [True, False])
def test_latent_attention_is_that_of_deepseek_v3(absorbed):
    source = computed("latent")
    layer = LatentAttention(
        24, 24, 32, 0.0, 3, latent_dim=10, rotary=True, rotary_dim=4
    )
    down = source["kv_a_proj_with_mqa.weight"]  # the latent, then the rotated key
    up = source["kv_b_proj.weight"].view(3, 2, 8, 10)  # per head: its keys, its values
    weights = {
        "W_query.weight": source["q_proj.weight"],
        "W_latent.weight": down[:10],
        "W_rotary.weight": down[10:],
        "norm.weight": source["kv_a_layernorm.weight"],
        "W_up_key.weight": up[:, 0].flatten(0, 1),
        "W_up_value.weight": up[:, 1].flatten(0, 1),
        "out_proj.weight": source["o_proj.weight"],
        "out_proj.bias": torch.zeros(24),
    }
    layer.load_state_dict(weights)
    output = layer(source["x"], absorbed=absorbed)
    torch.testing.assert_close(output, source["output"], atol=1e-5, rtol=0)


def test_in_float16_scores_beyond_its_range_are_no_nan():
    sizes = (1, 2, 3, 8), (1, 2, 3, 4), (1, 5, 6), (1, 5, 4), (2, 6, 8), (2, 6, 8)
    inputs = [torch.full(size, 60.0) for size in sizes[:4]]
    inputs += [torch.ones(size) for size in sizes[4:]]
    expected = absorbed_attention(*inputs)
    output = absorbed_attention(*(t.half() for t in inputs))
    torch.testing.assert_close(output, expected.half())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_ways_give_the_same_with_weights_and_without(kind):
    real = torch.tensor([[False] * 3 + [True] * 4, [True] * 7])
    model, x, near = layer(**kind), random(2, 7, 5), {"atol": 1e-10, "rtol": 0}
    expected = model(x, real, need_weights=True, absorbed=True)
    twin = model(x, real, need_weights=True, absorbed=False)
    torch.testing.assert_close(twin, expected, **near)
    for absorbed in (True, False):
        alone = model(x, real, absorbed=absorbed)
        torch.testing.assert_close(alone, expected[0], **near)
