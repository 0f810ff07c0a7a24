"""Exercise 5.2: a softmax over the allowed places."""

import torch

from utils.checks import attention_masks as of_masks
from utils.checks import attention_steps as of_attention
from utils.checks.attention_masks import (
    MINUS_1E9,
    left_alone,
    uncleared,
)
from utils.checks.attention_steps import (
    FACTS,
    GIVES,
    INF,
    allowed,
    fill,
    forms_of,
    leak,
    row_sum,
    steps,
    triangle,
    zeroed,
)
from utils.checks.draw import draws
from utils.checks.engine import Exercise, case, mistakes_of
from utils.checks.steps import Forms, Pipeline, State, form

draw = draws(5)


def right_softmax(scores, mask):
    """Return the oracle's weights: exp of the allowed scores over their sum."""
    scores = scores.double()
    mask = mask.expand_as(scores)
    top = scores.masked_fill(~mask, -INF).amax(-1, keepdim=True)
    exps = torch.where(mask, scores - top, -INF).exp()
    return (exps / exps.sum(-1, keepdim=True)).masked_fill(~mask, 0.0).float()


def lowest(s):
    return fill(s, torch.finfo(s.scores.dtype).min)


def by_index(s):
    hidden = s.scores.clone()
    hidden[~s.mask] = -INF
    return hidden


def rows_by_index(s):
    weights = s.soft.clone()
    weights[~s.mask.any(-1)] = 0.0
    return weights


def rows_by_axis(axis):
    """Return the weights with 0 where a mask allows nothing along a fixed axis."""
    return lambda s: s.soft.masked_fill(~s.mask.any(axis, keepdim=True), 0.0)


