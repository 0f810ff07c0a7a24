"""A small GPT built from the attention of this course, and how it generates text."""

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from utils.attention import MultiHeadAttention
from utils.cache import restore_on_error
from utils.checkpoints import assign_weights, check_config, read_json, read_weights
from utils.embeddings import TokenAndPositionEmbedding
from utils.validation import (
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Proportion,
    check_inputs,
    check_logits,
    check_number,
    check_shapes,
    check_targets,
    check_token_ids,
    is_int,
    raise_unless,
    raise_value_error,
)


class TransformerBlock(nn.Module):
    """Let tokens exchange information, then process each one on its own (pre-norm).

    x = x + attention(norm1(x));  x = x + feed_forward(norm2(x))

    attention, feed_forward: modules from (B, T, D) to (B, T, D)
    x: (B, T, D)
    returns: (B, T, D); further keyword arguments go to `attention`

    >>> TransformerBlock(nn.Identity(), nn.Identity(), 4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])

    Source: Vaswani et al. 2017, section 3.1; the norms before the sublayers: Xiong et
    al. 2020.
    """

    @check_inputs()
    def __init__(
        self, attention: nn.Module, feed_forward: nn.Module, d_model: PositiveInt
    ):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = attention
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = feed_forward

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        x = x + self.attention(self.norm1(x), **kwargs)
        return x + self.feed_forward(self.norm2(x))


@check_inputs()
def feed_forward(d_model: PositiveInt) -> nn.Sequential:
    """Build the two layers that process each token alone, four times as wide inside.

    >>> feed_forward(4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])

    Source: Vaswani et al. 2017, section 3.3; GELU as in Radford et al. 2018.
    """
    return nn.Sequential(
        nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
    )


def gpt_logits(
    token_ids: Tensor,
    embedding: Callable,
    blocks: Iterable[Callable],
    norm: Callable,
    output: Callable,
) -> Tensor:
    """Send token ids through the modules of a GPT, in their order.

    token_ids: (B, T), of which `embedding` makes vectors (B, T, D)
    returns: what `output` makes of the normalised stream, logits (B, T, V)

    >>> table, output = nn.Embedding(11, 4), nn.Linear(4, 11)
    >>> gpt_logits(torch.tensor([[1, 2]]), table, [], nn.LayerNorm(4), output).shape
    torch.Size([1, 2, 11])

    Source: Radford et al. 2019, section 2.3.
    """
    x = embedding(token_ids)
    for block in blocks:
        x = block(x)
    return output(norm(x))


POSITIONS = "learned", "rotary", "none"


