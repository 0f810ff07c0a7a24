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


def rows_of_identity(s):
    return torch.eye(s.classes, dtype=torch.long)[s.rows]


EMBED = Forms(TEXTS["EMBED"])
wrong = EMBED.wrong
wrong("class-count-missing", hot=lambda s: F.one_hot(s.rows))
wrong(
    "class-count-missing", hot=lambda s: F.one_hot(s.rows), cast=lambda s: s.hot.float()
)
wrong("class-count-wrong-axis", classes=lambda s: s.D)
wrong("class-count-wrong-axis", classes=lambda s: s.D, hot=rows_of_identity)
wrong("class-count-of-ids", classes=lambda s: s.ids.shape[-1])
wrong("class-count-of-ids", classes=lambda s: s.ids.numel())
wrong("class-count-of-ids", classes=lambda s: len(s.ids))
wrong("class-count-off-by-one", classes=lambda s: s.V - 1)
wrong("class-count-off-by-one", classes=lambda s: s.V + 1)
wrong("integer-one-hot", cast=lambda s: s.hot)
wrong("one-hot-of-fixed-type", cast=lambda s: s.hot.float())
wrong("ids-from-one", rows=lambda s: (s.ids - 1) % s.V)
wrong("ids-from-one", rows=lambda s: s.ids - 1)
wrong("ids-from-one", hot=lambda s: F.one_hot(s.rows, s.classes + 1)[..., 1:])
wrong("ids-shifted", rows=lambda s: (s.ids + 1) % s.V)
wrong("ids-shifted", rows=lambda s: s.ids + 1)
wrong("ids-shifted", rows=lambda s: s.ids + 1, hot=rows_of_identity)
wrong("table-transposed", classes=lambda s: s.D, product=lambda s: s.cast @ s.table.T)
wrong("table-transposed 2", result=lambda s: s.product @ s.table.T)
wrong("table-transposed 3", product=lambda s: s.cast @ s.table.T)
wrong("factors-swapped", product=lambda s: s.table @ s.cast)
wrong("product-transposed", product=lambda s: s.table.mT @ s.cast.mT)
wrong("elementwise-product", product=lambda s: s.cast * s.table)
wrong("one-hot-alone", product=lambda s: s.cast)
wrong("one-hot-alone", product=lambda s: s.hot)
wrong("shape-flattened", result=lambda s: s.product.flatten(0, -2))
wrong("shape-flattened 2", rows=lambda s: s.ids.flatten())
wrong("rows-summed", result=lambda s: s.product.sum(-2))
wrong("rows-averaged", result=lambda s: s.product.mean(-2))
wrong("ids-as-numbers", product=lambda s: s.ids[..., None] * s.table[0])


def another_type(embed):
    """Name a result that has not the type of the table."""
    if embed(torch.tensor([1]), draw(3, 2).double()).dtype == torch.float64:
        return None
    return TEXTS["TYPE"].name("one-hot-of-fixed-type")


embed = Exercise(
    id="2.1",
    **TEXTS["2.1"],
    oracle=lambda ids, table: table[ids],
    cases=[
        case(torch.tensor([2, 0, 6, 2]), draw(7, 3)),
        case(torch.tensor([3, 1]), draw(7, 3), note="the last id does not occur"),
        case(integers(0, 11, (2, 5), seed=1), draw(11, 3), note="a batch"),
        case(integers(0, 5, (2, 3, 7), seed=2), draw(5, 5), note="V = D"),
        case(torch.tensor(4), draw(5, 3), note="a single id"),
        case(torch.tensor([1, 2]), draw(3, 2).double(), note="float64"),
        case(torch.zeros(0, dtype=torch.long), draw(5, 3), note="no ids", special=True),
    ],
    pipeline=Pipeline(
        start=lambda ids, table: {"ids": ids, "table": table},
        steps={
            "sizes": lambda s: s.table.shape,
            "rows": lambda s: s.ids,
            "classes": lambda s: s.V,
            "hot": lambda s: F.one_hot(s.rows, s.classes),
            "cast": lambda s: s.hot.to(s.table.dtype),
            "product": lambda s: s.cast @ s.table,
            "result": lambda s: s.product,
        },
        gives={"sizes": ("V", "D")},
        forms=EMBED,
        harmless=[form(None, hot=rows_of_identity)],
        words={"V": lambda s: s.V, "n": lambda s: s.classes, "D": lambda s: s.D},
    ),
    when_right=[another_type],
)


# --- 2.2 --------------------------------------------------------------------------


def right_positions(num_positions, d_model):
    speeds = 10000 ** -(torch.arange(0, d_model, 2).double() / d_model)
    angles = torch.outer(torch.arange(num_positions).double(), speeds)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