INVERTED = (
    "Hidden places get a weight of up to {leak}, allowed ones none. True means that "
    "the query may attend; masked_fill fills where the mask given to it is True, so "
    "give it ~mask."
)
EMPTY_UNIFORM = (
    "A row without any allowed position must be all zeros: here its weights are "
    "uniform and see everything, as when all its scores become the same number. Set "
    "the hidden weights to 0 once more after the softmax."
)
MASK = Forms()
MASK.wrong(
    "mask-not-used",
    "Hidden places get a weight of up to {leak}: the mask has no effect. masked_fill "
    "returns a new tensor: is its result used?",
    hide=left_alone,
    clear=uncleared,
)
MASK.wrong("polarity-inverted", INVERTED, mask=lambda s: ~s.allowed)
MASK.wrong("polarity-inverted", INVERTED, mask=lambda s: ~s.allowed, clear=uncleared)
MASK.wrong(
    "polarity-inverted",
    "The weights vanish: the scores are hidden where the mask is True and the weights "
    "where it is False. True means that the query may attend, so both times fill at "
    "~mask.",
    hide=lambda s: fill(s, -INF, ~s.mask),
)
MASK.wrong(
    "polarity-inverted",
    "The right scores are hidden, but then the allowed weights are set to 0 and the "
    "others kept: fill at ~mask both times.",
    clear=lambda s: s.soft.masked_fill(s.mask, 0.0),
)
MASK.wrong(
    "empty-row-nan",
    "A row without any allowed position must be all zeros. Its scores are all -inf, "
    "and the softmax of that is 0/0, NaN: set the hidden weights to 0 once more after "
    "the softmax.",
    clear=uncleared,
)
MASK.wrong("empty-row-uniform", EMPTY_UNIFORM, hide=lowest, clear=uncleared)
MASK.wrong(
    "empty-row-uniform",
    EMPTY_UNIFORM,
    hide=lambda s: s.scores + ~s.mask * -1e9,
    clear=uncleared,
)
MASK.wrong(
    "empty-row-unmasked",
    "A row without any allowed position keeps its softmax over all scores: it must be "
    "all zeros, because there is nothing it may see.",
    mask=lambda s: s.allowed | ~s.allowed.any(-1, keepdim=True),
)
MASK.extend(
    form(
        "fixed-axis",
        f"mask.any(dim={axis}) is not the axis of the keys for every mask: count "
        "from the end, mask.any(dim=-1, keepdim=True).",
        clear=rows_by_axis(axis),
    )
    for axis in (1, 0)
)
MASK.wrong(
    "minus-1e9",
    f"{EMPTY_UNIFORM} {MINUS_1E9}",
    hide=lambda s: fill(s, -1e9),
    clear=uncleared,
)
MASK.wrong("minus-1e9", MINUS_1E9, hide=lambda s: fill(s, -1e9))
MASK.wrong(
    "mask-filled-with-plus",
    "Rows in which something is hidden become zero: hidden scores are hugely positive "
    "there and take everything (fill with -inf), or rows are kept only where all is "
    "allowed, mask.all for mask.any.",
    hide=lambda s: fill(s, 1e9),
)
MASK.wrong(
    "global-maximum-subtracted",
    "One maximum, of all scores, is subtracted: rows far below it, and rows whose "
    "hidden score is far above the others, become 0/0. Hide first, then subtract each "
    "row's own maximum.",
    hide=left_alone,
    shift=lambda s: s.hidden - s.hidden.max(),
    exp=lambda s: s.shifted.exp() * allowed(s),
)
MASK.wrong(
    "zero-for-minus-infinity",
    "The allowed weights of a row sum to {row_sum}: hidden scores of 0 (or 1e-9) take "
    "their share first, e⁰ = 1. Hide with -inf.",
    hide=lambda s: fill(s, 0.0),
)
MASK.extend(
    form(
        "mask-not-broadcast",
        "Indexing with a mask, scores[~mask] = …, asks for a mask with all axes of "
        "the scores. masked_fill and torch.where broadcast to them.",
        **ways,
    )
    for ways in (
        {"hide": by_index},
        {"hide": by_index, "clear": uncleared},
        {"clear": rows_by_index},
    )
)
MASK.wrong(
    "axis-added-to-mask",
    "An axis is inserted into the mask: it broadcasts to the scores as it is given, "
    "whoever calls the function has seen to that.",
    mask=lambda s: s.allowed.unsqueeze(1),
)
MASK.wrong(
    "axis-added-to-mask",
    "An axis is inserted into the mask: it broadcasts to the scores as it is given, "
    "whoever calls the function has seen to that.",
    mask=lambda s: s.allowed.unsqueeze(1),
    clear=uncleared,
)
MASK.wrong(
    "rows-dropped",
    "Every row in which anything is hidden becomes zero: only the rows without any "
    "allowed position should, mask.any(dim=-1), not all.",
    mask=lambda s: s.allowed & s.allowed.all(-1, keepdim=True),
)
MASK.wrong(
    "triangle-for-mask",
    "A causal triangle is used whatever the mask says: use the mask given, it may "
    "hide something else.",
    mask=triangle,
)
MASK.wrong(
    "selected-scores",
    "scores[mask] puts the allowed scores of all rows into one long row: keep the "
    "shape and fill the others with -inf.",
    drop=lambda s: torch.softmax(s.scores[s.mask], -1),
)
MASK.wrong(
    "scaled",
    "The scores are divided by √S = √{keys}: scaling is not asked for here. The "
    "scores come as they are to be used.",
    scale=lambda s: s.products / s.products.shape[-1] ** 0.5,
)
MASK.wrong(
    "softmax-missing",
    "These are the scores, the hidden ones at -inf: a softmax over the last axis "
    "turns scores into weights.",
    divide=lambda s: s.hidden,
    clear=uncleared,
)
BOOLEANS = [
    form(
        "bool-arithmetic",
        "The opposite of a boolean mask is ~mask, entry by entry. PyTorch does not "
        "subtract or negate booleans, and `not` and `if` ask a whole tensor for one "
        "truth value.",
        mask=opposite,
    )
    for opposite in (
        lambda s: 1 - s.allowed,
        lambda s: -s.allowed,
        lambda s: not s.allowed,
    )
]
STEPS = steps(
    scale=lambda s: s.products,
    mask=lambda s: s.allowed,
    clear=zeroed,
    give=lambda s: s.weights,
    leaving_out=("score", "width", "average", "merge", "project_out"),
)
pipeline = Pipeline(
    start=lambda scores, mask: {"products": scores, "allowed": mask},
    steps=STEPS,
    gives=GIVES,
    forms=forms_of(
        STEPS,
        MASK,
        of_masks.without_zeros(of_masks.HIDE),
        of_masks.HIDE,
        of_attention.AXIS,
        of_attention.SOFTMAX,
        BOOLEANS,
    ),
    harmless=[
        form(None, hide=lowest),
        form(None, clear=lambda s: s.soft.nan_to_num(0.0)),
        form(None, divide=lambda s: s.exps / (s.exps.sum(s.dim, keepdim=True) + 1e-9)),
    ],
    facts=FACTS | {"keys": lambda s: s.scores.shape[-1]},
)


