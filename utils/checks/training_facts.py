"""What the outputs of eval mode do not show: training, dropout, how a mask is kept.

Each fact is a function `(module, weights) -> Named or None` for
`ModuleExercise(when_right=…)`; `weights.build` starts with d_in, d_out, context_length,
dropout and may end with num_heads. `no_gradient` and `changes_in_training` suit any
module.
"""

from types import SimpleNamespace

import torch

from utils.checks.attention_heads import right_split
from utils.checks.draw import draws
from utils.checks.guard import attempt
from utils.checks.steps import texts_of
from utils.checks.values import number

FACTS = texts_of(__file__)["FACTS"]
NUM_TOKENS = 3  # fewer than the features of a head, so that weights can be recovered


def sentences(weights):
    """Return 64 sentences of three orthogonal tokens, as wide as the module's input."""
    width = next(size for size in weights.build if type(size) is int)
    return 2 * torch.linalg.qr(draws(5)(64, width, NUM_TOKENS)).Q.mT.contiguous()


def fresh(module, weights):
    """Return a new module of the same class: one that holds nothing from a run."""
    return type(module)(*weights.build).eval()


def without_dropout(build):
    """Return the arguments that build a module, with 0 for the one that is a float."""
    return tuple(0.0 if type(size) is float else size for size in build)


def mask_kept_otherwise(module, weights):
    """Name a mask that `.to(device)` forgets, or that an optimizer trains."""
    for part in fresh(module, weights).modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return FACTS.name("mask-not-buffer", name=name)
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (weights.build[2],) * 2:
            return FACTS.name("mask-is-a-parameter", name=name)
    return None


def dropout_in_eval(module, weights):
    """Name dropout that stays active in eval mode."""
    x, twin = sentences(weights), fresh(module, weights)
    first, second = twin(x.clone()), twin(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    apart = number((first - second).abs().max().item())
    return FACTS.name("dropout-in-eval", apart=apart)


def dropout_in_training(module, weights):
    """Name what is wrong with the dropout in training mode.

    Weights in training mode are compared with those of eval mode, right or not: so the
    dropout is seen beside a mistake in the weights. Where the values are others than
    those of the weights, only a dropout that is missing is seen.
    """
    p = weights.build[3]
    if not p:
        return None
    if torch.allclose(*(outputs(module, weights, seed) for seed in (None, 1))):
        return FACTS.name("dropout-missing", p=p)
    before, unknown = recovered(module, weights)
    if unknown > 1e-3:
        return None
    seen = before.abs() > 1e-6
    used, lost = recovered(module, weights, seed=1)
    factors, again = (
        torch.where(seen, some / before, 1.0)
        for some in (used, recovered(module, weights, seed=2)[0])
    )
    calm = SimpleNamespace(**vars(weights) | {"build": without_dropout(weights.build)})
    leaked = (recovered(module, calm, seed=1)[0] * ~seen).abs().max().item()
    lost = max(lost, (used * ~seen).abs().max().item())
    kept, again = factors.abs() > 0.02, again.abs() > 0.02
    same = torch.equal(kept, again) or (kept == kept[:1]).all()
    sums = used.sum(-1) - before.sum(-1)  # of rows that do not fall as a whole
    whole = (sums.abs() < 1e-2)[(kept & seen).any(-1)].all()
    empty = not kept[seen].all()
    rows = kept[..., -1, :]  # the last query may attend to all keys
    share = 1 - kept[seen].double().mean().item() if empty else p
    survivors, right = factors[kept & seen], 1 / (1 - p)
    off = (survivors - right).abs() > 0.02  # all by one factor, or it says nothing
    unscaled = off.any() and survivors.max() - survivors.min() < 0.02
    factor, right = number(survivors.median().item()), number(right)
    found = {
        FACTS.name("nan-in-training"): factors.isnan().any(),
        FACTS.name("mask-off-in-training", leaked=number(leaked)): leaked > 1e-3,
        FACTS.name("dropout-not-on-weights"): lost > 1e-3,
        FACTS.name("rows-sum-to-one"): whole and empty,
        FACTS.name("dropout-before-softmax"): whole,
        FACTS.name("dropout-same-mask"): same,
        FACTS.name("dropout-whole-rows"): (rows == rows[..., :1]).all(),
        FACTS.name("dropout-other-share", p=p, share=share): abs(share - p) > 0.1,
        FACTS.name("dropout-not-rescaled", p=p, factor=factor, right=right): unscaled,
    }
    return next((name for name, holds in found.items() if holds), None)


def outputs(module, weights, seed=None):
    """Return the output of a new copy, in training mode where a seed is given.

    In float64, because undoing a projection can enlarge the rounding of float32 a
    thousandfold.
    """
    twin = fresh(module, weights)
    twin.load_state_dict(module.state_dict(), strict=False)
    torch.manual_seed(seed or 0)  # an __init__ that seeds must not repeat the dropout
    return twin.double().train(bool(seed))(sentences(weights).double()).detach()


def recovered(module, weights, seed=None):
    """Return the weights that were used, and what they do not explain.

    The output is taken apart: the output projection is undone, then the values of each
    head, which are independent of each other. Weights on the future explain nothing:
    values that were changed before their sum need them.
    """
    out = outputs(module, weights, seed)
    heads = weights.build[4] if len(weights.build) > 4 else 1
    if heads > 1:
        bias = 0 if weights.out_proj_bias is None else weights.out_proj_bias.double()
        out = (out - bias) @ torch.linalg.inv(weights.out_proj.double())
    value = right_split(sentences(weights).double() @ weights.W_value.double(), heads)
    out = right_split(out, heads)
    used = out @ torch.linalg.pinv(value)
    return used, (used @ value - out).abs().max().item()


def breaks_in_float64(module, weights):
    """Name a module whose forward pass works in float32 alone."""
    found = attempt(fresh(module, weights).double(), sentences(weights).double())
    return FACTS.name("float32-alone") if found.error else None


def no_gradient(module, weights):
    """Name a matrix that the output depends on, and that the loss does not reach."""
    twin, x = fresh(module, weights), sentences(weights)
    output = twin(x)
    if output.requires_grad:
        output.square().sum().backward()
    for name, parameter in twin.named_parameters():
        if parameter.grad is None and parameter.is_floating_point():
            parameter.data.mul_(2)
            if not torch.equal(output, twin(x)):
                return FACTS.name("no-gradient", name=name)
    return None


def changes_in_training(module, weights):
    """Name a module whose output depends on the mode, where no dropout is asked for."""
    x = sentences(weights)
    right, trained = module.eval()(x.clone()), module.train()(x.clone())
    module.eval()
    same = torch.allclose(right, trained, equal_nan=True)
    return None if same else FACTS.name("changes-in-training")


def fails_in_half(module, weights):
    """Name a fill value that float16 cannot hold."""
    found = attempt(fresh(module, weights).half(), sentences(weights).half())
    return FACTS.name("minus-1e9") if "without overflow" in str(found.error) else None


TRAINING_FACTS = (
    no_gradient,
    breaks_in_float64,
    dropout_in_training,
    mask_kept_otherwise,
    fails_in_half,
)
