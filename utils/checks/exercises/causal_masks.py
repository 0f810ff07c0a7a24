"""Exercises of the notebook on masks: two masks, a softmax, dropout, a causal layer."""

import torch

from utils.checks.answers import QKV
from utils.checks.engine import Case, Exercise, draw, integers
from utils.checks.facts import TRAINING_FACTS
from utils.checks.pipeline import variants
from utils.checks.steps import attention as of_attention
from utils.checks.steps import masks as of_masks
from utils.checks.steps.attention import INF, fill
from utils.checks.steps.returned import RETURNED

ADDITIVE = variants(
    "additive-mask: You returned an additive mask, 0 and a very negative number: return True where a token may be attended to.",
    dict(result=lambda s: s.mask.log()),
)
mask = Exercise(
    id="5.1",
    signature="causal_mask(num_tokens)",
    returns="a tensor (T, T) of dtype torch.bool, True where the query (row) may attend to the key (column)",
    cases=[
        *map(Case, (3, 5, 1)),
        Case(0, note="no token"),
    ],
    steps={
        "scores": lambda s: torch.ones(s.num_tokens, s.num_tokens),
        "diagonal": lambda s: 0,
        "mask": of_masks.past,
        "result": lambda s: s.mask,
    },
    variants=of_masks.CAUSAL + ADDITIVE,
    without=("mask-not-used",),
)


padding = Exercise(
    id="5.4",
    page="deeper/padding_and_empty_rows",
    signature="padding_mask(lengths, num_tokens)",
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
    cases=[
        Case(torch.tensor([1, 3]), 3),
        Case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        Case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        Case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        Case([2, 3], 5, note="a list of lengths"),
    ],
    steps={
        "ends": lambda s: torch.as_tensor(s.lengths),
        "places": lambda s: s.num_tokens,
        "row": lambda s: torch.arange(s.places),
        "column": lambda s: s.ends[:, None],
        "mask": lambda s: s.row < s.column,
        "result": lambda s: s.mask,
    },
    variants=variants(
        "polarity-inverted: You put True at the padding: True means that a token may be attended to, t < length.",
        dict(mask=lambda s: s.row >= s.column),
        "one-too-many: You counted the place at `length` as real, but it's padding already: positions start at 0, so real is t < length.",
        dict(lengths=lambda s: torch.as_tensor(s.lengths) + 1),
        "one-too-few: You marked one token too few: positions start at 0, so all below the length are real, t < length.",
        dict(lengths=lambda s: torch.as_tensor(s.lengths) - 1),
        "left-for-right: You put the padding on the left: a sentence begins at position 0.",
        dict(row=lambda s: torch.arange(s.places).flip(0)),
        "longest-for-num-tokens: You made rows as long as the longest sentence: make them num_tokens = {num_tokens} long.",
        dict(places=lambda s: int(s.ends.max())),
    ),
)


MASKED = variants(
    "mask-not-used: Your mask has no effect: fill the scores with -inf where it is False. (masked_fill returns a new tensor, so use its result.)",
    of_masks.LEFT_ALONE,
    "polarity-inverted: You hid the allowed positions: hide those at which the mask is False, ~mask.",
    dict(mask=lambda s: ~s.mask),
    "polarity-inverted: You set the allowed weights to 0: fill at ~mask both times.",
    dict(cleared=lambda s: s.soft.masked_fill(s.mask, 0.0)),
    "zero-for-minus-infinity: You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so the others no longer sum to 1. Use -inf.",
    dict(hidden=lambda s: fill(s, 0.0)),
)
MASKED += of_masks.EMPTY_ROWS + of_masks.HIDE + of_attention.AXIS
MASKED += of_attention.FIXED_AXIS + of_attention.SOFTMAX + of_attention.NO_MASK


def booleans(*rows):
    return torch.tensor(rows, dtype=torch.bool)


SMALL = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
LARGE = torch.tensor([[600.0, -900.0, 300.0], [-500.0, 200.0, 800.0]])
LOW = torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]])
PADDING = torch.arange(7) < torch.tensor([[4], [7]])
masked_softmax = Exercise(
    id="5.3",
    is_trained=True,
    page="deeper/padding_and_empty_rows",
    signature="masked_softmax(scores, mask)",
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones are 0, a row without any allowed position is all zeros",
    steps={
        "mask": lambda s: s.mask,
        "hidden": lambda s: fill(s, -INF),
        **of_attention.SOFTMAX_STEPS,
        "cleared": of_attention.zeroed,
        "result": lambda s: s.weights,
    },
    variants=MASKED,
    cases=[
        Case(SMALL, booleans([1, 1, 0], [1, 1, 1])),
        Case(draw(5, 5), torch.ones(5, 5).tril().bool(), note="a causal mask"),
        Case(SMALL, booleans([1, 0, 1], [0, 0, 0]), note="nothing allowed in row 1"),
        Case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        Case(draw(2, 3, 5, 7), PADDING[:, None, None], note="a padding mask"),
        Case(LARGE, booleans([1, 1, 0], [1, 1, 1]), note="large scores"),
        Case(LOW, booleans([0, 1, 1], [1, 0, 1]), note="scores near -30000"),
    ],
)


