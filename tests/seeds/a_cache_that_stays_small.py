"""What notebook 14 and its deeper one state of trainings, measured with any seed."""

from functools import partial

import torch
from torch import nn

from tests.seeds import definitions


def main(seed):
    book = definitions("14_a_cache_that_stays_small")
    deeper = definitions("deeper/what_the_first_tokens_are_for")
    return two_ways(book, seed) | first_tokens(deeper, seed)


def two_ways(book, seed):
    """Ask by letter and by number, with keys of several kinds."""
    find, kinds, found = book["recall"].found_two_ways, book["KINDS"], {}
    with_parts = {
        "wider": ("undivided", lambda layer: {"W_value": nn.Linear(32, 8, bias=False)}),
        "undivided with a norm": ("undivided", normed),
        "a latent without norm": ("a latent", lambda layer: {"norm": nn.Identity()}),
    }
    for name, (kind, parts) in with_parts.items():
        kinds[name] = partial(changed, kinds[kind], parts)
    runs = [(name, lr, 900) for name in kinds for lr in (0.01, 0.03)]
    for name, lr, steps in (*runs, ("one shared", 0.01, 2700), ("wider", 0.01, 2700)):
        both = find(kinds[name], seed, lr=lr, steps=steps)
        run = f"{name}, rate {lr}, {steps:,} steps"
        found |= {f"{run}: better": max(both), f"{run}: worse": min(both)}
    return found


def normed(layer):
    W_key = nn.Sequential(layer.W_key, nn.RMSNorm(8))
    return {"W_key": W_key, "W_value": W_key}


def changed(build, parts):
    """Build a layer and put other parts in it, as a function of the layer says."""
    layer = build()
    for name, part in parts(layer).items():
        setattr(layer, name, part)
    return layer


def first_tokens(book, seed):
    """Where a head leaves its weight, and what a window without the start costs."""
    recall, WINDOW, QUIET = (book[name] for name in ("recall", "WINDOW", "QUIET"))
    reader, texts = recall.trained_alphabet_reader(seed)
    ids = texts[:, :-1]
    asks, weights = ids == recall.AGAIN, reader(ids)[1].detach()
    start = weights[:, :, 0]
    found = {
        "start, from token 8 on, at a ?": start[:, 8:][asks[:, 8:]].mean(),
        "start, from token 8 on, elsewhere": start[:, 8:][~asks[:, 8:]].mean(),
        "start, at token 8": start[:, 8][~asks[:, 8]].mean(),
        "start, at token 31": start[:, 31][~asks[:, 31]].mean(),
    }
    values = reader.roles[2](reader.tokens(torch.arange(28))).detach().norm(dim=-1)
    found["length of values: the start"] = values[recall.START]
    found["length of values: shortest of a letter"] = values[:26].min()

    loss = partial(recall.alphabet_loss, reader, texts)
    first = WINDOW | (torch.arange(32) == 0)
    whole = loss()
    another = min(loss(WINDOW | book["another"]()) for _ in range(10))
    used_to_it, _ = recall.trained_alphabet_reader(seed, seen=WINDOW)
    used, length = recall.alphabet_loss(used_to_it, texts, WINDOW), book["length"]
    usual, quiet = length(reader, ids), length(reader, ids, first, QUIET)
    return found | {
        "loss: everything": whole,
        "loss: everything, start quiet": loss(None, QUIET),
        "loss: trained with the window": used,
        "window and start minus everything": loss(first) - whole,
        "window and start, quiet, minus everything": loss(first, QUIET) - whole,
        "window minus everything": loss(WINDOW) - whole,
        "another, lowest of ten, minus everything": another - whole,
        "mixture: window over everything": length(reader, ids, WINDOW) / usual,
        "mixture: window and start, quiet, over everything": quiet / usual,
    }
