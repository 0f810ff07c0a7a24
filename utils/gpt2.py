"""GPT-2's published files, checked and put under the names of our own layers.

`utils.model.load_gpt2` makes a model of them.
"""

import re
from pathlib import Path

from utils.checkpoints import (
    check_config,
    check_tensors,
    drop_copy,
    open_tensors,
    read_json,
)

# What a file may ask for, of what our layers compute. The first value is the default.
CHOICES = {
    "model_type": ["gpt2"],
    "activation_function": ["gelu_new"],  # GELU by way of tanh
    "scale_attn_weights": [True],
    "scale_attn_by_inverse_layer_idx": [False],
    "add_cross_attention": [False],
    "tie_word_embeddings": [True],
}
# In the order in which `GPT` takes them.
SIZES = "vocab_size", "n_positions", "n_embd", "n_head", "n_layer"

# The layers of a block: the shape of their weights, in multiples of the model's width,
# and our names for them. A matrix is (in, out); a bias is as long as its last axis.
BLOCK = {
    "ln_1": ((1,), ["norm1"]),
    "attn.c_attn": ((1, 3), [f"attention.W_{x}" for x in ("query", "key", "value")]),
    "attn.c_proj": ((1, 1), ["attention.out_proj"]),
    "ln_2": ((1,), ["norm2"]),
    "mlp.c_fc": ((1, 4), ["feed_forward.0"]),
    "mlp.c_proj": ((4, 1), ["feed_forward.2"]),
}


def gpt2_tensors(config: dict) -> dict:
    """Return what a checkpoint of GPT-2 has to contain.

    config: dict with "vocab_size", "n_positions", "n_embd" and "n_layer"
    returns: from each name to its shape and the list of our names for its parts, which
        are next to each other along its last axis

    >>> sizes = {"vocab_size": 11, "n_positions": 5, "n_embd": 8, "n_layer": 1}
    >>> gpt2_tensors(sizes)["h.0.attn.c_proj.weight"]
    ((8, 8), ['blocks.0.attention.out_proj.weight'])
    """
    width = config["n_embd"]
    tables = {"wte.weight": "vocab_size", "wpe.weight": "n_positions"}
    ours = "embedding.token_embedding.weight", "embedding.position_embedding.weight"
    tensors = {
        name: ((config[size], width), [our_name])
        for (name, size), our_name in zip(tables.items(), ours)
    }
    for i in range(config["n_layer"]):
        for name, (sizes, our_names) in BLOCK.items():
            shape = tuple(size * width for size in sizes)
            for part, part_shape in (("weight", shape), ("bias", shape[-1:])):
                parts = [f"blocks.{i}.{our_name}.{part}" for our_name in our_names]
                tensors[f"h.{i}.{name}.{part}"] = part_shape, parts
    for part in ("weight", "bias"):
        tensors[f"ln_f.{part}"] = (width,), [f"norm.{part}"]
    return tensors


def read_gpt2(path: str | Path) -> tuple[dict, dict]:
    """Read a folder with config.json and model.safetensors.

    returns: the configuration, and from our names to float32 tensors, where matrices
        are transposed to (out, in) as in `nn.Linear`

    Tensors may be in several files, named in model.safetensors.index.json, and names
    may begin with "transformer." or not. The mask that older files store in each block
    is ignored, and "lm_head.weight" may repeat the token embedding.

    Raises FileNotFoundError if a file is missing, and ValueError for a file that is
    damaged, a setting that our layers do not compute, and a tensor that is missing,
    unknown, or of another shape than the configuration says.
    """
    config = {"layer_norm_epsilon": 1e-5} | read_json(Path(path, "config.json"))
    numbers = dict.fromkeys(SIZES, int) | {"layer_norm_epsilon": float}
    check_config(config, Path(path, "config.json"), CHOICES, numbers)
    tensors, prefix = open_tensors(path), "transformer."
    if repeated := {name for name in tensors if prefix + name in tensors}:
        raise ValueError(f"{path}: expected one name for {min(repeated)}, got two")
    tensors = {name.removeprefix(prefix): t for name, t in tensors.items()}
    mask = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
    tensors = {name: t for name, t in tensors.items() if not mask.fullmatch(name)}
    drop_copy(tensors, "lm_head.weight", "wte.weight", path)
    expected = gpt2_tensors(config)
    check_tensors(tensors, {name: shape for name, (shape, _) in expected.items()}, path)
    weights = {}
    for name, (_, our_names) in expected.items():
        tensor = tensors.pop(name)[:]
        if name.startswith("h.") and tensor.dim() == 2:
            tensor = tensor.T
        for our_name, part in zip(our_names, tensor.chunk(len(our_names))):
            weights[our_name] = part.float().contiguous().clone()  # not of the file
    return config, weights
