"""What notebook 14 and its deeper one state of trainings, measured with any seed."""

from functools import partial

import torch
from torch import nn

from tests.seeds import definitions
from utils.attention import MultiHeadAttention


def main(seed):
    book = definitions("14_a_cache_that_stays_small")
    deeper = definitions("deeper/what_the_first_tokens_are_for")
    return two_ways(book, seed) | first_tokens(deeper, seed)


def two_ways(book, seed):
    """Ask by letter and by number, with keys of several kinds."""
    find, found = book["recall"].found_two_ways, {}
    kinds = book["KINDS"]
    for name, build in kinds.items():
        found[f"{name}: one question"] = find(build, 1, seed)[0]
        both = find(build, 2, seed)
        found |= {f"{name}: two, better": max(both), f"{name}: two, worse": min(both)}
    runs = [("one shared", kinds["one shared"], 2700), ("wider", wider, 900)]
    for name, build, steps in (*runs, ("wider", wider, 2700)):
        worse = min(find(build, 2, seed, steps=steps))
        found[f"{name}, {steps:,} steps: two, worse"] = worse
    for name, build in kinds.items():
        worse = min(find(build, 2, seed, lr=0.03))
        found[f"{name}, rate 0.03: two, worse"] = worse

    for lr in (0.01, 0.03):
        worse = min(find(partial(without_norm, kinds), 2, seed, lr=lr))
        found[f"a latent without its norm, rate {lr}: two, worse"] = worse
    worse = min(find(partial(with_norm, kinds), 2, seed, lr=0.03))
    found["undivided with a norm, rate 0.03: two, worse"] = worse
    return found


def without_norm(kinds):
    layer = kinds["a latent"]()
    layer.norm = nn.Identity()
    return layer


def with_norm(kinds):
    layer = kinds["undivided"]()
    layer.W_key = layer.W_value = nn.Sequential(layer.W_key, nn.RMSNorm(8))
    return layer


def wider():
    """Build four heads, 8 wide, that share a key and a value of 8 numbers each."""
    layer = MultiHeadAttention(32, 32, 18, 0.0, 4, num_kv_heads=1)
    layer.out_proj = nn.Linear(32, 16)
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

    def loss(*masks):
        return recall.alphabet_loss(reader, texts, *masks)

    first = WINDOW | (torch.arange(32) == 0)
    whole = loss()
    another = min(loss(WINDOW | book["another"]()) for _ in range(10))
    used_to_it, _ = recall.trained_alphabet_reader(seed, seen=WINDOW)
    length = book["length"]
    usual, quiet = length(reader, ids), length(reader, ids, first, QUIET)
    return found | {
        "loss: everything": whole,
        "loss: everything, start quiet": loss(None, QUIET),
        "loss: trained with the window": recall.alphabet_loss(
            used_to_it, texts, WINDOW
        ),
        "window and start minus everything": loss(first) - whole,
        "window and start, quiet, minus everything": loss(first, QUIET) - whole,
        "window minus everything": loss(WINDOW) - whole,
        "another, lowest of ten, minus everything": another - whole,
        "mixture: window over everything": length(reader, ids, WINDOW) / usual,
        "mixture: window and start, quiet, over everything": quiet / usual,
    }
