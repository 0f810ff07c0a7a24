"""Exercises of notebook 02: the lookup as a product, and sinusoidal positions."""

import math

import torch
from torch.nn import functional as F

from utils.checks.draw import draws, integers
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, form, texts_of

draw = draws(2)
TEXTS = texts_of(__file__)


# --- 2.1 --------------------------------------------------------------------------


def right_embed(ids, table):
    return table[ids]


def width(s):
    return s.table.shape[1]


def rows_of_identity(s):
    return torch.eye(s.classes, dtype=torch.long)[s.rows]


EMBED = Forms(TEXTS["EMBED"])
EMBED.wrong("class-count-missing", hot=lambda s: F.one_hot(s.rows))
EMBED.wrong(
    "class-count-missing",
    hot=lambda s: F.one_hot(s.rows),
    cast=lambda s: s.hot.float(),
)
EMBED.wrong("class-count-missing", classes=lambda s: int(s.ids.max()) + 1)
EMBED.wrong("class-count-wrong-axis", classes=width)
EMBED.wrong("class-count-wrong-axis", classes=width, hot=rows_of_identity)
EMBED.wrong("class-count-of-ids", classes=lambda s: s.ids.shape[-1])
EMBED.wrong("class-count-of-ids", classes=lambda s: s.ids.numel())
EMBED.wrong("class-count-of-ids", classes=lambda s: len(s.ids))
EMBED.wrong("class-count-off-by-one", classes=lambda s: len(s.table) - 1)
EMBED.wrong("class-count-off-by-one", classes=lambda s: len(s.table) + 1)
EMBED.wrong("integer-one-hot", cast=lambda s: s.hot)
EMBED.wrong("one-hot-of-fixed-type", cast=lambda s: s.hot.float())
EMBED.wrong("ids-from-one", rows=lambda s: (s.ids - 1) % len(s.table))
EMBED.wrong("ids-from-one", rows=lambda s: s.ids - 1)
EMBED.wrong("ids-from-one", hot=lambda s: F.one_hot(s.rows, s.classes + 1)[..., 1:])
EMBED.wrong("ids-shifted", rows=lambda s: (s.ids + 1) % len(s.table))
EMBED.wrong("ids-shifted", rows=lambda s: s.ids + 1)
EMBED.wrong("ids-shifted", rows=lambda s: s.ids + 1, hot=rows_of_identity)
EMBED.wrong("table-transposed", classes=width, product=lambda s: s.cast @ s.table.T)
EMBED.wrong("table-transposed 2", result=lambda s: s.product @ s.table.T)
EMBED.wrong("table-transposed 3", product=lambda s: s.cast @ s.table.T)
EMBED.wrong("factors-swapped", product=lambda s: s.table @ s.cast)
EMBED.wrong("product-transposed", product=lambda s: s.table.mT @ s.cast.mT)
EMBED.wrong("elementwise-product", product=lambda s: s.cast * s.table)
EMBED.wrong("one-hot-alone", product=lambda s: s.cast)
EMBED.wrong("one-hot-alone", product=lambda s: s.hot)
EMBED.wrong("shape-flattened", result=lambda s: s.product.flatten(0, -2))
EMBED.wrong("shape-flattened 2", rows=lambda s: s.ids.flatten())
EMBED.wrong("rows-summed", result=lambda s: s.product.sum(-2))
EMBED.wrong("rows-averaged", result=lambda s: s.product.mean(-2))
EMBED.wrong("ids-as-numbers", product=lambda s: s.ids[..., None] * s.table[0])


def another_type(embed):
    """Name a result that has not the type of the table."""
    got = embed(torch.tensor([1]), draw(3, 2).double())
    return (
        None
        if got.dtype == torch.float64
        else TEXTS["TYPE"].say("one-hot-of-fixed-type")
    )


lookup = Pipeline(
    start=lambda ids, table: {"ids": ids, "table": table},
    steps={
        "rows": lambda s: s.ids,
        "classes": lambda s: len(s.table),
        "hot": lambda s: F.one_hot(s.rows, s.classes),
        "cast": lambda s: s.hot.to(s.table.dtype),
        "product": lambda s: s.cast @ s.table,
        "result": lambda s: s.product,
    },
    forms=EMBED,
    harmless=[form(None, hot=rows_of_identity)],
    words={"V": lambda s: len(s.table), "n": lambda s: s.classes, "D": width},
)
embed = Exercise(
    id="2.1",
    signature="embed(ids, table)",
    returns="for integer ids of any shape (…) the rows (…, D) of the table (V, D)",
    oracle=right_embed,
    cases=[
        case(torch.tensor([2, 0, 6, 2]), draw(7, 3)),
        case(torch.tensor([3, 1]), draw(7, 3), note="the last id does not occur"),
        case(integers(0, 11, (2, 5), seed=1), draw(11, 3), note="a batch"),
        case(integers(0, 5, (2, 3, 7), seed=2), draw(5, 5), note="V = D"),
        case(torch.tensor(4), draw(5, 3), note="a single id"),
        case(torch.tensor([1, 2]), draw(3, 2).double(), note="float64"),
    ],
    pipeline=lookup,
    when_right=[another_type],
)


# --- 2.2 --------------------------------------------------------------------------


def right_positions(num_positions, d_model):
    table = torch.empty(num_positions, d_model)
    for t in range(num_positions):
        for i in range(0, d_model, 2):
            angle = t / 10000 ** (i / d_model)
            table[t, i], table[t, i + 1] = math.sin(angle), math.cos(angle)
    return table


