"""07 Positions: 7.1 apply_rope, 7.2 alibi_bias."""

import torch

from tests.answers import right, wrong

# ----------------------------------------------------------- 7.1 apply_rope


@right("apply_rope")
def apply_rope(x, positions, base=10000.0):
    # complex numbers: a turn is a product
    D = x.shape[-1]
    speed = base ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    angle = positions.to(x.dtype)[:, None] * speed
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], D // 2, 2).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(
        -2
    )


@right("apply_rope")
def apply_rope(x, positions, base=10000.0):
    # x * cos + swapped(x) * sin with every angle repeated for its pair
    D = x.shape[-1]
    even = torch.arange(D) // 2 * 2
    angle = positions.unsqueeze(-1) / torch.pow(
        torch.tensor(base, dtype=x.dtype), even / D
    )
    swapped = x.unflatten(-1, (-1, 2)).flip(-1) * torch.tensor([-1, 1], dtype=x.dtype)
    return (x * angle.cos() + swapped.flatten(-2) * angle.sin()).to(x.dtype)


@right("apply_rope")
def apply_rope(x, positions, base=10000.0):
    # one rotation matrix for each position and pair
    D, half = x.shape[-1], x.shape[-1] // 2
    angle = torch.tensor(
        [[float(t) * base ** (-2 * i / D) for i in range(half)] for t in positions],
        dtype=x.dtype,
    ).reshape(len(positions), half)
    c, s = angle.cos(), angle.sin()
    matrix = torch.stack(
        [torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2
    )  # (T, D/2, 2, 2)
    return torch.einsum(
        "tirc,...tic->...tir", matrix, x.unflatten(-1, (half, 2))
    ).flatten(-2)


@wrong("apply_rope", "turns clockwise: the signs of the sines are exchanged")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, D, 2) / D)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos + b * sin, b * cos - a * sin), dim=-1).flatten(-2)


@wrong("apply_rope", "pairs feature i with i + D/2")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    speeds = base ** (-torch.arange(0, D, 2, dtype=x.dtype) / D)
    angles = positions.to(x.dtype)[:, None] * speeds
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


@wrong("apply_rope", "the positions handed over are ignored: counts from 0")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    t = torch.arange(x.shape[-2])
    angles = torch.outer(
        t.to(x.dtype), base ** (-torch.arange(0, D, 2).to(x.dtype) / D)
    )
    c, s = torch.cos(angles), torch.sin(angles)
    even, odd = x[..., 0::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., 0::2] = even * c - odd * s
    out[..., 1::2] = even * s + odd * c
    return out


