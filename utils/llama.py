"""Llama: the course's GPT with four parts replaced, and its published files.

Shapes: B batch, T tokens, D model width, H heads, d_k head width, V vocabulary.
"""

from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.checkpoints import assign_weights, check_config, read_json, read_weights
from utils.embeddings import Rotary
from utils.model import GPT
from utils.validation import (
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    check_inputs,
    check_shapes,
    raise_unless,
)


class SwiGLU(nn.Module):
    """Let one projection of a token gate another one, entry by entry.

    SwiGLU(x) = W_down (SiLU(W_gate x) * W_up x),  SiLU(x) = x * sigmoid(x)

    x: (B, T, D)
    returns: (B, T, D)

    By default the inner width is 8/3 D, so that the three matrices together are as
    large as the two of `feed_forward`.

    >>> SwiGLU(6)(torch.zeros(2, 3, 6)).shape
    torch.Size([2, 3, 6])

    Source: Shazeer 2020, section 2.
    """

    @check_inputs()
    def __init__(self, d_model: PositiveInt, d_inner: PositiveInt | None = None):
        super().__init__()
        d_inner = 8 * d_model // 3 if d_inner is None else d_inner
        self.d_model = d_model
        self.gate = nn.Linear(d_model, d_inner, bias=False)
        self.up = nn.Linear(d_model, d_inner, bias=False)
        self.down = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        check_shapes("x (..., D)", x, D=self.d_model)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Llama(GPT):
    """Predict the next token as `GPT` does, with the parts of Llama.

    Norms are RMSNorms, feed-forward layers are `SwiGLU` with the inner width `d_inner`,
    nothing has a bias, positions are rotary, and with tied=False the output head has
    its own matrix. Further keyword arguments go to `GPT`, such as `num_kv_heads`.

    >>> Llama(11, context_length=5, d_model=8, num_heads=2, num_layers=1, d_inner=12)(
    ...     torch.zeros(2, 5, dtype=torch.long)
    ... ).shape
    torch.Size([2, 5, 11])

    Source: Touvron et al. 2023, *LLaMA*, section 2.2; initial weights as in
    `transformers`.
    """

    @check_inputs()
    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        *,
        d_inner: PositiveInt,
        eps: NonNegativeFloat = 1e-5,
        tied: bool = True,
        **options,
    ):
        sizes = vocab_size, context_length, d_model, num_heads, num_layers
        super().__init__(*sizes, positions="rotary", **options)
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


# The settings of a config.json that our layers support, see `check_config`.
SETTINGS = {
    "model_type": ["llama"],
    "hidden_act": ["silu"],
    "attention_bias": [False],
    "mlp_bias": [False],
    "rope_type": ["default", "llama3"],
    "rope_interleaved": [False],
    "partial_rotary_factor": [1.0],
    "tie_word_embeddings": [False, True],
    "rms_norm_eps": float,
    "rope_theta": float,
    "intermediate_size": int,
    "num_key_value_heads": int,
}
# In the order in which `Llama` takes them.
SIZES = (
    "vocab_size",
    "max_position_embeddings",
    "hidden_size",
    "num_attention_heads",
    "num_hidden_layers",
)
LLAMA3 = {  # with the rope_type "llama3"
    "factor": float,
    "low_freq_factor": float,
    "high_freq_factor": float,
    "original_max_position_embeddings": int,
}
DEFAULTS = {
    "tie_word_embeddings": False,
    "rope_type": "default",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
}
LAYERS = {  # names of layers, and ours
    "embed_tokens": ["embedding.token_embedding"],
    "input_layernorm": ["norm1"],
    "self_attn.q_proj": ["attention.W_query"],
    "self_attn.k_proj": ["attention.W_key"],
    "self_attn.v_proj": ["attention.W_value"],
    "self_attn.o_proj": ["attention.out_proj"],
    "post_attention_layernorm": ["norm2"],
    "mlp.gate_proj": ["feed_forward.gate"],
    "mlp.up_proj": ["feed_forward.up"],
    "mlp.down_proj": ["feed_forward.down"],
    "norm": ["norm"],
    "lm_head": ["output"],
}


