"""Handwritten digits: the images, a training for them, and how many are right."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from utils.training import train


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


def fit(model, lr, images, labels):
    """Train a classifier for 300 steps of 64 random images; return it."""

    def loss(model, rows):
        return F.cross_entropy(model(images[rows]), labels[rows])

    batches = [torch.randint(len(images), (64,)) for _ in range(300)]
    options = {"warmup": 20, "final_lr": 0.0, "show": lambda losses: None}
    train(model, batches, loss, 300, lr, **options)
    return model


@torch.no_grad()
def right(model, images, labels):
    """Return the share of images that a classifier gets right."""
    return (model(images).argmax(dim=-1) == labels).float().mean().item()