def habits(dropout, x, p):
    """Call `dropout` often; return what does not depend on chance.

    A message shows the last part that differs.
    """
    made = torch.stack([dropout(x.clone(), p) for _ in range(20)]).detach()
    on_survivors = factor((made / x)[made != 0])
    dropout(x, p)  # on x itself, so that a change in place is seen
    dropped = made == 0
    axes = [a for a in range(x.dim()) if (dropped == dropped.narrow(a + 1, 0, 1)).all()]
    is_partly = bool(axes) and 0 < dropped.float().mean() < 1
    together = f"all along the axes {axes}" if is_partly else "none"
    masks, count = len(dropped.unique(dim=0)), "different"
    if masks > 1 and len(dropped.flatten(1).sum(1).unique()) == 1:
        count = "always the same"
    share = dropped.double().mean().item() if together == "none" else "not asked"
    if share != "not asked":  # p, 1 - p or one decimal: another draw gives the same
        near = (c for c in (p, 1 - p) if abs(share - c) < 0.05)
        share = next(near, round(share, 1))
    return on_survivors, count, masks, share, together


def factor(ratios):
    """Return the one factor on all survivors, or say that there is none."""
    if not len(ratios):
        return "no survivors"
    same = ratios.max() - ratios.min() < 1e-3
    return round(ratios.mean().item(), 4) if same else "several"


COIN = "draw one for each entry, torch.rand_like(x)."
dropout = Exercise(
    id="5.5",
    page="deeper/dropout_measured",
    signature="dropout(x, p)",
    returns="x with each entry 0 with probability p and the survivors divided by 1 - p",
    parts=(
        "factor on the survivors",
        "number of zeros in 20 calls",
        "number of different masks in 20 calls",
        "share of zeros",
        "entries that are always dropped together",
    ),
    observe=habits,
    without=[one.name for one in RETURNED],  # coins are random in any order
    cases=[
        Case(draw(17, 23), 0.3),
        Case(draw(11, 7, 5), 0.65),
        Case(draw(5, 3), 0.0, note="nothing to drop"),
        Case(draw(5, 3), 1.0, note="everything to drop"),
    ],
    steps={
        "random": lambda s: torch.rand(s.x.shape),
        "coins": lambda s: s.random >= s.p,
        "factor": lambda s: s.p < 1 and 1 / (1 - s.p),
        "result": lambda s: s.x * s.coins * s.factor,
    },
    variants=variants(
        "not-rescaled: You left the survivors as they are, so the average shrinks: divide them by 1 - p.",
        dict(factor=lambda s: 1.0),
        "multiplied-by-keep: You multiplied the survivors by 1 - p: divide them by it.",
        dict(factor=lambda s: 1 - s.p),
        "p-one-fails: Your code divides by 1 - p = 0 where p = 1: there the result should be all zeros.",
        dict(factor=lambda s: torch.ones(()) / (1 - s.p)),
        "keep-probability: You kept entries with probability p: p is the share that is dropped, so keep where rand >= p.",
        dict(coins=lambda s: s.random < s.p),
        f"one-coin-for-all: You drew one number for the whole tensor: {COIN}",
        dict(random=lambda s: torch.rand(())),
        f"one-coin-for-a-row: You drew one number for several entries: {COIN}",
        dict(random=lambda s: torch.rand(s.x.shape[-1:])),
        dict(random=lambda s: torch.rand(*s.x.shape[:-1], 1)),
        "same-mask-each-time: You dropped the same entries in every call: draw new random numbers, and set no seed.",
        dict(random=lambda s: integers(0, 99, s.x.shape) / 99),
        "exact-share: You dropped the same number of entries in every call: drop each with probability p, independently of the others.",
        dict(random=lambda s: torch.randperm(s.x.numel()).view_as(s.x) / s.x.numel()),
        "normal-for-uniform: You used randn, whose share below p isn't p: use rand.",
        dict(random=lambda s: torch.randn(s.x.shape)),
    ),
)

IN_LAYER = of_masks.CAUSAL + of_masks.HIDE + of_masks.CUT + of_attention.OF_INPUT
IN_LAYER += of_attention.SCALE + of_attention.WEIGHING
IN_LAYER += of_attention.PROJECT
LONG, NARROW_BUILD = (3, 5, 11, 0.2), (7, 2, 5, 0.2)
causal_attention = Exercise(
    id="5.2",
    signature="CausalAttention(d_in, d_out, context_length, dropout)",
    returns="from x (B, T, d_in), T up to context_length, the output (B, T, d_out), with the learned matrices W_query, W_key, W_value",
    projections=QKV,
    facts=TRAINING_FACTS,
    steps=of_attention.steps(of_attention.SELF_PROJECTED, mask=of_masks.past),
    variants=IN_LAYER,
    without=("fixed-axis", "fixed-axes"),
    cases=[
        Case(draw(2, 7, 3, scale=2.0), build=LONG),
        Case(draw(3, 3, 7, scale=2.0), build=NARROW_BUILD, note="d_out < d_in, B = T"),
        Case(draw(2, 5, 7, scale=2.0), build=NARROW_BUILD, note="the full length"),
        Case(draw(13, 2, 7, scale=300.0), build=NARROW_BUILD, note="large scores"),
        Case(draw(2, 1, 3), build=LONG, note="one token"),
    ],
)

EXERCISES = [mask, causal_attention, masked_softmax, padding, dropout]
