"""GPT-2's published files, checked and put under the names of our own layers.

`utils.model.load_gpt2` makes a model of them.
"""

import re
from pathlib import Path

from utils.checkpoints import (
    check_config,
    check_tensors,
    read_config,
    read_tensors,
    without_copy,
)

# What the files may ask for and our layers compute. Where nothing is said, it is this.
SETTINGS = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",  # GELU by way of tanh
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
# In the order in which `GPT` takes them.
SIZES = "vocab_size", "n_positions", "n_embd", "n_head", "n_layer"

# The layers of a block: the shape of their weights in widths of the model, and which
# of our layers they are. A matrix is (in, out); a bias is as long as its last axis.
BLOCK = {
    "ln_1": ((1,), ["norm1"]),
    "attn.c_attn": ((1, 3), [f"attention.W_{x}" for x in ("query", "key", "value")]),
    "attn.c_proj": ((1, 1), ["attention.out_proj"]),
    "ln_2": ((1,), ["norm2"]),
    "mlp.c_fc": ((1, 4), ["feed_forward.0"]),
    "mlp.c_proj": ((4, 1), ["feed_forward.2"]),
}


def gpt2_tensors(config):
    """Say what a checkpoint of GPT-2 holds.

    config: dict with "vocab_size", "n_positions", "n_embd" and "n_layer"
    returns: dict from each name to its shape and to the list of our names for its
        parts, which lie side by side along its last axis

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


def read_gpt2(path):
    """Read a folder with config.json and model.safetensors.

    returns: the configuration, a dict, and dict from our names to float32 tensors,
        the matrices turned to (out, in) as in `nn.Linear`

    The names may begin with "transformer." or not. The mask that older files keep in
    each block is left out, and "lm_head.weight" is the token embedding once more.

    Raises FileNotFoundError where a file is missing, and ValueError for a file that is
    damaged, a setting that our layers do not compute, and where a tensor is missing,
    foreign, or of another shape than the configuration says.
    """
    config = {"layer_norm_epsilon": 1e-5} | read_config(path)
    names = SETTINGS, SIZES, ["layer_norm_epsilon"]
    check_config(config, Path(path) / "config.json", *names)
    file = Path(path) / "model.safetensors"
    tensors = _without_extras(read_tensors(path), file)
    expected = gpt2_tensors(config)
    shapes = {name: shape for name, (shape, _) in expected.items()}
    check_tensors(tensors, shapes, file)
    weights = {}
    for name, (_, our_names) in expected.items():
        tensor = tensors[name]
        if name.startswith("h.") and tensor.dim() == 2:
            tensor = tensor.T
        for our_name, part in zip(our_names, tensor.chunk(len(our_names))):
            weights[our_name] = part.float().contiguous().clone()  # not of the file
    return config, weights


def _without_extras(tensors, path):
    short = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    if len(short) < len(tensors):
        raise ValueError(f"{path}: expected each tensor once, got two names for some")
    short = without_copy(short, "lm_head.weight", "wte.weight", path)
    mask = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
    return {name: t for name, t in short.items() if not mask.fullmatch(name)}
