"""Notebook 05 and its deeper one on dropout: masks, leaks and what dropout gains."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.attention import CausalAttention, SelfAttention


def main(seed):
    book = definitions("05_causal_masks")
    return masks(book, seed) | dropout(book, seed)


def masks(book, seed):
    """Train the three models of the notebook; test where they guess and leak."""
    StoryModel, LateMask = book["StoryModel"], book["LateMaskAttention"]
    sizes, found, losses, written = (32, 32, 32, 0.0), {}, {}, {}
    kinds = {
        "no mask": lambda: StoryModel(SelfAttention(32, 32)),
        "late mask": lambda: StoryModel(LateMask(*sizes)),
        "mask": lambda: StoryModel(CausalAttention(*sizes)),
    }
    _, (unseen, answers) = book["story_windows"]()
    for name, build in kinds.items():
        model, _, losses[name] = book["train_on_story"](build, seed)
        written[name] = book["prefix_loss"](model)
        found[f"{name}: leak"] = book["leak_test"](model, unseen)
        if name == "no mask":
            with torch.no_grad():
                places = F.cross_entropy(model(unseen).mT, answers, reduction="none")
            *others, last = places.mean(dim=0).tolist()
            found["no mask: loss at the last place"] = last
            found["no mask: loss at other places"] = sum(others) / 31
    found["late mask: lower on unseen text by"] = losses["mask"] - losses["late mask"]
    found["late mask: higher in writing by"] = written["late mask"] - written["mask"]
    return found


def dropout(book, seed):
    """Measure what dropout gains with little text and costs with more."""
    train, found = definitions("deeper/dropout_measured")["loss_after_training"], {}
    (inputs, targets), unseen = book["story_windows"]()
    for size, steps in ((3_000, 400), (3_000, 40), (30_000, 400)):
        data = inputs[: size - 32], targets[: size - 32], *unseen, steps, seed
        gain = train(0.0, *data) - train(0.3, *data)
        found[f"gain, {size:,} letters, {steps} steps"] = gain
    return found
