"""Properties: functions (run) -> text or None that say what is wrong with a result."""

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention
from torch.overrides import TorchFunctionMode

from utils.checks.values import number


def worst_sum(weights):
    """Return the finite row sum that is furthest from 1, as a float."""
    sums = weights.double().sum(-1)
    sums = sums[sums.isfinite()]
    return sums[(sums - 1).abs().argmax()].item() if len(sums) else torch.nan


def rows_sum_to_one(run):
    """Say that a row of the weights, the last part of the result, doesn't sum to 1."""
    total = worst_sum(run.got[-1] if isinstance(run.got, tuple) else run.got)
    text = f"One of your rows sums to {number(total)} instead of 1."
    return None if abs(total - 1) < 1e-4 else text


def past_stays(run):
    """Say by how much a later input changes an earlier output, if it does."""

    def output(args):
        value = run.call(*args)
        return value[0] if isinstance(value, tuple) else value

    got = output(run.args)
    for position in range(1, got.shape[-2]):
        later = torch.arange(got.shape[-2])[:, None] >= position
        changed = [x + later if torch.is_tensor(x) else x for x in run.args]
        moved = (output(changed) - got)[..., :position, :].abs().max().item()
        if moved > 1e-4:
            return f"Adding 1 to the input from position {position} on moves an earlier output by {number(moved)}: the future leaks into the past."
    return None


class Shapes(TorchFunctionMode):
    """Collects in `sizes` the sorted shapes of all tensors made, and of scores."""

    def __init__(self):
        super().__init__()
        self.sizes = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.sizes.add((*sorted(made.shape),))
        if function is torch_attention:
            query, key, *_ = [*args, *(kwargs or {}).values()]
            self.sizes.add((*sorted((query.shape[-2], key.shape[-2])),))
        return made
