"""GPT-2's published files, checked and put under the names of our own layers.

`utils.model.load_gpt2` makes a model of them.
"""

import re
from pathlib import Path

from torch import Tensor

from utils.checkpoints import check_config, drop_copy, open_tensors, read_json, to_float

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

# Names of layers, and ours for their parts, which are next to each other in a tensor.
LAYERS = {
    "wte": ["embedding.token_embedding"],
    "wpe": ["embedding.position_embedding"],
    "ln_1": ["norm1"],
    "attn.c_attn": [f"attention.W_{x}" for x in ("query", "key", "value")],
    "attn.c_proj": ["attention.out_proj"],
    "ln_2": ["norm2"],
    "mlp.c_fc": ["feed_forward.0"],
    "mlp.c_proj": ["feed_forward.2"],
    "ln_f": ["norm"],
}


def read_gpt2(path: str | Path) -> tuple[dict, dict[str, Tensor]]:
    """Read a folder with config.json and model.safetensors.

    returns: the configuration, and from our names to float32 tensors, where matrices
        are transposed to (out, in) as in `nn.Linear`

    Tensors may be in several files, named in model.safetensors.index.json, and names
    may begin with "transformer." or not. The mask that older files store in each block
    is ignored, and "lm_head.weight" may repeat the token embedding.

    Raises FileNotFoundError if a file is missing, and ValueError for a file that is
    damaged, a setting that our layers do not compute, and an unknown tensor.
    """
    config = {"layer_norm_epsilon": 1e-5} | read_json(Path(path, "config.json"))
    numbers = dict.fromkeys(SIZES, int) | {"layer_norm_epsilon": float}
    check_config(config, Path(path, "config.json"), CHOICES, numbers)
    tensors, prefix = open_tensors(path), "transformer."
    if repeated := {name for name in tensors if prefix + name in tensors}:
        raise ValueError(f"{path}: expected one name for {min(repeated)}, got two")
    tensors = {name.removeprefix(prefix): t for name, t in tensors.items()}
    drop_copy(tensors, "lm_head.weight", "wte.weight", path)
    weights = {}
    for name, tensor in tensors.items():
        if re.fullmatch(r"h\.\d+\.attn\.(bias|masked_bias)", name):
            continue
        match = re.fullmatch(r"(?:h\.(\d+)\.)?(.+)\.(weight|bias)", name)
        if not match or match[2] not in LAYERS:
            raise ValueError(f"{path}: expected no tensor {name}")
        block, layer, kind = match.groups()
        tensor, our_names = to_float(tensor, name, path), LAYERS[layer]
        if block and kind == "weight" and tensor.dim() == 2:
            tensor = tensor.T
        for our_name, part in zip(our_names, tensor.chunk(len(our_names))):
            our_name = f"blocks.{block}.{our_name}" if block else our_name
            weights[f"{our_name}.{kind}"] = part.contiguous()
    return config, weights
