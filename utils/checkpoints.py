"""Published checkpoints: config.json with one or several safetensors files, checked.

Tensors stay in their files until they are converted, one after the other.
"""

import json
from pathlib import Path

from torch import Tensor, nn


def read_json(path: str | Path) -> dict:
    """Read a JSON file that holds a dict.

    Raises FileNotFoundError if it is missing, and ValueError if it is damaged.

    >>> from utils.files import DATA
    >>> read_json(DATA / "tiny_gpt2" / "config.json")["n_embd"]
    16
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: expected JSON, got {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a dict, got {content!r}")
    return content


def check_config(config: dict, path: str | Path, choices: dict, numbers: dict):
    """Raise ValueError for a setting that our layers do not compute.

    choices: from a setting to its possible values, of which the first is the default
    numbers: from a setting that has to be above 0 to its type, int or float

    >>> check_config({"width": 0}, "config.json", {}, {"width": int})
    Traceback (most recent call last):
    ...
    ValueError: config.json: expected width of type int above 0, got 0
    """
    for name, values in choices.items():
        if config.get(name, values[0]) not in values:
            expected = " or ".join(map(repr, values))
            raise ValueError(
                f"{path}: expected {name} of {expected}, got {config[name]!r}"
            )
    for name, kind in numbers.items():
        value = config.get(name)
        if type(value) not in (int, kind) or not value > 0:
            expected = f"of type {kind.__name__} above 0"
            raise ValueError(f"{path}: expected {name} {expected}, got {value!r}")


def open_tensors(folder: str | Path) -> dict:
    """Open model.safetensors, or else all files that its index names.

    returns: from each tensor's name to a "slice" of safetensors: `get_shape()` and
        `get_dtype()` describe the tensor, and `[:]` reads it from the file

    Raises FileNotFoundError if a file is missing, and ValueError if one is damaged.

    >>> from utils.files import DATA
    >>> open_tensors(DATA / "tiny_gpt2")["transformer.wte.weight"][:].shape
    torch.Size([128, 16])
    """
    from safetensors import SafetensorError, safe_open  # needed only here

    path = Path(folder, "model.safetensors")
    index, files = path.with_name(f"{path.name}.index.json"), [path.name]
    if index.is_file() and not path.is_file():
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError(f"{index}: expected a weight_map, got {weight_map!r}")
        files = sorted(set(weight_map.values()))
    tensors = {}
    for file in files:
        path = path.with_name(file)
        try:
            with safe_open(path, "pt") as opened:
                tensors |= {name: opened.get_slice(name) for name in opened.keys()}
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return tensors


def drop_copy(tensors: dict, copy: str, original: str, folder: str | Path):
    """Remove a tensor that repeats another; raise ValueError if the two differ."""
    if copy in tensors and original in tensors:
        if not tensors.pop(copy)[:].equal(tensors[original][:]):
            raise ValueError(
                f"{folder}: expected {copy} to be {original}, got other numbers"
            )


def to_float(tensor, name: str, folder: str | Path) -> Tensor:
    """Read a tensor of `open_tensors` in float32; raise ValueError unless it is float.

    The result no longer uses the memory of the file.
    """
    if (dtype := tensor.get_dtype()) not in ("F64", "F32", "F16", "BF16"):
        raise ValueError(f"{folder}: expected {name} to be float, got {dtype}")
    return tensor[:].float().clone()


def check_shapes(model: nn.Module, weights: dict[str, Tensor], path: str | Path):
    """Raise ValueError if a weight is missing, unknown, or of another shape.

    >>> check_shapes(nn.Linear(1, 2, bias=False), {}, "tiny_gpt2")
    Traceback (most recent call last):
    ...
    ValueError: tiny_gpt2 has the weights of another model: expected weight of shape \
(2, 1), got none
    """
    expected, received = (
        {name: tuple(weight.shape) for name, weight in tensors.items()}
        for tensors in (model.state_dict(), weights)
    )
    for name in [*expected, *received]:
        shapes = expected.get(name, "none"), received.get(name, "none")
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{path} has the weights of another model: expected {name} of shape "
                f"{shapes[0]}, got {shapes[1]}"
            )