@check_inputs("weight: any (H * d_k, D)")
def interleave_halves(weight: Tensor, num_heads: PositiveInt) -> Tensor:
    """Reorder the rows of queries or keys, so that rotated pairs are neighbours.

    `transformers` rotates row i of a head together with row i + d_k/2. They become rows
    2i and 2i + 1, which `apply_rope` rotates together.

    weight: (H * d_k, D)
    returns: (H * d_k, D)

    >>> interleave_halves(torch.arange(6)[:, None], num_heads=1)[:, 0]
    tensor([0, 3, 1, 4, 2, 5])

    Source: the inverse of `permute` in the script of `transformers` for Llama.
    """
    pairs = weight.unflatten(0, (num_heads, 2, -1))  # (H, half, d_k / 2, D)
    return pairs.transpose(1, 2).flatten(0, 2)  # (H * d_k, D)


@check_inputs("frequencies (half)")
def llama3_frequencies(
    frequencies: Tensor,
    factor: PositiveFloat,
    low_freq_factor: NonNegativeFloat,
    high_freq_factor: PositiveFloat,
    original_max_position_embeddings: PositiveInt,
) -> Tensor:
    """Slow down rotary pairs for a context longer than the original one.

    A pair that rotates at least `high_freq_factor` times within the original context
    keeps its frequency, and one that rotates at most `low_freq_factor` times is slowed
    down by `factor`. In between, the frequency is a weighted average of the two.

    frequencies: (d_k / 2,), in radians per token
    low_freq_factor: below `high_freq_factor`
    returns: (d_k / 2,)

    Source: Llama 3.1's `rope_scaling`, as `transformers` computes it.
    """
    low, high = low_freq_factor, high_freq_factor
    length = original_max_position_embeddings
    raise_unless(low < high, "low_freq_factor below high_freq_factor", low, high)
    rotations = length * frequencies / (2 * torch.pi)
    fraction = ((rotations - low) / (high - low)).clamp(0, 1)
    return frequencies * (fraction + (1 - fraction) / factor)


def load_llama(folder: str | Path) -> Llama:
    """Build a `Llama` from published files: its layers are those of this course.

    folder: has config.json and model.safetensors, or several such files, named in
        model.safetensors.index.json
    returns: the model in float32, without dropout, in evaluation mode; keep the model
        itself, because its rotary tables are in no `state_dict`

    Raises FileNotFoundError or ValueError for files as `load_gpt2` does.

    >>> from utils.files import DATA
    >>> load_llama(DATA / "tiny_llama")(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 128])

    Source: Touvron et al. 2023; the files' format: `transformers`, LlamaForCausalLM.
    """
    config = _read_config(Path(folder, "config.json"))
    tied = config["tie_word_embeddings"]
    with torch.device("meta"):  # only shapes
        model = Llama(
            *(config[size] for size in SIZES),
            d_inner=config["intermediate_size"],
            num_kv_heads=config["num_key_value_heads"],
            eps=config["rms_norm_eps"],
            tied=tied,
        )
    assign_weights(model, read_weights(folder, LAYERS), folder, tied)
    rotate = _build_rotary(config, model.blocks[0].attention.head_dim)
    for attention in (block.attention for block in model.blocks):
        attention.rotate = rotate  # no file contains its tables
        query, key = attention.W_query.weight, attention.W_key.weight
        query.data = interleave_halves(query.data, attention.num_heads)
        key.data = interleave_halves(key.data, attention.num_kv_heads)
    return model.eval()


def _build_rotary(config, head_dim):
    rescale = None
    if config["rope_type"] == "llama3":
        scaling = {name: config[name] for name in LLAMA3}
        rescale = partial(llama3_frequencies, **scaling)
    length, base = config["max_position_embeddings"], config["rope_theta"]
    return Rotary(length, head_dim, base, rescale)


def _read_config(path):
    settings = read_json(path)
    # `transformers` writes rope_parameters since version 5, before it rope_scaling.
    rope = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    is_dict = isinstance(rope, dict)
    raise_unless(is_dict, "rope_scaling as a dict", repr(rope), where=path)
    given = settings | {"rope_type": rope.get("type")} | rope
    given = {name: value for name, value in given.items() if value is not None}
    config = DEFAULTS | given
    config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    expected = SETTINGS | dict.fromkeys(SIZES, int)
    expected |= LLAMA3 if config["rope_type"] == "llama3" else {}
    check_config(config, path, expected)
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    check_config(config, path, {"head_dim": [head_dim]})
    return config
