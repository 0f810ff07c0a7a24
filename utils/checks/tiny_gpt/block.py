"""Exercise 9.1: the block, two sublayers that add to a stream."""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks import training_facts
from utils.checks.draw import draws
from utils.checks.engine import case
from utils.checks.modules import ModuleExercise
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.training_facts import changes_in_training, fresh, sentences
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


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def right_block(weights, x, norm1=layer_norm, norm2=layer_norm):
    attention, feed_forward, _ = weights.build
    x = x + attention(norm1(x))
    return x + feed_forward(norm2(x))


def start(weights, x):
    attention, feed_forward, _ = weights.build
    return {"x": x, "start": x, "attention": attention, "mlp": feed_forward}


def second(first):
    """Return the same steps for the second half of the block."""
    return {f"{name}2": way for name, way in first.items()}


HALF = {
    "read": lambda s: s.norm(s.x),
    "wrote": lambda s: s.part(s.read),
    "add": lambda s: s.x + s.wrote,
}
STEPS = {
    "norm": lambda s: layer_norm,
    "part": lambda s: s.attention,
    **HALF,
    "part2": lambda s: s.mlp,
    **second(HALF),
    "result": lambda s: s.x,
}
GIVES = {"part2": "part", "read2": "read", "wrote2": "wrote", "add": "x", "add2": "x"}

ALONE, BARE = {"add": lambda s: s.wrote}, {"read": lambda s: s.x}
IN_HALVES = {  # what may go wrong in one half or in both
    "post-norm": {**BARE, "add": lambda s: s.norm(s.x + s.wrote)},
    "norm-after-sublayer": {**BARE, "wrote": lambda s: s.norm(s.part(s.read))},
    "residual-after-norm": {"add": lambda s: s.read + s.wrote},
    "sublayer-subtracted": {"add": lambda s: s.x - s.wrote},
}
FROM_START = {"add2": lambda s: s.start + s.wrote}
MLP_FIRST, ATTENTION_LAST = {"part": lambda s: s.mlp}, {"part2": lambda s: s.attention}

FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
for slug, first in IN_HALVES.items():
    wrong(slug, {"where": "In both halves"}, **first, **second(first))
    wrong(slug, {"where": "In the first half"}, **first)
    wrong(slug, {"where": "In the second half"}, **second(first))
wrong("residuals-missing", **ALONE, **second(ALONE))
wrong("attention-residual-missing", **ALONE)
wrong("mlp-residual-missing", **second(ALONE))
wrong("one-residual-for-both", **ALONE, **FROM_START)
wrong("first-residual-lost", **FROM_START)
wrong("input-added-twice", result=lambda s: s.x + s.start)
wrong("sublayers-parallel", read2=lambda s: s.norm(s.start))
wrong("mlp-reads-attention-alone", read2=lambda s: s.norm(s.wrote))
wrong("order-swapped", **MLP_FIRST, **ATTENTION_LAST)
wrong("attention-twice", **ATTENTION_LAST)
wrong("mlp-twice", **MLP_FIRST)
wrong("norms-unused", **BARE, **second(BARE))
wrong("first-norm-unused", **BARE)
wrong("second-norm-unused", **second(BARE))
wrong("norm-at-the-end", result=lambda s: s.norm(s.x))
wrong("rms-norm", norm=lambda s: lambda x: F.rms_norm(x, x.shape[-1:]))
wrong("mlp-missing", add2=lambda s: s.x)
wrong("attention-missing", add=lambda s: s.x)


def norms_missing(module, weights):
    """Name norms that are not there under their names, or have nothing to learn."""
    learned = dict(module.named_parameters(remove_duplicate=False))
    missing = [name for name in ("norm1", "norm2") if f"{name}.weight" not in learned]
    return FACTS.name("norms-missing", name=missing[0]) if missing else None


def norms_mixed_up(module, weights):
    """Name one norm for both places, or the two exchanged, by giving them weights."""
    twin = fresh(module, weights)
    norms, x = (twin.norm1, twin.norm2), sentences(weights)
    for norm, end in zip(norms, (2.0, -1.0)):
        norm.weight.data.copy_(torch.linspace(0.5, end, weights.build[2]))
    got = twin(x.clone())
    for used in (norms[:1] * 2, norms[1:] * 2, norms[::-1]):
        if torch.allclose(got, right_block(weights, x, *used), atol=1e-4):
            one = used[0] is used[1]
            return FACTS.name("one-norm-shared") if one else FACTS.name("norms-swapped")
    return None


def sublayers_unregistered(module, weights):
    """Name sublayers whose weights `module.parameters()` does not list."""
    for part in weights.build[:2]:
        if not any(torch.equal(part.weight, held) for held in module.parameters()):
            return FACTS.name("weights-not-registered", part=part)
    return None


def stages(evidence):
    """Property: say what the stream of the first token is to be on the way."""
    weights, x = evidence.args
    streams = x, x + weights.build[0](layer_norm(x)), evidence.expected
    said = (numbers(stream[0, 0]) for stream in streams)
    return TEXTS["PROPERTIES"]["stages"].format(*said)


FIVE, SEVEN = ((Part("attention", d), Part("feed_forward", d), d) for d in (5, 7))
transformer_block = ModuleExercise(
    id="9.1",
    **TEXTS["9.1"],
    oracle=right_block,
    projections=(),
    properties=[stages],
    pipeline=Pipeline(start, STEPS, FORMS, GIVES),
    when_right=[
        norms_missing,
        sublayers_unregistered,
        norms_mixed_up,
        training_facts.no_gradient,
        changes_in_training,
    ],
    cases=[
        case(draw(1, 3, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(2, 7, 5, scale=2.0, shift=1.0), build=FIVE),
        case(draw(3, 11, 7, scale=3.0), build=SEVEN, note="another width"),
        case(draw(2, 1, 7, scale=30.0), build=SEVEN, note="one large token"),
    ],
)
