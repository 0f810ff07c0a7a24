"""Exercises of the notebook on embeddings: the lookup as a product, and sinusoids."""

import torch
from torch.nn import functional as F

from utils import embeddings
from utils.checks.definition import Case, Exercise, Mistake, draw, draw_ids


def embed(ids, table):
    V, D = table.shape
    hot = F.one_hot(ids, V)
    cast = hot.to(table.dtype)
    return cast @ table


exercise_2_1 = Exercise(
    id="2.1",
    right=embed,
    course=embeddings.embed,
    returns="the rows (…, D) of the table (V, D) for integer ids of any shape (…)",
    cases=[
        Case(torch.tensor([2, 0, 6, 2]), draw(7, 3)),
        Case(torch.tensor([3, 1]), draw(7, 3), note="the last id does not occur"),
        Case(draw_ids(0, 11, (2, 5)), draw(11, 3), note="a batch"),
        Case(draw_ids(0, 5, (2, 3, 7)), draw(5, 5), note="V = D"),
        Case(torch.tensor(4), draw(5, 3), note="a single id"),
        Case(torch.tensor([1, 2]), draw(3, 2).double(), note="float64"),
        Case(torch.zeros(0, dtype=torch.long), draw(5, 3), note="no ids"),
    ],
    mistakes=[
        Mistake("class-count-missing", "You called `F.one_hot(ids)`, which stops at the largest id: pass `num_classes=len(table)`.", "hot = F.one_hot(ids)"),
        Mistake("integer-one-hot", "You multiplied integers from `F.one_hot` with a table of floats: convert them with `.to(table.dtype)` first.", "cast = hot"),
        Mistake("one-hot-of-fixed-type", "Your code works for float32 only: give each tensor that you make the table's own type, such as `one_hot.to(table.dtype)` or `torch.zeros(…, dtype=table.dtype)`.", "cast = hot.float()"),
        Mistake("ids-from-one", "You counted ids from 1, so each gets the row before its own: they count from 0, so id k belongs to row k.", "hot = F.one_hot((ids - 1) % V, V)", "hot = F.one_hot(ids, V + 1)[..., 1:]"),
        Mistake("scaled", "You multiplied by √D: return the rows of the table as they are.", "return cast @ table * D**0.5"),
    ],
    smallest_inputs={"ids": torch.zeros(1, 1, 1, dtype=torch.long)},  # of a table with one row
)  # fmt: skip


def sinusoidal_positions(num_positions, d_model):
    base = 10000
    positions = torch.arange(num_positions)[:, None]
    features = torch.arange(d_model, dtype=torch.float64) // 2 * 2
    exponent = features / d_model
    divisor = base**exponent
    angles = positions / divisor
    waves = angles[:, 0::2].sin(), angles[:, 1::2].cos()
    table = torch.stack(waves, dim=-1).flatten(-2)
    return table.float()


exercise_2_2 = Exercise(
    id="2.2",
    page="deeper/who_sat_on_whom",
    right=sinusoidal_positions,
    course=embeddings.sinusoidal_positions,
    returns="a table (T, D): sines on the even features, cosines on the odd ones",
    cases=[Case(3, 4), Case(31, 6), Case(200, 2, note="a single pair")],
    smallest_inputs={"num_positions": 1, "d_model": 2},
    mistakes=[
        Mistake("halves-for-alternating", "You put all sines first and all cosines after them: alternate, `table[:, 0::2]` for sines and `table[:, 1::2]` for cosines.", "table = torch.cat(waves, dim=-1)"),
        Mistake("sine-and-cosine-swapped", "You swapped sine and cosine: the sine belongs on even features, so that position 0 is [0, 1, …].", "waves = angles[:, 0::2].cos(), angles[:, 1::2].sin()"),
        Mistake("exponent-of-feature", "You gave every feature a frequency of its own: sine and cosine of a pair share one, with the exponent 2i/D.", "features = torch.arange(d_model, dtype=torch.float64)"),
        Mistake("exponent-halved", "Your exponent is i/D, half of what it should be: 2i is the number of the even feature, `torch.arange(0, d_model, 2) / d_model`.", "exponent = features / 2 / d_model"),
        Mistake("power-before-division", "You divided the power by D, because Python takes the power first: put the exponent in parentheses, 10000 ** (even / d_model).", "divisor = base**features / d_model"),
        Mistake("positions-from-one", "You counted positions from 1: position 0 should be [0, 1, 0, 1, …].", "positions = torch.arange(1, num_positions + 1)[:, None]"),
        Mistake("wrong-base", "You used a base of about {base:,.0f}: use 10,000.", "base = 1000"),
    ],
)  # fmt: skip
