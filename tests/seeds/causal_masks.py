"""What notebook 05 and its deeper one on dropout state, measured with any seed."""

import torch
import torch.nn.functional as F

from tests.seeds import definitions

SENTENCE = [[0.43, 0.15, 0.89], [0.55, 0.87, 0.66], [0.57, 0.85, 0.64]]
SENTENCE += [[0.22, 0.58, 0.33], [0.77, 0.25, 0.10], [0.05, 0.80, 0.55]]


def windows(book):
    """Return the story's windows as the notebook cuts them: to train on and unseen."""
    letters = sorted(set(book["load_text"]()))
    ids = torch.tensor([letters.index(letter) for letter in book["load_text"]()])
    cut = book["sliding_windows"]
    return *cut(ids[:30_000], 32, 1), *cut(ids[30_000:], 32, 32)


def share_of_words(book, model, unseen, seed):
    """Return how much of what a model writes are words of the story."""
    known = set(book["STORY"].split())
    lines = book["write"](model, unseen[:50, :4], seed)
    written = [word for line in lines for word in line.split()[1:-1]]
    return sum(word in known for word in written) / max(len(written), 1)


@torch.no_grad()
def losses(book, model, unseen, answers):
    """Return the losses on unseen text, all at once and one by one."""
    one_by_one = book["one_by_one"](model, unseen)
    runs = model(unseen), one_by_one
    return [F.cross_entropy(logits.mT, answers).item() for logits in runs]


def leaks(book, seed):
    """Return what the leak test finds in three layers."""
    torch.manual_seed(seed)
    sentences, layer = torch.randn(3, 7, 5), book["CausalAttention"]
    layers = layer(5, 11, 7, 0.0), book["SelfAttention"](5, 11)
    layers += (book["TooLate"](5, 11, 7, 0.0),)
    return [book["leak_test"](layer, sentences).item() for layer in layers]


def main(seed):
    """Train the models; return statement -> (measured, lowest, highest allowed)."""
    book = definitions("05_causal_masks")
    inputs, targets, unseen, answers = windows(book)
    peeking, at_first = book["fit"](False, inputs, targets, seed)
    honest, with_mask = book["fit"](True, inputs, targets, seed)
    parrot, learned = book["fit"](True, inputs[:300], targets[:300], seed)
    found = {
        "no mask: loss at the end": (sum(at_first[-50:]) / 50, 0, 0.42),
        "mask: loss at the end": (sum(with_mask[-50:]) / 50, 1.5, 2.2),
        "parrot: loss at the end": (sum(learned[-50:]) / 50, 0, 0.42),
    }
    at_once, one_by_one = losses(book, peeking, unseen, answers)
    found["no mask: unseen text"] = (at_once, 0, 0.42)
    found["no mask: one by one"] = (one_by_one, 4.32, 20)
    at_once, one_by_one = losses(book, honest, unseen, answers)
    found["mask: unseen text"] = (at_once, 1.5, 2.2)
    found["mask: one by one minus at once"] = (one_by_one - at_once, -1e-4, 1e-4)
    found["parrot: unseen text"] = (losses(book, parrot, unseen, answers)[0], 4.32, 20)
    words = {"no mask": (peeking, 0, 0.35), "mask": (honest, 0.5, 1)}
    for name, (model, *limits) in words.items():
        share = share_of_words(book, model, unseen, seed)
        found[f"{name}: words among what it writes"] = (share, *limits)
    ours, never, late = leaks(book, seed)
    found["leak of our layer"] = (ours, 0, 1e-5)
    found["leak where the mask is never used"] = (never, 0.05, 10)
    found["leak where the mask comes too late"] = (late, 0.02, 10)
    found["leak without a mask"] = (book["leak_test"](peeking, unseen).item(), 5, 1e3)
    found["leak with a mask"] = (book["leak_test"](honest, unseen).item(), 0, 1e-3)
    return found | dropout(seed)


def dropout(seed):
    """Measure what dropout gains with little text and costs with more."""
    book, found = definitions("deeper/dropout_measured"), {}
    inputs, targets, unseen, answers = windows(book)
    for size, limits in ((3_000, (0.1, 0.5)), (30_000, (-0.15, 0))):
        data = inputs[: size - 32], targets[: size - 32], unseen, answers
        losses = [book["loss_after_training"](p, *data, seed) for p in (0.0, 0.3)]
        gain = losses[0] - losses[1]
        found[f"gain by dropout with {size:,} letters"] = (gain, *limits)
    return found
