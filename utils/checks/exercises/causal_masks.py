"""Exercises of the notebook on masks: two masks, a softmax, dropout, a causal layer."""

import torch

from utils.checks.definition import Case, Exercise, draw
from utils.checks.engine.facts import TRAINING_FACTS, fails_in_half
from utils.checks.engine.mistakes import IN_FORM
from utils.checks.shared import attention as of_attention
from utils.checks.shared import masks as of_masks
from utils.checks.shared.attention import softmax_of
from utils.checks.submission import QKV

FORMS = {
    "mask = torch.eye(rows, columns) > 0": "only-itself: You let each token see itself only, because torch.eye has its ones on the diagonal alone: begin with torch.ones.",
    "mask = torch.ones(rows, columns) > 0 OR mask = torch.zeros(rows, columns) > 0": "same-everywhere: Your mask is the same everywhere: begin with torch.ones, of which tril makes the upper part 0. (Zeros are zeros already.)",
    "return mask.log()": "additive-mask: You returned an additive mask, 0 and a very negative number: return True where a token may be attended to.",
}


def causal_mask(num_tokens):
    rows, columns = num_tokens, num_tokens
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    return mask


exercise_5_1 = Exercise(
    id="5.1",
    right=causal_mask,
    returns="a tensor (T, T) of dtype torch.bool, True where the query (row) may attend to the key (column)",
    cases=[*map(Case, (3, 5, 1)), Case(0, note="no token")],
    mistakes=of_masks.POSITIONS | FORMS,
)


def padding_mask(lengths, num_tokens):
    ends = torch.as_tensor(lengths)
    row = torch.arange(num_tokens)
    mask = row < ends[:, None]
    return mask


exercise_5_4 = Exercise(
    id="5.4",
    right=padding_mask,
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
    cases=[
        Case(torch.tensor([1, 3]), 3),
        Case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        Case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        Case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        Case([2, 3], 5, note="a list of lengths"),
    ],
    mistakes={
        "mask = row >= ends[:, None]": "polarity-inverted: You put True at the padding: True means that a token may be attended to, t < length.",
        "ends = torch.as_tensor(lengths) + 1": "one-too-many: You counted the place at `length` as real, but it's padding already: positions start at 0, so real is t < length.",
        "ends = torch.as_tensor(lengths) - 1": "one-too-few: You marked one token too few: positions start at 0, so all below the length are real, t < length.",
        "row = torch.arange(num_tokens).flip(0)": "left-for-right: You put the padding on the left: a sentence begins at position 0.",
        "row = torch.arange(ends.max())": "longest-for-num-tokens: You made rows as long as the longest sentence: make them num_tokens = {num_tokens} long.",
    },
)


MASKED = {
    "hidden = scores; weights = soft": "mask-not-used: Your mask has no effect: fill the scores with -inf where it is False. (masked_fill returns a new tensor, so use its result.)",
    "mask = ~mask": "polarity-inverted: You hid the allowed positions: hide those at which the mask is False, ~mask.",
    "weights = soft.masked_fill(mask, 0.0)": "polarity-inverted: You set the allowed weights to 0: fill at ~mask both times.",
    "hidden = scores.masked_fill(~mask, 0.0)": "zero-for-minus-infinity: You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other, so the others no longer sum to 1. Use -inf.",
}
MASKED |= of_masks.EMPTY_ROWS | of_masks.HIDE | of_attention.AXIS
MASKED |= of_attention.FIXED_AXIS | of_attention.SOFTMAX | of_attention.NO_MASK


def booleans(*rows):
    return torch.tensor(rows, dtype=torch.bool)


SMALL = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
LARGE = torch.tensor([[600.0, -900.0, 300.0], [-500.0, 200.0, 800.0]])
LOW = torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]])
PADDING = torch.arange(7) < torch.tensor([[4], [7]])


def masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft.masked_fill(~mask, 0.0)
    return weights


