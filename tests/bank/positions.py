"""Answers to the exercises of notebook 07."""

import math

import torch
from torch.nn import functional as F

from bank import right, wrong


def speeds(x, base):
    """Return base^(-2p/K) for each pair."""
    return base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])


@right("7.1")
def rope_stacked(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = torch.cos(angles), torch.sin(angles)
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@right("7.1")
def rope_complex(x, positions, base=10000.0):
    angles = torch.outer(positions.float(), speeds(x, base))
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    rotated = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(rotated).reshape(x.shape)


@right("7.1")
def rope_loop(x, positions, base=10000.0):
    width, out = x.shape[-1], torch.zeros_like(x)
    for t, position in enumerate(positions.tolist()):
        for i in range(width // 2):
            angle = position * base ** (-2 * i / width)
            a, b = x[..., t, 2 * i], x[..., t, 2 * i + 1]
            out[..., t, 2 * i] = a * math.cos(angle) - b * math.sin(angle)
            out[..., t, 2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out


@right("7.1")
def rope_matrices(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    rows = [[angles.cos(), -angles.sin()], [angles.sin(), angles.cos()]]
    turns = torch.stack([torch.stack(row, -1) for row in rows], -2)  # (T, K/2, 2, 2)
    pairs = x.unflatten(-1, (-1, 2)).unsqueeze(-1)
    return (turns @ pairs).flatten(-3)


@right("7.1")
def rope_partners(x, positions, base=10000.0):
    angles = (positions.unsqueeze(1) * speeds(x, base)).repeat_interleave(2, dim=1)
    partner = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).reshape(x.shape)
    return x * angles.cos() + partner * angles.sin()


@right("7.1")
def rope_einsum(x, positions, base=10000.0):
    inverse = torch.exp(-math.log(base) * torch.arange(0, x.size(-1), 2) / x.size(-1))
    angle = torch.einsum("t,f->tf", positions.float(), inverse)
    y = torch.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * angle.cos() - x[..., 1::2] * angle.sin()
    y[..., 1::2] = x[..., 0::2] * angle.sin() + x[..., 1::2] * angle.cos()
    return y


@wrong("7.1", "does-nothing")
def rope_thrown_away(x, positions, base=10000.0):
    rope_stacked(x, positions, base)
    return x


@wrong("7.1", "returns-nothing")
def rope_no_return(x, positions, base=10000.0):
    rope_stacked(x, positions, base)


@wrong("7.1", "halves-for-pairs")
def rope_llama_style(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    angles = torch.cat((angles, angles), dim=-1)
    half = x.shape[-1] // 2
    partner = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * angles.cos() + partner * angles.sin()


@wrong("7.1", "halves-for-pairs")
def rope_not_put_back(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


@wrong("7.1", "layouts-mixed")
def rope_angles_of_halves(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    angles = torch.cat((angles, angles), dim=-1)
    partner = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * angles.cos() + partner * angles.sin()


@wrong("7.1", "layouts-mixed")
def rope_partners_of_halves(x, positions, base=10000.0):
    angles = torch.repeat_interleave(positions[:, None] * speeds(x, base), 2, -1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-x2, x1), dim=-1) * angles.sin()


@wrong("7.1", "backwards")
def rope_clockwise(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos + x2 * sin, x2 * cos - x1 * sin], -1).flatten(-2)


@wrong("7.1", "one-frequency")
def rope_one_speed(x, positions, base=10000.0):
    angle = positions[:, None].float()
    a, b = x[..., 0::2], x[..., 1::2]
    first = a * angle.cos() - b * angle.sin()
    second = a * angle.sin() + b * angle.cos()
    return torch.stack((first, second), dim=-1).reshape(x.shape)


@wrong("7.1", "positions-from-one")
def rope_one_based(x, positions, base=10000.0):
    return rope_complex(x, positions + 1, base)


@wrong("7.1", "positions-ignored")
def rope_counts_itself(x, positions, base=10000.0):
    return rope_stacked(x, torch.arange(x.size(-2)), base)


@wrong("7.1", "positions-ignored")
def rope_starts_again(x, positions, base=10000.0):
    return rope_stacked(x, positions - positions[0], base)


@wrong("7.1", "base-ignored")
def rope_constant_base(x, positions, base=10000.0):
    return rope_stacked(x, positions, 10_000)


@wrong("7.1", "wrong-base")
def rope_other_default(x, positions, base=1000.0):
    return rope_stacked(x, positions, base)


@wrong("7.1", "exponent-halved")
def rope_pair_exponent(x, positions, base=10000.0):
    i = torch.arange(x.shape[-1] // 2)
    angles = positions[:, None] * base ** (-i / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


@wrong("7.1", "exponent-doubled")
def rope_even_over_half(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = positions[:, None] / base ** (torch.arange(0, 2 * half, 2) / half)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


@wrong("7.1", "multiplied-for-divided")
def rope_plus_exponent(x, positions, base=10000.0):
    return rope_stacked(x, positions, 1 / base)


@wrong("7.1", "degrees")
def rope_degrees(x, positions, base=10000.0):
    angles = torch.deg2rad(positions[:, None] * speeds(x, base))
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "pairs-left-apart")
def rope_unflattened(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


@wrong("7.1", "exponent-reaches-one")
def rope_linspace(x, positions, base=10000.0):
    angles = positions[:, None] / base ** torch.linspace(0, 1, x.shape[-1] // 2)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "slow-pairs-first")
def rope_flipped(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base).flip(0)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


@wrong("7.1", "added-not-rotated")
def rope_sinusoids(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    y = x.clone()
    y[..., 0::2] += angles.sin()
    y[..., 1::2] += angles.cos()
    return y


@wrong("7.1", "added-not-rotated")
def rope_residual(x, positions, base=10000.0):
    return x + rope_stacked(x, positions, base)


@wrong("7.1", "angles-as-factors")
def rope_scaled(x, positions, base=10000.0):
    return x * (positions[:, None] * speeds(x, base)).repeat_interleave(2, dim=-1)


@wrong("7.1", "cosine-alone")
def rope_without_partner(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    return x * angles.cos().repeat_interleave(2, -1)


@wrong("7.1", "overwritten-too-early")
def rope_views(x, positions, base=10000.0):
    y = x.clone()
    a, b = y[..., 0::2], y[..., 1::2]
    angles = positions[:, None] * speeds(x, base)
    y[..., 0::2] = a * angles.cos() - b * angles.sin()
    y[..., 1::2] = a * angles.sin() + b * angles.cos()
    return y


@wrong("7.1", "input-changed")
def rope_into_x(x, positions, base=10000.0):
    x[:] = rope_stacked(x, positions, base)
    return x


@wrong("7.1", "no-minus")
def rope_two_plus(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos + x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "mirrored")
def rope_mirror(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos + x2 * sin, x1 * sin - x2 * cos], -1).flatten(-2)


@wrong("7.1", "sine-and-cosine-swapped")
def rope_swapped(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    sin, cos = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "exponent-from-one")
def rope_pairs_from_one(x, positions, base=10000.0):
    i = torch.arange(1, x.shape[-1] // 2 + 1)
    return rope_with(x, positions[:, None] * base ** (-2 * i / x.shape[-1]))


@wrong("7.1", "exponent-undivided")
def rope_undivided(x, positions, base=10000.0):
    speeds = 1 / base ** torch.arange(0, x.shape[-1], 2)
    return rope_with(x, positions[:, None] * speeds)


@wrong("7.1", "halves-for-pairs")
def rope_halves_as_neighbours(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    x = torch.stack((x[..., :half], x[..., half:]), -1).flatten(-2)
    return rope_stacked(x, positions, base)


@wrong("7.1", "no-minus")
def rope_second_minus(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin - x2 * cos], -1).flatten(-2)


def rope_with(x, angles):
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "power-before-division")
def rope_power_first(x, positions, base=10000.0):
    D = x.shape[-1]
    return rope_with(x, positions[:, None] / base ** torch.arange(0, D, 2) / D)


@wrong("7.1", "positions-meet-one-speed")
def rope_without_a_column(x, positions, base=10000.0):
    return rope_with(x, positions * speeds(x, base))


@wrong("7.1", "partners-swapped")
def rope_odd_first(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., 1::2], x[..., ::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@wrong("7.1", "positions-from-one")
def rope_one_based_and_put_side_by_side(x, positions, base=10000.0):
    angles = (positions[:, None] + 1) * speeds(x, base)
    cos, sin = angles.cos(), angles.sin()
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)


def distances(num_tokens):
    """Return i - j."""
    return torch.arange(num_tokens)[:, None] - torch.arange(num_tokens)[None, :]


def slope(num_heads):
    return torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])


@right("7.2")
def alibi_outer(num_heads, num_tokens):
    return -slope(num_heads).view(-1, 1, 1) * distances(num_tokens)


@right("7.2")
def alibi_loops(num_heads, num_tokens):
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for h in range(num_heads):
        for i in range(num_tokens):
            for j in range(i + 1):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / num_heads)) * (i - j)
    return bias


@right("7.2")
def alibi_with_mask(num_heads, num_tokens):
    bias = -slope(num_heads)[:, None, None] * distances(num_tokens)
    return bias.masked_fill(distances(num_tokens) < 0, float("-inf"))


@right("7.2")
def alibi_einsum(num_heads, num_tokens):
    first = 2 ** (-8 / num_heads)
    powers = torch.full((num_heads,), first).cumprod(0)
    return torch.einsum("h,ij->hij", powers, -distances(num_tokens).abs().float())


@right("7.2")
def alibi_nan_above(num_heads, num_tokens):
    bias = [m * distances(num_tokens).neg() for m in slope(num_heads)]
    above = distances(num_tokens) < 0
    return torch.stack(bias).masked_fill(above, float("nan"))


@wrong("7.2", "slope-sign")
def alibi_reward(num_heads, num_tokens):
    return slope(num_heads)[:, None, None] * distances(num_tokens)


@wrong("7.2", "slope-sign")
def alibi_key_minus_query(num_heads, num_tokens):
    places = torch.arange(num_tokens)
    return -slope(num_heads)[:, None, None] * (places[None, :] - places[:, None])


@wrong("7.2", "distance-transposed")
def alibi_transposed(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None] * distances(num_tokens).clamp(min=0).T


@wrong("7.2", "distance-transposed")
def alibi_upper(num_heads, num_tokens):
    distance = distances(num_tokens).abs().triu()
    return -torch.einsum("h,ij->hij", slope(num_heads), distance.float())


@wrong("7.2", "same-slope")
def alibi_one_slope(num_heads, num_tokens):
    bias = -(2 ** (-8 / num_heads)) * distances(num_tokens)
    return bias.expand(num_heads, num_tokens, num_tokens)


@wrong("7.2", "same-slope")
def alibi_half_each(num_heads, num_tokens):
    return torch.stack([-0.5 * distances(num_tokens)] * num_heads)


@wrong("7.2", "first-slope-one")
def alibi_heads_from_zero(num_heads, num_tokens):
    slopes = 2.0 ** (-8 * torch.arange(num_heads) / num_heads)
    return -slopes.reshape(num_heads, 1, 1) * distances(num_tokens)


@wrong("7.2", "heads-not-shared-out")
def alibi_eight_heads(num_heads, num_tokens):
    slopes = 0.5 ** torch.arange(1, num_heads + 1)
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "exponent-upside-down")
def alibi_divides_by_head(num_heads, num_tokens):
    slopes = 2 ** (-8 / torch.arange(1, num_heads + 1))
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "exponent-without-eight")
def alibi_no_eight(num_heads, num_tokens):
    slopes = 2 ** -(torch.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "exponent-sign")
def alibi_growing(num_heads, num_tokens):
    slopes = 2 ** (8 * torch.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "linear-slopes")
def alibi_linear(num_heads, num_tokens):
    slopes = torch.linspace(1 / num_heads, 1, num_heads)
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "slopes-reversed")
def alibi_gentle_first(num_heads, num_tokens):
    return -slope(num_heads).flip(0)[:, None, None] * distances(num_tokens)


@wrong("7.2", "distance-from-one")
def alibi_counts_itself(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None] * (distances(num_tokens) + 1)


@wrong("7.2", "distance-squared")
def alibi_squares(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None] * distances(num_tokens).pow(2)


@wrong("7.2", "distance-logarithmic")
def alibi_log(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None] * distances(num_tokens).abs().log1p()


@wrong("7.2", "no-distance")
def alibi_constant(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None].expand(-1, num_tokens, num_tokens)


@wrong("7.2", "key-place-alone")
def alibi_by_column(num_heads, num_tokens):
    bias = slope(num_heads)[:, None, None] * torch.arange(num_tokens)
    return bias.expand(-1, num_tokens, -1)


@wrong("7.2", "key-place-alone")
def alibi_from_the_end(num_heads, num_tokens):
    back = torch.arange(num_tokens - 1, -1, -1).repeat(num_tokens, 1)
    return -slope(num_heads)[:, None, None] * back


@wrong("7.2", "weights-for-bias")
def alibi_softmax(num_heads, num_tokens):
    bias = -slope(num_heads)[:, None, None] * distances(num_tokens).tril()
    return torch.softmax(bias, dim=-1)


@wrong("7.2", "query-place-alone")
def alibi_by_row(num_heads, num_tokens):
    bias = -slope(num_heads)[:, None, None] * torch.arange(num_tokens)[:, None]
    return bias.expand(-1, -1, num_tokens)


@wrong("7.2", "distance-alone")
def alibi_no_slopes(num_heads, num_tokens):
    return -distances(num_tokens).float().repeat(num_heads, 1, 1)


@wrong("7.2", "head-axis-missing")
def alibi_one_matrix(num_heads, num_tokens):
    return -(2 ** (-8 / num_heads)) * distances(num_tokens)


@wrong("7.2", "heads-last")
def alibi_last_axis(num_heads, num_tokens):
    return -distances(num_tokens)[..., None] * slope(num_heads)


@wrong("7.2", "slopes-alone")
def alibi_slopes(num_heads, num_tokens):
    return slope(num_heads)


@wrong("7.2", "distance-transposed")
def alibi_clamped_on_the_wrong_side(num_heads, num_tokens):
    return -slope(num_heads)[:, None, None] * distances(num_tokens).clamp(max=0)


@wrong("7.2", "exponent-floored")
def alibi_floored(num_heads, num_tokens):
    slopes = [2.0 ** (-8 * (h + 1) // num_heads) for h in range(num_heads)]
    return -torch.tensor(slopes)[:, None, None] * distances(num_tokens)


@wrong("7.2", "exponent-floored")
def alibi_floored_before_the_heads(num_heads, num_tokens):
    slopes = [2.0 ** -(8 // num_heads * (h + 1)) for h in range(num_heads)]
    return -torch.tensor(slopes)[:, None, None] * distances(num_tokens)


@wrong("7.2", "linear-slopes")
def alibi_power_forgotten(num_heads, num_tokens):
    slopes = 8 * torch.arange(1, num_heads + 1) / num_heads
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "linear-slopes")
def alibi_power_first(num_heads, num_tokens):
    slopes = torch.tensor([2**-8 * (h + 1) / num_heads for h in range(num_heads)])
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "slopes-of-e")
def alibi_exponential(num_heads, num_tokens):
    slopes = torch.exp(-8 * torch.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * distances(num_tokens)


@wrong("7.2", "first-slope-one")
def alibi_heads_from_zero_as_a_reward(num_heads, num_tokens):
    slopes = 2.0 ** (-8 * torch.arange(num_heads) / num_heads)
    return slopes.reshape(num_heads, 1, 1) * distances(num_tokens)


@wrong("7.2", "returns-nothing")
def alibi_no_return(num_heads, num_tokens):
    bias = F.relu(distances(num_tokens).float())
    bias = -slope(num_heads)[:, None, None] * bias
