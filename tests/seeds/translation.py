"""Notebook 08 and its deeper one: three translators, and a wider vector."""

import torch

from tests.seeds import definitions
from utils.experiments.translation import (
    ParallelCorpus,
    RecurrentDecoder,
    RecurrentEncoder,
    TransformerDecoder,
    TransformerEncoder,
    alignment,
    exact_matches,
    hide_attended_word,
    train_translator,
)


def main(seed):
    book, corpus = definitions("08_translation"), ParallelCorpus(seed)
    models, found = translators(book, corpus, seed), {}
    for name, model in models.items():
        found |= thirds(name, model, corpus)
    for name in ("additive", "transformer"):
        found |= maps(book["PAIR"], corpus, name, models[name])
    wider = definitions("deeper/a_wider_vector")
    wider["corpus"], wider["batches"] = corpus, corpus.batches()
    model = wider["trained"](160, 700, seed)
    return found | thirds("160 numbers, 700 steps", model, corpus)


def translators(book, corpus, seed):
    sizes, models = (len(corpus.french), len(corpus.english)), {}
    batches = corpus.batches()
    finds = {"one vector": lambda: book["same_vector"]}
    finds["additive"] = lambda: book["AdditiveAttention"](80)
    for name, find in finds.items():
        torch.manual_seed(seed)
        decoder = RecurrentDecoder(sizes[1], 80, find())
        encoder = RecurrentEncoder(sizes[0], 80)
        models[name] = train_translator(encoder, decoder, batches)
    torch.manual_seed(seed)
    encoder = TransformerEncoder(sizes[0], 64, num_heads=4)
    decoder = TransformerDecoder(sizes[1], 64, num_heads=4)
    models["transformer"] = train_translator(encoder, decoder, batches)
    return models


def thirds(name, model, corpus):
    """Return the accuracy on short, middle and long sentences."""
    hits = exact_matches(model, corpus, corpus.held_out).chunk(3)
    return {
        f"{name}: {third}": part.mean()
        for third, part in zip(("short", "middle", "long"), hits)
    }


def maps(pair, corpus, name, model):
    """Return where rows have their largest weight, and what hiding that word costs."""
    (read, written), found = (side.split() + ["<end>"] for side in pair), {}
    best = alignment(model, corpus, pair).argmax(dim=-1)
    columns = {word: read[place] for word, place in zip(written, best)}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = right
    for word in ("cat", "not"):
        pairs = [p for p in corpus.held_out if p[1].split().count(word) == 1]
        rows = [hide_attended_word(model, corpus, pair, word) for pair in pairs]
        looked, _, hidden = zip(*rows)
        if word == "cat":
            found[f"{name}: cat looks at chat"] = looked.count("chat") / len(rows)
        found[f"{name}: {word}, where it looks hidden"] = sum(hidden) / len(rows)
    return found
