"""11 Beyond text: 11.1 patchify."""

import torch
import torch.nn.functional as F

from tests.answers import right, wrong


@right("patchify")
def patchify(images, patch_size):
    # made for other ends: pixels of a square become channels
    return F.pixel_unshuffle(images, patch_size).flatten(2).transpose(1, 2)


@right("patchify")
def patchify(images, patch_size):
    cut = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return torch.einsum("bchwpq->bhwcpq", cut).flatten(3).flatten(1, 2)


@right("patchify")
def patchify(images, patch_size):
    # a convolution whose kernels each pick one pixel
    C, P = images.shape[1], patch_size
    pick = torch.eye(C * P * P, dtype=images.dtype).view(-1, C, P, P)
    return F.conv2d(images, pick, stride=P).flatten(2).mT


@wrong("patchify", "no permute: the two reshapes undo each other")
def patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P)
    return x.reshape(B, -1, C * P * P)


@wrong("patchify", "the channel comes last inside a patch")
def patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.view(B, C, H // P, P, W // P, P).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(B, (H // P) * (W // P), C * P * P)


@wrong("patchify", "patches come column by column")
def patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P)
    x = x.permute(0, 4, 2, 1, 3, 5)
    return x.flatten(3).flatten(1, 2)


@wrong("patchify", "F.unfold without its transpose: (B, C*P*P, N)")
def patchify(images, patch_size):
    return F.unfold(images, kernel_size=patch_size, stride=patch_size)


@wrong("patchify", "the stride of unfold is left at 1: patches overlap")
def patchify(images, patch_size):
    return F.unfold(images, kernel_size=patch_size).permute(0, 2, 1)


@wrong(
    "patchify",
    "rows and columns inside a patch are exchanged",
    "patches go column by column",
)
def patchify(images, patch_size):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // patch_size, patch_size, W // patch_size, patch_size)
    return x.permute(0, 4, 2, 1, 5, 3).reshape(B, -1, C * patch_size**2)


@wrong(
    "patchify",
    "only the first channel is read",
    "the windows move by one pixel instead of one patch",
)
def patchify(images, patch_size):
    columns = F.unfold(images[:, :1], patch_size)
    return columns.mT


@wrong(
    "patchify",
    "patches are averaged: one number for each channel and patch",
    "the tokens stand last",
)
def patchify(images, patch_size):
    P = patch_size
    x = F.avg_pool2d(images, P).flatten(2)
    return x


@wrong(
    "patchify",
    "a patch takes every H/P-th row: P and H/P exchanged in the height",
    "the patches are reversed",
)
def patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, P, H // P, W // P, P).permute(0, 3, 4, 1, 2, 5)
    x = x.reshape(B, (H // P) * (W // P), C * P * P)
    return x.flip(1)