def seen(evidence):
    """Return what the facts of a text look at, from the answer's own weights."""
    return State(weights=evidence.got, mask=evidence.args[1], allowed=evidence.args[1])


def hidden_places_get_nothing(evidence):
    if float(leak(seen(evidence))) < 1e-6:
        return None
    return f"Hidden places get a weight of up to {leak(seen(evidence))} instead of 0."


def allowed_sum_to_one(evidence):
    found = row_sum(seen(evidence))
    if found != "NaN" and abs(float(found) - 1) <= 1e-3:
        return None
    return f"The allowed weights of a row sum to {found} instead of 1."


def booleans(*rows):
    return torch.tensor(rows, dtype=torch.bool)


masked_softmax = Exercise(
    id="5.2",
    signature="masked_softmax(scores, mask)",
    returns="the weights (…, T, S): allowed ones sum to 1 in each row, forbidden ones "
    "are 0, a row without any allowed position is all zeros",
    oracle=right_softmax,
    properties=[hidden_places_get_nothing, allowed_sum_to_one],
    pipeline=pipeline,
    mistakes=mistakes_of(pipeline),
    cases=[
        case(
            torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]),
            booleans([1, 1, 0], [1, 1, 1]),
        ),
        case(draw(5, 7), draw(5, 7) > 0, note="some places hidden"),
        case(draw(5, 5), torch.ones(5, 5).tril().bool(), note="a causal mask"),
        case(
            torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]),
            booleans([1, 0, 1], [0, 0, 0]),
            note="nothing allowed in row 1",
        ),
        case(draw(2, 3, 5), draw(3, 5) > -0.5, note="one mask for both samples"),
        case(draw(5, 5, 3), draw(5, 3) > -0.5, note="B = T"),
        case(
            draw(2, 3, 5, 7),
            (torch.arange(7) < torch.tensor([[4], [7]]))[:, None, None],
            note="a padding mask",
        ),
        case(
            draw(2, 3, 5),
            (draw(2, 3, 5) > -0.5) & booleans([[1], [1], [0]], [[0], [1], [1]]),
            note="a batch with empty rows",
        ),
        case(
            torch.tensor([[1.0, 2.0, 1000.0], [1000.0, 3.0, 1.0]]),
            booleans([1, 1, 0], [0, 1, 1]),
            note="hidden scores of 1000",
            special=True,
        ),
        case(
            torch.tensor([[600.0, -900.0, 300.0], [-500.0, 200.0, 800.0]]),
            booleans([1, 1, 0], [1, 1, 1]),
            note="large scores",
            special=True,
        ),
        case(
            torch.tensor([[-3e4, -30040.0, -30080.0], [-30080.0, -3e4, -30040.0]]),
            booleans([0, 1, 1], [1, 0, 1]),
            note="scores near -30000",
            special=True,
        ),
        case(
            torch.zeros(3, 2, dtype=torch.float16),
            booleans([1, 0], [0, 1], [1, 0]),
            note="float16",
            special=True,
        ),
        case(torch.tensor([[0.7]]), booleans([1]), note="one token", special=True),
    ],
)
