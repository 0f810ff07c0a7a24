"""What notebook 05 and its deeper one on dropout state, measured with any seed."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.training.letters import story_windows


def main(seed):
    return masks(seed) | dropout(seed)


def masks(seed):
    """Measure what the three models of the notebook lose, and how far they leak."""
    book, found = definitions("05_causal_masks"), {}
    sizes, build = (32, 32, 32, 0.0), book["TinyModel"]
    kinds = {
        "no mask": lambda: build(book["SelfAttention"](32, 32)),
        "mask too late": lambda: build(book["TooLate"](*sizes)),
        "mask": lambda: build(book["CausalAttention"](*sizes)),
    }
    _, (unseen, answers) = story_windows()
    for name, kind in kinds.items():
        model, training, loss = book["train_on_story"](kind, seed)
        found[f"{name}: loss at the end"] = training
        found[f"{name}: unseen text"] = loss
        found[f"{name}: leak"] = book["leak_test"](model, unseen)
        if name == "no mask":
            with torch.no_grad():
                places = F.cross_entropy(model(unseen).mT, answers, reduction="none")
            *others, last = places.mean(dim=0).tolist()
            found["no mask: unseen text, last place"] = last
            found["no mask: unseen text, other places"] = sum(others) / 31
    gain = found["mask: unseen text"] - found["mask too late: unseen text"]
    found["too late: lower on unseen text by"] = gain
    return found


def dropout(seed):
    """Measure what dropout gains with little text and costs with more."""
    train, found = definitions("deeper/dropout_measured")["loss_after_training"], {}
    (inputs, targets), unseen = story_windows()
    for size, steps in ((3_000, 400), (3_000, 40), (30_000, 400)):
        data = inputs[: size - 32], targets[: size - 32], *unseen, steps, seed
        gain = train(0.0, *data) - train(0.3, *data)
        found[f"gain by dropout, {size:,} letters, {steps} steps"] = gain
    return found
