"""Exercise of the notebook beyond text: an image as a sequence of patches."""

import torch
from torch.nn import functional as F

from utils.checks.engine import Case, Exercise, draw
from utils.checks.pipeline import variants


def axes(*order):
    """Return a step that gives this order of axes."""
    return lambda s: order


def in_pieces(s):
    """Split both sides into (p, number), but return (B, C, rows, p, columns, p)."""
    split = s.images.reshape(s.B, s.C, s.p, s.rows, s.p, s.columns)
    return split.permute(0, 1, 3, 2, 5, 4)


patchify = Exercise(
    id="14.1",
    signature="patchify(images, patch_size)",
    returns="the patches (B, N, C*p*p), row by row, each with the channel first",
    steps={
        "p": lambda s: s.patch_size,
        "B, C, height, width": lambda s: s.images.shape,
        "rows, columns": lambda s: (s.height // s.p, s.width // s.p),
        "cells": lambda s: s.images.reshape(s.B, s.C, s.rows, s.p, s.columns, s.p),
        "patches": axes(2, 4),  # in the order of the result
        "inside": axes(1, 3, 5),
        "order": lambda s: (0, *s.patches, *s.inside),
        "moved": lambda s: s.cells.permute(s.order),
        "result": lambda s: s.moved.reshape(s.B, s.rows * s.columns, s.C * s.p**2),
    },
    variants=variants(
        "plain-reshape: You cut the image along its rows, so a token is a strip and not a square: split the height into (rows, p) and the width into (columns, p), then move both p to the end.",
        dict(order=axes(0, 1, 2, 3, 4, 5)),
        "size-for-number: You split the height into p pieces: a patch is p pixels high and wide, so split the height into (rows, p) and the width into (columns, p).",
        dict(cells=in_pieces),
        "column-by-column: You read the patches column by column: read {rows} rows of {columns} patches, as you read a page.",
        dict(patches=axes(4, 2)),
        "pixels-by-columns: You read the pixels of a patch column by column: inside a patch, too, the rows come first.",
        dict(inside=axes(1, 5, 3)),
        "channels-last: You put the channel last in a patch: it comes first, the whole patch of channel 0, then that of channel 1.",
        dict(inside=axes(3, 5, 1)),
        dict(inside=axes(5, 3, 1)),
        "sides-swapped: You took the width for the height: images are (B, C, height, width), and there are height/p rows and width/p columns of patches.",
        {"rows, columns": lambda s: (s.width // s.p, s.height // s.p)},
        "overlapping: Your patches overlap: each should begin patch_size after the one before.",
        dict(result=lambda s: F.unfold(s.images, s.p).mT),
    ),
    cases=[
        Case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        Case(draw(2, 3, 4, 6), 2, note="three channels"),
        Case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        Case(draw(2, 3, 4, 4), 2, note="square images"),
        Case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
    ],
)

EXERCISES = [patchify]
