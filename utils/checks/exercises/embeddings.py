"""Exercises of the notebook on embeddings: the lookup as a product, and sinusoids."""

import math

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case
from utils.checks.inputs import draw, integers, special
from utils.checks.pipeline import Diagnosis, Pipeline, variants

# --- the lookup -------------------------------------------------------------------


def rows_of_identity(s):
    return torch.eye(s.classes, dtype=torch.long)[s.rows]


def set_in_every_row(s):
    """Return rows that all have a 1 at every id, as `hot[:, ids] = 1` sets them."""
    hot = torch.zeros(s.rows.numel(), s.classes)
    hot[:, s.rows.flatten()] = 1
    return hot.view(*s.rows.shape, s.classes)


EMBED = variants(
    "class-count-missing: You called `F.one_hot(ids)`, which stops at the largest id: pass `num_classes=len(table)`.",
    dict(hot=lambda s: F.one_hot(s.rows)),
    dict(hot=lambda s: F.one_hot(s.rows), cast=lambda s: s.hot.float()),
    "class-count-wrong-axis: You made one-hot rows as long as a row of the table: they need a place for each of its {V} rows, `num_classes=len(table)`.",
    dict(classes=lambda s: s.D),
    dict(classes=lambda s: s.D, hot=rows_of_identity),
    "class-count-off-by-one: You made one-hot rows of length {classes}: the ids 0 to V - 1 are V classes, `num_classes=len(table)`.",
    dict(classes=lambda s: s.V - 1),
    "integer-one-hot: You multiplied integers from `F.one_hot` with a table of floats: convert them with `.to(table.dtype)` first.",
    dict(cast=lambda s: s.hot),
    "one-hot-of-fixed-type: Your code works for float32 only: convert to the table's own type, `.to(table.dtype)`.",
    dict(cast=lambda s: s.hot.float()),
    "one-hot-in-every-row: You set the places of all ids in every row: set one place per row, hot[torch.arange(len(ids)), ids] = 1.",
    dict(hot=set_in_every_row),
    "ids-from-one: You gave each token the row before its own: id 0 is the first row.",
    dict(rows=lambda s: (s.ids - 1) % s.V),
    dict(rows=lambda s: s.ids - 1),
    dict(hot=lambda s: F.one_hot(s.rows, s.classes + 1)[..., 1:]),
    "ids-shifted: You gave each token the row after its own: id 0 is the first row.",
    dict(rows=lambda s: (s.ids + 1) % s.V),
    dict(rows=lambda s: s.ids + 1, hot=rows_of_identity),
    "table-transposed: You chose columns of the table: a token is a row, so the product is one_hot @ table, with `num_classes=len(table)`.",
    dict(classes=lambda s: s.D, product=lambda s: s.cast @ s.table.T),
    "table-transposed: You transposed the table: (…, V) @ (V, D) fits as it is.",
    dict(product=lambda s: s.cast @ s.table.T),
    "factors-swapped: You put the table first: the product is one_hot @ table.",
    dict(product=lambda s: s.table @ s.cast),
    "elementwise-product: You multiplied entry by entry with `*`: the matrix product, one_hot @ table, chooses a row.",
    dict(product=lambda s: s.cast * s.table),
    "one-hot-alone: You returned the one-hot rows: multiply them with the table.",
    dict(product=lambda s: s.cast),
)


def another_type(embed):
    """Name a result that has not the type of the table."""
    if embed(torch.tensor([1]), draw(3, 2).double()).dtype == torch.float64:
        return None
    text = "Your result has another type than the table: convert the one-hot "
    return Diagnosis("one-hot-of-fixed-type", f"{text}rows to table.dtype.")


embed = Exercise(
    id="2.1",
    signature="embed(ids, table)",
    returns="for integer ids of any shape (…) the rows (…, D) of the table (V, D)",
    oracle=lambda ids, table: table[ids],
    cases=[
        case(torch.tensor([2, 0, 6, 2]), draw(7, 3)),
        case(torch.tensor([3, 1]), draw(7, 3), note="the last id does not occur"),
        case(integers(0, 11, (2, 5)), draw(11, 3), note="a batch"),
        case(integers(0, 5, (2, 3, 7)), draw(5, 5), note="V = D"),
        case(torch.tensor(4), draw(5, 3), note="a single id"),
        case(torch.tensor([1, 2]), draw(3, 2).double(), note="float64"),
        special("no ids", torch.zeros(0, dtype=torch.long), draw(5, 3)),
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
        outputs={"sizes": ("V", "D")},
        variants=EMBED,
    ),
    facts=[another_type],
)


# --- sinusoids --------------------------------------------------------------------


