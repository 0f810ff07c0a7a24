"""Exercises of the notebook on masks: two masks, a softmax, dropout, a causal layer."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case
from utils.checks.guard import attempt
from utils.checks.inputs import draw, integers, special
from utils.checks.modules import ModuleExercise
from utils.checks.pipeline import Diagnosis, Pipeline, variants
from utils.checks.properties import past_stays
from utils.checks.steps import attention as of_attention
from utils.checks.steps import masks as of_masks
from utils.checks.steps.attention import INF, PROJECTED, by_torch, fill, lower, zeroed
from utils.checks.steps.masks import (
    HIDE,
    LARGE_FILLS,
    left_alone,
    uncleared,
    without_zeros,
)
from utils.checks.training_facts import TRAINING_FACTS, sentences
from utils.checks.values import agrees, number

# --- the causal mask --------------------------------------------------------------

ADDITIVE = variants(
    "additive-mask: You returned an additive mask, 0 and a very negative number: return True where a token may be attended to.",
    dict(result=lambda s: s.mask.log()),
    dict(result=lambda s: ~s.mask * -1e9),
)
CAUSAL = variants(
    "upper-for-lower: You kept the upper triangle: row i is True up to column i, so keep the lower triangle, tril.",
    dict(cut=lambda s: s.entries.triu()),
    dict(cut=lambda s: s.entries.triu(-1)),
    "polarity-inverted: You put True where the query must not look: return ~mask.",
    dict(cut=lambda s: s.entries.triu(1)),
    "diagonal-masked: You hid each token from itself: key j is allowed where j <= i, so the diagonal belongs to the mask.",
    dict(cut=lambda s: s.entries.tril(-1)),
    "one-step-leaked: You let row i see past column i: use tril() with diagonal 0.",
    dict(cut=lambda s: s.entries.tril(1)),
    dict(cut=lambda s: s.entries.tril(2)),
    "everything-allowed: You allowed everything: keep the lower triangle only; tril returns a new tensor.",
    dict(cut=lambda s: s.entries),
    "nothing-allowed: You cut a triangle out of zeros: start with torch.ones.",
    dict(entries=lambda s: torch.zeros(s.side, s.side)),
    "diagonal-alone: You let each token see itself only: allow j <= i, not j == i.",
    dict(entries=lambda s: torch.eye(s.side)),
    "numbers-for-booleans: You returned numbers where a token is hidden: return True where it may be attended to.",
    dict(result=lambda s: s.entries.triu()),
    dict(result=lambda s: s.entries.triu(1)),
    "zero-times-infinity: You multiplied by infinity, and 0 times infinity is NaN: return a boolean mask.",
    dict(result=lambda s: (~s.mask).float() * -INF),
    "uniform-weights: You returned weights: return the mask.",
    dict(result=lambda s: s.mask.log().softmax(-1)),
    "one-too-large: You made a mask of side {side}: make it num_tokens wide.",
    dict(side=lambda s: s.num_tokens + 1),
    "size-of-a-number: You asked `num_tokens` for its size, but it is a number.",
    dict(side=lambda s: s.num_tokens.shape[0]),
    dict(side=lambda s: s.num_tokens.size(0)),
)
CAUSAL += ADDITIVE
CAUSAL += variants(
    "no-token-fails: Your mask of no tokens isn't (0, 0) and boolean, as torch.tensor([]) isn't.",
    dict(end=lambda s: s.result if s.side else torch.tensor([])),
)
mask = Exercise(
    id="5.1",
    signature="causal_mask(num_tokens)",
    returns="a boolean tensor (T, T), True where the query (row) may attend to the key (column)",
    oracle=lambda num_tokens: torch.ones(num_tokens, num_tokens).tril().bool(),
    cases=[
        *map(case, (3, 5, 2, 11)),
        case(1, note="one token"),
        special("no token", 0),
    ],
    pipeline=Pipeline(
        start=lambda num_tokens: {"num_tokens": num_tokens},
        steps={
            "side": lambda s: s.num_tokens,
            "entries": lambda s: torch.ones(s.side, s.side),
            "cut": lambda s: s.entries.tril(),
            "mask": lambda s: s.cut.bool(),
            "result": lambda s: s.mask,
            "end": lambda s: s.result,
        },
        outputs={"end": "result"},
        variants=CAUSAL,
    ),
)


# --- the padding mask -------------------------------------------------------------


def right_padding(lengths, num_tokens):
    return torch.arange(num_tokens) < torch.as_tensor(lengths)[:, None]


def is_right_for(answer, kind):
    """Say whether an answer is right where the lengths come as this kind."""
    inputs = (([2, 3], 5), ([3, 1, 2], 3), ([4, 0], 6))
    return all(
        agrees(attempt(answer, kind(lengths), T).value, right_padding(lengths, T))
        for lengths, T in inputs
    )


def lists_and_tensors(answer):
    """Name an answer that takes the lengths only as a list, or only as a tensor."""
    as_list, as_tensor = (is_right_for(answer, kind) for kind in (list, torch.tensor))
    if as_list == as_tensor:
        return None
    name, other = ("tensor", "list") if as_list else ("list", "tensor")
    text = f"Your code is right for a {other} of lengths, and not for a {name}: "
    text += "torch.as_tensor(lengths) takes either."
    return Diagnosis(f"{name}-not-accepted", text)


def row_shown(s):
    """Say how many real tokens the first wrong row has."""
    counts = s.mask.sum(-1).expand_as(s.lengths)
    row = (counts != s.lengths).int().argmax()
    return f"Your sentence of length {s.lengths[row]} gets {counts[row]} True"


PAD = variants(
    "polarity-inverted: {row}, at the padding: True means that a token may be attended to, t < length.",
    dict(mask=lambda s: s.row >= s.column),
    dict(mask=lambda s: s.row > s.column),
    "one-too-many: {row}, one too many: positions start at 0, so use < rather than <=.",
    dict(ends=lambda s: s.lengths + 1),
    "one-too-few: {row}, one too few: positions start at 0, so all below the length are real, t < length.",
    dict(ends=lambda s: s.lengths - 1),
    dict(ends=lambda s: (s.lengths - 1) % s.T),
    "left-for-right: You put the padding on the left: a sentence begins at position 0.",
    dict(row=lambda s: torch.arange(s.places).flip(0)),
    "axis-missing: You compared lengths (B,) with positions (T,) entry by entry: make the lengths a column, lengths[:, None].",
    dict(column=lambda s: s.ends),
    "longest-for-num-tokens: You made rows as long as the longest sentence: make them num_tokens = {T} long.",
    dict(places=lambda s: int(s.lengths.max())),
    "one-place-short: You made rows one too short: use arange(num_tokens).",
    dict(places=lambda s: s.T - 1),
    "one-length-for-all: You used one length for every sentence: compare each row with its own.",
    dict(length=lambda s: s.lengths.max()),
    dict(length=lambda s: s.lengths.min()),
    dict(length=lambda s: s.lengths[0]),
    "lengths-sorted: You changed the order of the sentences: row b belongs to sentence b.",
    dict(ends=lambda s: s.lengths.flip(0)),
    dict(ends=lambda s: s.lengths.sort().values),
    "minus-zero: You lost sentences without padding, because mask[b, -n:] with n = 0 is [0:], everything: count from the front, mask[b, length:].",
    dict(ends=lambda s: s.lengths * (s.lengths < s.T)),
    "last-token-alone: You set a single True per row: all tokens before the length are real, t < length, or the slice mask[b, :length].",
    dict(mask=lambda s: s.row == s.column - 1),
    dict(mask=lambda s: torch.eye(s.T)[s.row, s.column - 1] > 0),
    dict(mask=lambda s: torch.eye(s.T)[s.row, s.column] > 0),
    "sliced-by-a-tensor: You sliced all rows at once by a tensor: set each row in a loop, or compare positions with lengths[:, None].",
    dict(result=lambda s: s.mask[:, : s.ends]),
    "queries-hidden: You returned (B, T, T): padding hides keys only, so return (B, T); broadcasting does the rest.",
    dict(result=lambda s: s.mask[:, :, None] & s.mask[:, None]),
    dict(result=lambda s: s.mask[:, None].expand(-1, s.places, -1)),
    dict(result=lambda s: s.mask[:, None] & lower(s.places)),
    "lengths-ignored: You didn't compare positions with the lengths: t < length.",
    dict(result=lambda s: lower(s.places)),
    dict(result=lambda s: s.lengths != 0),
    dict(ends=lambda s: 0 * s.lengths + s.T),
    dict(ends=lambda s: 0 * s.lengths),
    "numbers-for-booleans: You returned 1 where a token is hidden: return True where it may be attended to.",
    dict(result=lambda s: (~s.mask).float()),
    dict(result=lambda s: (~s.mask).long()),
)
padding = Exercise(
    id="5.3",
    signature="padding_mask(lengths, num_tokens)",
    returns="a boolean tensor (B, T), a row for each sentence, True for real tokens",
    oracle=right_padding,
    facts=[lists_and_tensors],
    cases=[
        case(torch.tensor([1, 3]), 3),
        case(torch.tensor([2, 5, 4]), 7, note="no sentence fills the row"),
        case(torch.tensor([3, 1, 5, 2, 4]), 5, note="B = T"),
        case(torch.tensor([4, 0, 2]), 5, note="an empty sentence"),
        case(torch.tensor([3]), 3, note="one sentence"),
        case(torch.tensor([1, 1, 1, 1, 1]), 1, note="one token each"),
    ],
    pipeline=Pipeline(
        start=lambda lengths, num_tokens: {"lengths": lengths, "T": num_tokens},
        steps={
            "length": lambda s: s.lengths,
            "ends": lambda s: s.length.expand_as(s.lengths),
            "places": lambda s: s.T,
            "row": lambda s: torch.arange(s.places),
            "column": lambda s: s.ends[:, None],
            "mask": lambda s: s.row < s.column,
            "result": lambda s: s.mask,
        },
        variants=PAD + ADDITIVE,
        words={"row": row_shown},
    ),
)


# --- the softmax over allowed positions -------------------------------------------


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


EMPTY = (
    "a row without any allowed position must be all zeros, so set hidden weights to 0"
)
MASKED = variants(
    "mask-not-used: Your mask has no effect: hidden positions get {leak}. masked_fill returns a new tensor, so use its result.",
    dict(hidden=left_alone, cleared=uncleared),
    "polarity-inverted: You hid the allowed positions: hidden ones get {leak}. masked_fill fills where it is given True, so give it ~mask.",
    dict(mask=lambda s: ~s.allowed),
    "polarity-inverted: You set the allowed weights to 0: fill at ~mask both times.",
    dict(cleared=lambda s: s.soft.masked_fill(s.mask, 0.0)),
    "mask-not-broadcast: You indexed with a mask, scores[~mask] = …, which needs all axes of the scores: masked_fill and torch.where broadcast.",
    dict(hidden=lambda s: put(-INF, ~s.mask, s.scores)),
    f"empty-row-nan: You get NaN from the softmax of a row that is all -inf: {EMPTY} after the softmax.",
    dict(cleared=uncleared),
    f"empty-row-uniform: Your empty rows are uniform and see everything: {EMPTY} after the softmax.",
    dict(hidden=lambda s: s.scores + ~s.mask * -1e9, cleared=uncleared),
    "fixed-axis: You used an axis of the mask that isn't always that of the keys: mask.any(dim=-1, keepdim=True).",
    dict(cleared=rows_by_axis(1)),
    dict(cleared=rows_by_axis(0)),
    "zero-for-minus-infinity: You set hidden scores to 0 (or 1e-9), but e⁰ = 1 is a share like any other: a row {row_sum}. Use -inf.",
    dict(hidden=lambda s: fill(s, 0.0)),
    "triangle-for-mask: You used a causal mask: use the mask that is given.",
    dict(mask=of_attention.triangle),
    "selected-scores: You put the allowed scores of all rows into one long row, scores[mask]: keep the shape and fill the others with -inf.",
    dict(weights=lambda s: torch.softmax(s.scores[s.mask], -1)),
    "softmax-missing: You returned scores: take a softmax over the last axis.",
    dict(soft=lambda s: s.hidden, cleared=uncleared),
)
LATER = variants(
    "bool-arithmetic: You subtracted, negated or asked for the truth of a boolean mask: its opposite is ~mask.",
    dict(mask=lambda s: 1 - s.allowed),
    dict(mask=lambda s: not s.allowed),
)


def weights_seen(run):
    """Hidden positions get nothing, and the allowed ones of a row sum to 1."""
    return of_attention.hidden_and_allowed(run.got, run.args[1])


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
    signature="masked_softmax(scores, mask)",
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones are 0, a row without any allowed position is all zeros",
    oracle=right_softmax,
    properties=[weights_seen],
    pipeline=of_attention.attention(
        lambda scores, mask: {"products": scores, "allowed": mask},
        of_attention.steps(
            scores=lambda s: s.products,
            mask=lambda s: s.allowed,
            cleared=zeroed,
            result=lambda s: s.weights,
            leaving_out=("products", "width", "output", "merged", "projected"),
        ),
        *(
            MASKED,
            without_zeros(HIDE),
            HIDE,
            without_zeros(LARGE_FILLS),
            LARGE_FILLS,
            LATER,
        ),
        *(of_attention.AXIS, of_attention.SOFTMAX),
    ),
    cases=[
        case(SMALL, booleans([1, 1, 0], [1, 1, 1])),
        case(draw(5, 7), draw(5, 7, seed=1) > 0, note="some positions hidden"),
        case(draw(5, 5), torch.ones(5, 5).tril().bool(), note="a causal mask"),
        case(SMALL, booleans([1, 0, 1], [0, 0, 0]), note="nothing allowed in row 1"),
        case(draw(2, 3, 5), draw(3, 5) > -0.5, note="one mask for both samples"),
        case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        case(draw(2, 3, 5, 7), PADDING[:, None, None], note="a padding mask"),
        case(
            *(draw(2, 3, 5), draw(2, 3, 5, seed=1) > LIMITS),
            note="a batch with empty rows",
        ),
        special("hidden scores of 1000", HIDDEN_LARGE, booleans([1, 1, 0], [0, 1, 1])),
        special("large scores", LARGE, booleans([1, 1, 0], [1, 1, 1])),
        special("scores near -30000", LOW, booleans([0, 1, 1], [1, 0, 1])),
        case(draw(7, 2), booleans([1, 0]), note="one row of a mask for all queries"),
        special("one token", torch.tensor([[0.7]]), booleans([1])),
    ],
)


# --- dropout, judged by what must hold whatever the coins say ---------------------


def habits(dropout, x, p):
    """Call `dropout` often; return what must hold whatever the coins say.

    The last thing that differs is shown.
    """
    made = [dropout(x.clone(), p) for _ in range(20)]
    dropout(x, p)  # on x itself, so that a change in place is seen
    y = torch.stack(made).detach()
    dropped = y == 0
    masks, together = len(dropped.unique(dim=0)), fall_together(dropped)
    same_count = masks > 1 and len(dropped.flatten(1).sum(1).unique()) == 1
    count = "always the same" if same_count else "different"
    share = share_of(y, dropped, p) if together == "none" else "not asked"
    return factor(y, x), count, masks, share, together


def share_of(y, dropped, p):
    """Return the share as p, as 1 - p, or to one decimal: another draw gives the same.

    Where nothing is zero but one value is frequent, return that in words.
    """
    share = dropped.double().mean().item()
    values, counts = y[:2].unique(return_counts=True)
    if share == 0 and counts.max() > 0.1 * y[:2].numel():
        return f"0; many are {number(values[counts.argmax()].item())}"
    return next((c for c in (p, 1 - p) if abs(share - c) < 0.05), round(share, 1))


def fall_together(dropped):
    """Return in words which entries fall or stay together, where some do fall."""
    axes = range(1, dropped.dim())
    alike = [a - 1 for a in axes if (dropped == dropped.narrow(a, 0, 1)).all()]
    if not alike or dropped.all() or not dropped.any():
        return "none"
    if len(alike) == len(axes):
        return "all"
    if alike == [len(axes) - 1]:
        return "each row"
    return f"along axis {' and '.join(map(str, alike))}"


def is_same(values):
    return bool(values.max() - values.min() < 1e-3)


def factor(y, x):
    """Return the one factor on all survivors, or in words that there is none."""
    if not y.isfinite().all():
        return "not finite"
    if not y.any():
        return "no survivors"
    ratios = (y / x)[y != 0]
    if is_same(ratios):
        return round(ratios.mean().item(), 4)
    if all(is_same((call / x)[call != 0]) for call in y if call.any()):
        return "another in each call"
    return f"all become {number(y.max().item())}" if is_same(y[y != 0]) else "several"


def returns_the_mask(answer):
    """Name an answer that gives back its coins, only or beside the output."""
    found = answer(torch.full((7, 11), 3.0), 0.3)
    if isinstance(found, tuple):
        text = "You returned a tuple: return only the output."
        return Diagnosis("returns-a-tuple", text)
    if found.dtype == torch.bool:
        text = "You returned the coins: multiply x by them, and scale."
        return Diagnosis("mask-returned", text)
    if found.dim() == 1:
        text = "You removed the dropped entries: set them to 0 in their places."
        return Diagnosis("entries-removed", text)
    return None


def all_dropped_for_one(answer):
    """Name an answer that divides 0 by 0 where p = 1."""
    try:
        if answer(torch.full((3, 5), 2.0), 1.0).max().item() == 0:
            return None
    except ZeroDivisionError:
        pass
    text = "Your code divides by 1 - p = 0 where p = 1: there the result is all zeros."
    return Diagnosis("p-one-fails", text)


COIN = "each entry has a coin of its own, torch.rand_like(x)."
DROPOUT = variants(
    "not-rescaled: You left the survivors as they are, so the average shrinks: divide them by 1 - p.",
    dict(factor=lambda s: 1.0),
    "wrong-factor: You multiplied the survivors by another factor than 1 / (1 - p), so the average changes: a share of 1 - p survives, so divide by 1 - p.",
    dict(factor=lambda s: 1 / torch.tensor(s.p)),  # no error for p = 0
    dict(factor=lambda s: 1 + s.p),
    dict(factor=lambda s: 1 / (1 + s.p)),
    "multiplied-by-keep: You multiplied the survivors by 1 - p: divide them by it.",
    dict(factor=lambda s: 1 - s.p),
    "factors-differ: You used different factors: divide all survivors by 1 - p. The average over many calls stays, not that of each call or row.",
    dict(factor=lambda s: 1 / s.coins.float().mean().clamp(0.01)),
    dict(result=lambda s: (s.dropped / s.dropped.sum(-1, True)).nan_to_num(0.0)),
    "parentheses-missing: You divided by 1 and subtracted p: write … / (1 - p).",
    dict(result=lambda s: s.dropped / 1 - s.p),
    "keeps-p: You kept a share of p: drop it, so keep an entry where its random number is at least p.",
    dict(coins=lambda s: s.random < s.p),
    dict(coins=lambda s: s.random < s.p, factor=lambda s: 1 / torch.tensor(s.p)),
    "nothing-dropped: You dropped nothing: multiply by the coins, as in training mode.",
    dict(result=lambda s: s.x),
    dict(coins=lambda s: 1),
    f"one-coin-for-all: You used one coin for the whole tensor: {COIN}",
    dict(random=lambda s: torch.rand(())),
    f"whole-rows: You dropped whole rows: {COIN}",
    dict(random=lambda s: torch.rand(*s.x.shape[:-1], 1)),
    dict(random=lambda s: torch.rand(len(s.x), *[1] * (s.x.dim() - 1))),
    f"whole-columns: You dropped whole columns: {COIN}",
    dict(random=lambda s: torch.rand(s.x.shape[-1:])),
    f"one-mask-for-the-batch: You used the same coins for all samples: {COIN}",
    dict(random=lambda s: torch.rand(s.x.shape[-2:])),
    "same-mask-each-time: You dropped the same entries in every call: draw new random numbers, and set no seed.",
    dict(random=lambda s: integers(0, 99, s.x.shape) / 99),
    dict(random=lambda s: s.x),
    "exact-share: You dropped the same number of entries in every call: drop each with probability p, independently of the others.",
    dict(random=lambda s: torch.randperm(s.n).view_as(s.x) / s.n),
    "normal-for-uniform: You used randn, whose share below p isn't p: use rand.",
    dict(random=lambda s: torch.randn(s.x.shape)),
    "p-ignored: You dropped half of the entries whatever p is: compare with p.",
    dict(coins=lambda s: s.random < 0.5),
    dict(coins=lambda s: s.random < 0.5, factor=lambda s: 2.0),
    "dropped-twice: You dropped entries twice: draw the coins once.",
    dict(result=lambda s: F.dropout(F.dropout(s.x, s.p), s.p)),
    "random-factors: You multiplied by random numbers: compare them with p first.",
    dict(result=lambda s: s.x * s.random),
    f"fixed-axes: You made coins for two axes: {COIN}",
    dict(random=lambda s: torch.rand(s.x.shape[0], s.x.shape[1])),
    "mask-returned: You returned the scaled coins: multiply x by them.",
    dict(result=lambda s: s.coins * s.factor),
)
dropout = Exercise(
    id="5.4",
    signature="dropout(x, p)",
    returns="x with each entry 0 with probability p and the survivors divided by 1 - p",
    parts=(
        "factor on the survivors",
        "number of zeros in 20 calls",
        "number of different masks in 20 calls",
        "share of zeros",
        "group of entries that fall together",
    ),
    oracle=lambda x, p: F.dropout(x, p),
    observe=habits,
    returned=[],  # in any order the coins are as good
    facts=[returns_the_mask, all_dropped_for_one],
    cases=[
        case(draw(17, 23), 0.3),
        case(draw(11, 7, 5), 0.65),
        case(draw(389), 0.25),
        case(draw(5, 3), 0.0, note="nothing to drop"),
    ],
    pipeline=Pipeline(
        start=lambda x, p: {"x": x, "p": p, "n": x.numel()},
        steps={
            "random": lambda s: torch.rand(s.x.shape),
            "coins": lambda s: s.random >= s.p,
            "dropped": lambda s: s.x * s.coins,
            "factor": lambda s: s.p < 1 and 1 / (1 - s.p),
            "result": lambda s: s.dropped * s.factor,
        },
        variants=DROPOUT,
    ),
)


# --- the causal layer -------------------------------------------------------------


def right_layer(weights, x):
    return by_torch(*of_attention.project(weights, x), lower(x.shape[-2]))[0]


def projected_again(module, weights):
    """Name a layer through which the right output goes."""
    x = sentences(weights)
    attended = right_layer(weights, x)
    for name, layer in module.named_children():
        if not hasattr(weights, name) and any(True for _ in layer.parameters()):
            if torch.allclose(layer(attended), module(x), atol=1e-4):
                text = f"You sent the output through `{name}`: none is asked for here."
                return Diagnosis("unasked-projection", text)
    return None


OWN = variants(
    "softmax-over-batch: Your softmax runs over the batch (dim=0, or no `dim`): use dim=-1, the keys.",
    dict(dim=lambda s: 0),
)
LONG, NARROW_BUILD = (3, 5, 11, 0.2), (7, 2, 5, 0.2)
causal_attention = ModuleExercise(
    id="5.5",
    signature="CausalAttention(d_in, d_out, context_length, dropout)",
    returns="from x (B, T, d_in), T up to context_length, the output (B, T, d_out), with the learned matrices W_query, W_key, W_value",
    oracle=right_layer,
    properties=[past_stays],
    facts=[projected_again, *TRAINING_FACTS],
    pipeline=of_attention.attention(
        of_attention.of_module,
        of_attention.steps(**PROJECTED, mask=of_attention.triangle),
        *(of_masks.CAUSAL, HIDE, LARGE_FILLS, of_masks.CUT, OWN, of_attention.AXIS),
        *(of_attention.SCALE, of_masks.SIZES, of_attention.SCORE, of_attention.PROJECT),
        *(of_attention.RETURN_OUTPUT, of_attention.SOFTMAX, of_attention.AVERAGE),
        without=("axis-left-open", "fixed-axis", "batch-axes-fixed"),
        width_name="d_out",
        **of_masks.OF_BUILD,
    ),
    cases=[
        case(draw(2, 7, 3, scale=2.0), build=LONG),
        case(draw(2, 11, 3, scale=2.0), build=LONG, note="the full length"),
        case(draw(5, 3, 3, scale=2.0), build=LONG, note="a shorter length"),
        case(draw(3, 3, 7, scale=2.0), build=NARROW_BUILD, note="d_out < d_in, B = T"),
        case(draw(2, 5, 7, scale=2.0), build=NARROW_BUILD, note="the full length"),
        special("large scores", draw(13, 2, 7, scale=300.0), build=NARROW_BUILD),
        special("one token", draw(2, 1, 3), build=LONG),
    ],
)

EXERCISES = [mask, masked_softmax, padding, dropout, causal_attention]
