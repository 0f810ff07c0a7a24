"""Published checkpoints: config.json with one or several safetensors files, checked."""

import json
import math
import re
from pathlib import Path

from torch import Tensor, nn

from utils.validation import check_finite, raise_unless

# A tensor's name: perhaps the number of its block, then its layer and its kind.
NAME = re.compile(
    r"(?:transformer\.|model\.)?(?:(?:h|layers)\.(\d+)\.)?(.+)\.(weight|bias)"
)
# Masks and frequencies, which older files store in each block.
COMPUTED = re.compile(r".+\.(attn\.bias|attn\.masked_bias|rotary_emb\.inv_freq)")


def read_json(path: str | Path) -> dict:
    """Read a JSON file that holds a dict.

    Raises FileNotFoundError if it is missing, and ValueError if it is damaged.
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: expected JSON, got {error}") from error
    raise_unless(isinstance(content, dict), "a dict", repr(content), where=path)
    return content


def check_config(config: dict, path: str | Path, settings: dict[str, list | type]):
    """Raise ValueError for a setting that our layers do not compute.

    settings: from a name to its possible values, of which the first is the default, or
        to int or float for a number above 0
    """
    for name, allowed in settings.items():
        value = config.get(name)
        if isinstance(allowed, list):
            is_allowed = name not in config or value in allowed
            expected = " or ".join(map(repr, allowed))
        else:
            is_allowed = type(value) in (int, allowed) and 0 < value < math.inf
            expected = f"type {allowed.__name__} above 0"
        raise_unless(is_allowed, f"{name} of {expected}", repr(value), where=path)


def read_weights(folder: str | Path, layers: dict[str, list[str]]) -> dict[str, Tensor]:
    """Read model.safetensors, or all files that its index names, for our own layers.

    layers: from a published layer to ours: to one, or to several whose tensors are next
        to each other in the published one, along its last axis
    returns: from our names to float32 tensors, without masks and frequencies

    Raises FileNotFoundError if a file is missing, and ValueError if one is damaged, and
    for an unknown tensor or one that isn't float.
    """
    weights = {}
    for name, tensor in _open_tensors(folder).items():
        if COMPUTED.fullmatch(name):
            continue
        match = NAME.fullmatch(name)
        if not match or match[2] not in layers:
            raise ValueError(f"{folder}: expected no tensor {name}")
        dtype = tensor.get_dtype()
        is_float = dtype in ("F64", "F32", "F16", "BF16")
        raise_unless(is_float, f"{name} to be float", dtype, where=folder)
        block, layer, kind = match.groups()
        prefix, names = f"blocks.{block}." if block else "", layers[layer]
        for our_name, chunk in zip(names, tensor[:].float().chunk(len(names), dim=-1)):
            weights[f"{prefix}{our_name}.{kind}"] = chunk.clone()
    return weights


def read_tensors(folder: str | Path) -> dict[str, Tensor]:
    """Read model.safetensors as float32 tensors under their stored names.

    Raises FileNotFoundError if the file is missing, and ValueError if it is damaged.
    """
    return {name: part[...].float() for name, part in _open_tensors(folder).items()}


def _open_tensors(folder):
    """Map the names of all tensors to their slices, which aren't read yet."""
    from safetensors import SafetensorError, safe_open  # needed only here

    path = Path(folder, "model.safetensors")
    index, files = path.with_name(f"{path.name}.index.json"), [path.name]
    if index.is_file() and not path.is_file():
        names = read_json(index).get("weight_map")
        is_map = isinstance(names, dict)
        is_map = is_map and all(name == Path(str(name)).name for name in names.values())
        expected = "weight_map as a dict from tensors to files beside it"
        raise_unless(is_map, expected, f"{names!r:.80}", where=index)
        files = sorted({*names.values()})
    tensors = {}
    for file in files:
        path = path.with_name(file)
        try:
            with safe_open(path, "pt") as opened:
                tensors |= {name: opened.get_slice(name) for name in opened.keys()}
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return tensors


def assign_weights(
    model: nn.Module, weights: dict[str, Tensor], path: str | Path, tied: bool
):
    """Make weights those of a GPT, if they are complete.

    tied: whether its output head is its token embedding: a file may have one or both

    Raises ValueError as `check_weight_shapes` does, for a number that isn't finite, and
    if the two differ in spite of `tied`.
    """
    names = "embedding.token_embedding.weight", "output.weight"
    tables = [weights[name] for name in names if name in weights]
    if tied and tables:
        expected = "lm_head.weight to be the token embedding"
        is_same = tables[0].equal(tables[-1])
        raise_unless(is_same, expected, "other numbers", where=path)
        weights |= dict.fromkeys(names, tables[0])
    check_weight_shapes(model, weights, path)
    for name, weight in weights.items():
        check_finite(f"finite numbers as {name} in {path}", weight)
    model.load_state_dict(weights, assign=True)
    if tied:
        model.output.weight = model.embedding.token_embedding.weight


def check_weight_shapes(model: nn.Module, weights: dict[str, Tensor], path: str | Path):
    """Raise ValueError if a weight is missing, unknown, or of another shape."""
    expected, received = (
        {f"{name} of shape": tuple(weight.shape) for name, weight in tensors.items()}
        for tensors in (model.state_dict(), weights)
    )
    check_equal(expected, received, path)


def check_equal(expected: dict, received: dict, path: str | Path):
    """Raise ValueError for the first name that doesn't have the expected value."""
    for name in expected | received:
        pair = expected.get(name, "none"), received.get(name, "none")
        is_same, where = pair[0] == pair[1], f"{path} has the weights of another model"
        raise_unless(is_same, f"{name} {pair[0]}", pair[1], where=where)
