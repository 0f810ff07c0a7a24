"""Probes on layers, see `ModuleAnswer`: training, dropout, a mask, what is computed."""

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention
from torch.overrides import TorchFunctionMode

from utils.checks.engine.mistakes import Diagnosis
from utils.checks.engine.values import agrees, format_number

# Shares are equal if they differ by less, five standard deviations of what is dropped.
NOISE = 0.08


def draw_sentences(learned):
    """Return 64 sentences `(64, 4, D)`, as wide as the module's input."""
    width = getattr(learned.build, "d_in", None) or learned.build.d_model
    return torch.randn(64, 4, width, generator=torch.Generator().manual_seed(0))


def rebuild(module, learned):
    """Return a new module of the same class, without the state of earlier runs."""
    return type(module)(*learned.build).eval()


def without_dropout(build):
    """Return the arguments that build the same module with dropout 0."""
    return build._replace(dropout=0.0) if "dropout" in build._fields else build


def no_gradient(module, learned):
    """Name a parameter that changes the output but gets no gradient."""
    twin, x = rebuild(module, learned), draw_sentences(learned)
    output = twin(x)
    if output.requires_grad:
        output.square().sum().backward()
    for name, parameter in twin.named_parameters():
        if parameter.grad is None and parameter.is_floating_point():
            parameter.data.mul_(2)
            if not torch.equal(output, twin(x)):
                return Diagnosis("no-gradient", f"Your `{name}` would never be trained, because no gradient reaches it: look for torch.no_grad(), .detach() or requires_grad=False.")  # fmt: skip
    return None


def changes_in_training(module, learned):
    """Name a module whose output depends on the mode, with dropout 0."""
    build, x = without_dropout(learned.build), draw_sentences(learned)
    twin = type(module)(*build).eval()
    first, second, trained = twin(x.clone()), twin(x.clone()), twin.train()(x.clone())
    if agrees(trained, first) or not agrees(second, first):  # random in both modes
        return None
    return Diagnosis("changes-in-training", "Your output changes in training mode even without dropout: mask, scale and all else should be the same in both modes. Drop nothing but what the card asks for, with the share that __init__ gets.")  # fmt: skip


def mask_not_a_buffer(module, learned):
    """Name a mask that `.to(device)` forgets."""
    for submodule in rebuild(module, learned).modules():
        for name, value in vars(submodule).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return Diagnosis("mask-not-buffer", f"Your `{name}` is a plain tensor, so it stays behind when the module moves to a GPU: use register_buffer.")  # fmt: skip
    return None


def dropout_in_eval(module, learned):
    """Name dropout that stays active in eval mode."""
    x, twin = draw_sentences(learned), rebuild(module, learned)
    first, second = twin(x.clone()), twin(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    gap = format_number((first - second).abs().max().item())
    return Diagnosis("dropout-in-eval", f"Your dropout is active in eval mode: two runs on the same input differ by up to {gap}. Use nn.Dropout, which follows the mode; F.dropout needs training=self.training, and dropout_p should be 0 unless self.training.")  # fmt: skip


def wrong_in_training(module, learned):
    """Name what is wrong in training mode, with dropout 0 or else with the dropout."""
    if change := changes_in_training(module, learned):
        return change
    x, p = draw_sentences(learned), learned.build.dropout
    torch.manual_seed(1)
    y_train, y_eval = module.train()(x.clone()), module.eval()(x.clone())
    none_dropped = Diagnosis("dropout-missing", f"Your dropout drops no weights: with dropout {p} each should be 0 with this probability in training mode. Drop entries of the weights, after the softmax.")  # fmt: skip
    not_on_weights = Diagnosis("dropout-not-on-weights", "It looks as if you drop entries of something other than the weights, perhaps of the output: drop entries of the weights, after the softmax.")  # fmt: skip
    if not p or agrees(y_train, y_eval):
        return none_dropped if p else None
    w_eval, w_train = (recover_weights(y, x, learned) for y in (y_eval, y_train))
    if w_eval is None or w_eval.isnan().any():  # because of another mistake
        return None
    if w_eval.shape[1] > 1 and (w_eval.diff(dim=1).abs() < NOISE).all():  # not split
        return None
    if w_train is None:
        return not_on_weights
    visible = w_eval > NOISE  # smaller ones can't be told from 0
    dropped = visible & (w_train.abs() < NOISE * w_eval)
    if not dropped.any():  # or all are NaN
        return none_dropped
    if are_dropped_together(dropped, visible):
        return Diagnosis("dropout-together", "Your dropout drops several weights together, such as a whole row, head or sentence: draw for each weight by itself, as nn.Dropout does with all weights, after the softmax.")  # fmt: skip
    factors = (w_train / w_eval)[visible & ~dropped]
    if factors.max() - factors.min() > NOISE:
        return Diagnosis("dropout-not-on-weights", "In training mode the weights that stay are multiplied by different factors: drop entries of the weights after the softmax, and don't divide by their sum again.")  # fmt: skip
    drop_share, factor = (dropped.sum() / visible.sum()).item(), factors.mean().item()
    if max(abs(drop_share - p), abs(factor - 1 / (1 - p))) > NOISE:
        return Diagnosis("dropout-other-share", f"You drop about {drop_share:.0%} of the weights and multiply the others by {format_number(factor)}: with dropout {p} it should be {p:.0%} and 1/(1-p) = {format_number(1 / (1 - p))}, so that the average stays the same.")  # fmt: skip
    return None


def recover_weights(output, x, learned):
    """Return the weights (B, H, T, S) that give this output, or None if none do.

    Four tokens are fewer than a head's features, so there is one solution.
    """
    heads, size = getattr(learned.build, "num_heads", 1), learned.build.d_out
    mix = getattr(learned, "out_proj", torch.eye(size)).unflatten(0, (heads, -1))
    values = (x @ learned.W_value).unflatten(-1, (heads, -1)).transpose(1, 2)
    factors = (values @ mix).flatten(1, 2).double()  # what each weight is multiplied by
    bias = getattr(learned, "out_proj_bias", None)
    output = output.double() - (0 if bias is None else bias)
    weights = output @ torch.linalg.pinv(factors)
    if (weights @ factors - output).abs().max() > NOISE * output.std():
        return None
    return weights.unflatten(-1, (heads, -1)).transpose(1, 2)


def are_dropped_together(dropped, visible):
    """Return whether along an axis all neighbours are dropped together, or none."""
    for axis in range(4):  # sentence, head, query, key
        if visible.shape[axis] > 1:
            is_pair_visible = visible.unfold(axis, 2, 1).all(-1)
            pairs = dropped.unfold(axis, 2, 1)[is_pair_visible]
            # With p = 0.2, 30 pairs of separate coins agree once in 100,000 times.
            if len(pairs) > 30 and (pairs[:, 0] == pairs[:, 1]).all():
                return True
    return False


TRAINING_PROBES = (no_gradient, wrong_in_training, mask_not_a_buffer)


class Shapes(TorchFunctionMode):
    """Collects in `sizes` how many entries the tensors made have, and scores."""

    def __init__(self):
        super().__init__()
        self.sizes = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        if isinstance(output, torch.Tensor):
            self.sizes.add(output.numel())
        if function is torch_attention:
            query, key, *_ = [*args, *(kwargs or {}).values()]
            self.sizes.add(query.shape[-2] * key.shape[-2])
        return output
