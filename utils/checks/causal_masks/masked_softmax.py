"""Exercise 5.2: a softmax over the allowed places."""

import torch

from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import HIDE, left_alone, uncleared, without_zeros
from utils.checks.attention_steps import INF, fill, zeroed
from utils.checks.draw import draws, special
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, texts_of

TEXTS = texts_of(__file__)
draw = draws(5)


def right_softmax(scores, mask):
    """Return PyTorch's weights, and 0 in rows where they are NaN."""
    hidden = scores.double().masked_fill(~mask, -INF)
    return torch.softmax(hidden, -1).masked_fill(~mask, 0.0).float()


def put(value, mask, entries):
    """Return the entries with a value put in by index: the mask needs all axes."""
    return entries.index_put((mask,), entries.new_tensor(value))


def rows_by_axis(axis):
    """Return the weights with 0 where a mask allows nothing along a fixed axis."""
    return lambda s: s.soft.masked_fill(~s.mask.any(axis, keepdim=True), 0.0)


MASK = Forms(TEXTS["MASK"])
wrong = MASK.wrong
wrong("mask-not-used", hide=left_alone, clear=uncleared)
wrong("polarity-inverted", mask=lambda s: ~s.allowed)
wrong("axis-added-to-mask", mask=lambda s: s.allowed.unsqueeze(1))
wrong("mask-not-broadcast", hide=lambda s: put(-INF, ~s.mask, s.scores))
wrong("polarity-inverted 2", hide=lambda s: fill(s, -INF, ~s.mask))
wrong("polarity-inverted 3", clear=lambda s: s.soft.masked_fill(s.mask, 0.0))
wrong("empty-row-nan", clear=uncleared)
wrong("empty-row-uniform", hide=lambda s: s.scores + ~s.mask * -1e9, clear=uncleared)
wrong("empty-row-unmasked", mask=lambda s: s.allowed | ~s.allowed.any(-1, True))
wrong("fixed-axis", {"axis": 1}, clear=rows_by_axis(1))
wrong("fixed-axis", {"axis": 0}, clear=rows_by_axis(0))
wrong("zero-for-minus-infinity", hide=lambda s: fill(s, 0.0))
wrong("mask-not-broadcast", clear=lambda s: put(0.0, ~s.mask.any(-1), s.soft))
wrong("rows-dropped", mask=lambda s: s.allowed & s.allowed.all(-1, True))
wrong("triangle-for-mask", mask=of_attention.triangle)
wrong("selected-scores", drop=lambda s: torch.softmax(s.scores[s.mask], -1))
wrong("scaled", scale=lambda s: s.products / s.products.shape[-1] ** 0.5)
wrong("softmax-missing", divide=lambda s: s.hidden, clear=uncleared)
LATER = Forms(TEXTS["LATER"])
LATER.wrong("global-maximum-subtracted", maximum=lambda s: s.scores.max())
LATER.wrong("bool-arithmetic", mask=lambda s: 1 - s.allowed)
LATER.wrong("bool-arithmetic", mask=lambda s: -s.allowed)
LATER.wrong("bool-arithmetic", mask=lambda s: not s.allowed)
FILLED_WITH_PLUS = [one for one in HIDE if one.slug == "mask-filled-with-plus"]
HARMLESS = Forms()
HARMLESS.also(hide=lambda s: fill(s, -1e9))
HARMLESS.also(hide=lambda s: fill(s, torch.finfo(s.scores.dtype).min))
HARMLESS.also(clear=lambda s: s.soft.nan_to_num(0.0))
HARMLESS.also(total=lambda s: s.exps.sum(s.dim, keepdim=True) + 1e-9)
pipeline = of_attention.attention(
    lambda scores, mask: {"products": scores, "allowed": mask},
    of_attention.steps(
        scale=lambda s: s.products,
        mask=lambda s: s.allowed,
        clear=zeroed,
        give=lambda s: s.weights,
        leaving_out=("score", "width", "average", "merge", "project_out"),
    ),
    *(MASK, without_zeros(HIDE), HIDE, LATER, of_attention.AXIS, of_attention.SOFTMAX),
    without=FILLED_WITH_PLUS,  # gives what dropping these rows gives
    harmless=HARMLESS,
    words={"keys": lambda s: s.scores.shape[-1]},
)


def weights_seen(evidence):
    """Property: hidden places get nothing, and the allowed ones of a row sum to 1."""
    return of_attention.hidden_and_allowed(evidence.got, evidence.args[1])


def booleans(*rows):
    return torch.tensor(rows, dtype=torch.bool)


SMALL = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
HIDDEN_LARGE = torch.tensor([[1.0, 2.0, 1000.0], [1000.0, 3.0, 1.0]])
LARGE = torch.tensor([[600.0, -900.0, 300.0], [-500.0, 200.0, 800.0]])
LOW = torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]])
LIMITS = torch.tensor([[[-0.5], [-0.5], [INF]], [[INF], [-0.5], [-0.5]]])
PADDING = torch.arange(7) < torch.tensor([[4], [7]])

masked_softmax = Exercise(
    id="5.2",
    **TEXTS["5.2"],
    oracle=right_softmax,
    properties=[weights_seen],
    pipeline=pipeline,
    cases=[
        case(SMALL, booleans([1, 1, 0], [1, 1, 1])),
        case(draw(5, 7), draw(5, 7) > 0, note="some places hidden"),
        case(draw(5, 5), torch.ones(5, 5).tril().bool(), note="a causal mask"),
        case(SMALL, booleans([1, 0, 1], [0, 0, 0]), note="nothing allowed in row 1"),
        case(draw(2, 3, 5), draw(3, 5) > -0.5, note="one mask for both samples"),
        case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        case(draw(2, 3, 5, 7), PADDING[:, None, None], note="a padding mask"),
        case(draw(2, 3, 5), draw(2, 3, 5) > LIMITS, note="a batch with empty rows"),
        special("hidden scores of 1000", HIDDEN_LARGE, booleans([1, 1, 0], [0, 1, 1])),
        special("large scores", LARGE, booleans([1, 1, 0], [1, 1, 1])),
        special("scores near -30000", LOW, booleans([0, 1, 1], [1, 0, 1])),
        case(draw(7, 2), booleans([1, 0]), note="one row of a mask for all queries"),
        special("one token", torch.tensor([[0.7]]), booleans([1])),
    ],
)
