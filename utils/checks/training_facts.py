"""What the outputs of eval mode do not show: training, dropout, how a mask is kept.

Each fact is a function `(module, weights) -> Named or None` for
`ModuleExercise(facts=…)`; `weights.build` starts with d_in, d_out, context_length,
dropout and may end with num_heads. `no_gradient` and `changes_in_training` suit any
module.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

from utils.checks.attention_heads import right_split
from utils.checks.draw import draws
from utils.checks.guard import attempt
from utils.checks.steps import texts_of
from utils.checks.values import number

FACTS = texts_of(__file__)["FACTS"]
NUM_TOKENS = 3  # fewer than the features of a head, so that weights can be recovered
LOWER = torch.ones(NUM_TOKENS, NUM_TOKENS, device="cpu").tril().bool()


def sentences(weights):
    """Return 64 sentences of three orthogonal tokens, as wide as the module's input."""
    width = next(size for size in weights.build if type(size) is int)
    return 2 * torch.linalg.qr(draws(5)(64, width, NUM_TOKENS)).Q.mT.contiguous()


def fresh(module, weights):
    """Return a new module of the same class: one that holds nothing from a run."""
    return type(module)(*weights.build).eval()


def mask_is_plain(module, weights):
    """Name a mask that `.to(device)` and `state_dict()` know nothing of."""
    for part in fresh(module, weights).modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return FACTS.name("mask-not-buffer", name=name)
    return None


def dropout_in_eval(module, weights):
    """Name dropout that stays active in eval mode."""
    x = sentences(weights)
    first, second = module.eval()(x.clone()), module(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    apart = number((first - second).abs().max().item())
    return FACTS.name("dropout-in-eval", apart=apart)


def dropout_in_training(module, weights):
    """Name what is wrong with the dropout in training mode."""
    p = weights.build[3]
    factors, used, lost = recovered(module, weights, seed=1)
    kept = factors.abs() > 0.02
    again = recovered(module, weights, seed=2)[0].abs() > 0.02
    same = torch.equal(kept, again) or (kept == kept[:1]).all()
    sums = used.sum(-1)  # of rows that do not fall as a whole
    whole = ((sums - 1).abs() < 1e-2)[kept.masked_fill(~LOWER, False).any(-1)].all()
    empty = not kept[..., LOWER].all()
    rows = kept[..., -1, :]  # the last query may attend to all keys
    share = 1 - kept[..., LOWER].double().mean().item()
    survivors, right = factors[kept & LOWER], 1 / (1 - p)
    unscaled = not ((survivors - right).abs() < 0.02).all()
    factor, right = number(survivors.median().item()), number(right)
    found = {
        FACTS.name("nan-in-training"): factors.isnan().any(),
        FACTS.name("dropout-not-on-weights"): lost > 1e-3,
        FACTS.name("dropout-missing", p=p): (factors - 1).abs().max() < 0.02,
        FACTS.name("rows-sum-to-one"): whole and empty,
        FACTS.name("dropout-before-softmax"): whole,
        FACTS.name("dropout-same-mask"): same,
        FACTS.name("dropout-whole-rows"): (rows == rows[..., :1]).all(),
        FACTS.name("dropout-other-share", p=p, share=share): abs(share - p) > 0.1,
        FACTS.name("dropout-not-rescaled", p=p, factor=factor, right=right): unscaled,
    }
    return next((name for name, holds in found.items() if holds), None)


def recovered(module, weights, seed):
    """Return factors on the weights, the weights used, and what they do not explain.

    The output of training mode is taken apart: the output projection is undone, then
    the values of each head, which are independent of each other. In float64, because
    undoing a projection can enlarge the rounding of float32 a thousandfold. Weights on
    the future explain nothing: values that were changed before their sum need them.
    """
    x = sentences(weights).double()
    twin = fresh(module, weights)
    twin.load_state_dict(module.state_dict(), strict=False)
    torch.manual_seed(seed)  # an __init__ that seeds must not repeat the dropout
    out = twin.double().train()(x).detach().double()
    heads = weights.build[4] if len(weights.build) > 4 else 1
    if heads > 1:
        bias = 0 if weights.out_proj_bias is None else weights.out_proj_bias.double()
        out = (out - bias) @ torch.linalg.inv(weights.out_proj.double())
    learned = weights.W_query, weights.W_key, weights.W_value
    parts = *(x @ matrix.double() for matrix in learned), out
    query, key, value, out = (right_split(part, heads) for part in parts)
    eye = torch.eye(NUM_TOKENS).double().expand(*query.shape[:2], -1, -1)
    right = scaled_dot_product_attention(query, key, eye, is_causal=True)
    used = out @ torch.linalg.pinv(value)
    lost = max((used @ value - out).abs().max(), used[..., ~LOWER].abs().max()).item()
    return torch.where(LOWER, used / right, 1.0), used, lost


def breaks_in_float64(module, weights):
    """Name a module whose forward pass works in float32 alone."""
    found = attempt(fresh(module, weights).double(), sentences(weights).double())
    return FACTS.name("float32-alone") if found.error else None


def no_gradient(module, weights):
    """Name a projection that the loss would not reach."""
    twin = fresh(module, weights)
    output = twin(sentences(weights))
    if output.requires_grad:
        output.square().sum().backward()
    for name, parameter in twin.named_parameters():
        if parameter.grad is None and name.partition(".")[0] in vars(weights):
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


def mask_is_trained(module, weights):
    """Name a mask that is a parameter."""
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (weights.build[2],) * 2:
            return FACTS.name("mask-is-a-parameter", name=name)
    return None


def future_in_training(module, weights):
    """Name a mask that is not applied in training mode."""
    x, outputs = sentences(weights), []
    module.train()
    for later in (0.0, 1.0):
        torch.default_generator.manual_seed(789)  # the same dropout both times
        outputs.append(module(torch.cat((x[:, :-1], x[:, -1:] + later), dim=1)))
    module.eval()
    moved = (outputs[0] - outputs[1])[:, :-1].abs().max().item()
    if moved < 1e-4:
        return None
    return FACTS.name("mask-off-in-training", moved=number(moved))


TRAINING_FACTS = (
    no_gradient,
    breaks_in_float64,
    dropout_in_training,
    mask_is_plain,
    fails_in_half,
    mask_is_trained,
)
