"""Exercise 5.4: dropout, judged by what must hold whatever the coins say."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of
from utils.checks.values import number

TEXTS = texts_of(__file__)
FACTS = TEXTS["FACTS"]
draw = draws(54)
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
    axes = shared_axes(dropped) if dropped.any() and not dropped.all() else []
    return (
        factor(y, x),
        "different" if masks == 1 or counts > 1 else "always the same",
        masks,
        "not asked" if axes else share_of(y, dropped, p),
        in_words(axes, x.dim()),
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
        return f"0; many are {number(values[counts.argmax()].item())}"
    return next((c for c in (p, 1 - p) if abs(share - c) < 0.05), round(share, 1))


def shared_axes(dropped):
    """Return the axes of x along which every entry falls or stays together."""
    axes = range(1, dropped.dim())
    return [a - 1 for a in axes if (dropped == dropped.narrow(a, 0, 1)).all()]


def in_words(axes, num_axes):
    """Return which entries fall together where they do along these axes."""
    if len(axes) in (0, num_axes):
        return "all" if axes else "none"
    if axes == [num_axes - 1]:
        return "each row"
    return f"along axis {' and '.join(map(str, axes))}"


def same(values):
    return bool(values.max() - values.min() < 1e-3)


def factor(y, x):
    """Return the one factor on all survivors, or in words that there is none."""
    ratios = [(call / x)[call != 0] for call in y if call.any()]
    if not y.isfinite().all() or not ratios:
        return "no survivors" if y.isfinite().all() else "not finite"
    if same(torch.cat(ratios)):
        return round(torch.cat(ratios).mean().item(), 4)
    if all(map(same, ratios)):
        return "another in each call"
    survivors = y[y != 0]
    return (
        f"all become {number(y.max().item())}" if same(survivors) else "different ones"
    )


def returns_the_mask(answer):
    """Name an answer that gives back its coins, alone or beside the output."""
    found = answer(torch.full((7, 11), 3.0), 0.3)
    if isinstance(found, tuple):
        return FACTS.say("returns-a-tuple")
    if found.dtype == torch.bool:
        return FACTS.say("mask-returned")
    return FACTS.say("entries-removed") if found.dim() == 1 else None


def all_dropped_for_one(answer):
    """Name an answer that divides 0 by 0 where p = 1."""
    try:
        found = answer(torch.full((3, 5), 2.0), 1.0)
    except ZeroDivisionError:
        return FACTS.say("p-one-fails", came="1 / (1 - p) divides by 0")
    if not found.any():
        return None
    entry = number(found.flatten()[0].item())
    return FACTS.say("p-one-fails", came=f"an entry is {entry}")


# --- the steps: coins that keep an entry, a factor, both on x -----------------------


def drawn(shape):
    """Return the coins of `torch.rand(shape) >= p`."""
    return lambda s: torch.rand(shape(s.x)) >= s.p


def exact_share(s):
    """Drop a fixed number of entries, chosen by shuffling."""
    return torch.randperm(s.x.numel()).view(s.x.shape) >= int(s.p * s.x.numel())


def reseeded(s):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(s.x.shape, generator=generator) >= s.p


def below_p(s):
    return torch.rand(s.x.shape) < s.p


def fair(s):
    return torch.rand(s.x.shape) < 0.5


def rows_of_one(s):
    return s.x * s.coins / (s.x * s.coins).sum(-1, keepdim=True)


def twice(s):
    return torch.dropout(torch.dropout(s.x, s.p, train=True), s.p, train=True)


def filled_with_infinity(s):
    return s.x.masked_fill(~s.coins, -torch.inf) * s.factor


def over_p(s):
    return 1 / torch.tensor(s.p)  # infinite for p = 0, not an error


FORMS = Forms(TEXTS["FORMS"])
FORMS.wrong("not-rescaled", factor=lambda s: 1.0)
FORMS.wrong("divided-by-p", factor=over_p)
FORMS.wrong("multiplied-by-keep", factor=lambda s: 1 - s.p)
FORMS.wrong("multiplied-by-p", factor=lambda s: s.p)
FORMS.wrong("scaled-by-own-share", factor=lambda s: 1 / s.coins.float().mean())
FORMS.wrong("factors-differ", result=lambda s: rows_of_one(s) * s.x.sum(-1, True))
FORMS.wrong("factors-differ", result=rows_of_one)
FORMS.wrong("parentheses-missing", result=lambda s: s.x * s.coins / 1 - s.p)
FORMS.wrong("scaled-by-one-plus-p", factor=lambda s: 1 + s.p)
FORMS.wrong("scaled-by-one-plus-p 2", factor=lambda s: 1 / (1 + s.p))
FORMS.wrong("keeps-p", coins=below_p)
FORMS.wrong("keeps-p", coins=below_p, factor=over_p)
FORMS.wrong("nothing-dropped", result=lambda s: s.x)
FORMS.wrong("nothing-dropped 2", coins=lambda s: 1)
FORMS.wrong("everything-dropped", coins=lambda s: 0)
FORMS.wrong("one-coin-for-all", coins=drawn(lambda x: ()))
FORMS.wrong("whole-rows", coins=drawn(lambda x: (*x.shape[:-1], 1)))
FORMS.wrong("whole-rows 2", coins=drawn(lambda x: (len(x), *[1] * (x.dim() - 1))))
FORMS.wrong("whole-columns", coins=drawn(lambda x: x.shape[-1:]))
FORMS.wrong("one-mask-for-the-batch", coins=drawn(lambda x: x.shape[-2:]))
FORMS.wrong("same-mask-each-time", coins=reseeded)
FORMS.wrong("exact-share", coins=exact_share)
FORMS.wrong("normal-for-uniform", coins=lambda s: torch.randn(s.x.shape) >= s.p)
FORMS.wrong("p-ignored", coins=fair)
FORMS.wrong("p-ignored", coins=fair, factor=lambda s: 2.0)
FORMS.wrong("compares-x", coins=lambda s: s.x >= s.p)
FORMS.wrong("compares-x", coins=lambda s: s.x.abs() >= s.p)
FORMS.wrong("dropped-twice", result=twice)
FORMS.wrong("random-factors", result=lambda s: s.x * torch.rand(s.x.shape))
FORMS.wrong("fixed-axes", coins=drawn(lambda x: (x.shape[0], x.shape[1])))
FORMS.wrong("mask-returned", result=lambda s: s.coins.float())
FORMS.wrong("mask-returned 2", result=lambda s: s.coins * s.factor)
FORMS.wrong("minus-infinity-for-zero", result=filled_with_infinity)
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
        case(draw(11, 7, 5), 0.65),
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
