"""Our layers against what the reference implementation has computed.

`tests/layers_reference.py` says how the numbers were made.
"""

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from utils.delta import attend_in_chunks, delta_rule
from utils.files import DATA
from utils.latent import LatentAttention

STORED = load_file(DATA / "tiny_layers" / "reference.safetensors")


def part(name):
    return {
        n.removeprefix(f"{name}."): t for n, t in STORED.items() if n.startswith(name)
    }


@pytest.mark.parametrize("absorbed", [True, False])
def test_latent_attention_is_that_of_deepseek_v3(absorbed):
    given = part("latent")
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


@pytest.mark.parametrize("chunk_size", [1, 5, 64])
def test_the_gated_delta_rule_is_that_of_qwen3_next(chunk_size):
    given = part("delta")
    query, key, value = (
        given[n].transpose(1, 2) for n in ("query", "key", "value")
    )  # (B, H, T, width)
    query, key = F.normalize(query, dim=-1) / 8**0.5, F.normalize(key, dim=-1)
    beta, log_gate = given["beta"].mT, given["log_gate"].mT
    output, state = attend_in_chunks(
        query, key, value, beta, log_gate, chunk_size=chunk_size
    )
    expected = given["output"].transpose(1, 2)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(state, given["state"], atol=1e-5, rtol=0)
    by_token = delta_rule(query, key, value, beta, log_gate)
    torch.testing.assert_close(by_token, expected, atol=1e-5, rtol=0)
