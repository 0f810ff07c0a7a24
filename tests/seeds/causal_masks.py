"""What notebook 05 and its deeper one on dropout state, measured with any seed."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions
from utils.training.letters import story_windows

HELD = {"too late: lower on unseen text by": 8}  # as 05 says


def windows(book):
    """Return the story's windows as the notebook cuts them: to train on and unseen."""
    letters = sorted(set(book["load_text"]()))
    ids = torch.tensor([letters.index(letter) for letter in book["load_text"]()])
    cut = book["sliding_windows"]
    return *cut(ids[:30_000], 32, 1), *cut(ids[30_000:], 32, 32)


def main(seed):
    """Train the models; return statement -> (measured, lowest, highest allowed)."""
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
    limits = {
        "no mask": ((0, 0.42), (0, 0.42), (5, 1e3)),
        "mask too late": ((1.2, 2.2), (1.2, 2.2), (1, 1e3)),
        "mask": ((1.5, 2.2), (1.5, 2.2), (0, 1e-3)),
    }
    _, (unseen, answers) = story_windows()
    for name, (in_training, on_unseen, leak) in limits.items():
        model, training, loss = book["train_on_story"](kinds[name], seed)
        found[f"{name}: loss at the end"] = (training, *in_training)
        found[f"{name}: unseen text"] = (loss, *on_unseen)
        found[f"{name}: leak"] = (book["leak_test"](model, unseen), *leak)
        if name == "no mask":
            with torch.no_grad():
                places = F.cross_entropy(model(unseen).mT, answers, reduction="none")
            *others, last = places.mean(dim=0).tolist()
            found["no mask: unseen text, last place"] = (last, 2, 3)
            found["no mask: unseen text, other places"] = (sum(others) / 31, 0, 0.02)
    gain = found["mask: unseen text"][0] - found["mask too late: unseen text"][0]
    found["too late: lower on unseen text by"] = (gain, 0.02, 1)
    return found


def dropout(seed):
    """Measure what dropout gains with little text and costs with more."""
    book, found = definitions("deeper/dropout_measured"), {}
    inputs, targets, unseen, answers = windows(book)
    train = book["loss_after_training"]
    ways = (3_000, 400, 0.1, 0.5), (3_000, 40, -0.05, 0.05), (30_000, 400, -0.15, 0)
    for size, steps, *limits in ways:
        data = inputs[: size - 32], targets[: size - 32], unseen, answers, steps, seed
        gain = train(0.0, *data) - train(0.3, *data)
        found[f"gain by dropout, {size:,} letters, {steps} steps"] = (gain, *limits)
    return found
