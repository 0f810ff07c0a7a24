"""Attention in an hour: what its layer learns, and where it looks in a new order."""

import torch

from tests.seeds import definitions


def main(seed):
    book = definitions("attention_in_an_hour")
    model = book["train_from"](seed)
    new, every = book["fraction_right"](*model)
    is_right = book["IDS"] == book["ANSWERS"][:, None]
    looks, start = book["last_word_weights"], book["MOVED"].split()
    moved = [[*map(book["LEXICON"].index, [*start, last])] for last in ("slow", "fast")]
    slow, fast = looks(*model, torch.tensor(moved))
    return {
        "right of the ten new sentences": new,
        "right of all 300": every,
        "weight on the right creature": looks(*model, book["IDS"])[is_right].mean(),
        "moved, slow: word 2": slow[1],
        "moved, fast: word 6": fast[5],
    }
