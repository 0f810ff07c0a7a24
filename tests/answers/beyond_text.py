"""Answers to the exercise of notebook 11."""

import torch
from torch.nn import functional as F

from answers import right


@right("patchify")
def patchify_permute(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    x = x.permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, (h // p) * (w // p), c * p * p)


@right("patchify")
def patchify_unfold_of_torch(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)


@right("patchify")
def patchify_loops(images, patch_size):
    patches = []
    for top in range(0, images.shape[2], patch_size):
        for left in range(0, images.shape[3], patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.reshape(len(images), -1))
    return torch.stack(patches, dim=1)
