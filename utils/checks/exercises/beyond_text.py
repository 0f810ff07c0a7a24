"""Exercise of the notebook beyond text: an image as a sequence of patches."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Exercise, case, draw
from utils.checks.pipeline import variants


def axes(*order):
    """Return a step that gives this order of axes."""
    return lambda s: order


def cut_square(s):
    """Return what two loops over H find; beyond the width there is nothing to stack."""
    height, width = s.images.shape[2:]
    if height > width:
        raise RuntimeError  # of any text
    return s.images[..., :height]


IN_PIECES = dict(
    cells=lambda s: s.images.reshape(s.B, s.C, s.P, s.rows, s.P, s.columns)
)
patchify = Exercise(
    id="11.1",
    signature="patchify(images, patch_size)",
    returns="the patches (B, N, C*P*P), row by row, each with the channel first",
    oracle=lambda images, patch_size: (
        F.unfold(images, patch_size, stride=patch_size).mT
    ),
    steps={
        "P": lambda s: s.patch_size,
        "B, C, H, W": lambda s: s.images.shape,
        "rows, columns": lambda s: (s.H // s.P, s.W // s.P),
        "cells": lambda s: s.images.reshape(s.B, s.C, s.rows, s.P, s.columns, s.P),
        "order": axes(0, 2, 4, 1, 3, 5),
        "moved": lambda s: s.cells.permute(s.order),
        "result": lambda s: s.moved.reshape(s.B, s.rows * s.columns, s.C * s.P**2),
    },
    variants=variants(
        "plain-reshape: You cut the image along its rows, so a token is a strip and not a square: split H into (H/P, P) and W into (W/P, P), then move both P to the end.",
        dict(order=axes(0, 1, 2, 3, 4, 5)),
        dict(order=axes(0, 2, 1, 3, 4, 5)),
        "size-for-number: You split H into P pieces of H/P pixels: a patch is P pixels high and wide, so split H into (H/P, P) and W into (W/P, P).",
        IN_PIECES | dict(order=axes(0, 3, 5, 1, 2, 4)),
        IN_PIECES | dict(result=lambda s: s.moved.flatten(3).flatten(1, 2)),
        "column-by-column: You read the patches column by column: read {rows} rows of {columns} patches, as you read a page.",
        dict(order=axes(0, 4, 2, 1, 3, 5)),
        "square-image: You took the image for a square: it has H/P rows of patches and W/P columns, so use both H and W.",
        dict(images=cut_square),
        {"rows, columns": lambda s: (s.H // s.P, s.H // s.P)},
        "channels-last: You put the channel last in a patch: it comes first, the whole patch of channel 0, then that of channel 1.",
        dict(order=axes(0, 2, 4, 3, 5, 1)),
        dict(order=axes(0, 2, 4, 5, 3, 1)),
        "first-channel-only: You used only the first channel: a patch holds all of them.",
        dict(images=lambda s: s.images[:, :1]),
        "overlapping: Your patches overlap: each should begin patch_size after the one before.",
        dict(result=lambda s: F.unfold(s.images, s.P).mT),
        "pixels-averaged: You averaged each patch to one number a channel: keep all pixels.",
        dict(result=lambda s: s.moved.mean((-2, -1)).flatten(1, 2)),
    ),
    cases=[
        case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        case(draw(2, 3, 4, 6), 2, note="three channels"),
        case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        case(draw(2, 3, 4, 4), 2, note="square images"),
        case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
    ],
)

EXERCISES = [patchify]
