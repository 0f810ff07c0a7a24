"""Exercises of notebook 02: the lookup as a product, and sinusoidal positions."""

import torch
from torch.nn import functional as F

from utils.checks.draw import draws, integers
from utils.checks.engine import Exercise, Mistakes, case

draw = draws(2)


# --- 2.1 --------------------------------------------------------------------------


def right_embed(ids, table):
    return table[ids]


def product(ids, table, num_classes=None):
    """Return the one-hot product with any number of classes."""
    return F.one_hot(ids, num_classes or len(table)).to(table.dtype) @ table


def integer_times_float(ids, table):
    return F.one_hot(ids, len(table)) @ table


def without_class_count(ids, table):
    return F.one_hot(ids).to(table.dtype) @ table


def from_one(ids, table):
    return product((ids - 1) % len(table), table)


def only_first_axis(ids, table):
    return product(ids, table).flatten(0, -2)


EMBED_MISTAKES = Mistakes()
EMBED_MISTAKES.add(
    "class-count-missing",
    without_class_count,
    "`F.one_hot(ids)` stops at the largest id that occurs, so its rows are shorter "
    "than the table: pass `num_classes=len(table)`.",
)
EMBED_MISTAKES.add(
    "integer-one-hot",
    integer_times_float,
    "`F.one_hot` gives integers and the table holds floats: convert with "
    "`.to(table.dtype)` before the product.",
)
EMBED_MISTAKES.add(
    "one-hot-of-fixed-type",
    lambda ids, table: F.one_hot(ids, len(table)).float() @ table,
    "This works for float32 alone: convert to the table's own type, "
    "`.to(table.dtype)`.",
)
EMBED_MISTAKES.add(
    "ids-from-one",
    from_one,
    lambda e: (
        "Each token gets the row before its own: the first row of the table belongs "
        "to id 0, not to id 1."
    ),
)
EMBED_MISTAKES.add(
    "ids-shifted",
    lambda ids, table: product((ids + 1) % len(table), table),
    "Each token gets the row after its own: id 0 is the first row.",
)
EMBED_MISTAKES.add(
    "table-transposed",
    lambda ids, table: F.one_hot(ids, table.shape[1]).to(table.dtype) @ table.T,
    "The one-hot rows choose columns of the table: a token is a row, so the product "
    "is one_hot @ table, with `num_classes=len(table)`.",
)
EMBED_MISTAKES.add(
    "table-transposed",
    lambda ids, table: product(ids, table) @ table.T,
    "The product with the table comes twice, the second time transposed.",
)
EMBED_MISTAKES.add(
    "table-transposed",
    lambda ids, table: F.one_hot(ids, len(table)).to(table.dtype) @ table.T,
    "The table needs no transposing: (…, V) @ (V, D) fits as it stands.",
)
EMBED_MISTAKES.add(
    "one-hot-alone",
    lambda ids, table: F.one_hot(ids, len(table)).to(table.dtype),
    "These are the one-hot rows themselves: multiply them with the table.",
)
EMBED_MISTAKES.add(
    "one-hot-alone",
    lambda ids, table: F.one_hot(ids, len(table)),
    "These are the one-hot rows themselves: multiply them with the table.",
)
EMBED_MISTAKES.add(
    "shape-flattened",
    only_first_axis,
    "The ids may have any shape (…), and the result has the same with D behind it: do "
    "not flatten it.",
)
EMBED_MISTAKES.add(
    "shape-flattened",
    lambda ids, table: product(ids.flatten(), table),
    "The ids may have any shape (…), and the result has the same with D behind it: do "
    "not flatten them.",
)
EMBED_MISTAKES.add(
    "rows-summed",
    lambda ids, table: product(ids, table).sum(-2),
    "The rows of all tokens are added up: each token keeps a row of its own.",
)
EMBED_MISTAKES.add(
    "rows-averaged",
    lambda ids, table: product(ids, table).mean(-2),
    "The rows of all tokens are averaged: each token keeps a row of its own.",
)
EMBED_MISTAKES.add(
    "ids-as-numbers",
    lambda ids, table: ids[..., None] * table[0],
    "The id multiplies a row: an id is a name, not a quantity.",
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
    mistakes=EMBED_MISTAKES,
)


# --- 2.2 --------------------------------------------------------------------------


def angles(num_positions, d_model, exponent=1.0, base=10000.0, start=0):
    """Return the angles `(T, D / 2)`; `exponent` multiplies 2i / D."""
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    positions = torch.arange(start, start + num_positions, dtype=torch.float64)
    return positions[:, None] / base ** (exponent * even / d_model)


def alternate(first, second):
    return torch.stack((first, second), dim=-1).flatten(-2).float()


def waves(**changes):
    """Return sinusoids with changed angles."""

    def compute(num_positions, d_model):
        turned = angles(num_positions, d_model, **changes)
        return alternate(turned.sin(), turned.cos())

    return compute


