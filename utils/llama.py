"""Llama: the course's GPT with four parts exchanged, and its published files.

Shapes: B batch, T tokens, D model width, H heads, K head width, V vocabulary.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from utils.checkpoints import (
    check_config,
    check_tensors,
    read_config,
    read_tensors,
    without_copy,
)
from utils.embeddings import rotary_tables
from utils.model import GPT


class SwiGLU(nn.Module):
    """Let one product with the token open and close another, number by number.

    SwiGLU(x) = W_down (SiLU(W_gate x) * W_up x),  SiLU(x) = x * sigmoid(x)

    x: (B, T, D)
    returns: (B, T, D)

    Without `d_inner` the inner width is 8/3 D, which makes three matrices as large as
    the two of `feed_forward`.

    >>> SwiGLU(6)(torch.zeros(2, 3, 6)).shape
    torch.Size([2, 3, 6])

    Source: Shazeer 2020, section 2.
    """

    def __init__(self, d_model, d_inner=None):
        super().__init__()
        d_inner = d_inner or 8 * d_model // 3
        self.gate = nn.Linear(d_model, d_inner, bias=False)
        self.up = nn.Linear(d_model, d_inner, bias=False)
        self.down = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Llama(GPT):
    """Predict the next token as `GPT` does, with the parts of Llama.

    token_ids: (B, T) with T up to `context_length`
    returns: logits (B, T, V)

    The norms only divide, the feed-forward layers have a gate of width `d_inner`,
    nothing has a bias, positions are rotary, and with tied=False the output layer has a
    matrix of its own. Further keyword arguments go to `GPT`, such as `num_kv_heads` and
    `rope_base`.

    Raises ValueError as `GPT` does.

    >>> Llama(11, context_length=5, d_model=8, num_heads=2, num_layers=1, d_inner=12)(
    ...     torch.zeros(2, 5, dtype=torch.long)
    ... ).shape
    torch.Size([2, 5, 11])

    Source: Touvron et al. 2023, *LLaMA*, section 2.2. The initial weights are those of
    `transformers`: all matrices have a standard deviation of 0.02.
    """

    def __init__(self, *sizes, d_inner, eps=1e-5, tied=True, **options):
        super().__init__(*sizes, positions="rotary", **options)
        vocab_size, d_model = self.output.weight.shape
        for block in self.blocks:
            block.norm1 = nn.RMSNorm(d_model, eps)
            block.norm2 = nn.RMSNorm(d_model, eps)
            block.attention.out_proj.bias = None
            block.feed_forward = SwiGLU(d_model, d_inner)
        self.norm = nn.RMSNorm(d_model, eps)
        if not tied:
            self.output = nn.Linear(d_model, vocab_size, bias=False)
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)


# What the files may ask for and our layers compute. Where nothing is said, it is this.
SETTINGS = {
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "rope_scaling": None,
    "rope_type": "default",
    "rope_interleaved": False,
}
# In the order in which `Llama` takes them, then what else is counted.
SIZES = (
    "vocab_size",
    "max_position_embeddings",
    "hidden_size",
    "num_attention_heads",
    "num_hidden_layers",
    "intermediate_size",
    "num_key_value_heads",
)
NUMBERS = {"rms_norm_eps": 1e-6, "rope_theta": 10000.0}


def llama_tensors(config):
    """Say what a checkpoint of Llama holds.

    config: dict with `SIZES` and "tie_word_embeddings"
    returns: dict from each name to its shape, (out, in) as in `nn.Linear`, and our name

    >>> config = {name: 2 for name in SIZES} | {"tie_word_embeddings": True}
    >>> llama_tensors(config)["model.layers.1.self_attn.q_proj.weight"]
    ((2, 2), 'blocks.1.attention.W_query.weight')
    """
    vocabulary, width, inner = (
        config[size] for size in ("vocab_size", "hidden_size", "intermediate_size")
    )
    narrow = width // config["num_attention_heads"] * config["num_key_value_heads"]
    block = {
        "input_layernorm": ((width,), "norm1"),
        "self_attn.q_proj": ((width, width), "attention.W_query"),
        "self_attn.k_proj": ((narrow, width), "attention.W_key"),
        "self_attn.v_proj": ((narrow, width), "attention.W_value"),
        "self_attn.o_proj": ((width, width), "attention.out_proj"),
        "post_attention_layernorm": ((width,), "norm2"),
        "mlp.gate_proj": ((inner, width), "feed_forward.gate"),
        "mlp.up_proj": ((inner, width), "feed_forward.up"),
        "mlp.down_proj": ((width, inner), "feed_forward.down"),
    }
    layers = {
        "model.embed_tokens": ((vocabulary, width), "embedding.token_embedding"),
        "model.norm": ((width,), "norm"),
    }
    if not config["tie_word_embeddings"]:
        layers["lm_head"] = (vocabulary, width), "output"
    for i in range(config["num_hidden_layers"]):
        for name, (shape, ours) in block.items():
            layers[f"model.layers.{i}.{name}"] = shape, f"blocks.{i}.{ours}"
    return {
        f"{name}.weight": (shape, f"{ours}.weight")
        for name, (shape, ours) in layers.items()
    }


def from_halves(weight, num_heads):
    """Put the rows of queries or keys in order: pairs in halves become neighbours.

    Row i of a head and row i + K/2, which `transformers` turns together, become its
    rows 2i and 2i + 1, which `apply_rope` turns.

    weight: (H * K, D)
    returns: (H * K, D)

    >>> from_halves(torch.arange(6)[:, None], num_heads=1)[:, 0]
    tensor([0, 3, 1, 4, 2, 5])

    Source: `permute` in the conversion script of `transformers` for Llama, backwards.
    """
    pairs = weight.unflatten(0, (num_heads, 2, -1))  # (H, half, K / 2, D)
    return pairs.transpose(1, 2).flatten(0, 2)  # (H * K, D)


def read_llama(path):
    """Read a folder with config.json and model.safetensors.

    returns: the configuration, a dict, and dict from our names to float32 tensors,
        the rows of queries and keys in our rotary layout

    Tables of speeds that older files keep in each block are left out. Where the output
    layer is tied, "lm_head.weight" is the token embedding once more, or missing.

    Raises FileNotFoundError where a file is missing, and ValueError for a file that is
    damaged, tensors in several files, a setting that our layers do not compute, such as
    a scaling of the rotary speeds, and where a tensor is missing, foreign, or of
    another shape than the configuration says.
    """
    config = _read_config(Path(path))
    file = Path(path) / "model.safetensors"
    tensors = {
        name: tensor
        for name, tensor in read_tensors(path).items()
        if not name.endswith(".rotary_emb.inv_freq")
    }
    if config["tie_word_embeddings"]:
        names = "lm_head.weight", "model.embed_tokens.weight"
        tensors = without_copy(tensors, *names, file)
    expected = llama_tensors(config)
    shapes = {name: shape for name, (shape, _) in expected.items()}
    check_tensors(tensors, shapes, file)
    turned = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    weights = {}
    for name, (_, ours) in expected.items():
        weight = tensors[name].float()
        if heads := turned.get(name.split(".")[-2]):
            weight = from_halves(weight, config[heads])
        weights[ours] = weight.clone()  # not of the file
    return config, weights


def load_llama(path):
    """Make a `Llama` of published files: its layers are those of this course.

    path: a folder with config.json and model.safetensors
    returns: the model in float32, without dropout, in evaluation mode

    Raises FileNotFoundError and ValueError as `read_llama` does.

    >>> from utils.files import DATA
    >>> load_llama(DATA / "tiny_llama")(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 128])

    Source: Touvron et al. 2023; the files' format: `transformers`, LlamaForCausalLM.
    """
    config, weights = read_llama(path)
    *sizes, d_inner, num_kv_heads = (config[size] for size in SIZES)
    options = {"num_kv_heads": num_kv_heads, "rope_base": config["rope_theta"]}
    options |= {"eps": config["rms_norm_eps"], "tied": config["tie_word_embeddings"]}
    with torch.device("meta"):  # shapes alone, since the numbers are at hand
        model = Llama(*sizes, d_inner=d_inner, **options)
    table = "embedding.token_embedding.weight"
    model.load_state_dict({"output.weight": weights[table]} | weights, assign=True)
    if config["tie_word_embeddings"]:
        model.output.weight = model.embedding.token_embedding.weight
    angles = torch.arange(model.context_length), model.blocks[0].attention.head_dim
    tables = torch.stack(rotary_tables(*angles, config["rope_theta"]))
    for block in model.blocks:  # these are in no file
        block.attention.tables = tables
    return model.eval()


def _read_config(folder):
    said = read_config(folder)
    rope = said.get("rope_parameters") or {}  # so from version 5 of `transformers`
    rope = rope if isinstance(rope, dict) else {"rope_type": rope}
    said = {name: value for name, value in (rope | said).items() if value is not None}
    config = NUMBERS | {"tie_word_embeddings": False} | said
    config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    check_config(config, folder / "config.json", SETTINGS, SIZES, NUMBERS)
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    possible = {"head_dim": head_dim, "partial_rotary_factor": 1.0}
    check_config(config, folder / "config.json", possible, [], [])
    return config
