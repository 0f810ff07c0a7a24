"""Exercise 10.1: attention block by block, with an online softmax."""

import math
from dataclasses import replace

import torch
from torch.nn.functional import scaled_dot_product_attention as torch_attention

from utils.checks import attention_steps as of_attention
from utils.checks import online_steps as of_joining
from utils.checks.attention_steps import INF, size, triangle
from utils.checks.draw import Shapes, draws, special
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, State, texts_of

TEXTS = texts_of(__file__)
draw = draws(10)

UP_AND_DOWN = torch.tensor([[1.0], [-1.0]]).expand(2, 3)
RISING = torch.linspace(-1.5, 1.5, 5)[:, None].expand(5, 3)
# Whole numbers and a width of 4 keep scores exact in float32, however large they are.
FAR_APART = torch.tensor([[1.0], [30.0], [3000.0]])


def right_online(query, key, value, block_size):
    """Weigh the attention within each block by the sum of its exponentials."""
    query, key, value = query.double(), key.double(), value.double()
    outputs, logs = [], []
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        outputs.append(torch_attention(query, k, v))
        scores = query @ k.mT / query.shape[-1] ** 0.5
        logs.append(torch.logsumexp(scores, -1, keepdim=True))
    shares = torch.softmax(torch.stack(logs), 0)
    return (shares * torch.stack(outputs)).sum(0).float()


def whole_matrix(attention):
    """Name an answer that computes the scores of all keys at once."""
    query, key, value = torch.ones(17, 2), torch.ones(19, 2), torch.ones(19, 1)
    with Shapes() as shapes:
        attention(query, key, value, 2)
    if max(map(math.prod, shapes.seen)) < len(query) * len(key):
        return None
    return TEXTS["FACTS"].name("whole-matrix", queries=len(query), keys=len(key))


# --- the right steps --------------------------------------------------------------

STEPS = {
    "first": lambda s: None,  # what fails, fails with the first block
    **{name: of_attention.RIGHT[name] for name in ("score", "width", "scale")},
    "places": lambda s: torch.arange(s.key.shape[-2]),
    "count": lambda s: len(s.places),  # the blocks start before this key
    "of_key": lambda s: s.places // s.size,
    "blocks": lambda s: s.of_key == s.of_key[: s.count].unique()[:, None],  # (P, S)
    "last": lambda s: len(s.places) % s.size or s.size,  # the keys in the last block
    "met": lambda s: s.blocks,  # what the loop meets of them
    "shares": lambda s: s.met.sum(1) / s.met.sum(),  # of the keys
    "hide": lambda s: s.scores,
    # The scores of each block, (P, …, T, S): -inf for the keys of others.
    "cut": lambda s: s.hidden[..., None, :].masked_fill(~s.met, -INF).movedim(-2, 0),
    "axes": lambda s: -1,
    "own": lambda s: s.cut.amax(s.axes, keepdim=True),  # the maximum of each block
    "maxima": lambda s: s.own.cummax(0).values,  # so far
    "weights": lambda s: torch.exp(s.cut - s.maxima),
    "values": lambda s: s.value,
    "sums": lambda s: s.weights.sum(-1, keepdim=True),
    "outputs": lambda s: s.weights @ s.values,
    **of_joining.RIGHT,
    "each": lambda s: torch.softmax(s.cut, -1) @ s.values,
    "top": lambda s: s.maxima[-1:],
}


# --- what goes wrong --------------------------------------------------------------


def step_by_step(s):
    """Return the factors of all later blocks together, where the maximum may fall."""
    later = torch.exp(s.maxima[:-1] - s.maxima[1:])
    return torch.cat((later, torch.ones_like(s.top))).flip(0).cumprod(0).flip(0)


def divided_each_time(s):
    """Divide the accumulator in every block, and go on with the quotient."""
    bottom = top = 0.0
    before = torch.cat((s.maxima[:1], s.maxima[:-1]))
    for factor, sums, output in zip(torch.exp(before - s.maxima), s.sums, s.outputs):
        bottom = bottom * factor + sums
        top = (top * factor + output) / bottom
    return top


