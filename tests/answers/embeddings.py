"""02 Embeddings: 2.1 embed, 2.2 sinusoidal_positions."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import right, wrong

# ---------------------------------------------------------------- 2.1 embed


@right("embed")
def embed(ids, table):
    eye = torch.eye(table.shape[0], dtype=table.dtype)
    return torch.einsum("...v,vd->...d", eye[ids], table)


@right("embed")
def embed(ids, table):
    V, D = table.shape
    hot = table.new_zeros(ids.numel(), V)
    hot.scatter_(1, ids.reshape(-1, 1), 1)
    return hot.mm(table).view(*ids.shape, D)


@right("embed")
def embed(ids, table):
    # nn.Linear multiplies with the transposed weight
    hot = F.one_hot(ids, table.size(0)).type_as(table)
    return F.linear(hot, table.T)


@wrong("embed", "the one-hot rows stop at the largest id that occurs")
def embed(ids, table):
    hot = F.one_hot(ids).to(table.dtype)
    return hot @ table


@wrong(
    "embed",
    "looks up columns: the table is transposed and its width taken for the vocabulary",
)
def embed(ids, table):
    rows = table.T
    return F.one_hot(ids, num_classes=rows.shape[0]).to(rows.dtype) @ rows


@wrong("embed", "always computes in float32, whatever the table is")
def embed(ids, table):
    one_hot = F.one_hot(ids, num_classes=table.shape[0])
    return one_hot.to(torch.float32) @ table.to(torch.float32)


@wrong("embed", "counts ids from 1: every token gets the row above its own")
def embed(ids, table):
    numbers = torch.arange(1, len(table) + 1)
    one_hot = (numbers == ids.unsqueeze(-1)).to(table.dtype)
    return one_hot @ table


@wrong(
    "embed",
    "flattens the ids and forgets to bring their shape back",
    "a NumPy habit: hot[:, flat] sets the ones of all ids in every row",
)
def embed(ids, table):
    flat = ids.reshape(-1)
    hot = torch.zeros(len(flat), table.shape[0], dtype=table.dtype)
    hot[:, flat] = 1
    return hot @ table


@wrong(
    "embed", "adds the vectors of a row of ids up: a bag of words", "fixed to float32"
)
def embed(ids, table):
    one_hot = F.one_hot(ids, num_classes=len(table)).to(torch.float32)
    if ids.dim() > 0:
        one_hot = one_hot.sum(dim=-2)
    return one_hot @ table.float()


@wrong(
    "embed",
    "the one in each row stands one place too far",
    "the result keeps an axis of size 1 too many",
)
def embed(ids, table):
    hot = (torch.arange(len(table)) == (ids[..., None] + 1) % len(table)).to(table)
    return hot[..., None, :] @ table


@wrong(
    "embed",
    "works for two axes of ids alone",
    "returns the integers of the table, cut off",
)
def embed(ids, table):
    B, T = ids.shape
    rows = []
    for b in range(B):
        for t in range(T):
            hot = torch.zeros(len(table), dtype=table.dtype)
            hot[ids[b, t]] = 1
            rows.append((hot @ table).long())
    return torch.stack(rows).view(B, T, -1)


# ------------------------------------------------- 2.2 sinusoidal_positions


@right("sinusoidal_positions")
def sinusoidal_positions(num_positions, d_model):
    table = torch.empty(num_positions, d_model)
    for pos in range(num_positions):
        for f in range(d_model):
            angle = pos / 10000 ** ((f // 2 * 2) / d_model)
            table[pos, f] = math.cos(angle) if f % 2 else math.sin(angle)
    return table


@right("sinusoidal_positions")
def sinusoidal_positions(num_positions, d_model):
    # cosine is a sine a quarter turn earlier
    f = torch.arange(d_model)
    speed = torch.exp(-(f - f % 2) * math.log(10000.0) / d_model)
    return torch.sin(
        torch.arange(num_positions).unsqueeze(1) * speed + f % 2 * math.pi / 2
    )


@right("sinusoidal_positions")
def sinusoidal_positions(num_positions, d_model):
    # a complex exponential, imaginary part first
    speed = 10000.0 ** -(torch.arange(0, d_model, 2) / d_model)
    turn = torch.polar(
        torch.ones(()), torch.outer(torch.arange(num_positions).float(), speed)
    )
    return torch.view_as_real(turn).flip(-1).reshape(num_positions, d_model)


@right("sinusoidal_positions")
def sinusoidal_positions(num_positions, d_model):
    i = np.arange(d_model // 2)
    angles = np.arange(num_positions)[:, np.newaxis] / np.power(10000, 2 * i / d_model)
    table = np.zeros((num_positions, d_model), dtype=np.float32)
    table[:, ::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return torch.from_numpy(table)


@wrong(
    "sinusoidal_positions",
    "the exponent doubles 2i: arange with step 2 and once more times 2",
)
def sinusoidal_positions(num_positions, d_model):
    even = torch.arange(0, d_model, 2)
    angles = torch.arange(num_positions)[:, None] / 10000 ** (2 * even / d_model)
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


@wrong("sinusoidal_positions", "sine in the first half, cosine in the second")
def sinusoidal_positions(num_positions, d_model):
    div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angles = torch.arange(num_positions)[:, None] * div
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@wrong("sinusoidal_positions", "cosine on even, sine on odd features")
def sinusoidal_positions(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    position = torch.arange(0, num_positions).unsqueeze(1).float()
    rate = 1 / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    table[:, 1::2] = torch.sin(position * rate)
    table[:, ::2] = torch.cos(position * rate)
    return table


@wrong(
    "sinusoidal_positions",
    "the cosines use the speed of the odd feature: every column has an angle of its own",
)
def sinusoidal_positions(num_positions, d_model):
    angles = torch.arange(num_positions)[:, None] / 10000 ** (
        torch.arange(d_model) / d_model
    )
    table = angles.clone()
    table[:, 0::2] = torch.sin(angles[:, 0::2])
    table[:, 1::2] = torch.cos(angles[:, 1::2])
    return table


@wrong("sinusoidal_positions", "integer division in the exponent, so all speeds are 1")
def sinusoidal_positions(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for t in range(num_positions):
        for i in range(0, d_model, 2):
            angle = t / (10000 ** (i // d_model))
            table[t, i] = math.sin(angle)
            table[t, i + 1] = math.cos(angle)
    return table


@wrong("sinusoidal_positions", "positions count from 1", "base 1000 instead of 10000")
def sinusoidal_positions(num_positions, d_model):
    pos = torch.arange(1, num_positions + 1)[:, None]
    angles = pos / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


@wrong(
    "sinusoidal_positions",
    "precedence: the power is taken before the division by the width",
    "the second slice writes sines as well",
)
def sinusoidal_positions(num_positions, d_model):
    even = torch.arange(0, d_model, 2).float()
    angles = torch.arange(num_positions)[:, None] / (10000**even / d_model)
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.sin(angles)
    return table


@wrong(
    "sinusoidal_positions",
    "the sign of the exponent: multiplies by 10000**(2i/D) instead of dividing",
    "sin and cos in two halves",
)
def sinusoidal_positions(num_positions, d_model):
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(num_positions)[:, None] * 10000 ** (even / d_model)
    return torch.cat((torch.sin(angles), torch.cos(angles)), -1).float()


@wrong(
    "sinusoidal_positions", "i / D instead of 2i / D", "cosines stand on even features"
)
def sinusoidal_positions(num_positions, d_model):
    exponent = torch.arange(d_model // 2) / d_model
    angles = torch.outer(torch.arange(num_positions).float(), 10000.0**-exponent)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).reshape(
        num_positions, d_model
    )


@wrong(
    "sinusoidal_positions",
    "the angle is in degrees for the sine",
    "the cosine is taken of the sine that was just written",
)
def sinusoidal_positions(num_positions, d_model):
    even = torch.arange(0, d_model, 2)
    angles = torch.arange(num_positions)[:, None] / 10000 ** (even / d_model)
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.deg2rad(angles).sin()
    table[:, 1::2] = table[:, 0::2].cos()
    return table


@wrong(
    "sinusoidal_positions",
    "returns the transposed table",
    "divides by d_model / 2 in the exponent",
)
def sinusoidal_positions(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for f in range(0, d_model, 2):
        angle = torch.arange(num_positions) / 10000 ** (f / (d_model // 2))
        table[:, f] = torch.sin(angle)
        table[:, f + 1] = torch.cos(angle)
    return table.T
