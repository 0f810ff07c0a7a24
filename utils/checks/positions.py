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
    """Return the pairs (…, K/2, 2) of these features."""
    return torch.stack((a, b), dim=-1)


def start(x, positions, base=None):
    return {"x": x.double(), "positions": positions.double(), "given": base}


def later_pairs_faster(answer):
    """Name an exponent without its minus. Large angles would hide it in rounding."""
    x, angles = torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([1.0, 2.0])
    found = answer(x, torch.tensor([1]), 4.0).float()
    if torch.allclose(found, as_pairs(angles.cos(), angles.sin()).flatten()):
        return TEXTS["FACTS"].name("multiplied-for-divided")
    return None


def of_halves(first, second):
    """Return what the pairs get where two halves are laid side by side."""
    return torch.cat((first, second), dim=-1).unflatten(-1, (-1, 2))


HALF_ANGLES = {"wide": lambda s: of_halves(s.angles, s.angles)}
HALF_PARTNERS = {"partners": lambda s: of_halves(-s.halves[1], s.halves[0])}
PLUS_B = {"partners": lambda s: as_pairs(s.b, s.a)}
MINUS_B = {"own": lambda s: as_pairs(s.a, -s.b)}

ROPE = Forms(TEXTS["ROPE"])
wrong = ROPE.wrong
wrong("does-nothing", lay=lambda s: s.x)
wrong("halves-for-pairs", **HALF_ANGLES, **HALF_PARTNERS)
wrong("halves-for-pairs", pair=lambda s: s.halves)
wrong("halves-for-pairs 2", lay=lambda s: s.turned.mT.flatten(-2))
wrong("layouts-mixed", **HALF_ANGLES)
wrong("layouts-mixed 2", **HALF_PARTNERS)
wrong("backwards", angles=lambda s: -s.places[:, None] * s.speeds)
wrong("one-frequency", exponents=lambda s: 0 * s.even)
wrong("positions-from-one", places=lambda s: s.positions + 1)
wrong("positions-ignored", places=lambda s: torch.arange(s.x.shape[-2]))
wrong("positions-ignored 2", places=lambda s: s.positions - s.positions[0])
wrong("base-ignored", base=lambda s: 10000.0)
wrong("wrong-base", {"wrong": "1,000"}, default=lambda s: 1000.0)
wrong("wrong-base 2", base=lambda s: 1000.0)
wrong("wrong-base", {"wrong": "100,000"}, default=lambda s: 100000.0)
wrong("exponent-halved", exponents=lambda s: s.even / s.D / 2)
wrong("exponent-doubled", exponents=lambda s: s.even / s.D * 2)
wrong("exponent-reaches-one", exponents=lambda s: s.even / max(1, s.D - 2))
wrong("exponent-from-one", exponents=lambda s: (s.even + 2) / s.D)
wrong("exponent-undivided", exponents=lambda s: s.even)
wrong("power-before-division", speeds=lambda s: s.base**-s.even / s.D)
wrong("degrees", angles=lambda s: (s.places[:, None] * s.speeds).deg2rad())
wrong("positions-meet-one-speed", angles=lambda s: s.places * s.speeds)
wrong("pairs-left-apart", lay=lambda s: s.turned)
wrong("slow-pairs-first", speeds=lambda s: s.base ** -s.exponents.flip(0))
wrong("added-not-rotated", turned=lambda s: s.own + torch.cat((s.sin, s.cos), -1))
wrong("added-not-rotated 2", lay=lambda s: s.x + s.turned.flatten(-2))
wrong("angles-as-factors", turned=lambda s: s.own * s.wide)
wrong("cosine-alone", turned=lambda s: s.own * s.cos)
wrong(
    "overwritten-too-early",
    partners=lambda s: as_pairs(-s.b, s.a * s.angles.cos() - s.b * s.angles.sin()),
)
wrong("no-minus", **PLUS_B)
wrong("no-minus 2", partners=lambda s: as_pairs(-s.b, -s.a))
wrong("no-minus 2", **MINUS_B)
wrong("mirrored", **PLUS_B, **MINUS_B)
wrong("sine-and-cosine-swapped", waves=lambda s: (s.wide.sin(), s.wide.cos()))
wrong("partners-swapped", pair=lambda s: (s.x[..., 1::2], s.x[..., 0::2]))

