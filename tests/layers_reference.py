"""Layers of today's models, computed by the reference implementation.

    python -m tests.layers_reference [--write]

Hugging Face's `transformers` (`tests/gpt2.txt`) builds the attention of DeepSeek-V3 in
a small size, with random weights from a seed, and computes its output; and its gated
delta rule of Qwen3-Next, in chunks and token by token. All of it is made anew and
compared with `data/tiny_layers`; `--write` stores it.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.gpt2_reference import main

STORED = Path(__file__).resolve().parents[1] / "data" / "tiny_layers"
SIZES = {
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "q_lora_rank": None,
    "kv_lora_rank": 10,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "max_position_embeddings": 32,
}


def latent(draw):
    """Return weights, input and output of DeepSeek-V3's attention."""
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    config = DeepseekV3Config(**SIZES, num_hidden_layers=1)
    config._attn_implementation = "eager"
    layer = deepseek.DeepseekV3Attention(config, layer_idx=0).eval()
    for parameter in layer.parameters():
        parameter.data.normal_(std=0.4, generator=draw)
    x = torch.randn(2, 7, 24, generator=draw)
    places = torch.arange(7)[None]
    turns = deepseek.DeepseekV3RotaryEmbedding(config)(x, places)
    future = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    with torch.no_grad():
        output, _ = layer(x, position_embeddings=turns, attention_mask=future)
    found = {f"latent.{name}": t for name, t in layer.state_dict().items()}
    return found | {"latent.x": x, "latent.output": output}


def delta(draw):
    """Return inputs and outputs of Qwen3-Next's gated delta rule, (B, T, H, width)."""
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    query, key = (torch.randn(2, 13, 3, 8, generator=draw) for _ in range(2))
    value = torch.randn(2, 13, 3, 5, generator=draw)
    beta = torch.rand(2, 13, 3, generator=draw)
    log_gate = -torch.rand(2, 13, 3, generator=draw)
    parts = {"query": query, "key": key, "value": value}
    parts |= {"beta": beta, "log_gate": log_gate}
    call = query, key, value, log_gate, beta
    short = {"use_qk_l2norm_in_kernel": True, "output_final_state": True}
    chunks, state = qwen.torch_chunk_gated_delta_rule(*call, chunk_size=4, **short)
    loop, _ = qwen.torch_recurrent_gated_delta_rule(*call, initial_state=None, **short)
    torch.testing.assert_close(chunks, loop, atol=1e-5, rtol=0)
    parts |= {"output": chunks, "state": state}
    return {f"delta.{name}": t for name, t in parts.items()}


def make(folder):
    """Write both into `folder`."""
    draw = torch.Generator().manual_seed(2024)
    found = latent(draw) | delta(draw)
    found = {name: t.detach().contiguous() for name, t in found.items()}
    save_file(found, folder / "reference.safetensors")


if __name__ == "__main__":
    sys.exit(main(make, STORED, "tests.layers_reference"))
