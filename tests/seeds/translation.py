"""What notebook 08 and its deeper one state, measured with any seed: translators."""

import torch

from tests.seeds import definitions
from utils.training import translation


def main(seed):
    book, sentences = definitions("08_translation"), translation.Sentences(seed)
    models, known = translators(book, sentences, seed), {f for f, _ in sentences.pairs}
    share = sum(french in known for french, _ in sentences.held_out[200:]) / 400
    found = {"middle and long sentences known": share}
    for name, model in models.items():
        found |= shares(sentences, name, model)
    for name in ("additive", "transformer"):
        found |= maps(book, sentences, name, models[name])
    return found | control(seed)


def translators(book, sentences, seed):
    sizes, models = (len(sentences.french), len(sentences.english)), {}
    batches = sentences.batches()
    finds = {"one vector": lambda: book["same_vector"]}
    finds["additive"] = lambda: book["AdditiveAttention"](80)
    for name, find in finds.items():
        torch.manual_seed(seed)
        decoder = translation.RecurrentDecoder(sizes[1], 80, find=find())
        encoder = translation.RecurrentEncoder(sizes[0], 80)
        models[name] = translation.trained(encoder, decoder, batches)
    torch.manual_seed(seed)
    encoder = translation.TransformerEncoder(sizes[0], 64, num_heads=4)
    decoder = translation.TransformerDecoder(sizes[1], 64, num_heads=4)
    models["transformer"] = translation.trained(encoder, decoder, batches)
    return models


def shares(sentences, name, model):
    """What the table of the three translators says."""
    hits = translation.right(model, sentences, sentences.held_out)
    short, middle, long = (third.mean() for third in hits.chunk(3))
    found = {f"{name}: long": long}
    if name == "one vector":
        return {f"{name}: short": short, f"{name}: middle": middle} | found
    return {f"{name}: short and middle": min(short, middle)} | found


def maps(book, sentences, name, model):
    """Where rows have their largest weight, and what hiding the counterpart costs."""
    (read, written), found = (side.split() + ["<end>"] for side in book["PAIR"]), {}
    best = translation.alignment(model, sentences, book["PAIR"]).argmax(dim=-1)
    columns = {word: read[place] for word, place in zip(written, best)}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = right
    for word in ("cat", "not"):
        pairs = [p for p in sentences.held_out if p[1].split().count(word) == 1]
        rows = [translation.without(model, sentences, pair, word) for pair in pairs]
        looked, before, after = zip(*rows)
        if word == "cat":
            found[f"{name}: cat looks at chat"] = looked.count("chat") / len(rows)
        found[f"{name}: {word}, nothing hidden"] = sum(before) / len(rows)
        found[f"{name}: {word}, where it looks hidden"] = sum(after) / len(rows)
    return found


def control(seed):
    """One vector with more steps and more width."""
    book, sentences = definitions("deeper/a_wider_vector"), translation.Sentences(seed)
    book["sentences"], book["batches"] = sentences, sentences.batches()
    model = book["trained"](160, 700, seed)
    thirds = translation.right(model, sentences, sentences.held_out).chunk(3)
    return {
        f"160 numbers, 700 steps: {name}": third.mean()
        for name, third in zip(("short", "middle", "long"), thirds)
    }
