"""Exercise of the notebook beyond text: an image as a sequence of patches."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case
from utils.checks.inputs import draw
from utils.checks.pipeline import Pipeline, variants
from utils.checks.steps.axes import misplaced, to


def right_patches(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT


def neighbours(s):
    """Return patches that begin at neighbouring pixels, as many as there should be."""
    reached = s.pixels[..., : s.rows + s.P - 1, : s.columns + s.P - 1]
    return F.unfold(reached, s.P).mT


def in_columns(s):
    """Return the patches column by column, each with its pixels row by row."""
    patches = s.joined.unflatten(1, (s.rows, s.columns))
    return patches.transpose(1, 2).flatten(1, 2)


AXES = ("B", "C", "H/P", "P of the rows", "W/P", "P of the columns")  # after the split
ORDER = (0, 2, 4, 1, 3, 5)
LAST = {"sizes": lambda s: s.pixels.permute(0, 3, 1, 2).shape}  # as if C were the last
CUT_LAST = {
    "cells": lambda s: s.pixels.reshape(s.B, *s.tall, *s.wide, s.C),
    "order": to(0, 1, 3, 5, 2, 4),
}
APART = {"order": to(0, 1, 2, 4, 3, 5)}  # the channels
TALL, WIDE = {"tall": lambda s: (s.P, s.rows)}, {"wide": lambda s: (s.P, s.columns)}
FORMS = variants(
    "plain-reshape: You cut the image along its rows, so a token is a strip and not a square: split H into (H/P, P) and W into (W/P, P), then move both P to the end.",
    dict(order=to(0, 1, 2, 3, 4, 5)),
    dict(moved=lambda s: s.pixels.movedim(1, 3)),
    dict(order=to(0, 2, 3, 4, 1, 5)),
    "column-by-column: You read the patches column by column: read {rows} rows of {columns} patches, as a page.",
    dict(order=to(0, 4, 2, 1, 3, 5)),
    dict(result=in_columns),
    "transposed-inside: You transposed the pixels of each patch: they run row by row.",
    dict(order=to(0, 2, 4, 1, 5, 3)),
    "height-for-width: You swapped height and width: images are (B, C, H, W).",
    dict(order=to(0, 4, 2, 1, 5, 3)),
    dict(sizes=lambda s: s.pixels.mT.shape),
    "channels-last: You put the channel last in a patch: it comes first, the whole patch of channel 0, then that of channel 1.",
    dict(order=to(0, 2, 4, 3, 5, 1)),
    dict(order=to(0, 2, 4, 5, 3, 1)),
    dict(order=to(0, 2, 4, 3, 1, 5)),
    "channels-before-patches: You put all squares of channel 0 first: a token holds its square of every channel, (B, H/P, W/P, C, P, P).",
    APART,
)
FORMS += misplaced(
    "axes-exchanged: You joined the axes in the order ({}): join (B, H/P, W/P, C, P of the rows, P of the columns).",
    *(AXES, ORDER, FORMS),
)
FORMS += variants(
    "interleaved: You took every so-many-th pixel from all over the image: split a side into (side/P, P), in this order, so that neighbours stay in one patch.",
    TALL | WIDE | dict(order=to(0, 3, 5, 1, 2, 4)),
    TALL | WIDE,
    TALL,
    WIDE,
    "channels-read-last: You read the sizes as B, H, W, C: images are (B, C, H, W).",
    CUT_LAST,
    LAST,
    LAST | CUT_LAST,
    "height-for-both: You took one side for both: there are H/P rows and W/P columns of patches, and images need not be square.",
    dict(sizes=lambda s: (*s.pixels.shape[:3], s.images.shape[2])),
    dict(sizes=lambda s: (*s.pixels.shape[:2], *2 * s.images.shape[3:])),
    dict(N=lambda s: s.rows**2),
    "size-for-number: You took patch_size for the number of patches: it is the number of pixels along a side of one patch.",
    dict(P=lambda s: s.W // s.size),
    dict(P=lambda s: s.H // s.size),
    "first-channel-only: You used only the first channel: a patch holds all of them.",
    dict(pixels=lambda s: s.images[:, :1]),
    "channels-averaged: You averaged or added up the channels: keep them one after the other.",
    dict(pixels=lambda s: s.images.mean(1, keepdim=True)),
    dict(pixels=lambda s: s.images.sum(1, keepdim=True)),
    "last-patches-lost: You lost the last row and column of patches: range(0, H, P) ends in time, without - P.",
    dict(pixels=lambda s: s.images[..., : -s.size, : -s.size]),
    "first-image-only: You cut only the first image of the batch.",
    dict(pixels=lambda s: s.images[:1]),
    "overlapping: Your patches overlap: each begins patch_size after the one before.",
    dict(joined=lambda s: F.unfold(s.pixels, s.P)),
    dict(joined=lambda s: F.unfold(s.pixels, s.P).mT),
    dict(joined=neighbours),
    "pixels-averaged: You averaged each patch to one number a channel: keep all pixels.",
    dict(joined=lambda s: s.moved.mean((-2, -1)).flatten(1, 2)),
    "patches-not-flat: You left axes apart: join rows and columns of patches to N, and channels and pixels to C*P*P.",
    dict(joined=lambda s: s.moved),
    dict(joined=lambda s: s.moved.flatten(1, 2)),
    dict(joined=lambda s: s.moved.flatten(3)),
    "channels-as-tokens: You gave every channel patches of its own: one patch holds all channels.",
    APART | dict(joined=lambda s: s.moved.flatten(4).flatten(1, 3)),
    "pixels-as-tokens: You made every pixel a token: a token is a patch.",
    dict(joined=lambda s: s.pixels.flatten(2).mT),
)

patchify = Exercise(
    id="11.1",
    signature="patchify(images, patch_size)",
    returns="the patches (B, N, C*P*P), row by row, each with the channel first",
    oracle=right_patches,
    pipeline=Pipeline(
        start=lambda images, patch_size: {"images": images, "size": patch_size},
        steps={
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
        },
        variants=FORMS,
        outputs={"sizes": ("B", "C", "H", "W"), "grid": ("rows", "columns")},
    ),
    cases=[
        case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        case(draw(2, 3, 4, 6), 2, note="three channels"),
        case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        case(draw(2, 3, 4, 4), 2, note="square images"),
        case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
        case(draw(2, 5, 3, 7), 1, note="patches of one pixel"),
    ],
)

EXERCISES = [patchify]
