"""The deeper notebook of 11: what first tokens are for."""

from functools import partial

import torch

from utils.pages import definitions


def main(seed):
    """Measure where a head leaves its weight, and what a window without it costs."""
    book = definitions("deeper/what_the_first_tokens_are_for")
    WINDOW, QUIET = book["WINDOW"], book["QUIET"]
    train, loss_of = book["train_alphabet_reader"], book["alphabet_loss"]
    reader, texts = train(seed)
    ids = texts[:, :-1]
    asks, start = ids == book["AGAIN"], reader(ids)[1][:, :, 0].detach()
    values = reader.projections[2](reader.tokens(torch.arange(28))).norm(dim=-1)
    loss = partial(loss_of, reader, texts)
    first = WINDOW | (torch.arange(32) == 0)
    another = min(loss(WINDOW | book["another"]()) for _ in range(10))
    used_to_it, _ = train(seed, WINDOW)
    length, whole = partial(book["length"], reader, ids), loss()
    return {
        "start, at a ?": start[:, 8:][asks[:, 8:]].mean(),
        "start, at token 8": start[:, 8][~asks[:, 8]].mean(),
        "length of the value of the start": values[book["BEGIN"]],
        "length of the shortest value of a letter": values[:26].min(),
        "loss: everything": whole,
        "loss: trained with the window": loss_of(used_to_it, texts, WINDOW),
        "window and start minus everything": loss(first) - whole,
        "window and quiet start minus everything": loss(first, QUIET) - whole,
        "window minus everything": loss(WINDOW) - whole,
        "another, lowest of ten, minus everything": another - whole,
        "mixture: window over everything": length(WINDOW) / length(),
        "mixture: window and quiet start over everything": length(first, QUIET)
        / length(),
    }
