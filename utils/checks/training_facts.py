"""What can only be seen of a causal module over two runs: its dropout and its mask.

Each fact is a function `(module, weights) -> (slug, text) or None` for
`ModuleExercise(facts=…)`; `weights.build` starts with d_in, d_out, context_length,
dropout and may end with num_heads.
"""

import copy
import math

import torch

from utils.checks.values import number

NUM_TOKENS = 3  # fewer than the features of a head, so that weights can be recovered


def sentences(d_in, count=64):
    """Return `count` sentences of three orthogonal tokens, `(count, 3, d_in)`."""
    generator = torch.Generator().manual_seed(5)
    made = torch.randn(count, d_in, NUM_TOKENS, generator=generator)
    return 2 * torch.linalg.qr(made).Q.mT.contiguous()


def mask_is_plain(module, weights):
    """Name a mask that `.to(device)` and `state_dict()` know nothing of."""
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return (
                    "mask-not-buffer",
                    f"The outputs are right, but `{name}` is a plain tensor: it stays "
                    "behind when the module moves to a GPU. Use register_buffer.",
                )
    return None


def dropout_in_eval(module, weights):
    """Name dropout that stays active in eval mode."""
    x = sentences(weights.build[0])
    module.eval()
    first, second = module(x), module(x)
    if torch.equal(first, second):
        return None
    apart = number((first - second).abs().max().item())
    return (
        "dropout-in-eval",
        f"In eval mode two runs on the same input differ by up to {apart}: the dropout "
        "stays active. nn.Dropout follows the mode; F.dropout needs "
        "training=self.training.",
    )


def dropout_in_training(module, weights):
    """Name what is wrong with the dropout in training mode."""
    p = weights.build[3]
    x = sentences(weights.build[0])
    factors, used, lost = recovered(module, weights, x)
    rescaled = number(1 / (1 - p))
    if (factors - 1).abs().max() < 0.02 and lost < 1e-3:
        return (
            "dropout-missing",
            f"In training mode with dropout {p} the output is that of eval mode: "
            "the weights are never dropped.",
        )
    if lost > 1e-3:
        return (
            "dropout-not-on-weights",
            "In training mode the output is no longer a sum of values under some "
            "weights: drop entries of the weights, after the softmax, nothing else.",
        )
    if ((used.sum(-1) - 1).abs() < 1e-2).all():
        return (
            "dropout-before-softmax",
            "In training mode each row of weights still sums to 1: the dropout comes "
            "before the softmax, which scales its rows again. Drop after it.",
        )
    return _survivors(factors, p, rescaled)


def _survivors(factors, p, rescaled):
    kept = factors[factors.abs() > 0.02]
    share = 1 - len(kept) / len(factors)
    if abs(share - p) > 0.1:
        return (
            "dropout-other-share",
            f"With dropout {p} a share of {share:.2f} of the weights is dropped.",
        )
    if ((kept - 1 / (1 - p)).abs() < 0.02).all():
        return None
    return (
        "dropout-not-rescaled",
        f"The surviving weights are multiplied by {number(kept.median().item())}; with "
        f"dropout {p} it is to be 1/(1-p) = {rescaled}, so that the mean stays.",
    )


def recovered(module, weights, x):
    """Return factors on the weights, the weights used, and what no weights explain.

    The output of training mode is taken apart: the output projection is undone, then
    the values of each head, which are independent of each other.
    """
    module.train()
    out = module(x).detach().double()
    module.eval()
    heads = weights.build[4] if len(weights.build) > 4 else 1
    if heads > 1:
        bias = 0 if weights.out_proj_bias is None else weights.out_proj_bias.double()
        out = (out - bias) @ torch.linalg.inv(weights.out_proj.double())
    query, key, value = (
        _split(x.double() @ getattr(weights, name).double(), heads)
        for name in ("W_query", "W_key", "W_value")
    )
    right = _causal_weights(query, key)
    out = _split(out, heads)
    used = out @ torch.linalg.pinv(value)
    lost = (used @ value - out).abs().max().item()
    lower = torch.ones(NUM_TOKENS, NUM_TOKENS).tril().bool().expand_as(right)
    return (used / right)[lower], used, lost


def _split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _causal_weights(query, key):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    blocked = torch.ones(NUM_TOKENS, NUM_TOKENS).triu(1).bool()
    return torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)


def breaks_in_float64(module, weights):
    """Name a module whose forward pass works in float32 alone."""
    twin = copy.deepcopy(module).double().eval()
    x = sentences(weights.build[0]).double()
    try:
        twin(x)
    except RuntimeError:
        return (
            "float32-alone",
            "After module.double() the forward pass fails on float64 input: some "
            "tensor inside is made in float32. Take the dtype from x, dtype=x.dtype.",
        )
    return None


TRAINING_FACTS = (
    dropout_in_eval,
    dropout_in_training,
    mask_is_plain,
    breaks_in_float64,
)
