"""Handwritten digits: the images, their labels, and which are held out."""

import torch
from sklearn.datasets import load_digits


def digits(held_out=297, seed=0):
    """Load the 1,797 digits of scikit-learn, and split them at random.

    returns: images (B, 1, 8, 8) from 0 to 1, labels (B,), and the numbers of those to
        train on and of those held out

    >>> images, labels, known, unseen = digits()
    >>> images.shape, len(known), len(unseen)
    (torch.Size([1797, 1, 8, 8]), 1500, 297)
    """
    loaded = load_digits()
    images = torch.tensor(loaded.images, dtype=torch.float32)[:, None] / 16
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(images), generator=generator)
    parts = rows.split([len(images) - held_out, held_out])
    return images, torch.tensor(loaded.target), *parts
