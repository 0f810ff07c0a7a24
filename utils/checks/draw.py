"""Small inputs and sentences shared by the exercises' declarations."""

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention
from torch.overrides import TorchFunctionMode

from utils.checks.engine import case
from utils.checks.values import number


def draws(seed):
    """Return `draw(*shape, scale=1.0, shift=0.0)`, normal numbers of its own."""
    generator = torch.Generator(device="cpu").manual_seed(seed)

    def draw(*shape, scale=1.0, shift=0.0, dtype=torch.float32):
        made = torch.randn(*shape, generator=generator, device="cpu", dtype=dtype)
        return made * scale + shift

    return draw


def special(note, *args, **settings):
    """Return a case that is shown only where no other fails."""
    return case(*args, note=note, special=True, **settings)


def integers(low, high, shape, seed):
    """Return integers from `low` up to, but without, `high`."""
    generator = torch.Generator(device="cpu").manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator, device="cpu")


def worst_sum(weights, dim=-1):
    """Return the finite sum along `dim` that is furthest from 1, as text."""
    sums = weights.double().sum(dim)
    sums = sums[sums.isfinite()]
    return number(sums[(sums - 1).abs().argmax()].item()) if len(sums) else "NaN"


def said_sum(weights):
    """Return `sums to 0.8` of the row furthest from 1, or what holds where none is."""
    text = worst_sum(weights)
    return "need not sum to 1" if abs(float(text) - 1) < 1e-3 else f"sums to {text}"


def rows_sum_to_one(pick=lambda value: value, of="weights"):
    """Return a property: the entries along the last axis of the weights sum to 1."""

    def look(evidence):
        weights = pick(evidence.got)
        text = f"A row of the {of} sums to {worst_sum(weights)} instead of 1."
        return text if (weights.double().sum(-1) - 1).abs().max() > 1e-4 else None

    return look


def past_stays(evidence, of="tokens"):
    """Property: what comes later does not change what comes before, at any place."""
    got = evidence.got[0] if isinstance(evidence.got, tuple) else evidence.got
    for place in range(1, got.shape[-2]):
        later = torch.arange(got.shape[-2])[:, None] >= place
        changed = [x + later if torch.is_tensor(x) else x for x in evidence.inputs]
        after = evidence.call(*changed)
        after = after[0] if isinstance(after, tuple) else after
        moved = (after - got)[..., :place, :].abs().max().item()
        if moved > 1e-4:
            return (
                f"Adding 1 to the {of} from {place} on moves an output before them "
                f"by {number(moved)}: the future is seen."
            )
    return None


def samples_stay_apart(evidence):
    """Property: a sample gets the same result in a batch and alone."""
    if not all(arg.dim() > 2 for arg in evidence.inputs):
        return None
    alone = evidence.call(*(arg[-1:] for arg in evidence.inputs))
    got = evidence.got if isinstance(evidence.got, tuple) else (evidence.got,)
    alone = alone if isinstance(alone, tuple) else (alone,)
    if all(torch.allclose(g[-1:], a, atol=1e-4) for g, a in zip(got, alone)):
        return None
    return "The last sample of the batch gets another result alone: the samples mix."


def came_from(*axes):
    """Return a property: say where in the input the first wrong entry was taken."""

    def named(x, entry):
        found = (x.double() == entry.double()).nonzero()
        if not len(found):
            return None
        return ", ".join(f"{a} {i}" for a, i in zip(axes, found[0].tolist()))

    def look(evidence):
        x, got, expected = evidence.args[0], evidence.got, evidence.expected
        place = (got.double() != expected.double()).nonzero()[0].tolist()
        came, wanted = (named(x, value[(*place,)]) for value in (got, expected))
        if came is None:
            return f"The entry at {place} is none of x: the entries move, unchanged."
        return f"At {place} stands {came} of x. There belongs {wanted}."

    return look


class Shapes(TorchFunctionMode):
    """Notes the sizes of all tensors that are made, sorted, and of PyTorch's scores."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.seen.add((*sorted(made.shape),))
        if function is torch_attention:
            query, key, *_ = [*args, *(kwargs or {}).values()]
            self.seen.add((*sorted((query.shape[-2], key.shape[-2])),))
        return made
