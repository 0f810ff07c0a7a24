"""What the outputs of eval mode don't show: training, dropout, how a mask is stored.

Each fact is a function `(module, weights) -> Diagnosis or None`; `weights.build` starts
with d_in, d_out, context_length, dropout and may end with num_heads. `no_gradient` and
`changes_in_training` suit any module.
"""

from types import SimpleNamespace

import torch

from utils.checks.guard import attempt
from utils.checks.inputs import draw
from utils.checks.pipeline import Diagnosis
from utils.checks.steps.heads import right_split
from utils.checks.values import number

NUM_TOKENS = 3  # fewer than the features of a head, so that weights can be recovered


def sentences(weights):
    """Return 64 sentences of three orthogonal tokens, as wide as the module's input."""
    width = next(size for size in weights.build if type(size) is int)
    return 2 * torch.linalg.qr(draw(64, width, NUM_TOKENS)).Q.mT.contiguous()


def fresh(module, weights):
    """Return a new module of the same class: one that holds nothing from a run."""
    return type(module)(*weights.build).eval()


def without_dropout(build):
    """Return the arguments that build a module, with 0 for the one that is a float."""
    return tuple(0.0 if type(size) is float else size for size in build)


def mask_not_a_buffer(module, weights):
    """Name a mask that `.to(device)` forgets, or that an optimizer trains."""
    for part in fresh(module, weights).modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 2:
                return Diagnosis(
                    "mask-not-buffer",
                    f"Your `{name}` is a plain tensor, so it stays behind when the module moves to a GPU: use register_buffer.",
                )
    for name, parameter in module.named_parameters():
        if parameter.shape[-2:] == (weights.build[2],) * 2:
            return Diagnosis(
                "mask-is-a-parameter",
                f"Your `{name}` is an nn.Parameter, so an optimizer would train it: make the mask a buffer, register_buffer.",
            )
    return None


def dropout_in_eval(module, weights):
    """Name dropout that stays active in eval mode."""
    x, twin = sentences(weights), fresh(module, weights)
    first, second = twin(x.clone()), twin(x.clone())
    if torch.allclose(first, second, equal_nan=True):
        return None
    apart = number((first - second).abs().max().item())
    return Diagnosis(
        "dropout-in-eval",
        f"Your dropout is active in eval mode: two runs on the same input differ by up to {apart}. Use nn.Dropout, which follows the mode; F.dropout needs training=self.training.",
    )


def dropout_in_training(module, weights):  # noqa: C901 (one question after another)
    """Name what is wrong with the dropout in training mode.

    Weights in training mode are compared with those of eval mode, right or not, so the
    dropout is seen beside a mistake in the weights. Where the output isn't made of the
    values, only a dropout that is missing is seen.
    """
    p = weights.build[3]
    if not p:
        return None
    if torch.allclose(*(outputs(module, weights, seed) for seed in (None, 1))):
        return Diagnosis(
            "dropout-missing",
            f"You never drop any weights: with dropout {p} the output is the same in training mode and in eval mode.",
        )
    before, unknown = recovered(module, weights)
    if unknown > 1e-3:
        return None
    seen = before.abs() > 1e-6
    used, lost = recovered(module, weights, seed=1)
    factors, again = (
        torch.where(seen, some / before, 1.0)
        for some in (used, recovered(module, weights, seed=2)[0])
    )
    if factors.isnan().any():
        return Diagnosis(
            "nan-in-training",
            "Your output holds NaN in training mode, as from a dropout on hidden scores, where 0 · −∞ is NaN. Drop entries of the weights, after the softmax.",
        )
    calm = SimpleNamespace(**vars(weights) | {"build": without_dropout(weights.build)})
    leaked = (recovered(module, calm, seed=1)[0] * ~seen).abs().max().item()
    if leaked > 1e-3:
        return Diagnosis(
            "mask-off-in-training",
            f"You give hidden tokens a weight of up to {number(leaked)} in training mode: hide the future in both modes.",
        )
    if max(lost, (used * ~seen).abs().max().item()) > 1e-3:
        return Diagnosis(
            "dropout-not-on-weights",
            "You drop something other than the weights: in training mode the output is no longer a weighted sum of the values so far. Drop entries of the weights, after the softmax.",
        )
    kept, again = factors.abs() > 0.02, again.abs() > 0.02
    sums = used.sum(-1) - before.sum(-1)  # of rows that do not fall as a whole
    if (sums.abs() < 1e-2)[(kept & seen).any(-1)].all():
        if not kept[seen].all():
            return Diagnosis(
                "rows-sum-to-one",
                "You make each row of weights sum to 1 again after the dropout. Let the dropout come last: its factor 1/(1-p) keeps the sum on average.",
            )
        return Diagnosis(
            "dropout-before-softmax",
            "You apply dropout before the softmax, which makes each row sum to 1 again: apply it to the weights.",
        )
    rows = kept[..., -1, :]  # the last query may attend to all keys
    if torch.equal(kept, again) or (kept == kept[:1]).all():
        return Diagnosis(
            "dropout-same-mask",
            "You drop the same weights again and again: draw a new mask for each entry of the weights in each forward pass.",
        )
    if (rows == rows[..., :1]).all():
        return Diagnosis(
            "dropout-whole-rows",
            "You drop whole rows of weights, so a query gets all of its context or none: draw each entry of the weights on its own.",
        )
    share = 1 - kept[seen].double().mean().item()
    if not kept[seen].all() and abs(share - p) > 0.1:
        return Diagnosis(
            "dropout-other-share",
            f"You drop {share:.0%} of the weights: with dropout {p} it should be {p:.0%}.",
        )
    survivors, right = factors[kept & seen], 1 / (1 - p)
    alike = survivors.max() - survivors.min() < 0.02  # or it says nothing
    if alike and ((survivors - right).abs() > 0.02).any():
        factor = number(survivors.median().item())
        return Diagnosis(
            "dropout-not-rescaled",
            f"You multiply the surviving weights by {factor}: with dropout {p} it should be 1/(1-p) = {number(right)}, so that the mean stays.",
        )
    return None


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
    if not attempt(fresh(module, weights).double(), sentences(weights).double()).error:
        return None
    return Diagnosis(
        "float32-alone",
        "You make a tensor in float32 inside, so after module.double() the forward pass fails on float64 input: take the dtype from x, dtype=x.dtype.",
    )


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
                return Diagnosis(
                    "no-gradient",
                    f"Your `{name}` would never be trained, because no gradient reaches it: look for torch.no_grad(), .detach() or requires_grad=False.",
                )
    return None


def changes_in_training(module, weights):
    """Name a module whose output depends on the mode, where no dropout is asked for."""
    x = sentences(weights)
    right, trained = module.eval()(x.clone()), module.train()(x.clone())
    module.eval()
    if torch.allclose(right, trained, equal_nan=True):
        return None
    return Diagnosis(
        "changes-in-training",
        "Your output changes in training mode: this exercise asks for no dropout.",
    )


def fails_in_half(module, weights):
    """Name a fill value that float16 cannot hold."""
    found = attempt(fresh(module, weights).half(), sentences(weights).half())
    if "without overflow" not in str(found.error):
        return None
    return Diagnosis(
        "minus-1e9",
        "Your -1e9 doesn't fit into float16, whose smallest number is -65504, so the forward pass fails after module.half(): use float('-inf').",
    )


TRAINING_FACTS = (
    no_gradient,
    breaks_in_float64,
    dropout_in_training,
    mask_not_a_buffer,
    fails_in_half,
)