def right_positions(num_positions, d_model):
    speeds = 10000 ** -(torch.arange(0, d_model, 2).double() / d_model)
    angles = torch.outer(torch.arange(num_positions).double(), speeds)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).float()


def overwritten(s):
    """Return all sines, the last cosines, and room that is left."""
    sines, cosines = s.waves
    return F.pad(torch.cat((sines, cosines[:, -1:]), -1), (0, s.D // 2 - 1))


WAVES = variants(
    "halves-for-alternating: You put all sines first and all cosines after them: alternate, `table[:, 0::2]` for sines and `table[:, 1::2]` for cosines.",
    dict(table=lambda s: torch.cat(s.waves, dim=-1)),
    "positions-mixed: Your `reshape` mixes positions in a row: stack the waves along the last axis, dim=-1, before it.",
    dict(table=lambda s: torch.stack(s.waves).reshape(s.T, s.D)),
    "sine-and-cosine-swapped: You swapped sine and cosine: the sine belongs on even features, so that position 0 is [0, 1, …].",
    dict(waves=lambda s: (s.even.cos(), s.odd.sin())),
    "exponent-of-feature: You gave every feature a frequency of its own: sine and cosine of a pair share one, with the exponent 2i/D.",
    dict(pairs=lambda s: torch.arange(s.D)),
    "exponent-doubled: Your exponent counts features as if they were pairs: 2i is the number of the even feature, `torch.arange(0, d_model, 2)`.",
    dict(pairs=lambda s: 2 * torch.arange(s.D)),
    "exponent-halved: Your exponent is i/D, half of what it should be: 2i is the number of the even feature, `torch.arange(0, d_model, 2) / d_model`.",
    dict(exponent=lambda s: s.features / 2 / s.D),
    "exponent-doubled: Your exponent is 4i/D, twice what it should be: `arange(0, d_model, 2)` is 2i already.",
    dict(exponent=lambda s: 2 * s.features / s.D),
    "exponent-stretched: Your exponent reaches 1 in the last pair: divide 2i by D.",
    dict(exponent=lambda s: s.features / max(s.D - 2, 1)),
    dict(exponent=lambda s: s.features / (s.D - 1)),
    "exponent-not-divided: You didn't divide the exponent 2i: it is 2i/D.",
    dict(exponent=lambda s: s.features),
    "pairs-from-one: You counted pairs from 1: the first pair has the exponent 0.",
    dict(pairs=lambda s: torch.arange(s.D) // 2 * 2 + 2),
    "pairs-from-one: You took the exponent from the odd features: both of a pair take that of the even one, `torch.arange(0, d_model, 2)`.",
    dict(pairs=lambda s: torch.arange(s.D) // 2 * 2 + 1),
    "power-before-division: You divided the power by D, because Python takes the power first: put the exponent in parentheses, 10000 ** (even / d_model).",
    dict(divisor=lambda s: s.base**s.features / s.D),
    dict(divisor=lambda s: s.base**2 * s.exponent / 2),
    "positions-from-one: You counted positions from 1: position 0 is [0, 1, 0, 1, …].",
    dict(positions=lambda s: torch.arange(1, s.T + 1)[:, None]),
    "wrong-base: You used a base of about {base:,.0f}: use 10,000 (with exp, the factor is the natural logarithm, math.log(10000)).",
    dict(base=lambda s: 1000),
    dict(base=lambda s: math.e**4),
    dict(base=lambda s: math.e),
    "one-frequency: You turned all pairs at the same speed: the divisor grows with the feature, 10000^(2i/D). (`//` would round 2i/D down to 0.)",
    dict(exponent=lambda s: 0 * s.features),
    "multiplied-for-divided: You multiplied the positions with 10000^(2i/D): divide them by it, so that later features turn more slowly.",
    dict(angles=lambda s: s.positions * s.divisor),
    "angles-rounded: You rounded the angles down: divide with / rather than //.",
    dict(angles=lambda s: s.positions // s.divisor),
    "one-wave: You put sines on the odd features too: they take the cosine.",
    dict(waves=lambda s: (s.even.sin(), s.odd.sin())),
    "half-empty: You left the odd features at zero: `table[:, 1::2]` takes the cosines.",
    dict(waves=lambda s: (s.even.sin(), 0 * s.odd)),
    "angles-alone: You returned the angles: return their sines and cosines.",
    dict(result=lambda s: s.even.float()),
    dict(waves=lambda s: (s.even, s.odd)),
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
        outputs={"halves": ("even", "odd")},
        variants=WAVES,
    ),
)

EXERCISES = [embed, sinusoidal_positions]
