"""Exercise 5.4: dropout, judged by what must hold whatever the coins say."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, Mistake, Mistakes, case
from utils.checks.values import number

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


def kept_by(coins, scale):
    """Return the dropout that keeps where `coins(x, p)` says so and scales by p."""
    return lambda x, p: x * coins(x, p) * scale(p)


def fair(x, p):
    return torch.rand(x.shape) >= p


def exact_share(x, p):
    """Drop a fixed number of entries, chosen by shuffling."""
    keep = torch.ones(x.numel())
    keep[torch.randperm(x.numel())[: int(p * x.numel())]] = 0
    return keep.view(x.shape)


def reseeded(x, p):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(x.shape, generator=generator) >= p


def by_own_share(x, p):
    keep = fair(x, p).float()
    return x * keep / keep.mean()


def renormalised_rows(x, p):
    kept = x * fair(x, p)
    return kept * x.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True)


def sums_of_one(x, p):
    kept = x * fair(x, p)
    return kept / kept.sum(-1, keepdim=True)


def right_scale(p):
    return 1 / (1 - p)


def over_p(p):
    return 1 / torch.tensor(p)  # infinite for p = 0, not an error


def bare(p):
    return 1.0


def returns_the_mask(answer):
    """Name an answer that gives back its coins, alone or beside the output."""
    found = answer(torch.full((7, 11), 3.0), 0.3)
    if isinstance(found, torch.Tensor) and found.dtype == torch.bool:
        text = "The answer returns the coins themselves: multiply x by them, and scale."
        return "mask-returned", text
    if isinstance(found, torch.Tensor) and found.dim() == 1:
        text = "Dropped entries are gone: they become 0 and stay in their places."
        return "entries-removed", text
    if isinstance(found, tuple):
        return "returns-a-tuple", "The answer returns a tuple: return the output alone."
    return None


def all_dropped_for_one(answer):
    """Name an answer that divides 0 by 0 where p = 1."""
    try:
        found = answer(torch.full((3, 5), 2.0), 1.0)
    except ZeroDivisionError:
        came = "1 / (1 - p) divides by 0"
    else:
        if not found.any():
            return None
        came = f"an entry is {number(found.flatten()[0].item())}"
    return (
        "p-one-fails",
        f"With p = 1 everything is dropped and the result is all zeros: here {came}, "
        "because 1 - p is 0. Treat p = 1 by itself.",
    )


def variants(slug, coins, explain, scales=(right_scale, bare)):
    """Return the mistake of these coins, with each way of scaling."""
    return [Mistake(slug, kept_by(coins, scale), explain) for scale in scales]


OWN_COIN = "each entry has a coin of its own, torch.rand_like(x)."

DROPOUT_MISTAKES = Mistakes()
DROPOUT_MISTAKES.add(
    "not-rescaled",
    kept_by(fair, bare),
    "The survivors stay as they are, so the average shrinks by 1 - p. Divide them by "
    "1 - p, and eval mode needs no correction.",
)
DROPOUT_MISTAKES.add(
    "divided-by-p",
    kept_by(fair, over_p),
    "The survivors are divided by p: a share of 1 - p survives, so divide by 1 - p, "
    "and the average stays.",
)
DROPOUT_MISTAKES.add(
    "multiplied-by-keep",
    kept_by(fair, lambda p: 1 - p),
    "The survivors are multiplied by 1 - p, which makes the average smaller still: "
    "divide by 1 - p.",
)
DROPOUT_MISTAKES.add(
    "multiplied-by-p",
    kept_by(fair, lambda p: p),
    "The survivors are multiplied by p: divide them by 1 - p.",
)
DROPOUT_MISTAKES.add(
    "scaled-by-own-share",
    by_own_share,
    "The factor depends on how many entries survived: divide by 1 - p itself, the "
    "average over many calls is to stay, not that of each call.",
)
DROPOUT_MISTAKES.several(
    "factors-differ",
    "The survivors get different factors: all are divided by 1 - p. Rows under "
    "dropout keep their sum only on average, so normalise nothing again.",
    renormalised_rows,
    sums_of_one,
)
DROPOUT_MISTAKES.add(
    "parentheses-missing",
    lambda x, p: x * fair(x, p) / 1 - p,
    "Dropped entries become -p: `… / 1 - p` divides by 1 and then subtracts p. Write "
    "`… / (1 - p)`.",
)
DROPOUT_MISTAKES.add(
    "scaled-by-one-plus-p",
    kept_by(fair, lambda p: 1 + p),
    "The survivors are multiplied by 1 + p, which is near 1/(1-p) for small p alone: "
    "divide by 1 - p.",
)
DROPOUT_MISTAKES.extend(
    variants(
        "keeps-p",
        lambda x, p: torch.rand(x.shape) < p,
        "A share of p is kept where p is to be dropped: keep an entry where its "
        "random number is at least p.",
        (right_scale, over_p, bare),
    )
)
DROPOUT_MISTAKES.add(
    "nothing-dropped",
    lambda x, p: x,
    "Every entry survives: the random numbers are not used, or this is dropout in "
    "eval mode. It is to work as in training.",
)
DROPOUT_MISTAKES.add(
    "nothing-dropped",
    lambda x, p: x / (1 - p),
    "The entries are scaled, but none becomes 0: multiply by the coins too.",
)
DROPOUT_MISTAKES.add(
    "everything-dropped",
    lambda x, p: 0 * x,
    "Every entry becomes 0: a coin that is never True? A random number is at least p "
    "with probability 1 - p.",
)
DROPOUT_MISTAKES.extend(
    variants(
        "one-coin-for-all",
        lambda x, p: torch.rand(()) >= p,
        f"One coin decides for the whole tensor: {OWN_COIN}",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "whole-rows",
        lambda x, p: torch.rand(x.shape[:-1])[..., None] >= p,
        f"Whole rows fall together: {OWN_COIN}",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "whole-columns",
        lambda x, p: torch.rand(x.shape[-1]) >= p,
        f"Whole columns fall together, because one row is broadcast: {OWN_COIN}",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "one-mask-for-the-batch",
        lambda x, p: torch.rand(x.shape[-2:]) >= p,
        f"All samples of a batch get the same coins: {OWN_COIN}",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "same-mask-each-time",
        reseeded,
        "Every call drops the same entries: draw new random numbers in each call, and "
        "set no seed inside the function.",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "exact-share",
        exact_share,
        "Exactly the same number of entries falls in every call: each entry is to be "
        "dropped with probability p, independently of the others.",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "normal-for-uniform",
        lambda x, p: torch.randn(x.shape) >= p,
        "The random numbers are normal, so the share below p is not p: rand is "
        "uniform from 0 to 1, randn is not.",
    )
)
DROPOUT_MISTAKES.extend(
    variants(
        "p-ignored",
        lambda x, p: torch.rand(x.shape) >= 0.5,
        "Half of the entries fall whatever p is: the coin has to fall with "
        "probability p, torch.rand_like(x) < p.",
        (right_scale, bare, lambda p: 2.0),
    )
)
DROPOUT_MISTAKES.several(
    "compares-x",
    "x itself is compared with p, so the same entries fall each time: compare random "
    "numbers with p, torch.rand_like(x).",
    *(
        kept_by(coins, scale)
        for coins in (lambda x, p: x >= p, lambda x, p: x.abs() >= p)
        for scale in (right_scale, bare)
    ),
)
DROPOUT_MISTAKES.add(
    "random-factors",
    lambda x, p: x * torch.rand(x.shape),
    "No entry becomes 0: each is multiplied by a random number. Compare the random "
    "numbers with p, and multiply by the result, 0 or 1.",
)
DROPOUT_MISTAKES.extend(
    variants(
        "fixed-axes",
        lambda x, p: torch.rand(x.shape[0], x.shape[1]) >= p,
        "The coins are made for two axes: x may have any shape, and "
        "torch.rand_like(x) draws one for each entry.",
    )
)
DROPOUT_MISTAKES.add(
    "mask-returned",
    lambda x, p: fair(x, p).float(),
    "The answer returns the coins themselves, 0 or 1: multiply x by them, and divide "
    "by 1 - p.",
)
DROPOUT_MISTAKES.add(
    "mask-returned",
    lambda x, p: fair(x, p) / (1 - p),
    "The answer returns the scaled coins themselves: multiply x by them.",
)
DROPOUT_MISTAKES.add(
    "minus-infinity-for-zero",
    lambda x, p: x.masked_fill(~fair(x, p), -INF) / (1 - p),
    "Dropped entries become -inf, as blocked scores do: a dropped weight becomes 0.",
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
    mistakes=DROPOUT_MISTAKES,
)
