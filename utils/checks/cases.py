"""Cases and their inputs. Each tensor seeds itself, so a new case changes no other."""

from dataclasses import dataclass

import torch

DTYPE = torch.float32  # whatever the reader's default is


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs on which answers are tried.

    args: the positional arguments
    note: what is special about them, for the message
    build: for a module, the arguments that build it
    special: a failure here is shown only if no other case fails
    """

    args: tuple
    note: str = ""
    build: tuple | None = None
    special: bool = False


def case(*args, **settings):
    """Return the `Case` with these arguments."""
    return Case(args, **settings)


def special(note, *args, **settings):
    """Return a case that is shown only if no other fails."""
    return case(*args, note=note, special=True, **settings)


def draw(*shape, seed=0, scale=1.0, shift=0.0, dtype=DTYPE):
    """Return normal numbers, always the same for a shape and a seed.

    Tensors of one shape in one case need different seeds.
    """
    generator = _generator(shape, seed)
    drawn = torch.randn(*shape, generator=generator, device="cpu", dtype=dtype)
    return drawn * scale + shift


def integers(low, high, shape, seed=0):
    """Return integers from `low` up to, but without, `high`."""
    generator = _generator(shape, seed)
    return torch.randint(low, high, shape, generator=generator, device="cpu")


def _generator(shape, seed):
    """Return a generator whose state depends on all these numbers."""
    for size in shape:
        seed = 1009 * seed + size + 1
    return torch.Generator(device="cpu").manual_seed(seed % 2**32)
