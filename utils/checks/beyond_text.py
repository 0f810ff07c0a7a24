"""Exercise of notebook 11: an image as a sequence of patches."""

import torch
from torch.nn import functional as F

from utils.checks.axes import named, to, wrong_orders
from utils.checks.draw import came_from, draws
from utils.checks.engine import Exercise, case
from utils.checks.steps import Forms, Pipeline, texts_of

TEXTS = texts_of(__file__)
draw = draws(11)


def right_patches(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT


AXES = ("B", "C", "H/P", "P of the rows", "W/P", "P of the columns")  # after the split
ORDER = (0, 2, 4, 1, 3, 5)
STEPS = {
    "pixels": lambda s: s.images,
    "sizes": lambda s: s.pixels.shape,
    "P": lambda s: s.size,
    "grid": lambda s: (s.H // s.P, s.W // s.P),
    "tall": lambda s: (s.rows, s.P),
    "wide": lambda s: (s.columns, s.P),
    "cells": lambda s: s.pixels.reshape(s.B, s.C, *s.tall, *s.wide),
    "order": to(*ORDER),
    "moved": lambda s: s.cells.permute(s.order),
    "N": lambda s: s.rows * s.columns,
    "joined": lambda s: s.moved.reshape(s.B, s.N, s.C * s.P**2),
    "result": lambda s: s.joined,
}
LAST = {"sizes": lambda s: s.pixels.permute(0, 3, 1, 2).shape}  # as if C were the last
CUT_LAST = {
    "cells": lambda s: s.pixels.reshape(s.B, *s.tall, *s.wide, s.C),
    "order": to(0, 1, 3, 5, 2, 4),
}
APART = {"order": to(0, 1, 2, 4, 3, 5)}  # the channels
TALL, WIDE = {"tall": lambda s: (s.P, s.rows)}, {"wide": lambda s: (s.P, s.columns)}


def neighbours(s):
    """Return patches that begin at neighbouring pixels, as many as there should be."""
    reached = s.pixels[..., : s.rows + s.P - 1, : s.columns + s.P - 1]
    return F.unfold(reached, s.P).mT


FORMS = Forms(TEXTS["FORMS"])
wrong = FORMS.wrong
wrong("plain-reshape", order=to(0, 1, 2, 3, 4, 5))
wrong("plain-reshape 2", moved=lambda s: s.pixels.movedim(1, 3))
wrong("permute-missing", order=to(0, 2, 3, 4, 1, 5))
wrong("column-by-column", order=to(0, 4, 2, 1, 3, 5))
wrong("transposed-inside", order=to(0, 2, 4, 1, 5, 3))
wrong("height-for-width", order=to(0, 4, 2, 1, 5, 3))
wrong("channels-last", order=to(0, 2, 4, 3, 5, 1))
wrong("channels-last 2", order=to(0, 2, 4, 5, 3, 1))
wrong("channels-last 3", order=to(0, 2, 4, 3, 1, 5))
wrong("channels-before-patches", **APART)
for order in wrong_orders(ORDER, FORMS):
    wrong("axes-exchanged", named(AXES, order), order=to(*order))
wrong("interleaved", {"side": "H"}, **TALL, **WIDE, order=to(0, 3, 5, 1, 2, 4))
wrong("interleaved", {"side": "H"}, **TALL, **WIDE)
wrong("interleaved", {"side": "H"}, **TALL)
wrong("interleaved", {"side": "W"}, **WIDE)
wrong("axes-renamed", **CUT_LAST)
wrong("height-and-width-misread", sizes=lambda s: s.pixels.mT.shape)
wrong("height-for-both", sizes=lambda s: (*s.pixels.shape[:3], s.images.shape[2]))
wrong("width-for-both", sizes=lambda s: (*s.pixels.shape[:2], *2 * s.images.shape[3:]))
wrong("channels-read-last", **LAST)
wrong("channels-read-last", **LAST, **CUT_LAST)
wrong("size-for-number", P=lambda s: s.W // s.size)
wrong("size-for-number", P=lambda s: s.H // s.size)
wrong("first-channel-only", pixels=lambda s: s.images[:, :1])
wrong("channels-averaged", pixels=lambda s: s.images.mean(1, keepdim=True))
wrong("channels-averaged 2", pixels=lambda s: s.images.sum(1, keepdim=True))
wrong("last-patches-lost", pixels=lambda s: s.images[..., : -s.size, : -s.size])
wrong("first-image-only", pixels=lambda s: s.images[:1])
wrong("batch-second", result=lambda s: s.joined.transpose(0, 1))
wrong("sizes-swapped", joined=lambda s: s.moved.reshape(s.B, s.C * s.P**2, s.N))
wrong("overlapping", joined=lambda s: F.unfold(s.pixels, s.P).mT)
wrong("overlapping 2", joined=neighbours)
wrong("transposed-result", result=lambda s: s.joined.mT)
wrong("pixels-averaged", joined=lambda s: s.moved.mean((-2, -1)).flatten(1, 2))
wrong("patches-not-flat", joined=lambda s: s.moved)
wrong("patches-not-flat 2", joined=lambda s: s.moved.flatten(1, 2))
wrong("patches-not-flat 3", joined=lambda s: s.moved.flatten(3))
wrong("channels-as-tokens", **APART, joined=lambda s: s.moved.flatten(4).flatten(1, 3))
wrong("pixels-as-tokens", joined=lambda s: s.pixels.flatten(2).mT)
wrong("height-for-both 2", N=lambda s: s.rows**2)
wrong("patches-in-one-row", result=lambda s: s.joined.flatten(1))
wrong("batch-lost", result=lambda s: s.joined.flatten(0, 1))
wrong("patches-reversed", result=lambda s: s.joined.flip(1))

patchify = Exercise(
    id="11.1",
    **TEXTS["11.1"],
    oracle=right_patches,
    properties=[came_from("image", "channel", "row", "column")],
    pipeline=Pipeline(
        start=lambda images, patch_size: {"images": images, "size": patch_size},
        steps=STEPS,
        forms=FORMS,
        gives={"sizes": ("B", "C", "H", "W"), "grid": ("rows", "columns")},
        words={"rows": lambda s: s.rows, "columns": lambda s: s.columns},
    ),
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