apply_rope = Exercise(
    id="7.1",
    **TEXTS["7.1"],
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
        start,
        steps={
            "default": lambda s: 10000.0,
            "base": lambda s: s.default if s.given is None else s.given,
            "places": lambda s: s.positions,
            "D": lambda s: s.x.shape[-1],
            "even": lambda s: torch.arange(0, s.D, 2).double(),
            "exponents": lambda s: s.even / s.D,
            "speeds": lambda s: s.base**-s.exponents,
            "angles": lambda s: s.places[:, None] * s.speeds,
            "wide": lambda s: s.angles[..., None],
            "waves": lambda s: (s.wide.cos(), s.wide.sin()),
            "halves": lambda s: s.x.chunk(2, dim=-1),
            "pair": lambda s: (s.x[..., 0::2], s.x[..., 1::2]),
            "own": lambda s: as_pairs(s.a, s.b),
            "partners": lambda s: as_pairs(-s.b, s.a),
            "turned": lambda s: s.own * s.cos + s.partners * s.sin,
            "lay": lambda s: s.turned.flatten(-2),
            "result": lambda s: s.lay.float(),
        },
        forms=ROPE,
        gives={"waves": ("cos", "sin"), "pair": ("a", "b")},
    ),
)


# --- 7.2 --------------------------------------------------------------------------


def right_alibi(num_heads, num_tokens):
    """Make the bias head by head; above the diagonal stands 0."""
    places = torch.arange(num_tokens)
    ahead = (places - places[:, None]).tril()
    slopes = [2 ** (-8 * (head + 1) / num_heads) for head in range(num_heads)]
    return torch.stack([slope * ahead for slope in slopes])


def below_the_diagonal(call, num_heads, num_tokens):
    """Return what counts: above the diagonal anything may stand."""
    found = call(num_heads, num_tokens)
    fits = found.shape == (num_heads, num_tokens, num_tokens)
    return found.tril() if fits else found


FIRST, LAST = {"which": "head 0"}, {"which": "the last one"}
ALIBI = Forms(TEXTS["ALIBI"])
wrong = ALIBI.wrong
wrong("slope-sign", bias=lambda s: s.slopes[:, None, None] * s.distance)
wrong("distance-transposed", distance=lambda s: s.back.relu().T)
wrong("same-slope", FIRST, slopes=lambda s: 2 ** s.exponents[0].expand(s.H))
wrong("same-slope", LAST, slopes=lambda s: 2 ** s.exponents[-1].expand(s.H))
wrong("same-slope 2", exponents=lambda s: -torch.ones(s.H))
wrong("first-slope-one", heads=lambda s: torch.arange(float(s.H)))
wrong("heads-not-shared-out", exponents=lambda s: -s.heads)
wrong("exponent-upside-down", exponents=lambda s: -8 / s.heads)
wrong("exponent-without-eight", exponents=lambda s: -s.heads / s.H)
wrong("exponent-sign", exponents=lambda s: 8 * s.heads / s.H)
wrong("exponent-floored", exponents=lambda s: -8 * s.heads // s.H)
wrong("exponent-floored", exponents=lambda s: -(8 * s.heads // s.H))
wrong("exponent-floored", exponents=lambda s: -8 // s.H * s.heads)
wrong("exponent-floored", exponents=lambda s: -(8 // s.H) * s.heads)
wrong("linear-slopes", slopes=lambda s: s.heads / s.H)
wrong("linear-slopes 2", slopes=lambda s: -s.exponents)
wrong("linear-slopes 2", slopes=lambda s: s.exponents)
wrong("linear-slopes 2", slopes=lambda s: 2 * s.exponents)
wrong("linear-slopes 3", slopes=lambda s: 2.0**-8 * s.heads / s.H)
wrong("slopes-of-e", slopes=lambda s: s.exponents.exp())
wrong("slopes-reversed", slopes=lambda s: 2 ** s.exponents.flip(0))
wrong("distance-from-one", distance=lambda s: s.back + 1)
wrong("distance-squared", distance=lambda s: s.back**2)
wrong("distance-logarithmic", distance=lambda s: s.back.relu().log1p())
wrong("no-distance", distance=lambda s: torch.ones(s.T, s.T))
wrong("key-place-alone", distance=lambda s: -s.places.expand(s.T, -1))
wrong("key-place-alone 2", distance=lambda s: s.places.flip(0).expand(s.T, -1))
wrong("weights-for-bias", result=lambda s: s.bias.tril().softmax(-1))
wrong("query-place-alone", distance=lambda s: s.places[:, None].expand(-1, s.T))
wrong("distance-alone", slopes=lambda s: torch.ones(s.H))
wrong("head-axis-missing", bias=lambda s: -s.slopes[0] * s.distance)
wrong("heads-last", result=lambda s: s.bias.movedim(0, -1))
wrong("slopes-alone", result=lambda s: s.slopes)

alibi_bias = Exercise(
    id="7.2",
    **TEXTS["7.2"],
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
            "back": lambda s: s.places[:, None] - s.places,
            "distance": lambda s: s.back,
            "bias": lambda s: -s.slopes[:, None, None] * s.distance,
            "result": lambda s: s.bias,
        },
        forms=ALIBI,
    ),
)

EXERCISES = [apply_rope, alibi_bias]
