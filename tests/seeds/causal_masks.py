"""Notebook 05 and its deeper one on dropout: masks, leaks and what dropout gains."""

import torch
import torch.nn.functional as F

from utils.attention import CausalAttention, SelfAttention
from utils.experiments import leak_test
from utils.pages import definitions


def main(seed):
    book = definitions("05_causal_masks")
    return masks(book, seed) | dropout(book, seed)


def masks(book, seed):
    """Train the three models of the notebook; measure leaks and losses."""
    StoryModel, LateMask = book["StoryModel"], book["LateMaskAttention"]
    sizes, stats, losses, writing = (32, 32, 32, 0.0), {}, {}, {}
    kinds = {
        "no mask": lambda: StoryModel(SelfAttention(32, 32)),
        "late mask": lambda: StoryModel(LateMask(*sizes)),
        "mask": lambda: StoryModel(CausalAttention(*sizes)),
    }
    _, (unseen, answers) = book["story_windows"]()
    for name, build in kinds.items():
        model = book["train_on_story"](build, seed)
        losses[name], writing[name] = (
            book[f"{kind}_loss"](model) for kind in ("held_out", "prefix")
        )
        stats[f"{name}: leak"] = leak_test(model, unseen)
        if name == "no mask":
            with torch.no_grad():
                last = F.cross_entropy(model(unseen)[:, -1], answers[:, -1])
            stats["no mask: last position"] = last
            stats["no mask: share of the last position"] = last / 32 / losses[name]
    stats["late mask: lower on unseen text by"] = losses["mask"] - losses["late mask"]
    stats["late mask: higher in writing by"] = writing["late mask"] - writing["mask"]
    early = {
        name: book["train_on_story"](kinds[name], seed, 100)
        for name in ("mask", "late mask")
    }
    gap = book["held_out_loss"](early["mask"])
    gap -= book["held_out_loss"](early["late mask"])
    stats["late mask, 100 steps: lower on unseen text by"] = gap
    stats["late mask, 100 steps: leak"] = leak_test(early["late mask"], unseen)
    stats["no mask: on unseen text"] = losses["no mask"]
    stats["no mask: in writing"] = writing["no mask"]
    return stats


def dropout(book, seed):
    """Measure what dropout gains with little text and costs with more."""
    train, stats = definitions("deeper/dropout_measured")["loss_after_training"], {}
    (inputs, targets), unseen = book["story_windows"]()
    for size, steps in ((3_000, 400), (3_000, 40), (30_000, 400)):
        data = inputs[: size - 32], targets[: size - 32], *unseen, steps, seed
        gain = train(0.0, *data) - train(0.3, *data)
        stats[f"gain, {size:,} letters, {steps} steps"] = gain
    return stats
