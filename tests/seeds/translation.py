"""What notebook 08 and its deeper one state, measured with any seed: translators."""

import torch

from tests.seeds import definitions
from utils.training import translation


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book, sentences = definitions("08_translation"), translation.Sentences(seed)
    models, found = translators(book, sentences, seed), known(sentences)
    for name, model in models.items():
        found |= shares(sentences, name, model)
    for name in ("additive", "transformer"):
        found |= maps(book, sentences, name, models[name])
    found |= padding(sentences, models)
    return found | control(seed)


def known(sentences):
    """The share of the middle and long test sentences that occur in training."""
    seen = {sentence for sentence, _ in sentences.pairs}
    share = sum(sentence in seen for sentence, _ in sentences.held_out[200:]) / 400
    return {"middle and long sentences known": (share, 0, 0)}


def translators(book, sentences, seed):
    """Return the three trained translators."""
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
    """What the table and the curves of the three translators say."""
    hits = translation.right(model, sentences, sentences.held_out)
    short, middle, long = (third.mean().item() for third in hits.chunk(3))
    groups = translation.by_length(sentences, hits)
    if name != "one vector":
        return {
            f"{name}: short and middle": (min(short, middle), 0.97, 1),
            f"{name}: long": (long, 0.7, 1),
        }
    return {
        "one vector: short": (short, 0.75, 0.97),
        "one vector: middle": (middle, 0, 0.2),
        "one vector: long": (long, 0, 0.02),
        "one vector: 3 to 5 words": (groups[0], 0.95, 1),
        "one vector: 15 to 17 words": (groups[4], 0, 0.05),
    }


def maps(book, sentences, name, model):
    """Where rows have their largest weight, and what hiding the counterpart costs."""
    (read, written), found = (side.split() + ["<end>"] for side in book["PAIR"]), {}
    best = translation.alignment(model, sentences, book["PAIR"]).argmax(dim=-1)
    columns = {word: read[place] for word, place in zip(written, best)}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = (right, 4, 4)
    for word, prefix in {"cat": "chat", "a": "un"}.items():
        # Where the additive model looks for "a", and what "un" costs, differs by seed.
        free = word == "a" and name == "additive"
        looks, probable = translation.hide(model, sentences, word, prefix)
        least = 0 if free else 0.9
        found[f"{name}: {word} looks at its counterpart"] = (looks, least, 1)
        nothing, alone, after, before = probable.values()
        found[f"{name}: {word}, nothing hidden"] = (nothing, 0.93, 1)
        found[f"{name}: {word}, {prefix} hidden"] = (alone, 0, 1 if free else 0.25)
        if free:
            found[f"{name}: {word}, and the word after"] = (after, 0.35, 1)
            found[f"{name}: {word}, and the word before"] = (before, 0, 0.35)
    return found


def padding(sentences, models):
    """What 16 padded places do, with the mask and without."""
    found = {}
    for name, model in models.items():
        _, _, before, after = translation.most_lost(model, sentences, masked=True)
        found[f"{name}: masked, lost"] = (before - after, 0, 1e-3)
        found[f"{name}: masked, kept"] = (
            translation.kept(model, sentences, masked=True),
            1,
            1,
        )
        _, _, before, after = translation.most_lost(model, sentences, masked=False)
        found[f"{name}: without mask, lost"] = (before - after, 0.0, 1)
        share = translation.kept(model, sentences, masked=False)
        most = {"one vector": (0, 0.6), "additive": (0, 1), "transformer": (0.75, 1)}
        found[f"{name}: without mask, kept"] = (share, *most[name])
    return found


def control(seed):
    """One vector with more steps and more width."""
    book, sentences = definitions("deeper/a_wider_vector"), translation.Sentences(seed)
    book["sentences"], book["batches"] = sentences, sentences.batches()
    hits = translation.right(
        book["trained"](160, 700, seed), sentences, sentences.held_out
    )
    limits = ("short", 0.97, 1), ("middle", 0.3, 0.6), ("long", 0, 0.05)
    return {
        f"160 numbers, 700 steps: {third}": (share.mean().item(), *limit)
        for share, (third, *limit) in zip(hits.chunk(3), limits)
    }