def feature_exponent(num_positions, d_model):
    """Let the exponent be i / D with i the number of the feature, not of the pair."""
    feature = torch.arange(d_model, dtype=torch.float64)
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    turned = positions / 10000 ** (feature / d_model)
    return alternate(turned[:, 0::2].sin(), turned[:, 1::2].cos())


def doubled_exponent(num_positions, d_model):
    """Take 2i for each feature, so that neighbours have unlike frequencies."""
    feature = torch.arange(d_model, dtype=torch.float64)
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    turned = positions / 10000 ** (2 * feature / d_model)
    return alternate(turned[:, 0::2].sin(), turned[:, 1::2].cos())


def halves(num_positions, d_model):
    turned = angles(num_positions, d_model)
    return torch.cat((turned.sin(), turned.cos()), dim=-1).float()


def cosine_first(num_positions, d_model):
    turned = angles(num_positions, d_model)
    return alternate(turned.cos(), turned.sin())


def multiplied(num_positions, d_model):
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    positions = torch.arange(num_positions, dtype=torch.float64)[:, None]
    turned = positions * 10000 ** (even / d_model)
    return alternate(turned.sin(), turned.cos())


def one_wave(num_positions, d_model):
    turned = angles(num_positions, d_model)
    return alternate(turned.sin(), turned.sin())


def half_empty(num_positions, d_model):
    turned = angles(num_positions, d_model)
    return alternate(turned.sin(), torch.zeros_like(turned))


def half_exponent(num_positions, d_model):
    return waves(exponent=0.5)(num_positions, d_model)


SINUSOIDAL_POSITIONS_MISTAKES = Mistakes()
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "halves-for-alternating",
    halves,
    "All sines come first and all cosines behind them: they alternate, sine on even "
    "features, cosine on odd ones (`table[:, 0::2]`, `table[:, 1::2]`).",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "sine-and-cosine-swapped",
    cosine_first,
    "Position 0 is [1, 0, …] instead of [0, 1, …]: the sine belongs on even features, "
    "the cosine on odd ones.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "exponent-of-feature",
    feature_exponent,
    "Every feature has a frequency of its own: the sine and the cosine of a pair "
    "share one. The exponent is 2i/D for both features 2i and 2i + 1.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "exponent-doubled",
    doubled_exponent,
    "The exponent counts features where it should count pairs: 2i is already the "
    "number of the even feature, `torch.arange(0, d_model, 2)`.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "exponent-halved",
    half_exponent,
    "The exponent is i/D, half of what it should be: 2i is the number of the even "
    "feature, `torch.arange(0, d_model, 2) / d_model`.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "exponent-doubled",
    waves(exponent=2.0),
    "The exponent is 4i/D, twice what it should be: `arange(0, d_model, 2)` is 2i "
    "already.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "positions-from-one",
    waves(start=1),
    "The first row is that of position 1: positions count from 0, whose row is [0, 1, "
    "0, 1, …].",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "wrong-base",
    waves(base=1000.0),
    "The base is 1,000 instead of 10,000: the slow features turn too fast.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "wrong-base",
    waves(base=100000.0),
    "The base is 100,000 instead of 10,000: the slow features turn too slowly.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "one-frequency",
    waves(exponent=0.0),
    "All pairs turn at the same speed: the divisor grows with the feature, "
    "10000^(2i/D).",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "multiplied-for-divided",
    multiplied,
    "The positions are multiplied with 10000^(2i/D) where they should be divided by "
    "it: later features turn more slowly, not faster.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "one-wave",
    one_wave,
    "The odd features hold sines too: they take the cosine of the same angle.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "half-empty",
    half_empty,
    "The odd features are still zero: `table[:, 1::2]` takes the cosines.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "transposed",
    lambda num_positions, d_model: waves()(num_positions, d_model).T,
    "The table lies on its side: a row for each position, (T, D).",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "batch-axis-added",
    lambda num_positions, d_model: waves()(num_positions, d_model)[None],
    "The table has a batch axis in front: (T, D) broadcasts over a batch by itself.",
)
SINUSOIDAL_POSITIONS_MISTAKES.add(
    "angles-alone",
    lambda num_positions, d_model: angles(num_positions, d_model).float(),
    "These are the angles: their sines and cosines are asked for.",
)
sinusoidal_positions = Exercise(
    id="2.2",
    signature="sinusoidal_positions(num_positions, d_model)",
    returns="a table (T, D): sines on the even features, cosines on the odd ones",
    oracle=waves(),
    cases=[
        case(3, 4),
        case(11, 6),
        case(7, 10),
        case(1, 6, note="one position"),
        case(200, 2, note="a single pair"),
    ],
    mistakes=SINUSOIDAL_POSITIONS_MISTAKES,
)

EXERCISES = [embed, sinusoidal_positions]
