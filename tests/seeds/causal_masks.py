"""Notebook 05 and its deeper one on dropout: masks, leaks and what dropout gains."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.attention import CausalAttention, SelfAttention
from utils.experiments import leak_test


def main(seed):
    book = definitions("05_causal_masks")
    return masks(book, seed) | dropout(book, seed)


def masks(book, seed):
    """Train the three models of the notebook; measure leaks and losses."""
    StoryModel, LateMask = book["StoryModel"], book["LateMaskAttention"]
    sizes, found, losses, written = (32, 32, 32, 0.0), {}, {}, {}
    kinds = {
        "no mask": lambda: StoryModel(SelfAttention(32, 32)),
        "late mask": lambda: StoryModel(LateMask(*sizes)),
        "mask": lambda: StoryModel(CausalAttention(*sizes)),
    }
    _, (unseen, answers) = book["story_windows"]()
    for name, build in kinds.items():
        model = book["train_on_story"](build, seed)
        losses[name], written[name] = (
            book[f"{kind}_loss"](model) for kind in ("held_out", "prefix")
        )
        found[f"{name}: leak"] = leak_test(model, unseen)
        if name == "no mask":
            with torch.no_grad():
                last = F.cross_entropy(model(unseen)[:, -1], answers[:, -1])
            found["no mask: last position"] = last
            found["no mask: share of the last position"] = last / 32 / losses[name]
    found["late mask: lower on unseen text by"] = losses["mask"] - losses["late mask"]
    found["late mask: higher in writing by"] = written["late mask"] - written["mask"]
    early = {
        name: book["train_on_story"](kinds[name], seed, 100)
        for name in ("mask", "late mask")
    }
    gap = book["held_out_loss"](early["mask"])
    gap -= book["held_out_loss"](early["late mask"])
    found["late mask, 100 steps: lower on unseen text by"] = gap
    found["late mask, 100 steps: leak"] = leak_test(early["late mask"], unseen)
    found["no mask: on unseen text"] = losses["no mask"]
    found["no mask: in writing"] = written["no mask"]
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
