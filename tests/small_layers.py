"""What the tests of attention share: random inputs, small layers, and a witness."""

import torch
from seeds import definitions
from torch.utils._python_dispatch import TorchDispatchMode

from utils.attention import MultiHeadAttention


def random(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def grouped(num_kv_heads=2, **options):
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 24, 13, 0.0, 6, num_kv_heads=num_kv_heads, **options)
    return layer.double()


KINDS = [
    {},
    {"num_kv_heads": 6},
    {"rotary": True},
    {"alibi": True},
    {"window": 3},
    {"window": 4, "alibi": True, "num_kv_heads": 1},
]


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


def leak_test():
    """Return the leak test as notebook 05 defines it."""
    return definitions("05_causal_masks")["leak_test"]
