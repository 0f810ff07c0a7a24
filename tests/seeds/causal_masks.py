"""What notebook 05 and its deeper one on dropout state, measured with any seed."""

import torch

from tests.seeds import definitions

HELD = {"too late: lower on unseen text by": 8}  # as 05 says


def windows(book):
    """Return the story's windows as the notebook cuts them: to train on and unseen."""
    letters = sorted(set(book["load_text"]()))
    ids = torch.tensor([letters.index(letter) for letter in book["load_text"]()])
    cut = book["sliding_windows"]
    return *cut(ids[:30_000], 32, 1), *cut(ids[30_000:], 32, 32)


def main(seed):
    """Train the models; return statement -> (measured, lowest, highest allowed)."""
    book, found = definitions("05_causal_masks"), {}
    inputs, targets, unseen, answers = windows(book)
    limits = {
        "no mask": ((0, 0.42), (0, 0.42), (5, 1e3)),
        "mask too late": ((1.2, 2.2), (1.2, 2.2), (1, 1e3)),
        "mask": ((1.5, 2.2), (1.5, 2.2), (0, 1e-3)),
    }
    sizes = 32, 32, 32, 0.0
    kinds = {"no mask": (book["SelfAttention"], 32, 32)}
    kinds["mask too late"] = book["TooLate"], *sizes
    kinds["mask"] = book["CausalAttention"], *sizes
    for name, (training, on_unseen, leak) in limits.items():
        model, loss = book["fit"](kinds[name], inputs, targets, seed)
        with torch.no_grad():
            unseen_loss = book["letter_loss"](model, (unseen, answers)).item()
        found[f"{name}: loss at the end"] = (loss, *training)
        found[f"{name}: unseen text"] = (unseen_loss, *on_unseen)
        found[f"{name}: leak"] = (book["leak_test"](model, unseen).max().item(), *leak)
    gain = found["mask: unseen text"][0] - found["mask too late: unseen text"][0]
    found["too late: lower on unseen text by"] = (gain, 0.02, 1)
    return found | dropout(seed)


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
