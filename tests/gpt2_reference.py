"""The tiny GPT-2 of `data/`, made by the reference implementation.

    python -m tests.gpt2_reference [--write]

Hugging Face's `transformers` (`tests/gpt2.txt`) builds its GPT-2 in two layers of width
16, fills every weight with random numbers from a seed, biases and norms too, so that
none can be mixed up or left out unseen, and computes the logits of two short texts.
All of it is made anew and compared with what is stored; `--write` stores it.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

STORED = Path(__file__).resolve().parents[1] / "data" / "tiny_gpt2"
FILES = "config.json", "model.safetensors", "reference.safetensors"
SIZES = {"vocab_size": 128, "n_positions": 96, "n_embd": 16, "n_layer": 2, "n_head": 2}


def make(folder):
    """Write the checkpoint into `folder`, and token ids with their logits."""
    from transformers import GPT2Config, GPT2LMHeadModel

    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(**SIZES, **ends, layer_norm_epsilon=1e-3)
    model = GPT2LMHeadModel(config).eval()
    draw = torch.Generator().manual_seed(2019)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=0.4, generator=draw)
            if "ln_" in name and name.endswith("weight"):
                parameter.add_(1)
        token_ids = torch.randint(128, (2, 17), generator=draw)
        logits = model(token_ids).logits
    model.save_pretrained(folder)
    keep({"token_ids": token_ids, "logits": logits}, folder)


def keep(reference, folder):
    """Write tensors beside a checkpoint; remove what isn't stored with them."""
    save_file(reference, folder / FILES[2])
    for path in folder.iterdir():
        if path.name not in FILES:
            path.unlink()


def compare(made, stored):
    """Compare what two folders hold; return the number of tensors."""
    count = 0
    for path in sorted(stored.iterdir()):
        if path.suffix == ".json":
            one, other = (
                json.loads((f / path.name).read_bytes()) for f in (made, stored)
            )
            if one != other:
                raise ValueError(f"expected the configuration {other}, got {one}")
        else:
            found, expected = load_file(made / path.name), load_file(path)
            # Other processors draw and add with other last digits.
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            count += len(expected)
    return count


def main(make, stored, name):
    """Let `make` fill a folder; compare it with the stored one, or store it."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--write", action="store_true", help="store what is made")
    if parser.parse_args().write:
        stored.mkdir(exist_ok=True)
        return make(stored)
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        print(f"{compare(Path(folder), stored)} tensors as stored")


if __name__ == "__main__":
    sys.exit(main(make, STORED, "tests.gpt2_reference"))