@wrong(
    "apply_rope",
    "the rotated halves are concatenated, not put side by side as pairs again",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    inv = 1.0 / base ** (torch.arange(0, D, 2).to(x.dtype) / D)
    angles = positions[:, None].to(x.dtype) * inv
    first = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    second = x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return torch.cat((first, second), dim=-1)


@wrong(
    "apply_rope",
    "writes into x, so the second line reads a feature that has already been turned",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None].to(x.dtype) / base ** (torch.arange(0, D, 2) / D).to(
        x.dtype
    )
    cos, sin = angles.cos(), angles.sin()
    out = x
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


@wrong("apply_rope", "base is fixed at 10000", "the exponent is i / D, not 2i / D")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    speed = 10000.0 ** -(torch.arange(D // 2) / D)
    angles = (positions[:, None] * speed).to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack(
        (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1
    )
    return pairs.flatten(-2)


@wrong(
    "apply_rope",
    "sign: plus in the first line, so it is no rotation",
    "the speeds grow instead of falling: the minus in the exponent is missing",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = (positions[:, None] * base ** (torch.arange(0, D, 2) / D)).to(x.dtype)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos + b * sin, a * sin + b * cos), dim=-1).flatten(-2)


@wrong(
    "apply_rope",
    "adds the sinusoids to x instead of turning it",
    "positions count from 1",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = (positions + 1)[:, None].to(x.dtype) * base ** (
        -torch.arange(0, D, 2).to(x.dtype) / D
    )
    return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


@wrong(
    "apply_rope",
    "all pairs turn at one speed: the exponent is rounded by //",
    "pairs are halves of the features",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    speed = torch.tensor([base ** -(2 * i // D) for i in range(D // 2)], dtype=x.dtype)
    angles = positions[:, None].to(x.dtype) * speed
    a, b = x[..., : D // 2], x[..., D // 2 :]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-2).flatten(-2)


@wrong("apply_rope", "the second line uses the turned a", "sine and cosine exchanged")
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = positions[:, None].to(x.dtype) * base ** (
        -torch.arange(0, D, 2).to(x.dtype) / D
    )
    cos, sin = angles.sin(), angles.cos()
    a, b = x[..., 0::2], x[..., 1::2]
    a = a * cos - b * sin
    b = a * sin + b * cos
    return torch.stack((a, b), dim=-1).flatten(-2)


@wrong(
    "apply_rope",
    "the width is taken from the tokens' axis",
    "the second feature of a pair stays as it was",
)
def apply_rope(x, positions, base=10000.0):
    D = x.shape[-2]
    angles = positions[:, None].to(x.dtype) * base ** (
        -torch.arange(0, x.shape[-1], 2).to(x.dtype) / D
    )
    even = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    return torch.stack((even, x[..., 1::2]), dim=-1).flatten(-2)


# ----------------------------------------------------------- 7.2 alibi_bias


@right("alibi_bias")
def alibi_bias(num_heads, num_tokens):
    slopes = torch.full((num_heads,), 2 ** (-8 / num_heads)).cumprod(0)
    i = torch.arange(num_tokens).view(1, -1, 1)
    j = torch.arange(num_tokens).view(1, 1, -1)
    bias = slopes.view(-1, 1, 1) * (j - i)
    return bias.masked_fill(j > i, float("-inf"))


@right("alibi_bias")
def alibi_bias(num_heads, num_tokens):
    # the exponents of all entries in one tensor, and some number above the diagonal
    h = torch.arange(1, num_heads + 1).reshape(-1, 1, 1) * 8 / num_heads
    place = torch.arange(num_tokens, dtype=torch.float32)
    distance = place.unsqueeze(1) - place
    bias = -torch.exp2(distance.clamp(min=1).log2() - h)
    return torch.where(distance > 0, bias, torch.where(distance < 0, 7.0, 0.0))


@right("alibi_bias")
def alibi_bias(num_heads, num_tokens):
    # distances as a running sum of ones below the diagonal
    distance = torch.ones(num_tokens, num_tokens).tril(-1).cumsum(0).tril(-1)
    slopes = torch.exp2(torch.linspace(-8 / num_heads, -8, num_heads))
    return -torch.einsum("h,ij->hij", slopes, distance)


@wrong("alibi_bias", "the sign is missing: far tokens are favoured")
def alibi_bias(num_heads, num_tokens):
    places = torch.arange(num_tokens)
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
    return slopes[:, None, None] * (places[:, None] - places)


@wrong("alibi_bias", "the exponent counts heads from 0")
def alibi_bias(num_heads, num_tokens):
    places = torch.arange(num_tokens)
    slopes = 2.0 ** (-8 * torch.arange(num_heads) / num_heads)
    return -slopes.reshape(-1, 1, 1) * (places.unsqueeze(1) - places.unsqueeze(0))


@wrong("alibi_bias", "integer division in the exponent")
def alibi_bias(num_heads, num_tokens):
    t = torch.arange(num_tokens)
    distance = t[:, None] - t[None, :]
    h = torch.arange(1, num_heads + 1)
    slopes = 2.0 ** (-8 * h // num_heads)
    return -slopes.view(-1, 1, 1) * distance


@wrong("alibi_bias", "rows and columns exchanged: the penalty is positive for the past")
def alibi_bias(num_heads, num_tokens):
    slopes = torch.pow(2, -8 * torch.arange(1, num_heads + 1) / num_heads)
    places = torch.arange(num_tokens)
    return -slopes[:, None, None] * (places - places[:, None])


@wrong("alibi_bias", "the heads stand last: (T, T, H)")
def alibi_bias(num_heads, num_tokens):
    slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1) / num_heads)
    distance = torch.arange(num_tokens)[:, None] - torch.arange(num_tokens)
    return -(distance[:, :, None] * slopes)


@wrong(
    "alibi_bias",
    "the slope is -8(h+1)/H itself, without the power of two",
    "distances are squared",
)
def alibi_bias(num_heads, num_tokens):
    slopes = 8 * torch.arange(1, num_heads + 1) / num_heads
    p = torch.arange(num_tokens)
    return -slopes[:, None, None] * (p[:, None] - p) ** 2 * 1.0


@wrong(
    "alibi_bias",
    "heads in reverse: the first gets the gentlest slope",
    "one distance too many: the token itself is punished, too",
)
def alibi_bias(num_heads, num_tokens):
    slopes = torch.pow(2.0, -8 * torch.arange(1, num_heads + 1) / num_heads)
    p = torch.arange(num_tokens)
    return -slopes.flip(0)[:, None, None] * (p[:, None] - p + 1)


@wrong("alibi_bias", "base e instead of 2", "heads count from 0")
def alibi_bias(num_heads, num_tokens):
    slopes = torch.exp(-8 * torch.arange(0, num_heads) / num_heads)
    p = torch.arange(num_tokens, dtype=torch.float32)
    return slopes[:, None, None] * -(p[:, None] - p[None, :]).clamp(min=0)


@wrong(
    "alibi_bias",
    "the distances count from the last token: every query gets the same row",
    "always eight heads in the formula: 2**-(h+1)",
)
def alibi_bias(num_heads, num_tokens):
    p = torch.arange(num_tokens)
    distance = num_tokens - 1 - p
    h = torch.arange(1, num_heads + 1)[:, None, None]
    return -(2.0**-h) * distance.expand(num_heads, num_tokens, num_tokens)


@wrong("alibi_bias", "positive bias", "the slope shrinks with the tokens: divided by T")
def alibi_bias(num_heads, num_tokens):
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_tokens)
    distance = torch.arange(num_tokens)[:, None] - torch.arange(num_tokens)[None]
    return slopes[:, None, None] * distance.tril()
