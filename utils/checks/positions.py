"""Exercises of notebook 07: rotary positions and the bias of ALiBi."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(7)


# --- 7.1 --------------------------------------------------------------------------


def right_rope(x, positions, base=10000.0):
    """Multiply each pair, taken as a complex number, by one of length 1."""
    even = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
    angles = torch.outer(positions.double(), base ** (-even / x.shape[-1]))
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).float()


def as_pairs(a, b):
    """Return the features (…, D) whose pairs are these."""
    return torch.stack((a, b), dim=-1).flatten(-2)


def partners(s):
    """Return (-b, a) for each pair (a, b) of neighbours."""
    return as_pairs(-s.b, s.a)


def half_partners(s):
    a, b = s.x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def twice(angles):
    return angles.repeat_interleave(2, dim=-1)


def mixed(s, partner, angles):
    return s.x * angles.cos() + partner * angles.sin()


def base_or(default):
    return lambda s: default if s.base is None else s.base


def later_pairs_faster(answer):
    """Name an exponent without its minus. Large angles would hide it in rounding."""
    x, angles = torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([1.0, 2.0])
    found = answer(x, torch.tensor([1]), 4.0).float()
    if torch.allclose(found, as_pairs(angles.cos(), angles.sin())):
        return TEXTS["FACTS"].say("multiplied-for-divided")
    return None


ROPE = Forms(TEXTS["ROPE"])
ROPE.wrong("does-nothing", lay=lambda s: s.x)
ROPE.wrong(
    "halves-for-pairs",
    pair=lambda s: s.x.chunk(2, dim=-1),
    lay=lambda s: torch.cat((s.first, s.second), -1),
)
ROPE.wrong("halves-for-pairs", pair=lambda s: s.x.chunk(2, dim=-1))
ROPE.wrong("halves-for-pairs 2", lay=lambda s: torch.cat((s.first, s.second), -1))
ROPE.wrong(
    "layouts-mixed",
    lay=lambda s: mixed(s, partners(s), torch.cat((s.angles, s.angles), -1)),
)
ROPE.wrong("layouts-mixed 2", lay=lambda s: mixed(s, half_partners(s), twice(s.angles)))
ROPE.wrong("backwards", angles=lambda s: -s.places[:, None] * s.speeds)
ROPE.wrong("one-frequency", exponents=lambda s: torch.zeros(s.x.shape[-1] // 2))
ROPE.wrong("positions-from-one", places=lambda s: s.positions + 1)
ROPE.wrong("positions-ignored", places=lambda s: torch.arange(s.x.shape[-2]))
ROPE.wrong("positions-ignored 2", places=lambda s: s.positions - s.positions[0])
ROPE.wrong("base-ignored", base=lambda s: 10000.0)
ROPE.wrong("wrong-base", {"wrong": "1,000"}, base=base_or(1000.0))
ROPE.wrong("wrong-base 2", base=lambda s: 1000.0)
ROPE.wrong("wrong-base", {"wrong": "100,000"}, base=base_or(100000.0))
ROPE.wrong("exponent-halved", exponents=lambda s: s.even / s.x.shape[-1] / 2)
ROPE.wrong("exponent-doubled", exponents=lambda s: s.even / s.x.shape[-1] * 2)
ROPE.wrong(
    "exponent-reaches-one",
    exponents=lambda s: torch.linspace(0, 1, s.x.shape[-1] // 2, dtype=torch.float64),
)
ROPE.wrong("exponent-from-one", exponents=lambda s: (s.even + 2) / s.x.shape[-1])
ROPE.wrong("exponent-undivided", exponents=lambda s: s.even)
ROPE.wrong("power-before-division", speeds=lambda s: s.base**-s.even / s.x.shape[-1])
ROPE.wrong("degrees", angles=lambda s: (s.places[:, None] * s.speeds).deg2rad())
ROPE.wrong("positions-meet-one-speed", angles=lambda s: s.places * s.speeds)
ROPE.wrong("pairs-left-apart", lay=lambda s: torch.stack((s.first, s.second), dim=-1))
ROPE.wrong("slow-pairs-first", speeds=lambda s: s.base ** -s.exponents.flip(0))
ROPE.wrong(
    "added-not-rotated", lay=lambda s: s.x + as_pairs(s.angles.sin(), s.angles.cos())
)
ROPE.wrong("added-not-rotated 2", lay=lambda s: s.x + as_pairs(s.first, s.second))
ROPE.wrong("angles-as-factors", lay=lambda s: s.x * twice(s.angles))
ROPE.wrong("cosine-alone", lay=lambda s: s.x * twice(s.angles.cos()))
ROPE.wrong("overwritten-too-early", second=lambda s: s.first * s.sin + s.b * s.cos)
ROPE.wrong("no-minus", first=lambda s: s.a * s.cos + s.b * s.sin)
ROPE.wrong("no-minus 2", second=lambda s: s.b * s.cos - s.a * s.sin)
ROPE.wrong("no-minus 2", second=lambda s: s.a * s.sin - s.b * s.cos)
ROPE.wrong(
    "mirrored",
    first=lambda s: s.a * s.cos + s.b * s.sin,
    second=lambda s: s.a * s.sin - s.b * s.cos,
)
ROPE.wrong("sine-and-cosine-swapped", waves=lambda s: (s.angles.sin(), s.angles.cos()))
ROPE.wrong("partners-swapped", pair=lambda s: (s.x[..., 1::2], s.x[..., 0::2]))

apply_rope = Exercise(
    id="7.1",
    signature="apply_rope(x, positions, base=10000.0)",
    returns="x (…, T, D) with each pair (2i, 2i+1) turned by position * base^(-2i/D)",
    oracle=right_rope,
    cases=[
        case(draw(2, 4), torch.arange(2)),
        case(draw(5, 6), torch.tensor([3, 0, 7, 1, 12]), note="positions in any order"),
        case(draw(3, 10), torch.arange(3), 50.0, note="another base"),
        case(draw(2, 3, 7, 10), torch.arange(7), note="batch and heads"),
        case(draw(1, 6), torch.tensor([100]), note="one token, far from the start"),
        case(draw(3, 2), torch.arange(3), note="a single pair"),
    ],
    facts=[later_pairs_faster],
    pipeline=Pipeline(
        start=lambda x, positions, base=None: {
            "x": x.double(),
            "positions": positions.double(),
            "base": base,
        },
        steps={
            "base": base_or(10000.0),
            "places": lambda s: s.positions,
            "even": lambda s: torch.arange(0, s.x.shape[-1], 2, dtype=torch.float64),
            "exponents": lambda s: s.even / s.x.shape[-1],
            "speeds": lambda s: s.base**-s.exponents,
            "angles": lambda s: s.places[:, None] * s.speeds,
            "waves": lambda s: (s.angles.cos(), s.angles.sin()),
            "pair": lambda s: (s.x[..., 0::2], s.x[..., 1::2]),
            "first": lambda s: s.a * s.cos - s.b * s.sin,
            "second": lambda s: s.a * s.sin + s.b * s.cos,
            "lay": lambda s: as_pairs(s.first, s.second),
            "give": lambda s: s.lay.float(),
        },
        gives={"waves": ("cos", "sin"), "pair": ("a", "b"), "give": "result"},
        forms=ROPE,
    ),
)


# --- 7.2 --------------------------------------------------------------------------


def right_alibi(num_heads, num_tokens):
    """Fill in the bias entry by entry."""
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for head in range(num_heads):
        for query in range(num_tokens):
            for key in range(query):
                slope = 2 ** (-8 * (head + 1) / num_heads)
                bias[head, query, key] = -slope * (query - key)
    return bias


def below_the_diagonal(call, num_heads, num_tokens):
    """Return what counts: above the diagonal anything may stand."""
    found = call(num_heads, num_tokens)
    fits = found.shape == (num_heads, num_tokens, num_tokens)
    return found.tril() if fits else found


def back(s):
    """Return i - j, (T, T)."""
    return s.places[:, None] - s.places


def past(s):
    return back(s).clamp(min=0)


ALIBI = Forms(TEXTS["ALIBI"])
ALIBI.wrong("slope-sign", bias=lambda s: s.slopes[:, None, None] * s.distance)
ALIBI.wrong("distance-transposed", distance=lambda s: past(s).T)
ALIBI.wrong(
    "same-slope",
    {"which": "head 0"},
    slopes=lambda s: (2 ** s.exponents[:1]).expand(s.H),
)
ALIBI.wrong(
    "same-slope",
    {"which": "the last one"},
    slopes=lambda s: (2 ** s.exponents[-1:]).expand(s.H),
)
ALIBI.wrong("same-slope 2", exponents=lambda s: -torch.ones(s.H))
ALIBI.wrong("first-slope-one", heads=lambda s: torch.arange(float(s.H)))
ALIBI.wrong("heads-not-shared-out", exponents=lambda s: -s.heads)
ALIBI.wrong("exponent-upside-down", exponents=lambda s: -8 / s.heads)
ALIBI.wrong("exponent-without-eight", exponents=lambda s: -s.heads / s.H)
ALIBI.wrong("exponent-sign", exponents=lambda s: 8 * s.heads / s.H)
ALIBI.wrong("exponent-floored", exponents=lambda s: -8 * s.heads // s.H)
ALIBI.wrong("exponent-floored", exponents=lambda s: -(8 * s.heads // s.H))
ALIBI.wrong("exponent-floored", exponents=lambda s: -8 // s.H * s.heads)
ALIBI.wrong("exponent-floored", exponents=lambda s: -(8 // s.H) * s.heads)
ALIBI.wrong("linear-slopes", slopes=lambda s: s.heads / s.H)
ALIBI.wrong("linear-slopes 2", slopes=lambda s: -s.exponents)
ALIBI.wrong("linear-slopes 2", slopes=lambda s: s.exponents)
ALIBI.wrong("linear-slopes 2", slopes=lambda s: 2 * s.exponents)
ALIBI.wrong("linear-slopes 3", slopes=lambda s: 2.0**-8 * s.heads / s.H)
ALIBI.wrong("slopes-of-e", slopes=lambda s: s.exponents.exp())
ALIBI.wrong("slopes-reversed", slopes=lambda s: 2 ** s.exponents.flip(0))
ALIBI.wrong("distance-from-one", distance=lambda s: back(s) + 1)
ALIBI.wrong("distance-squared", distance=lambda s: back(s) ** 2)
ALIBI.wrong("distance-logarithmic", distance=lambda s: past(s).log1p())
ALIBI.wrong("no-distance", distance=lambda s: torch.ones(s.T, s.T))
ALIBI.wrong("key-place-alone", distance=lambda s: -s.places.expand(s.T, -1))
ALIBI.wrong("key-place-alone 2", distance=lambda s: s.places.flip(0).expand(s.T, -1))
ALIBI.wrong("weights-for-bias", distance=past, give=lambda s: torch.softmax(s.bias, -1))
ALIBI.wrong("query-place-alone", distance=lambda s: s.places[:, None].expand(-1, s.T))
ALIBI.wrong("distance-alone", slopes=lambda s: torch.ones(s.H))
ALIBI.wrong("head-axis-missing", bias=lambda s: -s.slopes[0] * s.distance)
ALIBI.wrong("heads-last", give=lambda s: s.bias.movedim(0, -1))
ALIBI.wrong("slopes-alone", give=lambda s: s.slopes)

alibi_bias = Exercise(
    id="7.2",
    signature="alibi_bias(num_heads, num_tokens)",
    returns="a bias (H, T, T): -2^(-8(h+1)/H) * (i - j) for j <= i, anything above",
    oracle=right_alibi,
    observe_as=below_the_diagonal,
    cases=[
        case(2, 3),
        case(4, 5),
        case(3, 7, note="three heads"),
        case(8, 11),
        case(1, 5, note="one head"),
        case(5, 1, note="one token"),
    ],
    pipeline=Pipeline(
        start=lambda num_heads, num_tokens: {"H": num_heads, "T": num_tokens},
        steps={
            "heads": lambda s: torch.arange(1.0, s.H + 1),
            "exponents": lambda s: -8 * s.heads / s.H,
            "slopes": lambda s: 2**s.exponents,
            "places": lambda s: torch.arange(float(s.T)),
            "distance": back,
            "bias": lambda s: -s.slopes[:, None, None] * s.distance,
            "give": lambda s: s.bias,
        },
        gives={"give": "result"},
        forms=ALIBI,
    ),
)

EXERCISES = [apply_rope, alibi_bias]
