"""What the tests of attention share: layers, random and stored numbers."""

from functools import partial

import torch
from hypothesis import settings
from safetensors.torch import load_file

from utils.attention import MultiHeadAttention
from utils.delta import DeltaAttention
from utils.files import DATA
from utils.latent import LatentAttention

# The same examples in every run, however busy the machine is.
everywhere = settings(max_examples=60, deadline=None, derandomize=True, database=None)

HEADS = partial(MultiHeadAttention, num_heads=6)
LATENT = partial(LatentAttention, num_heads=6)
DELTA = partial(DeltaAttention, num_heads=6)
# Every kind of layer with a cache: (d_in, d_out, context_length, dropout) build it.
CACHED = {
    "heads": HEADS,
    "one shared head, a window": partial(HEADS, num_kv_heads=1, window=4),
    "rotary": partial(HEADS, rotary=True),
    "latents": LATENT,
    "rotary latents": partial(LATENT, rotary=True, rope_base=50.0),
    "rotary latents of one number": partial(
        LATENT, latent_dim=1, rotary=True, rotary_dim=4
    ),
    "a state": DELTA,
    "a state with a gate": partial(DELTA, gate=True),
}


def random(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def computed(name):
    """Return what the reference implementation has computed, see data/README.md."""
    tensors = load_file(DATA / "tiny_layers" / "reference.safetensors")
    return {k[len(name) + 1 :]: t for k, t in tensors.items() if k.startswith(name)}
