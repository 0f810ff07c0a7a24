"""Notebook 13: what a state recalls of phone books, by rules and by layers."""

from copy import deepcopy
from functools import partial

import torch

from tests.seeds import definitions
from utils.experiments.pairs import (
    PairReader,
    StackReader,
    draw_resets,
    train_recall,
    trained_accuracy,
)


def main(seed):
    page = definitions("13_attention_without_a_softmax")
    return books(page, seed) | resets(page, seed) | stacks(page, seed)


def books(page, seed):
    """Recall 24 pairs of each kind of book by each rule."""
    found = {}
    for book, draw in page["BOOKS"].items():
        for name, rule in page["RULES"].items():
            build = partial(PairReader, rule)
            found[f"{book}: {name}"] = trained_accuracy(build, draw, seed)
        gain = found[f"{book}: correct"] - found[f"{book}: add"]
        found[f"{book}: correct minus add"] = gain
    return found


def resets(page, seed):
    """Follow lists with resets; then once more with the value of a reset zero."""
    found = {}
    for name, rule in page["FOLLOW"].items():
        reader = train_recall(partial(PairReader, rule), draw_resets, seed)
        lists, quiet = draw_resets(2000, 24), page["silenced"](deepcopy(reader))
        for row, model in ((name, reader), (f"{name}, silenced", quiet)):
            fractions = page["three_fractions"](model, lists)
            for what, fraction in zip(("a digit", "none", "old digit"), fractions):
                found[f"{row}: {what}"] = fraction
        found[f"{name}: gate of the reset"] = torch.sigmoid(reader.gate.weight[-1, 0])
        found[f"{name}: gate of a letter"] = torch.sigmoid(reader.gate.weight[:8]).min()
    return found


def stacks(page, seed):
    """Recall 24 pairs of each kind of book with stacks of layers."""
    books, found = page["BOOKS"], {}
    for name, layers in page["STACKS"].items():
        build = partial(StackReader, layers)
        for book, draw in books.items():
            found[f"{book}: {name}"] = trained_accuracy(build, draw, seed)
    build = partial(StackReader, page["STACKS"]["delta, delta"])
    slow = trained_accuracy(build, books["one number each"], seed, 5400)
    return found | {"one number each: delta, delta, 5,400 steps": slow}
