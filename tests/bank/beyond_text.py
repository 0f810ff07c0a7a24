"""Answers to the exercise of notebook 11."""

import numpy as np
import torch
from torch.nn import functional as F

from bank import right, wrong


@right("11.1")
def patchify_permute(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    x = x.permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, (h // p) * (w // p), c * p * p)


@right("11.1")
def patchify_unfold_of_torch(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)


@right("11.1")
def patchify_loops(images, patch_size):
    patches = []
    for top in range(0, images.shape[2], patch_size):
        for left in range(0, images.shape[3], patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.reshape(len(images), -1))
    return torch.stack(patches, dim=1)


@right("11.1")
def patchify_two_unfolds(images, patch_size):
    x = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    x = x.permute(0, 2, 3, 1, 4, 5)
    return x.flatten(3).flatten(1, 2)


@right("11.1")
def patchify_one_hot_convolution(images, patch_size):
    width = images.shape[1] * patch_size**2
    kernels = torch.eye(width).view(width, images.shape[1], patch_size, patch_size)
    return F.conv2d(images, kernels, stride=patch_size).flatten(2).mT


@right("11.1")
def patchify_chunks(images, patch_size):
    strips = images.split(patch_size, dim=2)
    squares = [s for strip in strips for s in strip.split(patch_size, dim=3)]
    return torch.stack([square.flatten(1) for square in squares], 1)


@wrong("11.1", "plain-reshape")
def patchify_reshape(images, patch_size):
    b, c, h, w = images.shape
    n = (h // patch_size) * (w // patch_size)
    return images.reshape(b, n, c * patch_size * patch_size)


@wrong("11.1", "plain-reshape")
def patchify_view(images, patch_size):
    return images.view(images.shape[0], -1, images.shape[1] * patch_size**2)


@wrong("11.1", "plain-reshape")
def patchify_channels_then_reshape(images, patch_size):
    x = images.permute(0, 2, 3, 1)
    return x.reshape(len(images), -1, images.shape[1] * patch_size**2)


@wrong("11.1", "permute-missing")
def patchify_half_permuted(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    x = x.permute(0, 2, 3, 4, 1, 5)
    return x.reshape(b, -1, c * p * p)


@wrong("11.1", "column-by-column")
def patchify_columns_first(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 4, 2, 1, 3, 5).reshape(b, -1, c * p * p)


@wrong("11.1", "column-by-column")
def patchify_loops_swapped(images, patch_size):
    patches = []
    for left in range(0, images.shape[3], patch_size):
        for top in range(0, images.shape[2], patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.flatten(1))
    return torch.stack(patches, dim=1)


@wrong("11.1", "transposed-inside")
def patchify_inner_axes_swapped(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 1, 5, 3).reshape(b, -1, c * p * p)


@wrong("11.1", "height-for-width")
def patchify_width_first(images, patch_size):
    return F.unfold(images.transpose(2, 3), patch_size, stride=patch_size).mT


@wrong("11.1", "channels-last")
def patchify_as_in_vit(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * c)


@wrong("11.1", "channels-last")
def patchify_einsum_channels_last(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return torch.einsum("bchpwq->bhwpqc", x).flatten(3).flatten(1, 2)


@wrong("11.1", "channels-last")
def patchify_loops_channels_last(images, patch_size):
    patches = []
    for top in range(0, images.shape[2], patch_size):
        for left in range(0, images.shape[3], patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.permute(0, 2, 3, 1).flatten(1))
    return torch.stack(patches, dim=1)


@wrong("11.1", "channels-last")
def patchify_channels_in_the_middle(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 3, 1, 5).reshape(b, -1, c * p * p)


@wrong("11.1", "interleaved")
def patchify_split_the_wrong_way_round(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, p, h // p, p, w // p)
    return x.permute(0, 3, 5, 1, 2, 4).reshape(b, -1, c * p * p)


@wrong("11.1", "axes-renamed")
def patchify_assumes_channels_last(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, h // p, p, w // p, p, c)
    return x.permute(0, 1, 3, 5, 2, 4).reshape(b, -1, c * p * p)


@wrong("11.1", "height-and-width-misread")
def patchify_sizes_backwards(images, patch_size):
    b, c, w, h = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)


@wrong("11.1", "channels-read-last")
def patchify_sizes_channels_last(images, patch_size):
    b, h, w, c = images.shape
    p = patch_size
    x = images.reshape(b, h // p, p, w // p, p, c)
    return x.permute(0, 1, 3, 5, 2, 4).reshape(b, -1, c * p * p)


@wrong("11.1", "height-for-both")
def patchify_squares_only(images, patch_size):
    b, c, h, _ = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, h // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)


@wrong("11.1", "height-for-both")
def patchify_as_many_columns_as_rows(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, (h // p) ** 2, c * p * p)


@wrong("11.1", "width-for-both")
def patchify_width_alone(images, patch_size):
    b, c, _, w = images.shape
    p = patch_size
    x = images.reshape(b, c, w // p, p, w // p, p)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)


@wrong("11.1", "channels-before-patches")
def patchify_unfolds_joined(images, patch_size):
    x = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return x.reshape(len(images), -1, images.shape[1] * patch_size**2)


@wrong("11.1", "axes-exchanged")
def patchify_two_axes_exchanged(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 3, 1, 4, 5)
    return x.reshape(b, -1, c * p * p)


@wrong("11.1", "interleaved")
def patchify_columns_interleaved(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, p, w // p).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, -1, c * p * p)


@wrong("11.1", "last-patches-lost")
def patchify_ends_early(images, patch_size):
    p, patches = patch_size, []
    for top in range(0, images.shape[2] - p, p):
        for left in range(0, images.shape[3] - p, p):
            patches.append(images[:, :, top : top + p, left : left + p].flatten(1))
    return torch.stack(patches, dim=1)


@wrong("11.1", "patches-in-one-row")
def patchify_concatenated(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).mT.flatten(1)


@wrong("11.1", "overlapping")
def patchify_number_for_pixel(images, patch_size):
    p, patches = patch_size, []
    for i in range(images.shape[2] // p):
        for j in range(images.shape[3] // p):
            patches.append(images[:, :, i : i + p, j : j + p].flatten(1))
    return torch.stack(patches, dim=1)


@wrong("11.1", "column-by-column")  # and the batch second
def patchify_stacked_in_front(images, patch_size):
    patches = []
    for left in range(0, images.shape[3], patch_size):
        for top in range(0, images.shape[2], patch_size):
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            patches.append(patch.flatten(1))
    return torch.stack(patches)


@wrong("11.1", "sizes-swapped")
def patchify_last_reshape_swapped(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, c * p * p, -1)


@wrong("11.1", "batch-second")
def patchify_tokens_first(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size).permute(2, 0, 1)


@wrong("11.1", "overlapping")
def patchify_stride_forgotten(images, patch_size):
    return F.unfold(images, patch_size).transpose(1, 2)


@wrong("11.1", "overlapping")
def patchify_step_of_one(images, patch_size):
    x = images.unfold(2, patch_size, 1).unfold(3, patch_size, 1)
    return x.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


@wrong("11.1", "transposed-result")
def patchify_unfold_as_it_comes(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size)


@wrong("11.1", "first-channel-only")
def patchify_grey(images, patch_size):
    x = images[:, 0].unfold(1, patch_size, patch_size)
    x = x.unfold(2, patch_size, patch_size)
    return x.reshape(len(images), -1, patch_size**2)


@wrong("11.1", "channels-averaged")
def patchify_channel_mean(images, patch_size):
    grey = images.mean(dim=1, keepdim=True)
    return F.unfold(grey, patch_size, stride=patch_size).mT


@wrong("11.1", "pixels-averaged")
def patchify_pooled(images, patch_size):
    return F.avg_pool2d(images, patch_size).flatten(2).mT


@wrong("11.1", "patches-not-flat")
def patchify_squares(images, patch_size):
    x = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return x.permute(0, 2, 3, 1, 4, 5)


@wrong("11.1", "patches-not-flat")
def patchify_stacked_squares(images, patch_size):
    strips = images.split(patch_size, dim=2)
    squares = [s for strip in strips for s in strip.split(patch_size, dim=3)]
    return torch.stack(squares, dim=1)


@wrong("11.1", "patches-not-flat")
def patchify_grid_kept(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    x = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, h // p, w // p, c * p * p)


@wrong("11.1", "channels-as-tokens")
def patchify_per_channel(images, patch_size):
    x = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return x.reshape(len(images), -1, patch_size**2)


@wrong("11.1", "pixels-as-tokens")
def patchify_pixels(images, patch_size):
    return images.flatten(2).transpose(1, 2)


@wrong("11.1", "size-for-number")
def patchify_number_of_patches(images, patch_size):
    b, c, h, w = images.shape
    n, p = patch_size, w // patch_size
    x = images.reshape(b, c, h // p, p, n, p).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, -1, c * p * p)


@wrong("11.1", "batch-lost")
def patchify_all_in_one(images, patch_size):
    patches = F.unfold(images, patch_size, stride=patch_size).mT
    return patches.reshape(-1, patches.shape[-1])


@wrong("11.1", "first-image-only")
def patchify_one_image(images, patch_size):
    return F.unfold(images[:1], patch_size, stride=patch_size).mT


@wrong("11.1", "patches-reversed")
def patchify_back_to_front(images, patch_size):
    patches = F.unfold(images, patch_size, stride=patch_size).mT
    return patches.flip(dims=[1])


@wrong("11.1", "returns-nothing")
def patchify_print(images, patch_size):
    F.unfold(images, patch_size, stride=patch_size).mT  # noqa: B018


@wrong("11.1", "input-changed")
def patchify_scaled_in_place(images, patch_size):
    patches = F.unfold(images, patch_size, stride=patch_size).mT.clone()
    images -= images.mean()
    return patches


@wrong("11.1", named=False)
def patchify_numpy(images, patch_size):
    patches = F.unfold(images, patch_size, stride=patch_size).mT
    return np.round(patches.numpy() * 2).astype(int)