def evens(s):
    return torch.arange(0, s.D, 2)


def every_feature(s):
    return torch.arange(s.D, dtype=torch.float64)


def right_angles(s):
    return s.positions[:, None] / s.divisor


def own_waves(s):
    """Return sines and cosines where each feature has an angle of its own."""
    return s.angles[:, 0::2].sin(), s.angles[:, 1::2].cos()


def in_halves(s):
    return torch.cat(s.waves, dim=-1)


def overwritten(s):
    """Return all sines, the last cosines, and room that is left."""
    first, second = s.waves
    return F.pad(torch.cat((first, second[:, -1:]), -1), (0, s.D // 2 - 1))


WAVES = Forms(TEXTS["WAVES"])
WAVES.wrong("halves-for-alternating", table=in_halves)
WAVES.wrong("pairs-overlap", table=overwritten)
WAVES.wrong("positions-mixed", table=lambda s: torch.stack(s.waves).reshape(s.T, s.D))
WAVES.wrong("sine-and-cosine-swapped", waves=lambda s: (s.angles.cos(), s.angles.sin()))
WAVES.wrong("exponent-of-feature", features=every_feature, waves=own_waves)
WAVES.wrong(
    "exponent-doubled", features=lambda s: 2 * every_feature(s), waves=own_waves
)
WAVES.wrong("exponent-halved", exponent=lambda s: s.features / 2 / s.D)
WAVES.wrong("exponent-doubled 2", exponent=lambda s: 2 * s.features / s.D)
WAVES.wrong("exponent-stretched", exponent=lambda s: s.features / max(s.D - 2, 1))
WAVES.wrong("exponent-stretched 2", exponent=lambda s: s.features / (s.D - 1))
WAVES.wrong("exponent-over-positions", exponent=lambda s: s.features / s.T)
WAVES.wrong("exponent-not-divided", exponent=lambda s: s.features)
WAVES.wrong("pairs-from-one", features=lambda s: evens(s) + 2.0)
WAVES.wrong("pairs-from-one 2", features=lambda s: torch.arange(1.0, s.D, 2))
WAVES.wrong("power-before-division", divisor=lambda s: s.base**s.features / s.D)
WAVES.wrong(
    "power-before-division 2", divisor=lambda s: s.base**2 * (s.features / 2) / s.D
)
WAVES.wrong("product-for-power", divisor=lambda s: s.base * s.exponent)
WAVES.wrong("positions-from-one", positions=lambda s: torch.arange(1, s.T + 1))
WAVES.wrong("wrong-base", base=lambda s: 1000)
WAVES.wrong("wrong-base 2", base=lambda s: 100000)
WAVES.wrong("wrong-base 3", base=lambda s: math.e**4)
WAVES.wrong("wrong-base 4", base=lambda s: math.e)
WAVES.wrong("one-frequency", exponent=lambda s: 0 * s.features)
WAVES.wrong("multiplied-for-divided", angles=lambda s: s.positions[:, None] * s.divisor)
WAVES.wrong("angles-rounded", angles=lambda s: s.positions[:, None] // s.divisor)
WAVES.wrong("turns-for-radians", angles=lambda s: right_angles(s) * 2 * math.pi)
WAVES.wrong("one-wave", waves=lambda s: (s.angles.sin(), s.angles.sin()))
WAVES.wrong("one-wave 2", waves=lambda s: (s.angles.cos(), s.angles.cos()))
WAVES.wrong("half-empty", waves=lambda s: (s.angles.sin(), 0 * s.angles))
WAVES.wrong("transposed", result=lambda s: s.table.float().T)
WAVES.wrong("batch-axis-added", result=lambda s: s.table.float()[None])
WAVES.wrong("integer-table", result=lambda s: s.table.long())
WAVES.wrong("angles-alone", result=lambda s: s.angles.float())
WAVES.wrong("angles-alone", waves=lambda s: (s.angles, s.angles))


def by_exp(s):
    return torch.exp(s.exponent * math.log(s.base))


ROUNDED = [  # in float32, where large angles come out differently
    form(None, features=evens),
    form(None, features=lambda s: evens(s).float()),
    form(None, features=evens, divisor=by_exp),
]
sinusoids = Pipeline(
    start=lambda num_positions, d_model: {"T": num_positions, "D": d_model},
    steps={
        "base": lambda s: 10000,
        "positions": lambda s: torch.arange(s.T),
        "features": lambda s: evens(s).double(),
        "exponent": lambda s: s.features / s.D,
        "divisor": lambda s: s.base**s.exponent,
        "angles": right_angles,
        "waves": lambda s: (s.angles.sin(), s.angles.cos()),
        "table": lambda s: torch.stack(s.waves, dim=-1).flatten(-2),
        "result": lambda s: s.table.float(),
    },
    forms=WAVES,
    harmless=ROUNDED,
    words={"base": lambda s: f"{s.base:,}", "T": lambda s: s.T},
)
sinusoidal_positions = Exercise(
    id="2.2",
    signature="sinusoidal_positions(num_positions, d_model)",
    returns="a table (T, D): sines on the even features, cosines on the odd ones",
    oracle=right_positions,
    cases=[
        case(3, 4),
        case(31, 6),
        case(7, 10),
        case(1, 6, note="one position"),
        case(200, 2, note="a single pair"),
    ],
    pipeline=sinusoids,
)

EXERCISES = [embed, sinusoidal_positions]
