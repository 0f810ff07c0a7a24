"""Answers to the exercises of notebook 07."""

import math

import torch

from answers import right


def speeds(x, base):
    """Return base^(-2p/K) for each pair."""
    return base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])


@right("apply_rope")
def rope_stacked(x, positions, base=10000.0):
    angles = positions[:, None] * speeds(x, base)
    cos, sin = torch.cos(angles), torch.sin(angles)
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)


@right("apply_rope")
def rope_complex(x, positions, base=10000.0):
    angles = torch.outer(positions.float(), speeds(x, base))
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    rotated = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(rotated).reshape(x.shape)


@right("apply_rope")
def rope_loop(x, positions, base=10000.0):
    width, out = x.shape[-1], torch.zeros_like(x)
    for t, position in enumerate(positions.tolist()):
        for i in range(width // 2):
            angle = position * base ** (-2 * i / width)
            a, b = x[..., t, 2 * i], x[..., t, 2 * i + 1]
            out[..., t, 2 * i] = a * math.cos(angle) - b * math.sin(angle)
            out[..., t, 2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out


def distances(num_tokens):
    """Return i - j."""
    return torch.arange(num_tokens)[:, None] - torch.arange(num_tokens)[None, :]


def slope(num_heads):
    return torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])


@right("alibi_bias")
def alibi_outer(num_heads, num_tokens):
    return -slope(num_heads).view(-1, 1, 1) * distances(num_tokens)


@right("alibi_bias")
def alibi_loops(num_heads, num_tokens):
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for h in range(num_heads):
        for i in range(num_tokens):
            for j in range(i + 1):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / num_heads)) * (i - j)
    return bias


@right("alibi_bias")
def alibi_with_mask(num_heads, num_tokens):
    bias = -slope(num_heads)[:, None, None] * distances(num_tokens)
    return bias.masked_fill(distances(num_tokens) < 0, float("-inf"))