class GPT(nn.Module):
    """Predict the next token at every position.

    token_ids: (B, T) with T up to `context_length`
    caches: one per block, as `new_caches` returns them; token_ids follow the tokens
        that they hold. A pass that stops midway leaves them as they were.
    returns: logits (B, T, V)

    `positions` are "learned" (a table), "rotary" or "none". `attention` is the class of
    the attention layers, such as `LatentAttention` or `DeltaAttention`, or a list with
    one class per block. Further keyword arguments go to it. Such a class takes d_in,
    d_out, context_length, dropout and num_heads, its `forward` takes x and a cache, and
    it has `out_proj` and `new_cache`. The output head shares its weights with the token
    embedding.

    >>> GPT(11, context_length=5, d_model=8, num_heads=2, num_layers=1)(
    ...     torch.zeros(2, 5, dtype=torch.long)
    ... ).shape
    torch.Size([2, 5, 11])

    Source: Radford et al. 2019, section 2.3, including the smaller initial weights of
    layers that add to the residual stream. Embeddings and residuals have no dropout.
    """

    @check_inputs()
    def __init__(
        self,
        vocab_size: int,
        context_length: NonNegativeInt,
        d_model: PositiveInt,
        num_heads: PositiveInt,
        num_layers: NonNegativeInt,
        dropout: Proportion = 0.0,
        positions: str = "learned",
        attention: Callable | list[Callable] = MultiHeadAttention,
        **options,
    ):
        super().__init__()
        is_known, expected = positions in POSITIONS, f"positions from {POSITIONS}"
        raise_unless(is_known, expected, repr(positions))
        is_list = isinstance(attention, list | tuple)
        layers = attention if is_list else [attention] * num_layers
        expected = f"attention for each of {num_layers} blocks"
        raise_unless(len(layers) == num_layers, expected, len(layers))
        causal, is_rotary = options.get("causal", True), positions == "rotary"
        raise_unless(causal, "causal=True, because a GPT predicts later tokens", causal)
        rotary = options.get("rotary", is_rotary)
        expected = f"rotary={is_rotary} with positions={positions!r}"
        raise_unless(rotary is is_rotary, expected, repr(rotary))
        options |= {"rotary": True} if is_rotary else {}
        self.context_length = context_length
        length = context_length if positions == "learned" else None
        self.embedding = TokenAndPositionEmbedding(vocab_size, length, d_model)
        sizes = d_model, d_model, context_length, dropout, num_heads
        try:
            self.blocks = nn.ModuleList(
                TransformerBlock(cls(*sizes, **options), feed_forward(d_model), d_model)
                for cls in layers
            )
        except TypeError as error:
            text = "expected attention as a class that takes (d_in, d_out, "
            names = ", ".join(["context_length", "dropout", "num_heads", *options])
            text += f"{names}), got {attention}: {error}"
            raise TypeError(text) from error
        self.norm = nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.output.weight = self.embedding.token_embedding.weight
        self.apply(_init_weights)
        for block in self.blocks:  # smaller, because all of them add to one stream
            for layer in (block.attention.out_proj, block.feed_forward[-1]):
                nn.init.normal_(layer.weight, std=0.02 / (2 * num_layers) ** 0.5)

    def forward(self, token_ids: Tensor, caches: list | None = None) -> Tensor:
        check_shapes("token ids: any (B, T)", token_ids)
        num_cached = self._count_cached(caches)
        caches = [None] * len(self.blocks) if caches is None else caches
        embedding = partial(self.embedding, start=num_cached)
        blocks = [partial(b, cache=cache) for b, cache in zip(self.blocks, caches)]
        with restore_on_error(caches):
            return gpt_logits(token_ids, embedding, blocks, self.norm, self.output)

    def _count_cached(self, caches):
        """Return the number of tokens that each cache has; 0 without caches."""
        if caches is None:
            return 0
        is_valid = all(hasattr(cache, "num_tokens") for cache in caches)
        raise_unless(is_valid, "caches as `new_caches` returns them", caches)
        lengths = [len(cache) for cache in caches]
        num_different = len({id(cache) for cache in caches})
        if not len(self.blocks) == len(caches) == num_different or len({*lengths}) > 1:
            expected = f"a cache of its own for each of {len(self.blocks)} blocks, all"
            received = f"{num_different} with lengths {lengths}"
            raise_value_error(f"{expected} of one length", received)
        return lengths[0] if lengths else 0

    def new_caches(self, num_tokens: int) -> list:
        """Return an empty cache for each block, with room for `num_tokens`."""
        return [block.attention.new_cache(num_tokens) for block in self.blocks]


def _init_weights(module):
    # With logits near zero the first loss is ln V: every token is equally likely.
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


# The settings of GPT-2's config.json that our layers support, see `check_config`.
GPT2_SETTINGS = {
    "model_type": ["gpt2"],
    "activation_function": ["gelu_new"],  # GELU by way of tanh
    "scale_attn_weights": [True],
    "scale_attn_by_inverse_layer_idx": [False],
    "add_cross_attention": [False],
    "tie_word_embeddings": [True],
    "layer_norm_epsilon": float,
}
# In the order in which `GPT` takes them.
GPT2_SIZES = "vocab_size", "n_positions", "n_embd", "n_head", "n_layer"
GPT2_LAYERS = {  # names of layers, and ours
    "wte": ["embedding.token_embedding"],
    "wpe": ["embedding.position_embedding"],
    "ln_1": ["norm1"],
    "attn.c_attn": [f"attention.W_{x}" for x in ("query", "key", "value")],
    "attn.c_proj": ["attention.out_proj"],
    "ln_2": ["norm2"],
    "mlp.c_fc": ["feed_forward.0"],
    "mlp.c_proj": ["feed_forward.2"],
    "ln_f": ["norm"],
    "lm_head": ["output"],
}


