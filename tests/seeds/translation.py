"""Notebook 08 and its deeper one: three translators, and a wider vector."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.experiments.translation import (
    ENGLISH,
    FRENCH,
    RecurrentDecoder,
    RecurrentEncoder,
    TransformerDecoder,
    TransformerEncoder,
    draw_batches,
    exact_matches,
    held_out_pairs,
    hide_each_word,
    train_translator,
)


def main(seed):
    book, held_out = definitions("08_translation"), held_out_pairs(seed)
    batches, models = draw_batches(seed), {}
    for name, find, steps in (
        ("one vector", lambda: book["same_vector"], 500),
        ("one vector, 750 steps", lambda: book["same_vector"], 750),
        ("additive", partial(book["AdditiveAttention"], 80), 500),
    ):
        torch.manual_seed(seed)
        decoder = RecurrentDecoder(len(ENGLISH), 80, find())
        encoder = RecurrentEncoder(len(FRENCH), 80)
        models[name] = train_translator(encoder, decoder, batches, steps)
    torch.manual_seed(seed)
    encoder = TransformerEncoder(len(FRENCH), 64, num_heads=4)
    decoder = TransformerDecoder(len(ENGLISH), 64, num_heads=4)
    models["transformer"] = train_translator(encoder, decoder, batches)
    wider = definitions("deeper/a_wider_vector")
    wider["batches"] = batches
    models["160 numbers, 700 steps"] = wider["train_wide"](160, 700, seed)
    found = {}
    for name, model in models.items():
        thirds = exact_matches(model, held_out).chunk(3)
        for third, part in zip(("short", "middle", "long"), thirds):
            found[f"{name}: {third}"] = part.mean()
    for name in ("additive", "transformer"):
        found |= maps(book["PAIR"], held_out, name, models[name])
    return found


def maps(pair, held_out, name, model):
    """Return where rows have their largest weight, and what hiding that word costs."""
    (read, written), found = (side.split() + ["<end>"] for side in pair), {}
    best = hide_each_word(model, pair)[1].argmax(dim=-1)
    columns = {word: read[place] for word, place in zip(written, best)}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = right
    for word in ("cat", "not"):
        rows = []
        for french, english in held_out:
            if english.split().count(word) == 1:
                row = english.split().index(word)
                probs, weights = hide_each_word(model, (french, english))
                hidden, most = probs[row, 1:], weights[row].argmax()
                others = hidden[torch.arange(len(hidden)) != most]
                looked = [*french.split(), "<end>"][most]
                rows.append((looked == "chat", hidden[most], others.mean()))
        looks, hidden, other = (sum(column) / len(rows) for column in zip(*rows))
        if word == "cat":
            found[f"{name}: cat looks at chat"] = looks
        found[f"{name}: {word}, where it looks hidden"] = hidden
        found[f"{name}: {word}, another word hidden"] = other
    return found
