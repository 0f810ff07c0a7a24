"""What the tests of attention share: random and stored numbers, and a witness."""

import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode

from utils.files import DATA


def random(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def computed(name):
    """Return what the reference implementation has computed (`references.py`)."""
    tensors = load_file(DATA / "tiny_layers" / "reference.safetensors")
    own = [key for key in tensors if key.startswith(f"{name}.")]
    return {key.removeprefix(f"{name}."): tensors[key] for key in own}


class Made(TorchDispatchMode):
    """Note all tensors that are made."""

    def __init__(self):
        super().__init__()
        self.tensors = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        tensors = made if isinstance(made, tuple) else (made,)
        self.tensors += [tensor for tensor in tensors if torch.is_tensor(tensor)]
        return made
