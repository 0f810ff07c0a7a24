"""Answers to the exercises of notebook 02."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong


@right("2.1")
def embed_one_hot(ids, table):
    vocab_size = table.shape[0]
    return F.one_hot(ids, num_classes=vocab_size).to(table) @ table


@right("2.1")
def embed_by_comparison(ids, table):
    one_hot = ids.unsqueeze(-1) == torch.arange(table.size(0))
    return one_hot.to(table.dtype).matmul(table)


@right("2.1")
def embed_identity_rows(ids, table):
    return torch.eye(len(table), dtype=table.dtype)[ids] @ table


@right("2.1")
def embed_einsum(ids, table):
    hot = torch.zeros(*ids.shape, len(table), dtype=table.dtype)
    hot.scatter_(-1, ids.unsqueeze(-1), 1)
    return torch.einsum("...v,vd->...d", hot, table)


@right("2.1")
def embed_lookup(ids, table):
    return F.embedding(ids, table)


@wrong("2.1", "class-count-missing")
def embed_short_rows(ids, table):
    return F.one_hot(ids).to(table.dtype).matmul(table)


@wrong("2.1", "integer-one-hot")
def embed_integers(ids, table):
    one_hot = F.one_hot(ids, num_classes=table.size(0))
    return torch.matmul(one_hot, table)


@wrong("2.1", "one-hot-of-fixed-type")
def embed_float32(ids, table):
    return F.one_hot(ids, table.size(0)).float() @ table


@wrong("2.1", "one-hot-of-fixed-type")
def embed_in_single_precision(ids, table):
    return F.one_hot(ids, len(table)).float() @ table.float()


@wrong("2.1", "ids-from-one")
def embed_counting_from_one(ids, table):
    return table[ids - 1]


@wrong("2.1", "ids-shifted")
def embed_rolled(ids, table):
    return torch.roll(table, -1, dims=0)[ids]


@wrong("2.1", "table-transposed")
def embed_columns(ids, table):
    hot = F.one_hot(ids, table.size(0)).to(table.dtype)
    return hot @ table.t()


@wrong("2.1", "one-hot-alone")
def embed_without_table(ids, table):
    return torch.eye(len(table), dtype=table.dtype)[ids]


@wrong("2.1", "shape-flattened")
def embed_flat(ids, table):
    return table[ids.reshape(-1)]


@wrong("2.1", "rows-summed")
def embed_bag(ids, table):
    return table[ids].sum(dim=-2)


@wrong("2.1", "rows-averaged")
def embed_mean(ids, table):
    return table[ids].mean(dim=-2)


@wrong("2.1", "ids-as-numbers")
def embed_scaled(ids, table):
    return ids.unsqueeze(-1) * table[0]


@wrong("2.1", "ids-from-one")
def embed_one_less(ids, table):
    return F.one_hot(ids - 1, len(table)).to(table.dtype) @ table


@wrong("2.1", "ids-from-one")
def embed_with_an_unused_place(ids, table):
    hot = F.one_hot(ids, len(table) + 1)[..., 1:]
    return hot.to(table) @ table


@wrong("2.1", "ids-shifted")
def embed_one_more(ids, table):
    return table[ids + 1]


@wrong("2.1", "class-count-missing")
def embed_short_rows_as_floats(ids, table):
    return F.one_hot(ids).float() @ table


@wrong("2.1", "class-count-wrong-axis")
def embed_classes_of_width(ids, table):
    return F.one_hot(ids, table.shape[1]).to(table.dtype) @ table


@wrong("2.1", "class-count-wrong-axis")
def embed_identity_of_width(ids, table):
    return torch.eye(table.shape[-1], dtype=table.dtype)[ids] @ table


@wrong("2.1", "class-count-of-ids")
def embed_classes_of_ids(ids, table):
    return F.one_hot(ids, ids.shape[-1]).to(table.dtype) @ table


@wrong("2.1", "class-count-missing")
def embed_largest_id(ids, table):
    return F.one_hot(ids, int(ids.max()) + 1).to(table.dtype) @ table


@wrong("2.1", "class-count-off-by-one")
def embed_one_class_less(ids, table):
    return F.one_hot(ids, table.shape[0] - 1).to(table.dtype) @ table


@wrong("2.1", "factors-swapped")
def embed_table_first(ids, table):
    return table @ F.one_hot(ids, len(table)).to(table.dtype)


@wrong("2.1", "product-transposed")
def embed_on_the_side(ids, table):
    return table.T @ F.one_hot(ids, len(table)).to(table.dtype).mT


@wrong("2.1", "elementwise-product")
def embed_star(ids, table):
    return F.one_hot(ids, len(table)).to(table.dtype) * table


@wrong("2.1", "ids-from-one")
def embed_from_one_summed(ids, table):
    """Two mistakes: the row before, and all rows added up."""
    return table[ids - 1].sum(-2)


@wrong("2.1", named=False)
def embed_own_table(ids, table):
    torch.manual_seed(0)
    return nn.Embedding(*table.shape)(ids).detach()


@right("2.2")
def positions_into_columns(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    position = torch.arange(num_positions).unsqueeze(1)
    factor = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * factor)
    table[:, 1::2] = torch.cos(position * factor)
    return table


@right("2.2")
def positions_by_loops(num_positions, d_model):
    rows = []
    for t in range(num_positions):
        row = []
        for i in range(d_model // 2):
            angle = t / 10000 ** (2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)


@right("2.2")
def positions_outer(num_positions, d_model):
    inverse = 1.0 / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
    angle = torch.outer(torch.arange(num_positions).double(), inverse)
    both = torch.stack([angle.sin(), angle.cos()], dim=2)
    return both.reshape(num_positions, d_model)


@right("2.2")
def positions_as_parameter(num_positions, d_model):
    k = torch.arange(d_model)
    angle = torch.arange(num_positions)[:, None] / 10000 ** ((k - k % 2) / d_model)
    return nn.Parameter(torch.where(k % 2 == 0, angle.sin(), angle.cos()))


def build(angle):
    """Write sines and cosines of `(T, D / 2)` angles side by side."""
    table = torch.zeros(angle.shape[0], 2 * angle.shape[1])
    table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return table


@wrong("2.2", "halves-for-alternating")
def positions_in_halves(num_positions, d_model):
    factor = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = torch.arange(num_positions)[:, None] * factor
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


@wrong("2.2", "sine-and-cosine-swapped")
def positions_cosine_even(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    angle = torch.arange(num_positions)[:, None] / 10000 ** (
        torch.arange(0, d_model, 2) / d_model
    )
    table[:, 0::2], table[:, 1::2] = torch.cos(angle), torch.sin(angle)
    return table


@wrong("2.2", "exponent-of-feature")
def positions_frequency_each(num_positions, d_model):
    rows = []
    for t in range(num_positions):
        row = []
        for i in range(d_model):
            wave = math.sin if i % 2 == 0 else math.cos
            row.append(wave(t / 10000 ** (i / d_model)))
        rows.append(row)
    return torch.tensor(rows)


@wrong("2.2", "exponent-doubled")
def positions_double(num_positions, d_model):
    rows = []
    for t in range(num_positions):
        row = []
        for i in range(d_model):
            wave = math.sin if i % 2 == 0 else math.cos
            row.append(wave(t / 10000 ** (2 * i / d_model)))
        rows.append(row)
    return torch.tensor(rows)


@wrong("2.2", "exponent-doubled")
def positions_twice_even(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (2 * i / d_model))


@wrong("2.2", "exponent-halved")
def positions_half(num_positions, d_model):
    i = torch.arange(d_model // 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (i / d_model))


@wrong("2.2", "positions-from-one")
def positions_one_based(num_positions, d_model):
    t = torch.arange(1, num_positions + 1)[:, None]
    return build(t / 10000 ** (torch.arange(0, d_model, 2) / d_model))


@wrong("2.2", "wrong-base")
def positions_other_base(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 1000 ** (i / d_model))


@wrong("2.2", "one-frequency")
def positions_no_frequency(num_positions, d_model):
    t = torch.arange(num_positions, dtype=torch.float32)[:, None]
    return build(t.expand(-1, d_model // 2))


@wrong("2.2", "multiplied-for-divided")
def positions_multiplied(num_positions, d_model):
    i = torch.arange(0, d_model, 2).double()
    return build(torch.arange(num_positions)[:, None] * 10000 ** (i / d_model))


@wrong("2.2", "one-wave")
def positions_sines(num_positions, d_model):
    k = torch.arange(d_model)
    t = torch.arange(num_positions)[:, None]
    return torch.sin(t / 10000 ** ((k - k % 2) / d_model))


@wrong("2.2", "half-empty")
def positions_forgotten_cosine(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    t = torch.arange(num_positions)[:, None]
    table[:, ::2] = torch.sin(t / 10000 ** (torch.arange(0, d_model, 2) / d_model))
    return table


@wrong("2.2", "transposed")
def positions_on_the_side(num_positions, d_model):
    return positions_into_columns(num_positions, d_model).t()


@wrong("2.2", "batch-axis-added")
def positions_with_batch(num_positions, d_model):
    return positions_into_columns(num_positions, d_model).unsqueeze(0)


@wrong("2.2", "angles-alone")
def positions_no_wave(num_positions, d_model):
    t = torch.arange(num_positions)[:, None]
    return t / 10000 ** (torch.arange(0, d_model, 2) / d_model)


@wrong("2.2", "positions-mixed")
def positions_reshaped(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    angle = torch.arange(num_positions)[:, None] / 10000 ** (i / d_model)
    return torch.stack([angle.sin(), angle.cos()]).reshape(num_positions, d_model)


@wrong("2.2", "exponent-stretched")
def positions_to_the_end(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    step = math.log(10000) / max(d_model - 2, 1)
    return build(torch.arange(num_positions)[:, None] * torch.exp(-step * i))


@wrong("2.2", "exponent-stretched")
def positions_to_the_end_of_nothing(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (i / (d_model - 2)))


@wrong("2.2", "exponent-stretched")
def positions_over_one_less(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (i / (d_model - 1)))


@wrong("2.2", "exponent-not-divided")
def positions_whole_exponent(num_positions, d_model):
    i = torch.arange(0, d_model, 2).float()
    return build(torch.arange(num_positions)[:, None] / 10000**i)


@wrong("2.2", "pairs-from-one")
def positions_pairs_from_one(num_positions, d_model):
    i = torch.arange(1, d_model // 2 + 1)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (2 * i / d_model))


@wrong("2.2", "pairs-from-one")
def positions_odd_exponents(num_positions, d_model):
    i = torch.arange(1, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (i / d_model))


@wrong("2.2", "power-before-division")
def positions_precedence(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / (10000**i / d_model))


@wrong("2.2", "power-before-division")
def positions_precedence_of_floats(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for t in range(num_positions):
        for i in range(0, d_model, 2):
            angle = t / (10000.0**i / d_model)
            table[t, i], table[t, i + 1] = math.sin(angle), math.cos(angle)
    return table


@wrong("2.2", "power-before-division")
def positions_square_first(num_positions, d_model):
    i = torch.arange(d_model // 2)
    return build(torch.arange(num_positions)[:, None] / (10000**2 * i / d_model))


@wrong("2.2", "wrong-base")
def positions_common_logarithm(num_positions, d_model):
    factor = torch.exp(torch.arange(0, d_model, 2) * -math.log10(10000) / d_model)
    return build(torch.arange(num_positions)[:, None] * factor)


@wrong("2.2", "wrong-base")
def positions_without_logarithm(num_positions, d_model):
    factor = torch.exp(-torch.arange(0, d_model, 2) / d_model)
    return build(torch.arange(num_positions)[:, None] * factor)


@wrong("2.2", "one-frequency")
def positions_floor(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000.0 ** (i // d_model))


@wrong("2.2", "multiplied-for-divided")
def positions_multiplied_in_float32(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] * 10000 ** (i / d_model))


@wrong("2.2", "multiplied-for-divided")
def positions_minus_forgotten(num_positions, d_model):
    factor = torch.exp(torch.arange(0, d_model, 2) * (math.log(10000.0) / d_model))
    return build(torch.arange(num_positions)[:, None] * factor)


@wrong("2.2", "angles-rounded")
def positions_floor_of_angles(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] // 10000 ** (i / d_model))


@wrong("2.2", "turns-for-radians")
def positions_in_turns(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    turns = torch.arange(num_positions)[:, None] / 10000 ** (i / d_model)
    return build(2 * math.pi * turns)


@wrong("2.2", "integer-table")
def positions_in_integers(num_positions, d_model):
    table = torch.zeros(num_positions, d_model, dtype=torch.long)
    i = torch.arange(0, d_model, 2)
    angle = torch.arange(num_positions)[:, None] / 10000 ** (i / d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


@wrong("2.2", "angles-alone")
def positions_angles_twice(num_positions, d_model):
    k = torch.arange(d_model)
    return torch.arange(num_positions)[:, None] / 10000 ** ((k - k % 2) / d_model)


@wrong("2.2", "positions-from-one")
def positions_from_one_in_halves(num_positions, d_model):
    """Two mistakes: positions count from one, and the cosines stand behind."""
    t, i = torch.arange(1, num_positions + 1)[:, None], torch.arange(0, d_model, 2)
    angle = t / 10000 ** (i / d_model)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


@wrong("2.2", "exponent-doubled")
def positions_doubled_and_swapped(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    angle = torch.arange(num_positions)[:, None] / 10000 ** (2 * i / d_model)
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)


@wrong("2.2", "pairs-overlap")
def positions_overwritten(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for t in range(num_positions):
        for i in range(d_model // 2):
            angle = t / 10000 ** (2 * i / d_model)
            table[t, i], table[t, i + 1] = math.sin(angle), math.cos(angle)
    return table


@wrong("2.2", "exponent-over-positions")
def positions_over_their_number(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / 10000 ** (i / num_positions))


@wrong("2.2", "product-for-power")
def positions_one_star(num_positions, d_model):
    i = torch.arange(0, d_model, 2)
    return build(torch.arange(num_positions)[:, None] / (10000 * (i / d_model)))
