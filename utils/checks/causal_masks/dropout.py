"""Exercise 5.4: dropout, judged by what must hold whatever the coins say."""

import torch
from torch.nn import functional as F

from utils.checks.draw import draws, integers
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import number

TEXTS = texts_of(__file__)
FACTS = TEXTS["FACTS"]
draw = draws(54)


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


def same(values):
    return bool(values.max() - values.min() < 1e-3)


def factor(y, x):
    """Return the one factor on all survivors, or in words that there is none."""
    if not y.isfinite().all():
        return "not finite"
    if not y.any():
        return "no survivors"
    ratios = (y / x)[y != 0]
    if same(ratios):
        return round(ratios.mean().item(), 4)
    if all(same((call / x)[call != 0]) for call in y if call.any()):
        return "another in each call"
    if same(y[y != 0]):
        return f"all become {number(y.max().item())}"
    return "different ones"


def returns_the_mask(answer):
    """Name an answer that gives back its coins, alone or beside the output."""
    found = answer(torch.full((7, 11), 3.0), 0.3)
    if isinstance(found, tuple):
        return FACTS.name("returns-a-tuple")
    if found.dtype == torch.bool:
        return FACTS.name("mask-returned")
    return FACTS.name("entries-removed") if found.dim() == 1 else None


def all_dropped_for_one(answer):
    """Name an answer that divides 0 by 0 where p = 1."""
    try:
        entry = answer(torch.full((3, 5), 2.0), 1.0).max().item()
        came = entry and f"an entry is {number(entry)}"
    except ZeroDivisionError:
        came = "1 / (1 - p) divides by 0"
    return FACTS.name("p-one-fails", came=came) if came else None


# --- the steps: random numbers, coins that keep an entry, a factor on what is kept ----

FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("not-rescaled", factor=lambda s: 1.0)
wrong("divided-by-p", factor=lambda s: 1 / torch.tensor(s.p))  # no error for p = 0
wrong("multiplied-by-keep", factor=lambda s: 1 - s.p)
wrong("multiplied-by-p", factor=lambda s: s.p)
wrong("scaled-by-own-share", factor=lambda s: 1 / s.coins.float().mean())
wrong("factors-differ", factor=lambda s: s.x.sum(-1, True) / s.kept.sum(-1, True))
wrong("factors-differ", factor=lambda s: 1 / s.kept.sum(-1, True))
wrong("parentheses-missing", result=lambda s: s.kept / 1 - s.p)
wrong("scaled-by-one-plus-p", factor=lambda s: 1 + s.p)
wrong("scaled-by-one-plus-p 2", factor=lambda s: 1 / (1 + s.p))
wrong("keeps-p", coins=lambda s: s.random < s.p)
wrong("keeps-p", coins=lambda s: s.random < s.p, factor=lambda s: 1 / torch.tensor(s.p))
wrong("nothing-dropped", result=lambda s: s.x)
wrong("nothing-dropped 2", coins=lambda s: 1)
wrong("everything-dropped", coins=lambda s: 0)
wrong("one-coin-for-all", random=lambda s: torch.rand(()))
wrong("whole-rows", random=lambda s: torch.rand(*s.x.shape[:-1], 1))
wrong("whole-rows 2", random=lambda s: torch.rand(len(s.x), *[1] * (s.x.dim() - 1)))
wrong("whole-columns", random=lambda s: torch.rand(s.x.shape[-1:]))
wrong("one-mask-for-the-batch", random=lambda s: torch.rand(s.x.shape[-2:]))
wrong("same-mask-each-time", random=lambda s: integers(0, 99, s.x.shape, seed=0) / 99)
wrong("exact-share", random=lambda s: torch.randperm(s.n).view_as(s.x) / s.n)
wrong("normal-for-uniform", random=lambda s: torch.randn(s.x.shape))
wrong("p-ignored", coins=lambda s: s.random < 0.5)
wrong("p-ignored", coins=lambda s: s.random < 0.5, factor=lambda s: 2.0)
wrong("compares-x", random=lambda s: s.x)
wrong("compares-x", random=lambda s: s.x.abs())
wrong("dropped-twice", result=lambda s: F.dropout(F.dropout(s.x, s.p), s.p))
wrong("random-factors", result=lambda s: s.x * s.random)
wrong("fixed-axes", random=lambda s: torch.rand(s.x.shape[0], s.x.shape[1]))
wrong("mask-returned", result=lambda s: s.coins.float())
wrong("mask-returned 2", result=lambda s: s.coins * s.factor)
wrong("minus-infinity-for-zero", kept=lambda s: s.x.masked_fill(~s.coins, -torch.inf))
dropout = Exercise(
    id="5.4",
    **TEXTS["5.4"],
    oracle=lambda x, p: F.dropout(x, p),
    observe_as=habits,
    facts=[returns_the_mask],
    when_right=[all_dropped_for_one],
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
            "kept": lambda s: s.x * s.coins,
            "factor": lambda s: s.p < 1 and 1 / (1 - s.p),
            "result": lambda s: s.kept * s.factor,
        },
        forms=FORMS,
    ),
)