def load_gpt2(folder: str | Path) -> GPT:
    """Build a `GPT` from GPT-2's published files: its layers are those of this course.

    folder: has config.json and model.safetensors, or several such files, named in
        model.safetensors.index.json
    returns: the model in float32, without dropout, in evaluation mode; keep the model
        itself, because its GELU (by tanh) and epsilon are in no `state_dict`

    Raises FileNotFoundError if a file is missing, and ValueError for a file that is
    damaged, a setting that our layers do not compute, and a tensor that is missing,
    unknown, or of another shape than the configuration says.

    >>> from utils.files import DATA
    >>> load_gpt2(DATA / "tiny_gpt2")(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 128])

    Source: Radford et al. 2019; the files' format: `transformers`, GPT2LMHeadModel.
    """
    path = Path(folder, "config.json")
    config = {"layer_norm_epsilon": 1e-5} | read_json(path)
    check_config(config, path, GPT2_SETTINGS | dict.fromkeys(GPT2_SIZES, int))
    with torch.device("meta"):  # only shapes
        model = GPT(*(config[size] for size in GPT2_SIZES), qkv_bias=True)
    weights = read_weights(folder, GPT2_LAYERS)
    for name, weight in weights.items():
        if name.startswith("blocks.") and weight.dim() == 2:  # stored as (in, out)
            weights[name] = weight.T.contiguous()
    assign_weights(model, weights, folder, tied=True)
    for module in model.modules():
        if isinstance(module, nn.GELU):
            module.approximate = "tanh"
        if isinstance(module, nn.LayerNorm):
            module.eps = config["layer_norm_epsilon"]
    return model.eval()


