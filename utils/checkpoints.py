"""Published checkpoints: a folder with config.json and model.safetensors, checked.

What is read here is named in every error; a model is built only of what fits.
"""

import json
from pathlib import Path


def read_config(folder):
    """Read the settings of a checkpoint.

    returns: dict

    Raises FileNotFoundError where config.json is missing, and ValueError where it is
    damaged or no dict.

    >>> from utils.files import DATA
    >>> read_config(DATA / "tiny_gpt2")["n_embd"]
    16
    """
    path = _existing(Path(folder) / "config.json")
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: expected JSON, got {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path}: expected a dict of settings, got {config!r}")
    return config


def check_config(config, path, settings, sizes, numbers):
    """Raise ValueError for a setting that our layers do not compute.

    settings: dict from a name to the one value that is possible; it may be left out
    sizes: names of integers of 1 or more
    numbers: names of numbers above 0

    >>> check_config({"width": 0}, "config.json", {}, ["width"], [])
    Traceback (most recent call last):
    ...
    ValueError: config.json: expected width of 1 or more, got 0
    """
    for name, expected in settings.items():
        if config.get(name, expected) != expected:
            raise ValueError(
                f"{path}: expected {name} of {expected!r}, got {config[name]!r}"
            )
    for name in sizes:
        if type(config.get(name)) is not int or config[name] < 1:
            raise ValueError(
                f"{path}: expected {name} of 1 or more, got {config.get(name)!r}"
            )
    for name in numbers:
        if not isinstance(config[name], float | int) or not config[name] > 0:
            raise ValueError(f"{path}: expected {name} above 0, got {config[name]!r}")


def read_tensors(folder):
    """Read the tensors of a checkpoint.

    returns: dict from their names to tensors

    Raises FileNotFoundError where model.safetensors is missing, and ValueError where it
    is damaged, or where the tensors lie in several files.

    >>> from utils.files import DATA
    >>> read_tensors(DATA / "tiny_gpt2")["transformer.wte.weight"].shape
    torch.Size([128, 16])
    """
    from safetensors import SafetensorError  # needed here alone
    from safetensors.torch import load_file

    path = Path(folder) / "model.safetensors"
    index = path.with_name(f"{path.name}.index.json")
    if index.is_file() and not path.is_file():
        raise ValueError(
            f"expected all tensors in one file {path}, got several, named in {index}"
        )
    try:
        return load_file(_existing(path))
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def without_copy(tensors, copy, original, path):
    """Leave out a tensor that is another one once more, if it is there.

    Raises ValueError where the two differ.

    >>> from torch import ones
    >>> without_copy({"a": ones(2), "b": ones(2)}, "b", "a", "model.safetensors")
    {'a': tensor([1., 1.])}
    """
    rest = dict(tensors)
    second, first = rest.pop(copy, None), rest.get(original)
    if second is not None and first is not None and not second.equal(first):
        raise ValueError(f"{path}: expected {copy} to be {original}, got other numbers")
    return rest


def check_tensors(tensors, shapes, path):
    """Raise ValueError where a tensor is missing, foreign, or not as expected.

    tensors: dict from their names to tensors
    shapes: dict from the names of all that should be there to their shapes

    >>> check_tensors({}, {"wte.weight": (11, 8)}, "model.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: model.safetensors: expected wte.weight of shape (11, 8), got none
    """
    for name in [*shapes, *tensors]:
        # One that should not be there, or should and is not, has no shape to compare.
        wanted, tensor = shapes.get(name), tensors.get(name)
        found = None if tensor is None else tuple(tensor.shape)
        if wanted != found:
            raise ValueError(
                f"{path}: expected {_described(name, wanted)}, "
                f"got {_described(None, found)}"
            )
        if not tensor.is_floating_point():
            raise ValueError(
                f"{path}: expected {name} of floating-point numbers, got {tensor.dtype}"
            )


def _existing(path):
    if not path.is_file():
        raise FileNotFoundError(
            f"expected a folder with config.json and model.safetensors, found no {path}"
        )
    return path


def _described(name, shape):
    if shape is None:
        return f"no tensor {name}" if name else "none"
    return f"{name} of shape {shape}" if name else f"one of shape {shape}"
