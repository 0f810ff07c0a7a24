"""Exercises of the notebook on positions: rotary positions and the bias of ALiBi."""

import torch

from utils.checks.engine import Case, Exercise, draw
from utils.checks.pipeline import variants


def as_pairs(a, b):
    """Return the pairs (…, K/2, 2) of these features."""
    return torch.stack((a, b), dim=-1)


def of_halves(first, second):
    """Return pairs (…, K/2, 2) of the features of two halves that are joined."""
    return torch.cat((first, second), dim=-1).unflatten(-1, (-1, 2))


apply_rope = Exercise(
    id="10.1",
    is_trained=True,
    signature="apply_rope(x, positions, base=10000.0)",
    returns="x (…, T, K) with each pair (2p, 2p+1) rotated by position * base^(-2p/K)",
    cases=[
        Case(draw(2, 4), torch.arange(2)),
        Case(draw(5, 6), torch.tensor([3, 0, 7, 1, 12]), note="positions in any order"),
        Case(draw(3, 10), torch.arange(3), 50.0, note="another base"),
        Case(draw(2, 3, 7, 10), torch.arange(7), note="batch and heads"),
        Case(draw(1, 6), torch.tensor([100]), note="one token, far from the start"),
    ],
    steps={
        "x": lambda s: s.x.double(),
        "D": lambda s: s.x.shape[-1],
        "even": lambda s: torch.arange(0, s.D, 2).double(),
        "exponents": lambda s: s.even / s.D,
        "speeds": lambda s: s.base**-s.exponents,
        "angles": lambda s: s.positions[:, None] * s.speeds,
        "wide": lambda s: s.angles[..., None],
        "cos, sin": lambda s: (s.wide.cos(), s.wide.sin()),
        "halves": lambda s: s.x.chunk(2, dim=-1),
        "a, b": lambda s: (s.x[..., 0::2], s.x[..., 1::2]),
        "own": lambda s: as_pairs(s.a, s.b),
        "first": lambda s: s.a * s.angles.cos() - s.b * s.angles.sin(),
        "partners": lambda s: as_pairs(-s.b, s.a),
        "rotated": lambda s: s.own * s.cos + s.partners * s.sin,
        "laid": lambda s: s.rotated.flatten(-2),
        "result": lambda s: s.laid.float(),
    },
    variants=variants(
        "halves-for-pairs: You paired feature i with feature i + K/2: pair neighbours, `x[..., 0::2]` and `x[..., 1::2]`.",
        dict(
            wide=lambda s: of_halves(s.angles, s.angles),
            partners=lambda s: of_halves(-s.halves[1], s.halves[0]),
        ),
        "halves-for-pairs: You put all first features before all second ones: make them neighbours again, `torch.stack(…, dim=-1).flatten(-2)`.",
        dict(laid=lambda s: s.rotated.mT.flatten(-2)),
        "positions-from-one: You rotated each token one step too far: position 0 should rotate nothing.",
        dict(positions=lambda s: s.positions + 1),
        "positions-ignored: You numbered the rows 0, 1, 2 … whatever `positions` says: use the positions as they are, because with a cache they don't start at 0.",
        dict(positions=lambda s: torch.arange(s.x.shape[-2])),
        "rotated-backwards: You rotated clockwise, by −angle: the first of a pair should become a·cos − b·sin, the second b·cos + a·sin.",
        dict(angles=lambda s: -s.positions[:, None] * s.speeds),
        "base-ignored: You used the base 10,000 always: use the argument `base`.",
        dict(base=lambda s: 10000.0),
        "exponent-halved: Your exponent is −p/K, half of what it should be: 2p is the number of the even feature, `torch.arange(0, K, 2)`.",
        dict(exponents=lambda s: s.even / s.D / 2),
        "added-not-rotated: You added sines and cosines to x: rotate x, by a product.",
        dict(rotated=lambda s: s.own + torch.cat((s.sin, s.cos), -1)),
        "overwritten-too-early: You changed the first feature before the second was computed from it: `x[..., 0::2]` is a view, so compute both before you write.",
        dict(partners=lambda s: as_pairs(-s.b, s.first)),
    ),
)


def below_the_diagonal(call, num_heads, num_tokens):
    """Return the bias with NaN, which messages leave out, where anything is allowed."""
    got = call(num_heads, num_tokens)
    fits = got.shape == (num_heads, num_tokens, num_tokens)
    above = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    return got.masked_fill(above, torch.nan) + 0.0 if fits else got  # without −0.0


alibi_bias = Exercise(
    id="10.2",
    signature="alibi_bias(num_heads, num_tokens)",
    returns="a bias (H, T, T): -2^(-8(h+1)/H) * (i - j) for j <= i, anything above",
    observe=below_the_diagonal,
    cases=[
        Case(2, 3),
        Case(3, 7, note="three heads"),
        Case(8, 11),
        Case(1, 5, note="one head"),
    ],
    steps={
        "heads": lambda s: torch.arange(1.0, s.num_heads + 1),
        "exponents": lambda s: -8 * s.heads / s.num_heads,
        "slopes": lambda s: 2**s.exponents,
        "places": lambda s: torch.arange(float(s.num_tokens)),
        "back": lambda s: s.places[:, None] - s.places,
        "distance": lambda s: s.back,
        "result": lambda s: -s.slopes[:, None, None] * s.distance,
    },
    variants=variants(
        "slope-sign: Your bias grows with the distance, so distant keys are preferred: it should be a penalty, -slope * (i - j).",
        dict(result=lambda s: s.slopes[:, None, None] * s.distance),
        "first-slope-one: You gave head 0 the slope 1: the exponent is -8(h + 1)/H.",
        dict(heads=lambda s: torch.arange(float(s.num_heads))),
        "heads-not-shared-out: You used the slopes 1/2, 1/4, 1/8 …, which are right for 8 heads only: the exponent is -8(h + 1)/H.",
        dict(exponents=lambda s: -s.heads),
        "linear-slopes: Your slopes grow in equal steps: each is a power of 2, with the exponent in parentheses, 2 ** (-8 * (h + 1) / H).",
        dict(slopes=lambda s: -s.exponents),
        dict(slopes=lambda s: 2**-8 * s.heads / s.num_heads),
        "slopes-reversed: You put the slopes in reverse order: head 0 should be the steepest.",
        dict(slopes=lambda s: 2 ** s.exponents.flip(0)),
        "distance-from-one: You counted distances from 1: the diagonal should be 0.",
        dict(distance=lambda s: s.back + 1),
        "key-place-alone: You used the position of the key, or counted from the last token: use the distance to the query, zero on the diagonal.",
        dict(distance=lambda s: s.places.flip(0).expand(s.num_tokens, -1)),
    ),
)

EXERCISES = [apply_rope, alibi_bias]
