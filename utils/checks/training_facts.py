"""What the outputs of eval mode do not show: training, dropout, how a mask is kept.

Each fact is a function `(module, weights) -> Named or None` for
`ModuleExercise(facts=…)`; `weights.build` starts with d_in, d_out, context_length,
dropout and may end with num_heads. `no_gradient` and `changes_in_training` suit any
module.
"""

import copy
import math

import torch

from utils.checks.steps import texts_of
from utils.checks.values import number

FACTS = texts_of(__file__)["FACTS"]
NUM_TOKENS = 3  # fewer than the features of a head, so that weights can be recovered
LOWER = torch.ones(NUM_TOKENS, NUM_TOKENS, device="cpu").tril().bool()


def sentences(d_in, count=64):
    """Return `count` sentences of three orthogonal tokens, `(count, 3, d_in)`."""
    generator = torch.Generator().manual_seed(5)
    made = torch.randn(count, d_in, NUM_TOKENS, generator=generator)
    return 2 * torch.linalg.qr(made).Q.mT.contiguous()


def width(weights):
    """Return the width of the input that a module was built for."""
    return next(size for size in weights.build if type(size) is int)


def fresh(module, weights):
    """Return a new module of the same class: one that holds nothing from a run."""
    return type(module)(*weights.build).eval()


def mask_is_plain(module, weights):
    """Name a mask that `.to(device)` and `state_dict()` know nothing of."""
    for part in fresh(module, weights).modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return FACTS.say("mask-not-buffer", name=name)
    return None


def dropout_in_eval(module, weights):
    """Name dropout that stays active in eval mode."""
    x = sentences(width(weights))
    module.eval()
    first, second = module(x.clone()), module(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    return FACTS.say(
        "dropout-in-eval", apart=number((first - second).abs().max().item())
    )


def dropout_in_training(module, weights):
    """Name what is wrong with the dropout in training mode."""
    p = weights.build[3]
    factors, used, lost = recovered(module, weights, seed=1)
    if lost > 1e-3:
        return FACTS.say("dropout-not-on-weights")
    if (factors - 1).abs().max() < 0.02:
        return FACTS.say("dropout-missing", p=p)
    if ((used.sum(-1) - 1).abs() < 1e-2).all():
        return FACTS.say("dropout-before-softmax")
    again = recovered(module, weights, seed=2)[0]
    return _pattern(factors, again) or _survivors(factors[..., LOWER], p)


def _survivors(factors, p):
    """Look at how many weights survive, and at what becomes of them."""
    kept = factors[factors.abs() > 0.02]
    share = 1 - kept.numel() / factors.numel()
    if abs(share - p) > 0.1:
        return FACTS.say("dropout-other-share", p=p, share=share)
    if ((kept - 1 / (1 - p)).abs() < 0.02).all():
        return None
    return FACTS.say(
        "dropout-not-rescaled",
        p=p,
        factor=number(kept.median().item()),
        right=number(1 / (1 - p)),
    )


def _pattern(factors, again):
    """Look at which weights are dropped together."""
    kept, kept_again = factors.abs() > 0.02, again.abs() > 0.02
    if torch.equal(kept, kept_again) or torch.equal(kept, kept[:1].expand_as(kept)):
        return FACTS.say("dropout-same-mask")
    rows = kept[..., -1, :]  # the last query may attend to all keys
    if torch.equal(rows, rows[..., :1].expand_as(rows)):
        return FACTS.say("dropout-whole-rows")
    return None


def recovered(module, weights, seed):
    """Return factors on the weights, the weights used, and what they do not explain.

    The output of training mode is taken apart: the output projection is undone, then
    the values of each head, which are independent of each other. In float64, because
    undoing a projection can enlarge the rounding of float32 a thousandfold. Weights on
    the future explain nothing: values that were changed before their sum need them.
    """
    x = sentences(weights.build[0]).double()
    twin = fresh(module, weights)
    twin.load_state_dict(module.state_dict(), strict=False)
    torch.manual_seed(seed)  # an __init__ that seeds must not repeat the dropout
    out = twin.double().train()(x).detach().double()
    heads = weights.build[4] if len(weights.build) > 4 else 1
    if heads > 1:
        bias = 0 if weights.out_proj_bias is None else weights.out_proj_bias.double()
        out = (out - bias) @ torch.linalg.inv(weights.out_proj.double())
    query, key, value = (
        _split(x @ getattr(weights, name).double(), heads)
        for name in ("W_query", "W_key", "W_value")
    )
    right = _causal_weights(query, key)
    out = _split(out, heads)
    used = out @ torch.linalg.pinv(value)
    lost = max((used @ value - out).abs().max(), used[..., ~LOWER].abs().max()).item()
    return torch.where(LOWER, used / right, 1.0), used, lost


def _split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _causal_weights(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return torch.softmax(scores.masked_fill(~LOWER, -torch.inf), dim=-1)


def breaks_in_float64(module, weights):
    """Name a module whose forward pass works in float32 alone."""
    twin = fresh(module, weights).double()
    try:
        twin(sentences(weights.build[0]).double())
    except RuntimeError:
        return FACTS.say("float32-alone")
    return None


def no_gradient(module, weights):
    """Name a projection that the loss would not reach."""
    twin = fresh(module, weights)
    output = twin(sentences(weights.build[0]))
    if output.requires_grad:
        output.square().sum().backward()
    for name, parameter in twin.named_parameters():
        if parameter.grad is None and name.partition(".")[0] in vars(weights):
            return FACTS.say("no-gradient", name=name)
    return None


def changes_in_training(module, weights):
    """Name a module whose output depends on the mode, where no dropout is asked for."""
    x = sentences(width(weights))
    right = module.eval()(x.clone())
    trained = module.train()(x.clone())
    module.eval()
    if torch.allclose(right, trained, equal_nan=True):
        return None
    return FACTS.say("changes-in-training")


def fails_in_half(module, weights):
    """Name a fill value that float16 cannot hold."""
    half = copy.deepcopy(module).half().eval()
    try:
        half(sentences(weights.build[0]).half())
    except RuntimeError as error:
        if "without overflow" in str(error):
            return FACTS.say("minus-1e9")
    return None


def mask_is_trained(module, weights):
    """Name a mask that is a parameter."""
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (weights.build[2],) * 2:
            return FACTS.say("mask-is-a-parameter", name=name)
    return None


def future_in_training(module, weights):
    """Name a mask that is not applied in training mode."""
    x = sentences(weights.build[0])
    outputs = []
    module.train()
    for later in (0.0, 1.0):
        torch.default_generator.manual_seed(789)  # the same dropout both times
        outputs.append(module(torch.cat((x[:, :-1], x[:, -1:] + later), dim=1)))
    module.eval()
    moved = (outputs[0] - outputs[1])[:, :-1].abs().max().item()
    if moved < 1e-4:
        return None
    return FACTS.say("mask-off-in-training", moved=number(moved))


TRAINING_FACTS = (
    no_gradient,
    breaks_in_float64,
    dropout_in_training,
    mask_is_plain,
)
