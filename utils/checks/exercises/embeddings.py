"""Exercises of the notebook on embeddings: the lookup as a product, and sinusoids."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Case, Exercise, draw, integers
from utils.checks.pipeline import Diagnosis, variants


def set_in_every_row(s):
    """Return rows that all have a 1 at every id, as `hot[:, ids] = 1` sets them."""
    hot = torch.zeros(s.ids.numel(), s.classes)
    hot[:, s.ids.flatten()] = 1
    return hot.view(*s.ids.shape, s.classes)


def another_type(embed):
    """Name a result that is float32, whatever type the table has."""
    text = "Your result has another dtype than the table: convert the one-hot rows only, with .to(table.dtype), and leave the table as it is."
    fixed = embed(torch.tensor([1]), draw(3, 2).double()).dtype == torch.float32
    return Diagnosis("one-hot-of-fixed-type", text) if fixed else None


embed = Exercise(
    id="2.1",
    signature="embed(ids, table)",
    returns="the rows (…, D) of the table (V, D) for integer ids of any shape (…)",
    cases=[
        Case(torch.tensor([2, 0, 6, 2]), draw(7, 3)),
        Case(torch.tensor([3, 1]), draw(7, 3), note="the last id does not occur"),
        Case(integers(0, 11, (2, 5)), draw(11, 3), note="a batch"),
        Case(integers(0, 5, (2, 3, 7)), draw(5, 5), note="V = D"),
        Case(torch.tensor(4), draw(5, 3), note="a single id"),
        Case(torch.tensor([1, 2]), draw(3, 2).double(), note="float64"),
        Case(torch.zeros(0, dtype=torch.long), draw(5, 3), note="no ids"),
    ],
    steps={
        "V, D": lambda s: s.table.shape,
        "classes": lambda s: s.V,
        "hot": lambda s: F.one_hot(s.ids, s.classes),
        "cast": lambda s: s.hot.to(s.table.dtype),
        "result": lambda s: s.cast @ s.table,
    },
    variants=variants(
        "class-count-missing: You called `F.one_hot(ids)`, which stops at the largest id: pass `num_classes=len(table)`.",
        dict(hot=lambda s: F.one_hot(s.ids)),
        "integer-one-hot: You multiplied integers from `F.one_hot` with a table of floats: convert them with `.to(table.dtype)` first.",
        dict(cast=lambda s: s.hot),
        "one-hot-of-fixed-type: Your code works for float32 only: convert to the table's own type, `.to(table.dtype)`.",
        dict(cast=lambda s: s.hot.float()),
        "one-hot-in-every-row: You set the places of all ids in every row: set one place per row, hot[torch.arange(len(ids)), ids] = 1.",
        dict(hot=set_in_every_row),
        "ids-from-one: You counted ids from 1, so each gets the row before its own: they count from 0, so id k belongs to row k.",
        dict(hot=lambda s: F.one_hot((s.ids - 1) % s.V, s.V)),
        dict(hot=lambda s: F.one_hot(s.ids, s.V + 1)[..., 1:]),
        "scaled: You multiplied by √D: return the rows of the table as they are.",
        dict(result=lambda s: s.cast @ s.table * s.D**0.5),
    ),
    facts=[another_type],
)


sinusoidal_positions = Exercise(
    id="2.2",
    page="deeper/who_sat_on_whom",
    signature="sinusoidal_positions(num_positions, d_model)",
    returns="a table (T, D): sines on the even features, cosines on the odd ones",
    cases=[
        Case(3, 4),
        Case(31, 6),
        Case(200, 2, note="a single pair"),
    ],
    steps={
        "base": lambda s: 10000,
        "positions": lambda s: torch.arange(s.num_positions)[:, None],
        "pairs": lambda s: torch.arange(s.d_model) // 2 * 2,
        "features": lambda s: s.pairs.double(),
        "exponent": lambda s: s.features / s.d_model,
        "divisor": lambda s: s.base**s.exponent,
        "angles": lambda s: s.positions / s.divisor,
        "even, odd": lambda s: (s.angles[:, 0::2], s.angles[:, 1::2]),
        "waves": lambda s: (s.even.sin(), s.odd.cos()),
        "table": lambda s: torch.stack(s.waves, dim=-1).flatten(-2),
        "result": lambda s: s.table.float(),
    },
    variants=variants(
        "halves-for-alternating: You put all sines first and all cosines after them: alternate, `table[:, 0::2]` for sines and `table[:, 1::2]` for cosines.",
        dict(table=lambda s: torch.cat(s.waves, dim=-1)),
        "sine-and-cosine-swapped: You swapped sine and cosine: the sine belongs on even features, so that position 0 is [0, 1, …].",
        dict(waves=lambda s: (s.even.cos(), s.odd.sin())),
        "exponent-of-feature: You gave every feature a frequency of its own: sine and cosine of a pair share one, with the exponent 2i/D.",
        dict(pairs=lambda s: torch.arange(s.d_model)),
        "exponent-halved: Your exponent is i/D, half of what it should be: 2i is the number of the even feature, `torch.arange(0, d_model, 2) / d_model`.",
        dict(exponent=lambda s: s.features / 2 / s.d_model),
        "power-before-division: You divided the power by D, because Python takes the power first: put the exponent in parentheses, 10000 ** (even / d_model).",
        dict(divisor=lambda s: s.base**s.features / s.d_model),
        "positions-from-one: You counted positions from 1: position 0 should be [0, 1, 0, 1, …].",
        dict(positions=lambda s: torch.arange(1, s.num_positions + 1)[:, None]),
        "wrong-base: You used a base of about {base:,.0f}: use 10,000.",
        dict(base=lambda s: 1000),
        "multiplied-for-divided: You multiplied the positions with 10000^(2i/D): divide them by it, so that later features turn more slowly.",
        dict(angles=lambda s: s.positions * s.divisor),
    ),
)

EXERCISES = [embed, sinusoidal_positions]
