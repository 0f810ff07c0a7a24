"""Exercise of notebook 11: an image as a sequence of patches."""

import torch

from utils.checks.draw import draws
from utils.checks.engine import Exercise, Mistakes, case

draw = draws(11)


def blocks(images, patch_size):
    """Return the patches with every axis kept: (B, rows, columns, C, P, P)."""
    squares = images.unfold(2, patch_size, patch_size)
    squares = squares.unfold(3, patch_size, patch_size)  # (B, C, rows, columns, P, P)
    return squares.permute(0, 2, 3, 1, 4, 5)


def right_patches(images, patch_size):
    return blocks(images, patch_size).flatten(3).flatten(1, 2)


def arranged(*axes):
    """Return what comes out when the axes of `blocks` are ordered otherwise.

    The axes are 0 sample, 1 row and 2 column of the patch, 3 channel, 4 row and 5
    column inside it.
    """

    def compute(images, patch_size):
        patches = blocks(images, patch_size)
        batch, rows, columns = patches.shape[:3]
        return patches.permute(axes).reshape(batch, rows * columns, -1)

    return compute


def plain_reshape(images, patch_size):
    width = images.shape[1] * patch_size**2
    return images.reshape(len(images), -1, width)


def reshape_channels_last(images, patch_size):
    return images.permute(0, 2, 3, 1).reshape(plain_reshape(images, patch_size).shape)


