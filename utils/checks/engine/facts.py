"""What outputs don't show: training, dropout, how a mask is stored, shapes in between.

A fact on a module is a function `(module, learned) -> "name: text" or None`, where
`learned.build` is d_in, d_out, context_length, dropout, perhaps num_heads (anything for
the first two).
"""

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention
from torch.overrides import TorchFunctionMode

from utils.checks.engine.guard import attempt, supervised
from utils.checks.engine.values import agrees, number


def sentences(learned, num_tokens=3):
    """Return 64 sentences `(64, T, D)`, as wide as the module's input."""
    width = next(size for size in learned.build if type(size) is int)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(64, num_tokens, width, generator=generator)


def fresh(module, learned):
    """Return a new module of the same class, without the state of earlier runs."""
    return type(module)(*learned.build).eval()


def no_gradient(module, learned):
    """Name a parameter that changes the output but gets no gradient."""
    twin, x = fresh(module, learned), sentences(learned)
    output = twin(x)
    if output.requires_grad:
        output.square().sum().backward()
    for name, parameter in twin.named_parameters():
        if parameter.grad is None and parameter.is_floating_point():
            parameter.data.mul_(2)
            if not torch.equal(output, twin(x)):
                return f"no-gradient: Your `{name}` would never be trained, because no gradient reaches it: look for torch.no_grad(), .detach() or requires_grad=False."
    return None


def changes_in_training(module, learned):
    """Name a module whose output depends on the mode, where no dropout is asked for."""
    x = sentences(learned)
    right, trained = module.eval()(x.clone()), module.train()(x.clone())
    module.eval()
    if torch.allclose(right, trained, equal_nan=True):
        return None
    return "changes-in-training: Your output changes in training mode: this exercise asks for no dropout."


def mask_not_a_buffer(module, learned):
    """Name a mask that `.to(device)` forgets, or that an optimizer trains."""
    for part in fresh(module, learned).modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return f"mask-not-buffer: Your `{name}` is a plain tensor, so it stays behind when the module moves to a GPU: use register_buffer."
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (learned.build[2],) * 2:
            return f"mask-is-a-parameter: Your `{name}` is an nn.Parameter, so an optimizer would train it: make the mask a buffer, register_buffer."
    return None


def fails_in_half(module, learned):
    """Name a number that float16 cannot hold, such as a fill value of -1e9."""
    outcome = attempt(fresh(module, learned).half(), sentences(learned).half())
    if "without overflow" not in str(outcome.error):
        return None
    return "too-large-for-float16: Your code uses a number that float16 can't hold, because its range ends at ±65504, so the forward pass fails after module.half(): hide scores with float('-inf')."


def dropout_in_eval(module, learned):
    """Name dropout that stays active in eval mode."""
    x, twin = sentences(learned), fresh(module, learned)
    first, second = twin(x.clone()), twin(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    apart = number((first - second).abs().max().item())
    return f"dropout-in-eval: Your dropout is active in eval mode: two runs on the same input differ by up to {apart}. Use nn.Dropout, which follows the mode; F.dropout needs training=self.training, and dropout_p should be 0 unless self.training."


def dropout_in_training(module, learned):
    """Name what is wrong with the dropout in training mode.

    A single token has one weight per head, so with a single head its output is
    either dropped as a whole or multiplied by 1 / (1 - p).
    """
    p = learned.build[3]
    if not p:
        return None
    twin = type(module)(*learned.build[:4], *[1] * (len(learned.build) - 4))
    for name, parameter in twin.named_parameters():
        parameter.data *= not name.endswith("bias")
    x = sentences(learned, num_tokens=1)
    torch.manual_seed(1)  # an __init__ that seeds must not repeat the dropout
    factors = (twin.train()(x) / twin.eval()(x))[:, 0]
    if factors.isnan().any():  # because of another mistake
        return None
    if torch.allclose(factors, torch.ones(1), atol=1e-3):
        return f"dropout-missing: Your dropout doesn't reach the weights: with dropout {p} a single token has the same output in training mode and in eval mode. Drop entries of the weights, after the softmax."
    if (factors.amax(-1) - factors.amin(-1)).max() > 0.02:
        return "dropout-not-on-weights: You drop entries of something other than the weights, perhaps of the output: drop entries of the weights, after the softmax."
    kept = factors.abs().amax(-1) > 0.02
    share, factor = 1 - kept.double().mean().item(), factors[kept].mean().item()
    if abs(share - p) > 0.2 or abs(factor - 1 / (1 - p)) > 0.02:
        return f"dropout-other-share: You drop {share:.0%} of the weights and multiply the others by {number(factor)}: with dropout {p} it should be {p:.0%} and 1/(1-p) = {number(1 / (1 - p))}."
    return None


def lost_gradient(exercise, answer):
    """Name an input that doesn't get the gradient it gets from the right answer."""
    call, args = answer.bind(exercise.cases[0])
    got = attempt(supervised()(_gradients), call, args).value or [None] * len(args)
    right = _gradients(exercise.right, args)
    for name, gradient, expected in zip(exercise.inputs, got, right):
        if not agrees(gradient, expected):
            return f"no-gradient: No gradient reaches `{name}`, or only a part of it, so nothing before it would be trained: look for .detach(), .data, torch.no_grad(), .item(), .tolist() and torch.tensor(…)."
    return None


def _gradients(function, args):
    """Return for each argument the gradient of the sum of all squares, or None."""
    given = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    floats = [g for g in given if torch.is_tensor(g) and g.is_floating_point()]
    for tensor in floats:
        tensor.requires_grad_()
    value = attempt(function, *given).value
    parts = value if isinstance(value, tuple) else (value,)
    torch.autograd.backward([part.square().sum() for part in parts])
    return [getattr(each, "grad", None) for each in given]


TRAINING_FACTS = (no_gradient, dropout_in_training, mask_not_a_buffer)


class Shapes(TorchFunctionMode):
    """Collects in `sizes` how many entries the tensors made have, and scores."""

    def __init__(self):
        super().__init__()
        self.sizes = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.sizes.add(made.numel())
        if function is torch_attention:
            query, key, *_ = [*args, *(kwargs or {}).values()]
            self.sizes.add(query.shape[-2] * key.shape[-2])
        return made
