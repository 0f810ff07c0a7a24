"""Exercises of the notebook on a tiny GPT: its block, and how tokens are chosen."""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks import facts
from utils.checks.engine import Case, Exercise, draw
from utils.checks.pipeline import Diagnosis, variants
from utils.checks.steps import attention as of_attention
from utils.checks.steps.attention import INF, SOFTMAX_STEPS


class Sublayer(nn.Module):
    """A stand-in for a sublayer, which a message shows by its name."""

    def __init__(self, name, d_model):
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(draw(d_model, d_model, seed=len(name)))

    def __repr__(self):
        return self.name

    def forward(self, x):
        return torch.tanh(x @ self.weight)


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def right_half(x, part, norm=layer_norm):
    return x + part(norm(x))


def halves(half):
    """Return the overrides of a mistake in the first half of the block, or second."""
    return [{name: lambda s: half} for name in ("first", "second")]


def norms_missing(module, learned):
    """Name a norm that is missing, or has no weight to learn."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    missing = [n for n in ("norm1", "norm2") if f"{n}.weight" not in parameters]
    text = "Your module has no `{0}` with a weight to learn: self.{0} = nn.LayerNorm(d_model)."
    return Diagnosis("norms-missing", text.format(missing[0])) if missing else None


def norm_shared(module, learned):
    """Name a norm that is used in both places, by giving each norm other weights."""
    twin, x = facts.fresh(module, learned), facts.sentences(learned)
    for norm, end in ((twin.norm1, 2.0), (twin.norm2, -1.0)):
        norm.weight.data.copy_(torch.linspace(0.5, end, learned.build[2]))
    output, (attention, feed_forward, _) = twin(x.clone()), learned.build
    for norm in (twin.norm1, twin.norm2):
        shared = right_half(right_half(x, attention, norm), feed_forward, norm)
        if torch.allclose(output, shared, atol=1e-4):
            text = "You used one norm in both places: use both norms."
            return Diagnosis("one-norm-shared", text)
    return None


FIVE, SEVEN = (
    (Sublayer("attention", d), Sublayer("feed_forward", d), d) for d in (5, 7)
)
transformer_block = Exercise(
    id="8.1",
    signature="TransformerBlock(attention, feed_forward, d_model)",
    returns="from x (B, T, D) the output (B, T, D), with its own norm1 and norm2",
    projections=(),
    steps={
        "first": lambda s: right_half,
        "second": lambda s: right_half,
        "attention, mlp": lambda s: s.learned.build[:2],
        "middle": lambda s: s.first(s.x, s.attention),
        "result": lambda s: s.second(s.middle, s.mlp),
    },
    variants=variants(
        "post-norm: You normalise after the addition, which is post-norm: put the norm before the sublayer, as in x + attention(norm1(x)).",
        *halves(lambda x, part: layer_norm(x + part(x))),
        "norm-after-sublayer: You normalise what the sublayer returns: normalise what it reads, as in x + attention(norm1(x)).",
        *halves(lambda x, part: x + layer_norm(part(x))),
        "residual-after-norm: You added a sublayer's result to what the norm returns: add it to what the norm reads, as in x + attention(norm1(x)).",
        *halves(lambda x, part: layer_norm(x) + part(layer_norm(x))),
        "residual-missing: You didn't add a sublayer's result to what came before it: x + attention(norm1(x)), and then y + feed_forward(norm2(y)) with that sum y.",
        *halves(lambda x, part: part(layer_norm(x))),
        "residual-of-the-input: You added what the second sublayer returns to the block's input: add it to the sum y, in which the attention is already.",
        dict(result=lambda s: s.x + s.mlp(layer_norm(s.middle))),
        "sublayers-parallel: You let both sublayers read the block's input: feed_forward reads norm2 of the sum y.",
        dict(result=lambda s: s.middle + s.mlp(layer_norm(s.x))),
        "order-swapped: You put the MLP first: attention first, then the MLP.",
        {"attention, mlp": lambda s: s.learned.build[1::-1]},
        "norm-unused: You let a sublayer read its input without a norm: use attention(norm1(x)), and feed_forward(norm2(y)) of the sum y.",
        *halves(lambda x, part: x + part(x)),
    ),
    facts=[
        *(norms_missing, norm_shared),
        *(facts.no_gradient, facts.changes_in_training),
    ],
    cases=[
        Case(draw(1, 3, 5, scale=2.0, shift=1.0), build=FIVE),
        Case(draw(3, 11, 7, scale=3.0), build=SEVEN, note="another width"),
        Case(draw(2, 1, 7, scale=30.0), build=SEVEN, note="one large token"),
    ],
)


SOFTMAX = of_attention.SOFTMAX + variants(
    "softmax-over-batch: Your softmax doesn't run over the vocabulary: use dim=-1.",
    dict(dim=lambda s: 0),
)
LOW, LOW_ROW = torch.tensor([[300.0], [0.0]]), "a row of low logits"
FIVE_LOGITS = torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0])


def best(logits, k):
    """Return the k largest logits of each row, from the largest down; without k, all."""
    return logits.topk(k or logits.shape[-1]).values


UNCOOLED = {"divisor": lambda s: 1}
LATE = {"cut": lambda s: s.read, "cleared": lambda s: s.soft.where(s.is_kept, 0.0)}
TOP_K = variants(
    "temperature-ignored: Your temperature changes nothing: divide the logits by it, before the softmax.",
    UNCOOLED,
    "temperature-inverted: You multiplied by the temperature: divide by it.",
    dict(divisor=lambda s: 1 / s.temperature),
    "temperature-after-softmax: You divided by the temperature after the softmax, so rows no longer sum to 1: divide the logits.",
    UNCOOLED | dict(weights=lambda s: s.cleared / s.temperature),
    "k-smallest: You kept the k least likely tokens: take the largest logits.",
    dict(is_kept=lambda s: -s.read >= best(-s.read, s.top_k)[..., -1:]),
    "one-too-few: You kept k - 1 tokens: the k-th best stays too, so cut only what is smaller.",
    dict(is_kept=lambda s: (s.read > s.border) | (s.top_k is None)),
    "one-too-many: You kept k + 1 tokens: the k-th best has index k - 1.",
    dict(top_k=lambda s: s.top_k and min(s.top_k + 1, s.logits.shape[-1])),
    "one-threshold-for-all: You used one threshold for all rows: each row has its own, topk(top_k, dim=-1).values[..., -1:].",
    dict(border=lambda s: best(s.read.flatten(), s.top_k)[-1]),
    dict(border=lambda s: best(s.read, s.top_k).min()),
    "zero-for-minus-inf: You set the logits outside the top k to 0 (or 1e-9), and exp(0) = 1 is a share like any other: set them to -inf.",
    dict(fill=lambda s: 0.0),
    "not-renormalised: You cut tokens after the softmax, so rows no longer sum to 1: set logits to -inf before it, or divide by the new sum.",
    LATE,
)

next_token_probs = Exercise(
    id="8.2",
    signature="next_token_probs(logits, temperature=1.0, top_k=None)",
    returns="probabilities of the shape of the logits (…, V), zero outside the top k",
    steps={
        "read": lambda s: s.logits,
        "border": lambda s: best(s.read, s.top_k)[..., -1:],
        "is_kept": lambda s: s.read >= s.border,
        "fill": lambda s: -INF,
        "cut": lambda s: s.read.where(s.is_kept, s.fill),
        "divisor": lambda s: s.temperature,
        "hidden": lambda s: s.cut / s.divisor,
        **SOFTMAX_STEPS,  # from `hidden`, the logits, to `weights`
        "result": lambda s: s.weights,
    },
    variants=TOP_K + SOFTMAX,
    cases=[
        Case(FIVE_LOGITS, 0.5),
        Case(FIVE_LOGITS, 2.0, 2),
        Case(torch.tensor([-1.5, -0.5, -2.3]), 1.0, 1, note="only the best"),
        Case(draw(5, 5, scale=2.0), 0.7, 3),
        Case(draw(2, 3, 11, scale=2.0), 1.6, 5),
        Case(draw(2, 7) - LOW, 1.3, 3, note=LOW_ROW),
        Case(draw(2, 7, scale=200.0), 0.5, 5, note="large logits"),
        Case(draw(2, 5), 1.0, 5, note="k is the whole vocabulary"),
    ],
)


TOP_P = variants(
    "crossing-token-cut: You cut the token with which the sum reaches p: cut a token only if the likelier ones hold p without it.",
    dict(is_kept=lambda s: s.sums <= s.p),
    dict(is_kept=lambda s: (s.sums <= s.p) | (s.rank == 1)),
    "one-too-many: You kept one token too many: stop with the one that makes the sum reach p.",
    dict(is_kept=lambda s: s.rank <= s.reaching.sum(-1, True) + 1),
    "not-renormalised: You didn't divide what is left by its own sum: divide, so that rows sum to 1.",
    dict(shares=lambda s: s.cut),
    "divided-by-p: You divided by p: the kept tokens may hold more than that, so divide by their own sum.",
    dict(shares=lambda s: s.cut / s.p),
    "sum-over-everything: You divided what is left by a sum that isn't the row's own: divide by sum(dim=-1, keepdim=True).",
    dict(shares=lambda s: s.cut / s.cut.sum()),
    "order-lost: You returned the probabilities from the largest down: each belongs at the position of its token; `scatter` puts them back.",
    dict(result=lambda s: s.shares),
    "gather-for-scatter: You used `gather` with the order, which permutes the probabilities once more: `scatter` undoes the sorting.",
    dict(result=lambda s: s.shares.gather(-1, s.order)),
    "from-the-least-likely: You began the sum with the least likely tokens, or didn't sort: sort with descending=True.",
    dict(key=lambda s: -s.weights),
    "threshold-for-sum: You compared single probabilities with p: p is for their sum.",
    dict(is_kept=lambda s: (s.best >= s.p) | (s.rank == 1)),
)


EXAMPLE = torch.tensor([0.2, 0.5, 0.3]).log()
top_p_probs = Exercise(
    id="8.3",
    signature="top_p_probs(logits, p)",
    returns="probabilities of the shape of the logits (…, V), zero outside the smallest set of best tokens that hold p",
    steps={
        "hidden": lambda s: s.logits,
        **SOFTMAX_STEPS,
        "key": lambda s: s.weights,
        "order": lambda s: s.key.argsort(-1, descending=True),
        "best": lambda s: s.weights.gather(-1, s.order),
        "rank": lambda s: torch.ones_like(s.best).cumsum(-1),
        "sums": lambda s: s.best.cumsum(-1),
        "reaching": lambda s: s.sums - s.best < s.p,
        "is_kept": lambda s: s.reaching,
        "cut": lambda s: s.best * s.is_kept,
        "shares": lambda s: s.cut / s.cut.sum(-1, keepdim=True),
        "result": lambda s: torch.zeros_like(s.best).scatter(-1, s.order, s.shares),
    },
    variants=TOP_P + SOFTMAX,
    cases=[
        Case(EXAMPLE, 0.75),
        Case(FIVE_LOGITS, 0.9),
        Case(EXAMPLE, 0.1, note="the best token alone holds more than p"),
        Case(draw(5, 5, scale=2.0), 0.8),
        Case(draw(2, 3, 11), 0.35),
        Case(draw(2, 7) - LOW, 0.6, note=LOW_ROW),
        Case(draw(2, 7, scale=200.0), 0.95, note="large logits"),
    ],
)

EXERCISES = [transformer_block, next_token_probs, top_p_probs]
