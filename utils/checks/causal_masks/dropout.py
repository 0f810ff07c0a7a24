"""Exercise 5.4: dropout, judged by what must hold whatever the coins say."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import number

TEXTS = texts_of(__file__)
draw = draws(54)
INF = torch.inf


CALLS = 20


def right_dropout(x, p):
    return torch.nn.functional.dropout(x, p)


def habits(dropout, x, p):
    """Call `dropout` often; return what must hold whatever the coins say."""
    made = [dropout(x.clone(), p) for _ in range(CALLS)]
    dropout(x, p)  # on x itself, so that a change in place is seen
    y = torch.stack(made).detach()
    dropped = y == 0
    masks = len({mask.numpy().tobytes() for mask in dropped})
    counts = len({mask.sum().item() for mask in dropped})
    axes = [] if dropped.all() or not dropped.any() else shared_axes(dropped)
    return (
        factor(y, x),
        "different" if masks == 1 or counts > 1 else "always the same",
        masks,
        "not asked" if axes else share_of(y, dropped, p),
        alike(axes, x.dim()),
    )


HABITS = (  # the last one that differs is shown
    "factor on the survivors",
    f"number of zeros in {CALLS} calls",
    f"number of different masks in {CALLS} calls",
    "share of zeros",
    "group of entries that fall together",
)


def share_of(y, dropped, p):
    """Return the share as p, as 1 - p, or to one decimal: another draw gives the same.

    Where nothing is zero but one value is frequent, return that in words.
    """
    share = dropped.double().mean().item()
    values, counts = y[:2].unique(return_counts=True)
    if share == 0 and counts.max() > 0.1 * y[:2].numel():
        return f"0, but {number(values[counts.argmax()].item())} often"
    return next((c for c in (p, 1 - p) if abs(share - c) < 0.05), round(share, 1))


def shared_axes(dropped):
    """Return the axes of x along which every entry falls or stays together."""
    axes = range(1, dropped.dim())
    return [a - 1 for a in axes if (dropped == dropped.narrow(a, 0, 1)).all()]


def alike(axes, num_axes):
    if not axes:
        return "none"
    if len(axes) == num_axes:
        return "all"
    if axes == [num_axes - 1]:
        return "each row"
    return f"along axis {' and '.join(map(str, axes))}"


def factor(y, x):
    """Return the one factor on all survivors, or in words that there is none."""
    if not y.isfinite().all():
        return "not finite"
    kept = y != 0
    some = kept.flatten(1).any(1)
    if not some.any():
        return "no survivors"
    low, high = extremes(y / x, kept)
    if (high - low)[some].max() < 1e-3:  # one factor in each call
        single = high[some].max() - low[some].min() < 1e-3
        return round(high[some].mean().item(), 4) if single else "another in each call"
    values = y[kept]
    same = values.max() - values.min() < 1e-3
    return f"all become {number(values[0].item())}" if same else "different ones"


def extremes(ratio, kept):
    """Return the smallest and the largest kept ratio of each call."""
    low = ratio.masked_fill(~kept, INF).flatten(1).amin(1)
    return low, ratio.masked_fill(~kept, -INF).flatten(1).amax(1)


def returns_the_mask(answer):
    """Name an answer that gives back its coins, alone or beside the output."""
    found = answer(torch.full((7, 11), 3.0), 0.3)
    if isinstance(found, tuple):
        return TEXTS["FACTS"].say("returns-a-tuple")
    if isinstance(found, torch.Tensor) and found.dtype == torch.bool:
        return TEXTS["FACTS"].say("mask-returned")
    if isinstance(found, torch.Tensor) and found.dim() == 1:
        return TEXTS["FACTS"].say("entries-removed")
    return None


def all_dropped_for_one(answer):
    """Name an answer that divides 0 by 0 where p = 1."""
    try:
        found = answer(torch.full((3, 5), 2.0), 1.0)
    except ZeroDivisionError:
        return TEXTS["FACTS"].say("p-one-fails", came="1 / (1 - p) divides by 0")
    if not found.any():
        return None
    entry = number(found.flatten()[0].item())
    return TEXTS["FACTS"].say("p-one-fails", came=f"an entry is {entry}")


# --- the steps: coins that keep an entry, a factor, both on x -----------------------


def drawn(shape):
    """Return the coins of `torch.rand(shape) >= p`."""
    return lambda s: torch.rand(shape(s.x)) >= s.p


def exact_share(s):
    """Drop a fixed number of entries, chosen by shuffling."""
    keep = torch.ones(s.x.numel())
    keep[torch.randperm(s.x.numel())[: int(s.p * s.x.numel())]] = 0
    return keep.view(s.x.shape)


def reseeded(s):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(s.x.shape, generator=generator) >= s.p


def of_sum(wanted):
    """Return the step that gives the rows this sum again."""

    def result(s):
        kept = s.x * s.coins
        return kept * wanted(s) / kept.sum(-1, keepdim=True)

    return result


def over_p(s):
    return 1 / torch.tensor(s.p)  # infinite for p = 0, not an error


def below_p(s):
    return torch.rand(s.x.shape) < s.p


def above_half(s):
    return torch.rand(s.x.shape) >= 0.5


FORMS = Forms(TEXTS["FORMS"])
FORMS.wrong("not-rescaled", factor=lambda s: 1.0)
FORMS.wrong("divided-by-p", factor=over_p)
FORMS.wrong("multiplied-by-keep", factor=lambda s: 1 - s.p)
FORMS.wrong("multiplied-by-p", factor=lambda s: s.p)
FORMS.wrong("scaled-by-own-share", factor=lambda s: 1 / s.coins.float().mean())
FORMS.wrong("factors-differ", result=of_sum(lambda s: s.x.sum(-1, keepdim=True)))
FORMS.wrong("factors-differ", result=of_sum(lambda s: 1))
FORMS.wrong("parentheses-missing", result=lambda s: s.x * s.coins / 1 - s.p)
FORMS.wrong("scaled-by-one-plus-p", factor=lambda s: 1 + s.p)
FORMS.wrong("keeps-p", coins=below_p)
FORMS.wrong("keeps-p", coins=below_p, factor=over_p)
FORMS.wrong("nothing-dropped", result=lambda s: s.x)
FORMS.wrong("nothing-dropped 2", coins=lambda s: 1)
FORMS.wrong("everything-dropped", coins=lambda s: 0)
FORMS.wrong("one-coin-for-all", coins=drawn(lambda x: ()))
FORMS.wrong("whole-rows", coins=drawn(lambda x: (*x.shape[:-1], 1)))
FORMS.wrong("whole-columns", coins=drawn(lambda x: x.shape[-1:]))
FORMS.wrong("one-mask-for-the-batch", coins=drawn(lambda x: x.shape[-2:]))
FORMS.wrong("same-mask-each-time", coins=reseeded)
FORMS.wrong("exact-share", coins=exact_share)
FORMS.wrong("normal-for-uniform", coins=lambda s: torch.randn(s.x.shape) >= s.p)
FORMS.wrong("p-ignored", coins=above_half)
FORMS.wrong("p-ignored", coins=above_half, factor=lambda s: 2.0)
FORMS.wrong("compares-x", coins=lambda s: s.x >= s.p)
FORMS.wrong("compares-x", coins=lambda s: s.x.abs() >= s.p)
FORMS.wrong("random-factors", result=lambda s: s.x * torch.rand(s.x.shape))
FORMS.wrong("fixed-axes", coins=drawn(lambda x: (x.shape[0], x.shape[1])))
FORMS.wrong("mask-returned", result=lambda s: s.coins.float())
FORMS.wrong("mask-returned 2", result=lambda s: s.coins * s.factor)
FORMS.wrong(
    "minus-infinity-for-zero",
    result=lambda s: s.x.masked_fill(~s.coins, -INF) * s.factor,
)
dropout = Exercise(
    id="5.4",
    signature="dropout(x, p)",
    returns="x with each entry 0 with probability p and the survivors divided by 1 - p",
    oracle=right_dropout,
    observe_as=habits,
    parts=HABITS,
    facts=[returns_the_mask],
    when_right=[all_dropped_for_one],
    cases=[
        case(draw(17, 23), 0.3),
        case(draw(11, 7, 5), 0.6),
        case(draw(389), 0.25),
        case(draw(5, 3), 0.0, note="nothing to drop"),
    ],
    pipeline=Pipeline(
        start=lambda x, p: {"x": x, "p": p},
        steps={
            "coins": drawn(lambda x: x.shape),
            "factor": lambda s: 1 / (1 - s.p),
            "result": lambda s: s.x * s.coins * s.factor,
        },
        forms=FORMS,
    ),
)
