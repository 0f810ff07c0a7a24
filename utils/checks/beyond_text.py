"""Exercise of notebook 11: an image as a sequence of patches."""

import torch
from torch.nn import functional as F

from utils.checks.axes import named, taken, to, wrong_orders
from utils.checks.draw import came_from, draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(11)


def right_patches(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT


# --- the right steps -----------------------------------------------------------------

AXES = ("B", "C", "H/P", "P of the rows", "W/P", "P of the columns")  # after the split
ORDER = (0, 2, 4, 1, 3, 5)


def split(s):
    return s.pixels.reshape(s.B, s.C, s.H // s.P, s.P, s.W // s.P, s.P)


def join(s):
    return s.moved.reshape(s.B, (s.H // s.P) * (s.W // s.P), s.C * s.P**2)


STEPS = {
    "pixels": lambda s: s.images,
    "sizes": lambda s: s.pixels.shape,
    "P": lambda s: s.patch_size,
    "cells": split,
    "order": to(*ORDER),
    "moved": lambda s: s.cells.permute(s.order),
    "joined": join,
    "result": lambda s: s.joined,
}


# --- the wrong ones ------------------------------------------------------------------


def grid_second(s):
    """Return cells that begin at neighbouring pixels."""
    return s.pixels.reshape(s.B, s.C, s.P, s.H // s.P, s.P, s.W // s.P)


def renamed(s):
    """Return the numbers as they are, called (B, H, W, C)."""
    batch, channels, height, width = s.images.shape
    return s.images.reshape(batch, height, width, channels).permute(0, 3, 1, 2)


def sizes_read_last(s):
    return s.pixels.permute(0, 3, 1, 2).shape


def channels_last(s):
    return s.pixels.reshape(s.B, s.H // s.P, s.P, s.W // s.P, s.P, s.C)


READ = Forms(TEXTS["READ"])
READ.wrong("plain-reshape", order=to(0, 1, 2, 3, 4, 5))
READ.wrong("plain-reshape 2", moved=lambda s: s.pixels.permute(0, 2, 3, 1))
READ.wrong("permute-missing", order=to(0, 2, 3, 4, 1, 5))
READ.wrong("column-by-column", order=to(0, 4, 2, 1, 3, 5))
READ.wrong("transposed-inside", order=to(0, 2, 4, 1, 5, 3))
READ.wrong("height-for-width", order=to(0, 4, 2, 1, 5, 3))
READ.wrong("channels-last", order=to(0, 2, 4, 3, 5, 1))
READ.wrong("channels-last 2", order=to(0, 2, 4, 5, 3, 1))
READ.wrong("channels-last 3", order=to(0, 2, 4, 3, 1, 5))
READ.wrong("channels-before-patches", order=to(0, 1, 2, 4, 3, 5))
for order in wrong_orders(ORDER):
    if order not in taken(READ):
        READ.wrong("axes-exchanged", named(AXES, order), order=to(*order))
READ.wrong("interleaved", cells=grid_second, order=to(0, 3, 5, 1, 2, 4))
READ.wrong("interleaved", cells=grid_second)
READ.wrong("axes-renamed", pixels=renamed)
READ.wrong("height-and-width-misread", sizes=lambda s: s.pixels.mT.shape)
READ.wrong("height-for-both", sizes=lambda s: (*s.pixels.shape[:3], s.images.shape[2]))
READ.wrong(
    "width-for-both", sizes=lambda s: (*s.pixels.shape[:2], *2 * s.images.shape[3:])
)
READ.wrong("channels-read-last", sizes=sizes_read_last)
READ.wrong(
    "channels-read-last",
    sizes=sizes_read_last,
    cells=channels_last,
    order=to(0, 1, 3, 5, 2, 4),
)
READ.wrong("size-for-number", P=lambda s: s.W // s.patch_size)
READ.wrong("size-for-number", P=lambda s: s.H // s.patch_size)
READ.wrong("first-channel-only", pixels=lambda s: s.images[:, :1])
READ.wrong("channels-averaged", pixels=lambda s: s.images.mean(1, keepdim=True))
READ.wrong("channels-averaged 2", pixels=lambda s: s.images.sum(1, keepdim=True))
READ.wrong(
    "last-patches-lost",
    pixels=lambda s: s.images[..., : -s.patch_size, : -s.patch_size],
)
READ.wrong("first-image-only", pixels=lambda s: s.images[:1])


def neighbours(s):
    """Return patches that begin at neighbouring pixels, as many as there should be."""
    windows = s.pixels.unfold(2, s.P, 1).unfold(3, s.P, 1)
    windows = windows[:, :, : s.H // s.P, : s.W // s.P]
    return windows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def rows_squared(s):
    return s.moved.reshape(s.B, (s.H // s.P) ** 2, s.C * s.P**2)


GIVE = Forms(TEXTS["GIVE"])
GIVE.wrong("batch-second", result=lambda s: s.joined.transpose(0, 1))
GIVE.wrong("sizes-swapped", joined=lambda s: s.moved.reshape(join(s).mT.shape))
GIVE.wrong("overlapping", joined=lambda s: F.unfold(s.pixels, s.P).mT)
GIVE.wrong("overlapping 2", joined=neighbours)
GIVE.wrong("transposed-result", result=lambda s: s.joined.mT)
GIVE.wrong("pixels-averaged", joined=lambda s: s.moved.mean((-2, -1)).flatten(1, 2))
GIVE.wrong("patches-not-flat", joined=lambda s: s.moved)
GIVE.wrong("patches-not-flat 2", joined=lambda s: s.moved.flatten(1, 2))
GIVE.wrong("patches-not-flat 3", joined=lambda s: s.moved.flatten(3))
GIVE.wrong(
    "channels-as-tokens",
    order=to(0, 1, 2, 4, 3, 5),
    joined=lambda s: s.moved.flatten(4).flatten(1, 3),
)
GIVE.wrong("pixels-as-tokens", joined=lambda s: s.pixels.flatten(2).mT)
GIVE.wrong("height-for-both 2", joined=rows_squared)
GIVE.wrong("patches-in-one-row", result=lambda s: s.joined.flatten(1))
GIVE.wrong("batch-lost", result=lambda s: s.joined.flatten(0, 1))
GIVE.wrong("patches-reversed", result=lambda s: s.joined.flip(1))

pipeline = Pipeline(
    start=lambda images, patch_size: {"images": images, "patch_size": patch_size},
    steps=STEPS,
    gives={"sizes": ("B", "C", "H", "W")},
    forms=[*READ, *GIVE],
    words={
        "rows": lambda s: s.H // s.P,
        "columns": lambda s: s.W // s.P,
    },
)
patchify = Exercise(
    id="11.1",
    signature="patchify(images, patch_size)",
    returns="the patches (B, N, C*P*P), row by row, each with the channel first",
    oracle=right_patches,
    properties=[came_from("image", "channel", "row", "column")],
    pipeline=pipeline,
    cases=[
        case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        case(draw(2, 3, 4, 6), 2, note="three channels"),
        case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        case(draw(2, 3, 4, 4), 2, note="square images"),
        case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
        case(draw(2, 5, 3, 7), 1, note="one pixel a patch"),
    ],
)

EXERCISES = [patchify]
