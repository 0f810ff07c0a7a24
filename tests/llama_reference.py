"""The tiny Llama of `data/`, made by the reference implementation.

    python -m tests.llama_reference [--write]

Hugging Face's `transformers` (`tests/gpt2.txt`) builds its Llama in three layers of
width 24, with four heads that share two of keys and values. It fills every weight with
random numbers from a seed, multiples of 1/512, which bfloat16 holds exactly: published
ones come in it, too. Then it computes the stream before and after each block and the
logits of two short texts. All of it is made anew and compared with what is stored;
`--write` stores it.
"""

import sys
from pathlib import Path

import torch

from tests.gpt2_reference import keep, main

STORED = Path(__file__).resolve().parents[1] / "data" / "tiny_llama"
SIZES = {
    "vocab_size": 128,
    "max_position_embeddings": 96,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
ROPE = {"rope_type": "default", "rope_theta": 500.0}
OPTIONS = {"rms_norm_eps": 1e-3, "rope_parameters": ROPE}


def make(folder):
    """Write the checkpoint into `folder`, and token ids with all that follows."""
    from transformers import LlamaConfig, LlamaForCausalLM

    ends = {"bos_token_id": 0, "eos_token_id": 0}
    model = LlamaForCausalLM(LlamaConfig(**SIZES, **OPTIONS, **ends))
    draw = torch.Generator().manual_seed(2023)
    with torch.no_grad():
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
    logits = model(token_ids).logits
    found = {"token_ids": token_ids, "logits": logits, "stream": torch.stack(stream)}
    keep({name: t.detach() for name, t in found.items()}, folder)


if __name__ == "__main__":
    sys.exit(main(make, STORED, "tests.llama_reference"))
