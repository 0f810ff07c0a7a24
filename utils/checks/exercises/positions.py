"""Exercises of the notebook on positions: rotary positions and the bias of ALiBi."""

import torch

from utils import embeddings
from utils.checks.definition import Case, Exercise, Mistake, draw


def as_pairs(a, b):
    """Return the pairs (…, d_k/2, 2) of these features."""
    return torch.stack((a, b), dim=-1)


def of_halves(first, second):
    """Return pairs (…, d_k/2, 2) of the features of two halves that are joined."""
    return torch.cat((first, second), dim=-1).unflatten(-1, (-1, 2))


def apply_rope(x, positions, base=10000.0):
    x = x.double()
    D = x.shape[-1]
    even = torch.arange(0, D, 2).double()
    exponents = even / D
    speeds = base**-exponents
    angles = positions[:, None] * speeds
    wide = angles[..., None]
    cos, sin = wide.cos(), wide.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    own = as_pairs(a, b)
    partners = as_pairs(-b, a)
    rotated = own * cos + partners * sin
    laid = rotated.flatten(-2)
    return laid.float()


exercise_10_1 = Exercise(
    id="10.1",
    right=apply_rope,
    course=embeddings.apply_rope,
    returns="x (…, T, d_k) with each pair (2p, 2p+1) rotated by position * base^(-2p/d_k)",
    cases=[
        Case(draw(2, 4), torch.arange(2)),
        Case(draw(5, 6), torch.tensor([3, 0, 7, 1, 12]), note="positions in any order"),
        Case(draw(3, 10), torch.arange(3), 50.0, note="another base"),
        Case(draw(2, 3, 7, 10), torch.arange(7), note="batch and heads"),
        Case(draw(1, 2), torch.tensor([2049]), note="one token, far from the start"),
    ],
    smallest_inputs={"x": draw(1, 1, 1, 2)},  # whose features are pairs
    mistakes=[
        Mistake("halves-for-pairs", "You paired feature i with feature i + d_k/2: pair neighbours, `x[..., 0::2]` and `x[..., 1::2]`.", "wide = of_halves(angles, angles); partners = of_halves(-x.chunk(2, -1)[1], x.chunk(2, -1)[0])"),
        Mistake("halves-for-pairs", "You put all first features before all second ones: make them neighbours again, `torch.stack(…, dim=-1).flatten(-2)`.", "laid = rotated.mT.flatten(-2)"),
        Mistake("positions-from-one", "You rotated each token one step too far: position 0 should rotate nothing.", "positions = positions + 1"),
        Mistake("positions-ignored", "You numbered the rows 0, 1, 2 … whatever `positions` says: use the positions as they are, because with a cache they don't start at 0.", "positions = torch.arange(x.shape[-2])"),
        Mistake("rotated-backwards", "You rotated clockwise, by −angle: the pair (u, w) should become (u·cos − w·sin, u·sin + w·cos).", "angles = -positions[:, None] * speeds"),
        Mistake("base-ignored", "You used the base 10,000 always: use the argument `base`.", "base = 10000.0"),
        Mistake("exponent-halved", "Your exponent is −p/d_k, half of what it should be: 2p is the number of the even feature, `torch.arange(0, d_k, 2)`.", "exponents = even / D / 2"),
        Mistake("added-not-rotated", "You added sines and cosines to x: rotate x, by a product.", "rotated = own + torch.cat((sin, cos), -1)"),
        Mistake("overwritten-too-early", "You changed the first feature before the second was computed from it: `x[..., 0::2]` is a view, so compute both before you write.", "partners = as_pairs(-b, a * angles.cos() - b * angles.sin())"),
    ],
)  # fmt: skip


def below_the_diagonal(call, num_heads, num_tokens):
    """Return the bias with NaN, which messages leave out, where anything is allowed."""
    got = call(num_heads, num_tokens)
    fits = got.shape == (num_heads, num_tokens, num_tokens)
    above = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    return got.masked_fill(above, torch.nan) + 0.0 if fits else got  # without −0.0


def alibi_bias(num_heads, num_tokens):
    heads = torch.arange(1.0, num_heads + 1)
    exponents = -8 * heads / num_heads
    slopes = 2**exponents
    places = torch.arange(float(num_tokens))
    distance = places[:, None] - places
    return -slopes[:, None, None] * distance


exercise_10_2 = Exercise(
    id="10.2",
    right=alibi_bias,
    course=embeddings.alibi_bias,
    returns="a bias (H, T, T): -2^(-8(h+1)/H) * (i - j) for j <= i, anything above",
    observe=below_the_diagonal,
    cases=[Case(2, 3), Case(3, 67), Case(8, 11), Case(1, 5, note="one head")],
    mistakes=[
        Mistake("slope-sign", "Your bias grows with the distance, so distant keys are preferred: it should be a penalty, -slope * (i - j).", "return slopes[:, None, None] * distance"),
        Mistake("first-slope-one", "You gave head 0 the slope 1: the exponent is -8(h + 1)/H.", "heads = torch.arange(float(num_heads))"),
        Mistake("slopes-reversed", "You put the slopes in reverse order: head 0 should be the steepest.", "slopes = 2 ** exponents.flip(0)"),
        Mistake("distance-from-one", "You counted distances from 1: the diagonal should be 0.", "distance = places[:, None] - places + 1"),
        Mistake("key-place-alone", "You used the position of the key, or counted from the last token: use the distance to the query, zero on the diagonal.", "distance = places.flip(0).expand(num_tokens, -1)"),
    ],
)  # fmt: skip