def next_token_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the targets, in nats per token.

    batch: inputs and targets, both (B, T)
    returns: scalar tensor
    """
    inputs, targets = batch
    return mean_loss(model(inputs), targets)


def mean_loss(logits: Tensor, targets: Tensor, left_out: int | None = None) -> Tensor:
    """Return the mean cross-entropy, in nats, a scalar tensor, in float32 or wider.

    logits: (..., V);  targets: token ids (...)
    left_out: a number instead of an id, where a row of logits doesn't count; on the CPU
        at least one has to count, and none may be NaN or -inf alone
    """
    check_targets(logits, targets, left_out)
    ignored = -100 if left_out is None else left_out  # which is no id
    logits, targets = logits.reshape(-1, logits.shape[-1]), targets.flatten().long()
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # for the sum
    return F.cross_entropy(logits, targets, ignore_index=ignored)


def top_p_probs(logits: Tensor, p: float) -> Tensor:
    """Cut to the fewest, likeliest tokens whose probabilities sum to `p` or more.

    logits: (..., V), as `next_token_probs` takes them
    p: above 0 and up to 1
    returns: probabilities (..., V), which sum to one, of 16-bit logits in float32; the
        likeliest token always stays

    >>> top_p_probs(torch.tensor([0.5, 0.3, 0.2]).log(), p=0.7)
    tensor([0.6250, 0.3750, 0.0000])

    Source: Holtzman et al. 2020, section 3.1 (nucleus sampling).
    """
    check_number("p", p, maximum=1, above_zero=True)
    check_logits(logits)
    dtype = torch.promote_types(logits.dtype, torch.float32)  # for sums, 16 bits round
    probs, order = torch.softmax(logits, -1, dtype).sort(dim=-1, descending=True)
    # Of likelier tokens; below 0 for the likeliest, because a small p may round to 0.
    mass_before = F.pad(probs.cumsum(dim=-1)[..., :-1], (1, 0), value=-1.0)
    if p < 1:
        probs = probs.masked_fill(mass_before >= p, 0.0)
    probs = probs / probs.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, probs)


@check_inputs()
def next_token_probs(
    logits: Tensor,
    temperature: PositiveFloat = 1.0,
    top_k: PositiveInt | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Turn logits into probabilities, sharpened and cut to the likeliest tokens.

    logits: (..., V)
    temperature: above 0 and finite
    top_k: keep this many tokens, from 1 to V, and all that tie with the last of them
    top_p: of these, keep the fewest with this probability (`top_p_probs`)
    returns: (..., V), sums to one, of 16-bit logits in float32: from float16,
        `torch.multinomial` would sometimes draw a token of probability 0

    >>> next_token_probs(torch.tensor([0.0, 0.0, -1.0]), top_k=2)
    tensor([0.5000, 0.5000, 0.0000])

    Source: top-k as in Fan et al. 2018, section 5.
    """
    check_logits(logits)
    # Below the maximum, a small temperature leads to -inf, and not to inf - inf = NaN.
    largest = logits.amax(dim=-1, keepdim=True)
    if top_k is not None:
        V = logits.shape[-1]
        raise_unless(top_k <= V, f"top_k from 1 to {V}", top_k)
        smallest = logits.topk(top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    dtype = torch.promote_types(logits.dtype, torch.float32)
    logits = logits.to(dtype) - largest
    limits = torch.finfo(logits.dtype)
    logits = logits / min(max(temperature, limits.tiny), limits.max)
    return (
        torch.softmax(logits, dim=-1) if top_p is None else top_p_probs(logits, top_p)
    )


@contextlib.contextmanager
def eval_mode(model: nn.Module):
    """Switch dropout off, and give each module its own mode back at the end."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, is_training in modes:
            module.training = is_training


# Without cuDNN's kernel, which takes 50 ms on an H200 for each new number of keys.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@torch.no_grad()
@check_inputs()
def generate(
    model: nn.Module,
    token_ids: Tensor,
    num_tokens: NonNegativeInt,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    use_cache: bool = True,
    end_id: int | None = None,
) -> Tensor:
    """Continue prompts, drawing one token after the other from the model.

    token_ids: (B, T), the prompts
    end_id: a text that has drawn this token has ended, and is padded with it
    returns: (B, T + num_tokens), or shorter if all texts end before

    The model generates without dropout. Beyond its context it reads only the last
    `context_length` tokens, all of them again for each new token, because their
    positions shift. Until then `use_cache` stores the keys and values of earlier
    tokens, which changes no token.

    >>> model = GPT(11, context_length=5, d_model=8, num_heads=2, num_layers=1)
    >>> generate(model, torch.tensor([[1, 2]]), num_tokens=3).shape
    torch.Size([1, 5])
    """
    V = model.output.out_features
    check_token_ids(token_ids, V)
    is_valid = token_ids.dim() == 2 and token_ids.shape[-1] > 0
    raise_unless(is_valid, "token ids (B, T), one or more each", token_ids.shape)
    next_token_probs(torch.zeros(V), temperature, top_k, top_p)  # checks the options
    if end_id is not None:
        is_valid = is_int(end_id) and 0 <= end_id < V
        raise_unless(is_valid, f"end_id below {V}", repr(end_id))
    token_ids = token_ids.clone()  # with num_tokens=0 a text of its own, too
    total = min(token_ids.shape[-1] + num_tokens, model.context_length)
    caches = model.new_caches(total) if use_cache else None
    has_ended = torch.zeros_like(token_ids[:, :1], dtype=torch.bool)  # (B, 1)
    kernels = sdpa_kernel(KERNELS) if token_ids.is_cuda else contextlib.nullcontext()
    with kernels, eval_mode(model):
        for _ in range(num_tokens):
            if token_ids.shape[-1] > model.context_length:
                caches = None
            inputs = token_ids[:, -model.context_length :]
            num_cached = len(caches[0]) if caches else 0
            logits = model(inputs[:, num_cached:], caches)[:, -1]  # (B, V)
            probs = next_token_probs(logits, temperature, top_k, top_p)
            new_ids = torch.multinomial(probs, 1).to(token_ids.dtype)  # (B, 1)
            if end_id is not None:
                new_ids = new_ids.masked_fill(has_ended, end_id)
                has_ended |= new_ids == end_id
            token_ids = torch.cat((token_ids, new_ids), dim=-1)
            if end_id is not None and has_ended.all():
                break
    return token_ids
