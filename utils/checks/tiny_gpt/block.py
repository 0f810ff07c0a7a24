"""Exercise 9.1: the block, two sublayers that add to a stream."""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.draw import draws, integers
from utils.checks.engine import case
from utils.checks.modules import ModuleExercise
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.training_facts import changes_in_training, fresh
from utils.checks.values import numbers

TEXTS = texts_of(__file__)
FACTS = TEXTS["FACTS"]
draw = draws(9)


class Part(nn.Module):
    """A stand-in for a sublayer; in attention a token sees those before it too."""

    def __init__(self, name, d_model):
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(draw(d_model, d_model))

    def __repr__(self):
        return self.name

    def forward(self, x):
        if self.name == "attention":
            seen = torch.arange(1, x.shape[-2] + 1, dtype=x.dtype, device=x.device)
            x = x.cumsum(-2) / seen[:, None]
        return torch.tanh(x @ self.weight)


def parts(d_model):
    """Return what a block is built with."""
    return Part("attention", d_model), Part("feed_forward", d_model), d_model


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def right_block(weights, x, norm1=layer_norm, norm2=layer_norm):
    attention, feed_forward, _ = weights.build
    x = x + attention(norm1(x))
    return x + feed_forward(norm2(x))


def start(weights, x):
    return {"x": x, "attention": weights.build[0], "mlp": weights.build[1]}


STEPS = {
    "norm": lambda s: layer_norm,
    "read": lambda s: s.norm(s.x),
    "gathered": lambda s: s.attention(s.read),
    "middle": lambda s: s.x + s.gathered,
    "read2": lambda s: s.norm(s.middle),
    "worked": lambda s: s.mlp(s.read2),
    "stream": lambda s: s.middle + s.worked,
    "result": lambda s: s.stream,
}
BOTH, FIRST, SECOND = (
    {"where": where}
    for where in ("In both halves", "In the first half", "In the second half")
)
IN_HALVES = {  # what may go wrong in one half or in both
    "post-norm": (
        {"read": lambda s: s.x, "middle": lambda s: s.norm(s.x + s.gathered)},
        {"read2": lambda s: s.middle, "stream": lambda s: s.norm(s.middle + s.worked)},
    ),
    "norm-after-sublayer": (
        {"read": lambda s: s.x, "gathered": lambda s: s.norm(s.attention(s.x))},
        {"read2": lambda s: s.middle, "worked": lambda s: s.norm(s.mlp(s.middle))},
    ),
    "residual-after-norm": (
        {"middle": lambda s: s.read + s.gathered},
        {"stream": lambda s: s.read2 + s.worked},
    ),
    "sublayer-subtracted": (
        {"middle": lambda s: s.x - s.gathered},
        {"stream": lambda s: s.middle - s.worked},
    ),
}
ALONE, ALONE2 = {"middle": lambda s: s.gathered}, {"stream": lambda s: s.worked}
BARE, BARE2 = {"read": lambda s: s.x}, {"read2": lambda s: s.middle}
MLP_FIRST = {"gathered": lambda s: s.mlp(s.read)}
ATTENTION_LAST = {"worked": lambda s: s.attention(s.read2)}
FROM_START = {"stream": lambda s: s.x + s.worked}

FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
for slug, (first, second) in IN_HALVES.items():
    wrong(slug, BOTH, **first, **second)
    wrong(slug, FIRST, **first)
    wrong(slug, SECOND, **second)
wrong("residuals-missing", **ALONE, **ALONE2)
wrong("attention-residual-missing", **ALONE)
wrong("mlp-residual-missing", **ALONE2)
wrong("one-residual-for-both", **ALONE, **FROM_START)
wrong("first-residual-lost", **FROM_START)
wrong("input-added-twice", stream=lambda s: s.x + s.middle + s.worked)
wrong("sublayers-parallel", read2=lambda s: s.norm(s.x))
wrong("mlp-reads-attention-alone", read2=lambda s: s.norm(s.gathered))
wrong("order-swapped", **MLP_FIRST, **ATTENTION_LAST)
wrong("attention-twice", **ATTENTION_LAST)
wrong("mlp-twice", **MLP_FIRST)
wrong("norms-unused", **BARE, **BARE2)
wrong("first-norm-unused", **BARE)
wrong("second-norm-unused", **BARE2)
wrong("norm-at-the-end", result=lambda s: s.norm(s.stream))
wrong("rms-norm", norm=lambda s: lambda x: F.rms_norm(x, x.shape[-1:]))
wrong("mlp-missing", stream=lambda s: s.middle)
wrong("attention-missing", middle=lambda s: s.x)


def norms_missing(module, weights):
    """Name norms that are not there under their names, or have nothing to learn."""
    for name in ("norm1", "norm2"):
        weight = getattr(getattr(module, name, None), "weight", None)
        if not isinstance(weight, nn.Parameter):
            return FACTS.say("norms-missing", name=name)
    return None


def norms_mixed_up(module, weights):
    """Name one norm for both places, or the two exchanged, by giving them weights."""
    twin = fresh(module, weights)
    norms, d_model = (twin.norm1, twin.norm2), weights.build[2]
    if norms[0] is norms[1] or norms[0].weight is norms[1].weight:
        return FACTS.say("one-norm-shared")
    x = integers(-5, 6, (2, 3, d_model), seed=9).float()
    with torch.no_grad():
        for norm, scale in zip(norms, (2.0, -1.0)):
            norm.weight.copy_(torch.linspace(0.5, scale, d_model))
        got = twin(x.clone())
        for first, second in ((0, 0), (1, 1), (1, 0)):
            tried = right_block(weights, x, norms[first], norms[second])
            if torch.allclose(got, tried, atol=1e-4):
                swapped = FACTS.say("norms-swapped")
                return FACTS.say("one-norm-shared") if first == second else swapped
    return None


def sublayers_unregistered(module, weights):
    """Name sublayers whose weights `module.parameters()` does not list."""
    held = [parameter.detach() for parameter in module.parameters()]
    for part in weights.build[:2]:
        if not any(torch.equal(part.weight, parameter) for parameter in held):
            return FACTS.say("weights-not-registered", part=part)
    return None


def no_gradient(module, weights):
    """Name a block that no gradient passes."""
    x = integers(-5, 6, (2, 3, weights.build[2]), seed=9).float()
    return None if module(x).requires_grad else FACTS.say("no-gradient")


def stages(evidence):
    """Property: say what the stream of the first token is to be on the way."""
    weights, x = evidence.args
    streams = x, x + weights.build[0](layer_norm(x)), evidence.expected
    said = (numbers(stream[0, 0]) for stream in streams)
    return TEXTS["PROPERTIES"]["stages"].format(*said)


FIVE, SEVEN = parts(5), parts(7)
transformer_block = ModuleExercise(
    id="9.1",
    signature="TransformerBlock(attention, feed_forward, d_model)",
    returns="from x (B, T, D) the output (B, T, D), with its own norm1 and norm2",
    oracle=right_block,
    projections=(),
    properties=[stages],
    pipeline=Pipeline(start, STEPS, FORMS),
    facts=[
        norms_missing,
        sublayers_unregistered,
        norms_mixed_up,
        no_gradient,
        changes_in_training,
    ],
    cases=[
        case(draw(1, 3, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(2, 7, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(3, 11, 7, scale=3.0), build=SEVEN, note="another width"),
        case(draw(2, 1, 7, scale=30.0), build=SEVEN, note="one large token"),
    ],
)
