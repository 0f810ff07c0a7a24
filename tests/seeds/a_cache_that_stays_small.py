"""What notebook 14 states of its trainings, measured with any seed."""

import torch

from tests.seeds import definitions


def main(seed):
    """Return statement -> number."""
    book, found = definitions("14_a_cache_that_stays_small"), {}
    kinds, share_found = book["KINDS"], book["recall"].share_found
    for name in ("all keys", "one head", "a latent", "a window"):
        far, near = share_found(kinds[name], seed)
        found |= {f"{name}: far": far, f"{name}: near": near}
    gap = found["a latent: far"] - found["one head: far"]
    found["a latent minus one head: far"] = gap
    _, near = share_found(kinds["a window"], seed, asked_last=5)
    found["a window, asked about the last five alone: near"] = near
    for name in ("one head", "a latent"):
        far, _ = share_found(kinds[name], seed, steps=2700)
        found[f"{name}, 2,700 steps: far"] = far
    return found | first_tokens(book["recall"], seed)


def first_tokens(recall, seed):
    """Measure the head that leaves its weight at the start, and what a window costs."""
    reader, texts = recall.trained_alphabet_reader(seed)
    ids = texts[:, :-1]
    at_start = reader(ids)[1].detach()[:, 8:, 0]
    asks = ids[:, 8:] == recall.AGAIN
    i, j = torch.arange(32)[:, None], torch.arange(32)
    other = 1 + (torch.rand(32, 1) * (i - 4).clamp(min=1)).long()
    window = i - j < 4
    everything, windowed, with_first, with_other = (
        recall.alphabet_loss(reader, texts, seen)
        for seen in (None, window, window | (j == 0), window | (j == other))
    )
    used_to_it, _ = recall.trained_alphabet_reader(seed, seen=window)
    return {
        "loss of a reader trained with the window": recall.alphabet_loss(
            used_to_it, texts, window
        ),
        "weight at the start, at a ?": at_start[asks].mean(),
        "weight at the start, elsewhere": at_start[~asks].mean(),
        "loss with everything": everything,
        "window minus everything": windowed - everything,
        "window and first minus everything": with_first - everything,
        "window and other minus everything": with_other - everything,
        "window and other minus window and first": with_other - with_first,
    }