def overwritten(s):
    """Return all sines, the last cosines, and room that is left."""
    sines, cosines = s.waves
    return F.pad(torch.cat((sines, cosines[:, -1:]), -1), (0, s.D // 2 - 1))


WAVES = Forms(TEXTS["WAVES"])
wrong = WAVES.wrong
wrong("halves-for-alternating", table=lambda s: torch.cat(s.waves, dim=-1))
wrong("pairs-overlap", table=overwritten)
wrong("positions-mixed", table=lambda s: torch.stack(s.waves).reshape(s.T, s.D))
wrong("sine-and-cosine-swapped", waves=lambda s: (s.even.cos(), s.odd.sin()))
wrong("exponent-of-feature", pairs=lambda s: torch.arange(s.D))
wrong("exponent-doubled", pairs=lambda s: 2 * torch.arange(s.D))
wrong("exponent-halved", exponent=lambda s: s.features / 2 / s.D)
wrong("exponent-doubled 2", exponent=lambda s: 2 * s.features / s.D)
wrong("exponent-stretched", exponent=lambda s: s.features / max(s.D - 2, 1))
wrong("exponent-stretched 2", exponent=lambda s: s.features / (s.D - 1))
wrong("exponent-over-positions", exponent=lambda s: s.features / s.T)
wrong("exponent-not-divided", exponent=lambda s: s.features)
wrong("pairs-from-one", pairs=lambda s: torch.arange(s.D) // 2 * 2 + 2)
wrong("pairs-from-one 2", pairs=lambda s: torch.arange(s.D) // 2 * 2 + 1)
wrong("power-before-division", divisor=lambda s: s.base**s.features / s.D)
wrong("power-before-division 2", divisor=lambda s: s.base**2 * s.exponent / 2)
wrong("product-for-power", divisor=lambda s: s.base * s.exponent)
wrong("positions-from-one", positions=lambda s: torch.arange(1, s.T + 1)[:, None])
wrong("wrong-base", base=lambda s: 1000)
wrong("wrong-base 2", base=lambda s: 100000)
wrong("wrong-base 3", base=lambda s: math.e**4)
wrong("wrong-base 4", base=lambda s: math.e)
wrong("one-frequency", exponent=lambda s: 0 * s.features)
wrong("multiplied-for-divided", angles=lambda s: s.positions * s.divisor)
wrong("angles-rounded", angles=lambda s: s.positions // s.divisor)
wrong("turns-for-radians", angles=lambda s: s.positions / s.divisor * math.tau)
wrong("one-wave", waves=lambda s: (s.even.sin(), s.odd.sin()))
wrong("one-wave 2", waves=lambda s: (s.even.cos(), s.odd.cos()))
wrong("half-empty", waves=lambda s: (s.even.sin(), 0 * s.odd))
wrong("transposed", result=lambda s: s.table.float().T)
wrong("batch-axis-added", result=lambda s: s.table.float()[None])
wrong("integer-table", result=lambda s: s.table.long())
wrong("angles-alone", result=lambda s: s.even.float())
wrong("angles-alone", waves=lambda s: (s.even, s.odd))
ROUNDED = Forms()  # in float32, where large angles come out differently
ROUNDED.also(features=lambda s: s.pairs)
ROUNDED.also(features=lambda s: s.pairs.float())
ROUNDED.also(divisor=lambda s: torch.exp(s.pairs * (math.log(s.base) / s.D)))
sinusoidal_positions = Exercise(
    id="2.2",
    **TEXTS["2.2"],
    oracle=right_positions,
    cases=[
        case(3, 4),
        case(31, 6),
        case(7, 10),
        case(1, 6, note="one position"),
        case(200, 2, note="a single pair"),
    ],
    pipeline=Pipeline(
        start=lambda num_positions, d_model: {"T": num_positions, "D": d_model},
        steps={
            "base": lambda s: 10000,
            "positions": lambda s: torch.arange(s.T)[:, None],
            "pairs": lambda s: torch.arange(s.D) // 2 * 2,
            "features": lambda s: s.pairs.double(),
            "exponent": lambda s: s.features / s.D,
            "divisor": lambda s: s.base**s.exponent,
            "angles": lambda s: s.positions / s.divisor,
            "halves": lambda s: (s.angles[:, 0::2], s.angles[:, 1::2]),
            "waves": lambda s: (s.even.sin(), s.odd.cos()),
            "table": lambda s: torch.stack(s.waves, dim=-1).flatten(-2),
            "result": lambda s: s.table.float(),
        },
        gives={"halves": ("even", "odd")},
        forms=WAVES,
        harmless=ROUNDED,
        words={"base": lambda s: f"{s.base:,}", "T": lambda s: s.T},
    ),
)

EXERCISES = [embed, sinusoidal_positions]
