"""Make the reference results that the course is compared with.

    pip install transformers==5.23.0
    python data/make_references.py FOLDER

writes `tiny_gpt2`, `tiny_llama` and `tiny_layers` into FOLDER. Hugging Face's
`transformers` builds small models from a seed and computes with them. Biases and norms
are random, too, so that a test notices if one is left out.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

FILES = "config.json", "model.safetensors", "reference.safetensors"
ENDS = {"bos_token_id": 0, "eos_token_id": 0}
GPT2 = {"vocab_size": 128, "n_positions": 96, "n_embd": 16, "n_layer": 2, "n_head": 2}
LLAMA = {
    "vocab_size": 128,
    "max_position_embeddings": 96,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
}
# Of the three rotary pairs, one keeps its frequency and two are slowed down.
LLAMA3 = LLAMA["rope_parameters"] | {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 0.5,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 48,
}
LATENT = {
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


def gpt2(folder):
    """Write GPT-2 with two layers; return the logits of two short texts."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(**GPT2, **ENDS, layer_norm_epsilon=1e-3)
    model = GPT2LMHeadModel(config).eval()
    draw = torch.Generator().manual_seed(2019)
    for name, parameter in model.named_parameters():
        parameter.normal_(std=0.4, generator=draw)
        if "ln_" in name and name.endswith("weight"):
            parameter.add_(1)
    token_ids = torch.randint(128, (2, 17), generator=draw)
    model.save_pretrained(folder)
    return {"token_ids": token_ids, "logits": model(token_ids).logits}


def llama(folder):
    """Write a Llama with three layers; return the logits and more of two short texts.

    Its weights are multiples of 1/512, which bfloat16, the type of published files,
    stores exactly. The stream is that before and after each block. The other logits are
    those with the frequencies of Llama 3.1.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**LLAMA, **ENDS))
    draw = torch.Generator().manual_seed(2023)
    for name, parameter in model.named_parameters():
        steps = torch.randint(-64, 65, parameter.shape, generator=draw)
        writes = any(part in name for part in ("o_proj", "down_proj", "lm_head"))
        parameter.copy_(steps / (512 if writes else 128) + ("norm" in name))
    model.bfloat16().save_pretrained(folder)
    # Read back: bfloat16() has rounded the speeds of rotation as well.
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    token_ids = torch.randint(128, (2, 17), generator=draw)
    stream = [model.model.embed_tokens(token_ids)]
    for layer in model.model.layers:
        layer.register_forward_hook(lambda *call: stream.append(call[-1]))
    result = {"token_ids": token_ids, "logits": model(token_ids).logits}
    result["stream"] = torch.stack(stream)
    config = LlamaConfig.from_pretrained(folder, rope_parameters=LLAMA3)
    options = {"config": config, "dtype": torch.float32}
    model = LlamaForCausalLM.from_pretrained(folder, **options).eval()
    return result | {"llama3.logits": model(token_ids).logits}


def layers(folder):
    """Return what two layers of today compute; there is no checkpoint."""
    draw = torch.Generator().manual_seed(2024)
    return latent(draw) | delta(draw)


def latent(draw):
    """Return weights, input and output of DeepSeek-V3's attention."""
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    config = DeepseekV3Config(**LATENT, num_hidden_layers=1)
    config._attn_implementation = "eager"
    layer = deepseek.DeepseekV3Attention(config, layer_idx=0).eval()
    for parameter in layer.parameters():
        parameter.data.normal_(std=0.4, generator=draw)
    x = torch.randn(2, 7, 24, generator=draw)
    turns = deepseek.DeepseekV3RotaryEmbedding(config)(x, torch.arange(7)[None])
    future = torch.full((7, 7), -torch.inf).triu(1)[None, None]
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
    call = query, key, value, log_gate, beta
    short = {"use_qk_l2norm_in_kernel": True, "output_final_state": True}
    chunks, state = qwen.torch_chunk_gated_delta_rule(*call, chunk_size=4, **short)
    loop, _ = qwen.torch_recurrent_gated_delta_rule(*call, initial_state=None, **short)
    torch.testing.assert_close(chunks, loop, atol=1e-5, rtol=0)
    names = "query", "key", "value", "log_gate", "beta", "output", "state"
    return {f"delta.{name}": t for name, t in zip(names, (*call, chunks, state))}


@torch.no_grad()
def main():
    """Write each reference into a folder of its name, and nothing else."""
    for name, make in {"gpt2": gpt2, "llama": llama, "layers": layers}.items():
        folder = Path(sys.argv[1], f"tiny_{name}")
        folder.mkdir(parents=True)
        tensors = {n: t.contiguous() for n, t in make(folder).items()}
        save_file(tensors, folder / FILES[2])
        for path in folder.iterdir():
            if path.name not in FILES:
                path.unlink()


if __name__ == "__main__":
    main()