def own_block(s):
    """Return for each query the output of the block that has its own number."""
    queries = torch.arange(s.query.shape[-2])
    return s.each[queries // s.size, ..., queries, :].movedim(0, -2)


def with_first_block(way):
    """Return the step that goes this way with the first block alone."""
    return lambda s: way(State(query=s.query, key=s.key[..., : s.size, :]))


FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("weights-returned", result=lambda s: (s.filled, s.hidden.softmax(-1)))
wrong("accumulator-not-rescaled", joined=lambda s: s.terms.sum(0))
wrong("denominator-not-rescaled", total=lambda s: s.sums.sum(0))
wrong("nothing-rescaled", factors=of_joining.ones)
wrong("rescaled-inversely", factors=lambda s: torch.exp(s.top - s.maxima))
wrong("rescaled-inversely 2", factors=lambda s: s.maxima * torch.nan)
wrong("divided-in-every-block", divided=divided_each_time)
wrong("last-block-lost", met=lambda s: s.blocks[s.blocks.sum(1) == s.size])
wrong("last-block-lost", met=lambda s: s.blocks[:-1])
wrong("first-block-lost", met=lambda s: s.blocks[len(s.blocks) > 1 :])
wrong("blocks-averaged", divided=lambda s: torch.tensordot(s.shares, s.each, 1))
wrong("maximum-starts-at-zero", maxima=lambda s: s.own.cummax(0).values.clamp(0))
wrong("maximum-missing", maxima=lambda s: torch.zeros_like(s.own))
wrong("max-is-a-pair", maxima=lambda s: torch.maximum(s.cut, s.cut.max(-1)))
wrong("maximum-not-subtracted", weights=lambda s: torch.exp(s.cut))
wrong("maximum-of-the-block", maxima=lambda s: s.own, factors=of_joining.ones)
wrong("maximum-of-the-block 2", maxima=lambda s: s.own, factors=step_by_step)
wrong("one-maximum-for-all", axes=lambda s: (-2, -1))
wrong("one-maximum-for-all", axes=lambda s: (*range(1, s.cut.dim()),))
wrong("maximum-over-the-queries", axes=lambda s: -2)
wrong("attention-within-blocks", divided=own_block)
wrong("values-of-the-first-block", values=lambda s: s.value[..., s.places % s.size, :])
wrong("causal", hide=lambda s: s.scores.masked_fill(~triangle(s), -INF))
wrong("number-of-queries", met=lambda s: s.blocks & (s.places < s.query.shape[-2]))
wrong("number-of-queries", count=lambda s: s.query.shape[-2])
LEN, AXIS_1 = {"count": "len(key)"}, {"count": "key.shape[1]"}
wrong("keys-miscounted", LEN, count=lambda s: len(s.key))
wrong("keys-miscounted", AXIS_1, count=lambda s: s.key.shape[1])
wrong("wrong-axis-sliced", first=lambda s: s.query @ s.key[: s.size].mT)
wrong("axis-missing", joined=lambda s: (s.factors.mT * s.terms).sum(0))

SCORE = [
    replace(one, ways={"first": with_first_block(one.ways["score"])} | one.ways)
    for one in of_attention.SCORE
]
SIZES = [
    size("scale-of-values", "d_v", lambda s: s.value.shape[-1]),
    size("scale-of-keys", "S", lambda s: s.key.shape[-2], ", the number of keys"),
    size("scale-of-block", "block_size", lambda s: s.size),
]
OF_BLOCKS = {"size": lambda s: s.size, "last": lambda s: s.last}
CASES = [
    case(
        *(UP_AND_DOWN, RISING, draw(5, 2), 2),
        note="the scores of query 0 rise, those of query 1 fall",
    ),
    case(draw(3, 5, 2), draw(3, 7, 2), draw(3, 7, 11), 2),
    case(draw(5, 3), draw(6, 3), draw(6, 7), 2, note="full blocks"),
    case(draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13), 4),
    case(draw(3, 5), draw(7, 5), draw(7, 2), 13, note="a block larger than S"),
    case(draw(3, 5), draw(7, 5), draw(7, 2), 1, note="one key at a time"),
    special(
        "large scores",
        FAR_APART * draw(2, 3, 4, scale=2.0).round(),
        *(draw(2, 7, 4, scale=2.0).round(), draw(2, 7, 3), 2),
    ),
    special(
        "all scores very negative",
        *(torch.ones(3, 4), draw(5, 4, shift=-900.0).round(), draw(5, 3), 2),
    ),
    case(draw(1, 5), draw(1, 5), draw(1, 3), 2, note="one token"),
]
online_softmax_attention = Exercise(
    id="10.1",
    **TEXTS["10.1"],
    oracle=right_online,
    cases=CASES,
    when_right=[whole_matrix],
    pipeline=of_attention.attention(
        lambda *args: dict(zip(("query", "key", "value", "size"), args)),
        STEPS,
        *(FORMS, of_joining.JOIN, of_attention.SCALE, SIZES, SCORE),
        without=("keys-times-queries",),  # what fails then depends on the block
        renamed=TEXTS["RENAMED"],
        words=TEXTS["WORDS"] | OF_BLOCKS,
    ),
)