exercise_5_3 = Exercise(
    id="5.3",
    is_trained=True,
    right=masked_softmax,
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones are 0, a row without any allowed position is all zeros",
    mistakes=MASKED,
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
    """Call `dropout` often; return what does not depend on chance."""
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
    share = torch.nan  # if entries are dropped together
    if together == "none":  # p, 1 - p or one decimal: another draw gives the same
        share = dropped.double().mean().item()
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


def dropout(x, p):
    random = torch.rand(x.shape)
    coins = random >= p
    factor = p < 1 and 1 / (1 - p)
    return x * coins * factor


exercise_5_5 = Exercise(
    id="5.5",
    right=dropout,
    returns="x with each entry 0 with probability p and the survivors divided by 1 - p",
    parts=(
        "factor on the survivors",
        "number of zeros in 20 calls",
        "number of different masks in 20 calls",
        "share of zeros",
        "entries that are always dropped together",
    ),
    observe=habits,
    cut={"p": 1.0},  # by chance, a single entry stays or not
    without=[each.name for each in IN_FORM],  # coins are random in any order
    cases=[
        Case(draw(17, 23), 0.3),
        Case(draw(11, 7, 5), 0.65),
        Case(draw(5, 3), 0.0, note="nothing to drop"),
        Case(draw(5, 3), 1.0, note="everything to drop"),
    ],
    mistakes={
        "factor = 1.0": "not-rescaled: You left the survivors as they are, so the average shrinks: divide them by 1 - p.",
        "factor = 1 - p": "multiplied-by-keep: You multiplied the survivors by 1 - p: divide them by it.",
        "factor = torch.ones(()) / (1 - p)": "p-one-fails: Your code divides by 1 - p = 0 where p = 1: there the result should be all zeros.",
        "coins = random < p OR coins = random < p if 0 < p < 1 else random >= p": "keep-probability: You kept entries with probability p: p is the share that is dropped, so keep where rand >= p.",
        "random = torch.rand(())": f"one-coin-for-all: You drew one number for the whole tensor: {COIN}",
        "random = torch.rand(x.shape[-1:]) OR random = torch.rand(*x.shape[:-1], 1)": f"one-coin-for-a-row: You drew one number for several entries: {COIN}",
        "random = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))": "same-mask-each-time: You dropped the same entries in every call: draw new random numbers, and set no seed.",
        "random = torch.randperm(x.numel()).view_as(x) / x.numel()": "exact-share: You dropped the same number of entries in every call: drop each with probability p, independently of the others.",
        "random = torch.randn(x.shape)": "normal-for-uniform: You used randn, whose share below p isn't p: use rand.",
    },
)

IN_LAYER = of_masks.CAUSAL | of_masks.HIDE | of_masks.CUT | of_attention.OF_INPUT
IN_LAYER |= of_attention.SCALE | of_attention.WEIGHING | of_attention.PROJECT


def causal_attention(learned, x):
    context = x
    query = x @ learned.W_query
    key = context @ learned.W_key
    value = context @ learned.W_value
    width = query.shape[-1]
    products = query @ key.mT
    scores = products / width**0.5
    rows, columns = x.shape[1], x.shape[1]
    diagonal = columns - rows
    mask = torch.ones(rows, columns).tril(diagonal) > 0
    hidden = scores.masked_fill(~mask, -torch.inf)
    dim = -1
    soft = softmax_of(hidden, dim)
    weights = soft
    output = weights @ value
    return output


LONG, NARROW_BUILD = (5, 11, 13, 0.2), (7, 2, 5, 0.2)
exercise_5_2 = Exercise(
    id="5.2",
    right=causal_attention,
    class_signature="CausalAttention(d_in, d_out, context_length, dropout)",
    returns="from x (B, T, d_in), T up to context_length, the output (B, T, d_out), with the learned matrices W_query, W_key, W_value",
    projections=QKV,
    facts=[*TRAINING_FACTS, fails_in_half],
    mistakes=IN_LAYER,
    without=("fixed-axis", "fixed-axes"),
    cases=[
        Case(draw(2, 7, 5, scale=2.0), build=LONG),
        Case(draw(3, 3, 7, scale=2.0), build=NARROW_BUILD, note="d_out < d_in, B = T"),
        Case(draw(2, 5, 7, scale=2.0), build=NARROW_BUILD, note="the full length"),
        Case(draw(13, 2, 7, scale=300.0), build=(7, 2, 13, 0.2), note="large scores"),
    ],
)
