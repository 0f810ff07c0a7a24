"""Exercises of notebook 07: rotary positions and the bias of ALiBi."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, Mistakes, case

draw = draws(7)


# --- 7.1 --------------------------------------------------------------------------


def angles_of(width, positions, base, factor=1.0):
    """Return the angles (T, D / 2); `factor` multiplies the exponent -2i / D."""
    even = torch.arange(0, width, 2, dtype=torch.float64)
    return positions.double()[:, None] * base ** (-factor * even / width)


def turned(x, angles):
    """Return the rotated first and second features of the pairs."""
    a, b = x[..., 0::2].double(), x[..., 1::2].double()
    return a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()


def as_pairs(a, b):
    return torch.stack((a, b), dim=-1).flatten(-2).float()


def rope(shift=0, direction=1.0, factor=1.0, default=10000.0):
    """Return a rotation with something changed."""

    def compute(x, positions, base=default):
        angles = direction * angles_of(x.shape[-1], positions + shift, base, factor)
        return as_pairs(*turned(x, angles))

    return compute


def own_base(wanted):
    return lambda x, positions, base=10000.0: rope()(x, positions, wanted)


def counted(x, positions, base=10000.0):
    return rope()(x, torch.arange(x.shape[-2]), base)


def in_halves(x, positions, base=10000.0):
    angles = angles_of(x.shape[-1], positions, base)
    a, b = x.double().chunk(2, dim=-1)
    first = a * angles.cos() - b * angles.sin()
    return torch.cat((first, a * angles.sin() + b * angles.cos()), dim=-1).float()


def halves_from_pairs(x, positions, base=10000.0):
    return torch.cat(turned(x, angles_of(x.shape[-1], positions, base)), -1).float()


def partners(x):
    """Return (-b, a) for each pair (a, b) of neighbours."""
    return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)


def half_partners(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def mixed(partner, twice):
    """Return x cos + partner(x) sin with the angles laid out by `twice`."""

    def compute(x, positions, base=10000.0):
        x, angles = x.double(), twice(angles_of(x.shape[-1], positions, base))
        return (x * angles.cos() + partner(x) * angles.sin()).float()

    return compute


def side_by_side(angles):
    return torch.cat((angles, angles), dim=-1)


def neighbours(angles):
    return angles.repeat_interleave(2, dim=-1)


def added(x, positions, base=10000.0):
    angles = angles_of(x.shape[-1], positions, base)
    return (x.double() + as_pairs(angles.sin(), angles.cos())).float()


def added_turned(x, positions, base=10000.0):
    return x + rope()(x, positions, base)


def scaled(x, positions, base=10000.0):
    return (x.double() * neighbours(angles_of(x.shape[-1], positions, base))).float()


def cosine_alone(x, positions, base=10000.0):
    angles = neighbours(angles_of(x.shape[-1], positions, base))
    return (x.double() * angles.cos()).float()


def in_place(x, positions, base=10000.0):
    """Overwrite a before b is computed from it."""
    angles = angles_of(x.shape[-1], positions, base)
    a, _ = turned(x, angles)
    return as_pairs(a, a * angles.sin() + x[..., 1::2].double() * angles.cos())


def signs(first, second):
    """Return pairs (a cos + first b sin, second a sin + b cos)."""

    def compute(x, positions, base=10000.0):
        angles = angles_of(x.shape[-1], positions, base)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., 0::2].double(), x[..., 1::2].double()
        return as_pairs(a * cos + first * b * sin, second * a * sin + b * cos)

    return compute


def mirrored(x, positions, base=10000.0):
    angles = angles_of(x.shape[-1], positions, base)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2].double(), x[..., 1::2].double()
    return as_pairs(a * cos + b * sin, a * sin - b * cos)


def swapped(x, positions, base=10000.0):
    quarter = torch.pi / 2 - angles_of(x.shape[-1], positions, base)
    return as_pairs(*turned(x, quarter))


def slow_first(x, positions, base=10000.0):
    angles = angles_of(x.shape[-1], positions, base).flip(-1)
    return as_pairs(*turned(x, angles))


def later_pairs_faster(answer):
    """Fact: the exponent has lost its minus. Large angles would hide it in rounding."""
    x, positions = torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([1])
    found = answer(x, positions, 4.0).float()
    if torch.allclose(found, rope(factor=-1.0)(x, positions, 4.0)):
        text = "Later pairs turn faster instead of more slowly: the exponent −2i/D has "
        return "multiplied-for-divided", text + "lost its minus."
    return None


def in_degrees(x, positions, base=10000.0):
    angles = angles_of(x.shape[-1], positions, base) * torch.pi / 180
    return as_pairs(*turned(x, angles))


def left_apart(x, positions, base=10000.0):
    return rope()(x, positions, base).unflatten(-1, (-1, 2))


def one_pair_short(x, positions, base=10000.0):
    """Let the exponents run from 0 to 1, as `linspace` would."""
    pairs = x.shape[-1] // 2
    share = torch.linspace(0, 1, pairs, dtype=torch.float64)
    return as_pairs(*turned(x, positions.double()[:, None] * base**-share))


def distance_to_first(x, positions, base=10000.0):
    return rope()(x, positions - positions[0], base)


APPLY_ROPE_MISTAKES = Mistakes()
APPLY_ROPE_MISTAKES.add(
    "does-nothing",
    lambda x, positions, base=10000.0: x,
    "x comes back as it was: is the rotated tensor returned?",
)
APPLY_ROPE_MISTAKES.add(
    "halves-for-pairs",
    in_halves,
    "Feature i is turned together with feature i + D/2. Here the pairs are "
    "neighbours: `x[..., 0::2]` and `x[..., 1::2]`.",
)
APPLY_ROPE_MISTAKES.add(
    "halves-for-pairs",
    halves_from_pairs,
    "The pairs are turned rightly and then not put back: all first features stand "
    "before all second ones. `torch.stack(…, dim=-1).flatten(-2)` makes them "
    "neighbours again.",
)
APPLY_ROPE_MISTAKES.add(
    "layouts-mixed",
    mixed(partners, side_by_side),
    "The partners are neighbours, but the angles are laid out for halves: repeat each "
    "angle twice in a row (`repeat_interleave(2, dim=-1)`).",
)
APPLY_ROPE_MISTAKES.add(
    "layouts-mixed",
    mixed(half_partners, neighbours),
    "The angles are laid out for neighbours, but the partner of feature i is taken "
    "from i + D/2: it is the neighbour, (−b, a) for the pair (a, b).",
)
APPLY_ROPE_MISTAKES.add(
    "backwards",
    rope(direction=-1.0),
    "The pairs turn clockwise. Counter-clockwise is (a cos − b sin, a sin + b cos): "
    "the minus stands in the first line.",
)
APPLY_ROPE_MISTAKES.add(
    "one-frequency",
    rope(factor=0.0),
    "All pairs turn by the position itself: each needs a speed of its own, "
    "base^(-2i/D).",
)
APPLY_ROPE_MISTAKES.add(
    "positions-from-one",
    rope(shift=1),
    "Every token is turned one step too far: the positions are taken as they are "
    "given, and position 0 turns nothing.",
)
APPLY_ROPE_MISTAKES.add(
    "positions-ignored",
    counted,
    "The rows are numbered 0, 1, 2 … whatever `positions` says: with a cache a text "
    "does not start at 0.",
)
APPLY_ROPE_MISTAKES.add(
    "positions-ignored",
    distance_to_first,
    "The first token is taken for position 0: use the positions as they are.",
)
APPLY_ROPE_MISTAKES.add(
    "base-ignored",
    own_base(10000.0),
    "The base is always 10,000: the argument `base` is not used.",
)
APPLY_ROPE_MISTAKES.add(
    "wrong-base",
    rope(default=1000.0),
    "The base is 1,000 where none is given; it should be 10,000.",
)
APPLY_ROPE_MISTAKES.add(
    "wrong-base",
    own_base(1000.0),
    "The base is 1,000, whatever is given: use the argument `base`, which is 10,000 "
    "by default.",
)
APPLY_ROPE_MISTAKES.add(
    "wrong-base",
    rope(default=100000.0),
    "The base is 100,000 where none is given; it should be 10,000.",
)
APPLY_ROPE_MISTAKES.add(
    "exponent-halved",
    rope(factor=0.5),
    "The exponent is −i/D, half of what it should be: 2i is the number of the even "
    "feature, `torch.arange(0, D, 2)`.",
)
APPLY_ROPE_MISTAKES.add(
    "exponent-doubled",
    rope(factor=2.0),
    "The exponent is −4i/D, twice what it should be: `torch.arange(0, D, 2)` is 2i "
    "already, and it is divided by D, not by D/2.",
)
APPLY_ROPE_MISTAKES.add(
    "exponent-reaches-one",
    one_pair_short,
    "The exponent of the last pair is −1: it ends before that, at −(D−2)/D, because "
    "2i is divided by D.",
)
APPLY_ROPE_MISTAKES.add(
    "degrees",
    in_degrees,
    "The angles are turned into radians, but base^(-2i/D) gives radians already: "
    "leave out the factor π/180.",
)
APPLY_ROPE_MISTAKES.add(
    "pairs-left-apart",
    left_apart,
    "The pairs still have an axis of their own, (…, T, D/2, 2): flatten the last two "
    "axes, `.flatten(-2)`.",
)
APPLY_ROPE_MISTAKES.add(
    "slow-pairs-first",
    slow_first,
    "The speeds are in reverse order: the first pair turns fastest, by one radian a "
    "position.",
)
APPLY_ROPE_MISTAKES.add(
    "added-not-rotated",
    added,
    "Sines and cosines are added to x as in Notebook 02: here they turn x, by a "
    "product.",
)
APPLY_ROPE_MISTAKES.add(
    "added-not-rotated",
    added_turned,
    "The rotated x is added to x: return the rotated one alone.",
)
APPLY_ROPE_MISTAKES.add(
    "angles-as-factors",
    scaled,
    "x is multiplied with the angles themselves: a rotation takes their sines and "
    "cosines.",
)
APPLY_ROPE_MISTAKES.add(
    "cosine-alone",
    cosine_alone,
    "Each feature is multiplied with a cosine and knows nothing of its partner: the "
    "pair (a, b) becomes (a cos − b sin, a sin + b cos).",
)
APPLY_ROPE_MISTAKES.add(
    "overwritten-too-early",
    in_place,
    "The second feature is computed from the first one after it was changed. `x[..., "
    "0::2]` is a view: compute both before either is written.",
)
APPLY_ROPE_MISTAKES.add(
    "no-minus",
    signs(1.0, 1.0),
    "Both lines have a plus, so lengths change: (a cos − b sin, a sin + b cos).",
)
APPLY_ROPE_MISTAKES.add(
    "no-minus",
    signs(-1.0, -1.0),
    "Both lines have a minus, so lengths change: (a cos − b sin, a sin + b cos).",
)
APPLY_ROPE_MISTAKES.add(
    "mirrored",
    mirrored,
    "The minus stands before the cosine: the pair is mirrored, and position 0 changes "
    "b. It is (a cos − b sin, a sin + b cos).",
)
APPLY_ROPE_MISTAKES.add(
    "sine-and-cosine-swapped",
    swapped,
    "Sine and cosine have changed places, so that position 0 turns by a quarter: (a "
    "cos − b sin, a sin + b cos).",
)
apply_rope = Exercise(
    id="7.1",
    signature="apply_rope(x, positions, base=10000.0)",
    returns="x (…, T, D) with each pair (2i, 2i+1) turned by position * base^(-2i/D)",
    oracle=rope(),
    cases=[
        case(draw(2, 4), torch.arange(2)),
        case(draw(5, 6), torch.tensor([3, 0, 7, 1, 12]), note="positions in any order"),
        case(draw(3, 10), torch.arange(3), 50.0, note="another base"),
        case(draw(2, 3, 7, 10), torch.arange(7), note="batch and heads"),
        case(draw(1, 6), torch.tensor([100]), note="one token, far from the start"),
        case(draw(3, 2), torch.arange(3), note="a single pair"),
    ],
    facts=[later_pairs_faster],
    mistakes=APPLY_ROPE_MISTAKES,
)


# --- 7.2 --------------------------------------------------------------------------


def slopes_of(num_heads):
    heads = torch.arange(1, num_heads + 1, dtype=torch.float64)
    return 2.0 ** (-8 * heads / num_heads)


def back(num_tokens):
    """Return i - j, (T, T)."""
    places = torch.arange(num_tokens, dtype=torch.float64)
    return places[:, None] - places


def bias(slopes=slopes_of, distance=back, sign=-1.0):
    """Return an ALiBi with something changed."""

    def compute(num_heads, num_tokens):
        products = slopes(num_heads)[:, None, None] * distance(num_tokens)
        return (sign * products + 0.0).float()  # no -0.0 in messages

    return compute


def exponents(formula):
    """Return slopes 2^formula(h, H) with h from 0."""

    def slopes(num_heads):
        heads = torch.arange(num_heads, dtype=torch.float64)
        return 2.0 ** formula(heads, num_heads)

    return slopes


def one_slope(which):
    return lambda num_heads: slopes_of(num_heads)[which].expand(num_heads)


def linear(num_heads):
    return torch.arange(1, num_heads + 1, dtype=torch.float64) / num_heads


def transposed(num_tokens):
    """Give the distance of later keys, where the mask hides it."""
    return back(num_tokens).T.clamp(min=0)


def key_places(num_tokens):
    return -torch.arange(num_tokens, dtype=torch.float64).expand(num_tokens, -1)


def query_places(num_tokens):
    return key_places(num_tokens).T.neg()


def to_the_end(num_tokens):
    return (num_tokens - 1 + key_places(num_tokens)).expand(num_tokens, -1)


def no_distance(num_tokens):
    return torch.ones(num_tokens, num_tokens, dtype=torch.float64)


def without_head_axis(num_heads, num_tokens):
    return bias(one_slope(0))(num_heads, num_tokens)[0]


def below_the_diagonal(call, num_heads, num_tokens):
    """Return what counts: above the diagonal anything may stand."""
    found = call(num_heads, num_tokens)
    fits = found.shape == (num_heads, num_tokens, num_tokens)
    return found.tril() if fits else found


ALIBI_BIAS_MISTAKES = Mistakes()
ALIBI_BIAS_MISTAKES.add(
    "slope-sign",
    bias(sign=1.0),
    "The bias grows with the distance, so that far keys are preferred: it is a "
    "penalty and needs a minus.",
)
ALIBI_BIAS_MISTAKES.add(
    "distance-transposed",
    bias(distance=transposed),
    "Earlier keys get no penalty: the distances stand above the diagonal. Rows are "
    "queries, so i − j is `places[:, None] - places`.",
)
ALIBI_BIAS_MISTAKES.add(
    "same-slope",
    bias(one_slope(0)),
    "All heads have the slope of head 0: it depends on the head, 2^(-8(h+1)/H).",
)
ALIBI_BIAS_MISTAKES.add(
    "same-slope",
    bias(one_slope(-1)),
    "All heads have the slope of the last one: it depends on the head, 2^(-8(h+1)/H).",
)
ALIBI_BIAS_MISTAKES.add(
    "same-slope",
    bias(exponents(lambda h, n: 0 * h - 1)),
    "All heads have the slope 1/2: it depends on the head, 2^(-8(h+1)/H).",
)
ALIBI_BIAS_MISTAKES.add(
    "first-slope-one",
    bias(exponents(lambda h, n: -8 * h / n)),
    "Head 0 has the slope 1: heads count from 0, the exponent from 1, so it is -8(h + "
    "1)/H.",
)
ALIBI_BIAS_MISTAKES.add(
    "heads-not-shared-out",
    bias(exponents(lambda h, n: -(h + 1))),
    "The slopes are 1/2, 1/4, 1/8 … for any number of heads: that is right for 8 "
    "heads. The exponent is -8(h + 1)/H.",
)
ALIBI_BIAS_MISTAKES.add(
    "exponent-upside-down",
    bias(exponents(lambda h, n: -8 / (h + 1))),
    "The exponent divides by h + 1: it multiplies with h + 1 and divides by H.",
)
ALIBI_BIAS_MISTAKES.add(
    "exponent-without-eight",
    bias(exponents(lambda h, n: -(h + 1) / n)),
    "The exponent is −(h+1)/H: the 8 is missing.",
)
ALIBI_BIAS_MISTAKES.add(
    "exponent-sign",
    bias(exponents(lambda h, n: 8 * (h + 1) / n)),
    "The slopes grow to 256: the exponent has lost its minus.",
)
ALIBI_BIAS_MISTAKES.add(
    "linear-slopes",
    bias(linear),
    "The slopes grow in equal steps: each is a power of 2, 2^(-8(h+1)/H).",
)
ALIBI_BIAS_MISTAKES.add(
    "slopes-reversed",
    bias(lambda num_heads: slopes_of(num_heads).flip(0)),
    "The slopes are in reverse order: head 0 is the steepest.",
)
ALIBI_BIAS_MISTAKES.add(
    "distance-from-one",
    bias(distance=lambda num_tokens: back(num_tokens) + 1),
    "The token itself is at distance 1: the diagonal is 0.",
)
ALIBI_BIAS_MISTAKES.add(
    "distance-squared",
    bias(distance=lambda num_tokens: back(num_tokens) ** 2),
    "The distance is squared: ALiBi is linear in it.",
)
ALIBI_BIAS_MISTAKES.add(
    "distance-logarithmic",
    bias(distance=lambda num_tokens: (back(num_tokens).clamp(min=0) + 1).log()),
    "The bias grows with the logarithm of the distance: ALiBi is linear in it.",
)
ALIBI_BIAS_MISTAKES.add(
    "no-distance",
    bias(distance=no_distance),
    "The bias is the same for all keys: multiply the slopes with i − j.",
)
ALIBI_BIAS_MISTAKES.add(
    "key-place-alone",
    bias(distance=key_places),
    "The bias is slope times j. After the softmax that is the same, because a row "
    "differs by a constant; asked for is the distance, zero on the diagonal.",
)
ALIBI_BIAS_MISTAKES.add(
    "key-place-alone",
    bias(distance=to_the_end),
    "The distance is counted from the last token for every row. After the softmax "
    "that is the same, because a row differs by a constant; asked for is the distance "
    "to the query, zero on the diagonal.",
)
ALIBI_BIAS_MISTAKES.add(
    "weights-for-bias",
    lambda num_heads, num_tokens: torch.softmax(
        bias(distance=lambda n: back(n).clamp(min=0))(num_heads, num_tokens), -1
    ),
    "The result has been through a softmax: return the bias itself, which is added to "
    "the scores before it.",
)
ALIBI_BIAS_MISTAKES.add(
    "query-place-alone",
    bias(distance=query_places),
    "The bias is the same along each row, so the softmax takes it out again: it must "
    "depend on the key, i − j.",
)
ALIBI_BIAS_MISTAKES.add(
    "distance-alone",
    bias(lambda num_heads: torch.ones(num_heads, dtype=torch.float64), back),
    "There are no slopes in it: multiply with 2^(-8(h+1)/H).",
)
ALIBI_BIAS_MISTAKES.add(
    "head-axis-missing",
    without_head_axis,
    "One matrix (T, T) for all heads: each head has its own, (H, T, T).",
)
ALIBI_BIAS_MISTAKES.add(
    "heads-last",
    lambda num_heads, num_tokens: bias()(num_heads, num_tokens).movedim(0, -1),
    "The heads stand last: they come first, (H, T, T), as in the scores.",
)
ALIBI_BIAS_MISTAKES.add(
    "slopes-alone",
    lambda num_heads, num_tokens: slopes_of(num_heads).float(),
    "These are the slopes: multiply them with the distances, `slopes[:, None, None] * "
    "…`.",
)
alibi_bias = Exercise(
    id="7.2",
    signature="alibi_bias(num_heads, num_tokens)",
    returns="a bias (H, T, T): -2^(-8(h+1)/H) * (i - j) for j <= i, anything above",
    oracle=bias(),
    observe_as=below_the_diagonal,
    cases=[
        case(2, 3),
        case(4, 5),
        case(3, 7, note="three heads"),
        case(8, 11),
        case(1, 5, note="one head"),
        case(5, 1, note="one token"),
    ],
    mistakes=ALIBI_BIAS_MISTAKES,
)

EXERCISES = [apply_rope, alibi_bias]