def interleaved(images, patch_size):
    """Return patches whose pixels lie a whole patch grid apart."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(batch, channels, patch_size, rows, patch_size, columns)
    return x.permute(0, 3, 5, 1, 2, 4).flatten(3).flatten(1, 2)


def axes_renamed(images, patch_size):
    batch, channels, height, width = images.shape
    renamed = images.reshape(batch, height, width, channels)
    return right_patches(renamed.permute(0, 3, 1, 2), patch_size)


def overlapping(images, patch_size):
    squares = images.unfold(2, patch_size, 1).unfold(3, patch_size, 1)
    return squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def rows_swapped_for_columns(images, patch_size):
    return right_patches(images.mT, patch_size)


def one_channel(pick):
    return lambda images, patch_size: right_patches(pick(images), patch_size)


def averaged_inside(images, patch_size):
    return blocks(images, patch_size).mean((-2, -1)).flatten(1, 2)


def says_sizes(e):
    rows, columns = (size // e.args[1] for size in e.args[0].shape[-2:])
    return f"{rows} rows of {columns} patches"


LATE_CHANNELS = (
    "Inside a patch the channel runs last: it comes first, the whole patch of channel "
    "0, then that of channel 1."
)
PERMUTE = (
    "Split H into (H/P, P) and W into (W/P, P), then bring the two P axes to the end "
    "before the axes are joined."
)

PATCHIFY_MISTAKES = Mistakes()
PATCHIFY_MISTAKES.add(
    "plain-reshape",
    plain_reshape,
    "A plain reshape reads the image along its rows, so a token is a stretch "
    f"of numbers and not a square. {PERMUTE}",
)
PATCHIFY_MISTAKES.add(
    "plain-reshape",
    reshape_channels_last,
    "The channels moved, but the pixels are still read along the rows of the "
    f"image. {PERMUTE}",
)
PATCHIFY_MISTAKES.add(
    "permute-missing",
    arranged(0, 1, 4, 2, 3, 5),
    f"The axes are split and joined again in their old order. {PERMUTE}",
)
PATCHIFY_MISTAKES.add(
    "column-by-column",
    arranged(0, 2, 1, 3, 4, 5),
    lambda e: (
        f"The patches are right, their order is not: read {says_sizes(e)} "
        "along the rows, as a page."
    ),
)
PATCHIFY_MISTAKES.add(
    "transposed-inside",
    arranged(0, 1, 2, 3, 5, 4),
    "Each patch is turned over: inside it, too, the pixels run row by row.",
)
PATCHIFY_MISTAKES.add(
    "height-for-width",
    rows_swapped_for_columns,
    "Height and width have changed places, for the order of the patches and inside "
    "them: images are (B, C, H, W), the rows come first.",
)
PATCHIFY_MISTAKES.add(
    "channels-last",
    arranged(0, 1, 2, 4, 5, 3),
    LATE_CHANNELS,
)
PATCHIFY_MISTAKES.add(
    "channels-last",
    arranged(0, 1, 2, 5, 4, 3),
    f"{LATE_CHANNELS} And the pixels inside it are read column by column.",
)
PATCHIFY_MISTAKES.add(
    "channels-last",
    arranged(0, 1, 2, 4, 3, 5),
    "Inside a patch the channels take turns row by row: the channel comes first, the "
    "whole patch of channel 0, then that of channel 1.",
)
PATCHIFY_MISTAKES.add(
    "interleaved",
    interleaved,
    "Each token takes every so-many-th pixel from all over the image: split H into "
    "(H/P, P), in this order, so that neighbours stay in one patch.",
)
PATCHIFY_MISTAKES.add(
    "batch-second",
    lambda images, patch_size: right_patches(images, patch_size).transpose(0, 1),
    "The numbers are right, but the tokens come before the samples, (N, B, C*P*P): "
    "the batch is the first axis.",
)
PATCHIFY_MISTAKES.add(
    "axes-renamed",
    axes_renamed,
    "A reshape to (B, H, W, C) does not move the channels to the end, it only calls "
    "other numbers so: images are (B, C, H, W), split H and W there.",
)
PATCHIFY_MISTAKES.add(
    "sizes-swapped",
    lambda images, patch_size: right_patches(images, patch_size).reshape(
        len(images), images.shape[1] * patch_size**2, -1
    ),
    "The last reshape has N and C*P*P in each other's place: (B, N, C*P*P).",
)
PATCHIFY_MISTAKES.add(
    "overlapping",
    overlapping,
    "The patches overlap, one for each pixel: the next one starts patch_size further "
    "on.",
)
PATCHIFY_MISTAKES.add(
    "transposed-result",
    lambda images, patch_size: right_patches(images, patch_size).mT,
    "The numbers are right, the axes turned round: (B, C*P*P, N) for (B, N, C*P*P). "
    "What F.unfold returns needs a transpose.",
)
PATCHIFY_MISTAKES.add(
    "first-channel-only",
    one_channel(lambda images: images[:, :1]),
    "Only the first channel is there: a patch holds those of all channels.",
)
PATCHIFY_MISTAKES.add(
    "channels-averaged",
    one_channel(lambda images: images.mean(1, keepdim=True)),
    "The channels are averaged: a patch keeps them apart, one after the other.",
)
PATCHIFY_MISTAKES.add(
    "channels-averaged",
    one_channel(lambda images: images.sum(1, keepdim=True)),
    "The channels are added up: a patch keeps them apart, one after the other.",
)
PATCHIFY_MISTAKES.add(
    "pixels-averaged",
    averaged_inside,
    "A patch is averaged to one number a channel: all its pixels stay.",
)
PATCHIFY_MISTAKES.add(
    "patches-not-flat",
    lambda images, patch_size: blocks(images, patch_size),
    "The pixels are in the right order, the axes still apart: join rows and columns "
    "of patches to N, channels and pixels to C*P*P.",
)
PATCHIFY_MISTAKES.add(
    "patches-not-flat",
    lambda images, patch_size: blocks(images, patch_size).flatten(1, 2),
    "The patches are right, but still squares: join channels and pixels to C*P*P.",
)
PATCHIFY_MISTAKES.add(
    "patches-not-flat",
    lambda images, patch_size: blocks(images, patch_size).flatten(3),
    "The tokens are right, but on a grid: join rows and columns of patches to N.",
)
PATCHIFY_MISTAKES.add(
    "channels-as-tokens",
    lambda images, patch_size: (
        blocks(images, patch_size).permute(0, 3, 1, 2, 4, 5).flatten(4).flatten(1, 3)
    ),
    "Every channel has patches of its own: one patch holds all channels.",
)
PATCHIFY_MISTAKES.add(
    "pixels-as-tokens",
    lambda images, patch_size: images.flatten(2).mT,
    "Every pixel is a token: patch_size plays no part.",
)
PATCHIFY_MISTAKES.add(
    "size-for-number",
    lambda images, patch_size: right_patches(images, images.shape[-1] // patch_size),
    "patch_size is taken for the number of patches along a side: it is the number of "
    "pixels along the side of one patch.",
)
PATCHIFY_MISTAKES.add(
    "batch-lost",
    lambda images, patch_size: right_patches(images, patch_size).flatten(0, 1),
    "All images of the batch lie in one sequence: keep the first axis, (B, N, C*P*P).",
)
PATCHIFY_MISTAKES.add(
    "first-image-only",
    lambda images, patch_size: right_patches(images[:1], patch_size),
    "Only the first image of the batch is cut.",
)
PATCHIFY_MISTAKES.add(
    "patches-reversed",
    lambda images, patch_size: right_patches(images, patch_size).flip(1),
    "The patches come from the last to the first: the first token is the top left "
    "corner.",
)
patchify = Exercise(
    id="11.1",
    signature="patchify(images, patch_size)",
    returns="the patches (B, N, C*P*P), row by row, each with the channel first",
    oracle=right_patches,
    cases=[
        case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        case(draw(2, 3, 4, 6), 2, note="three channels"),
        case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        case(draw(2, 3, 4, 4), 2, note="square images"),
        case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
        case(draw(2, 5, 3, 7), 1, note="one pixel a patch"),
    ],
    mistakes=PATCHIFY_MISTAKES,
)

EXERCISES = [patchify]
