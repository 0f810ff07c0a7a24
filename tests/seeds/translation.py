"""What notebook 08 and its deeper one state, measured with any seed: translators."""

import torch

from tests.seeds import definitions
from utils.data import translation_pairs


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = prepared("08_translation", seed)
    models, found = translators(book, seed), known(book)
    for name, model in models.items():
        found |= shares(book, name, model)
    for name in ("additive", "transformer"):
        found |= maps(book, name, models[name])
    found |= padding(book, models)
    return found | control(seed)


def prepared(notebook, seed):
    """Return a notebook's definitions with sentences and batches of this seed."""
    book = definitions(notebook)
    book["pairs"] = translation_pairs(32_000, seed=2 * seed)
    held_out = translation_pairs(600, seed=2 * seed + 1)
    book["held_out"] = sorted(held_out, key=book["num_words"])
    book["french"], book["english"] = map(book["vocabulary"], zip(*book["pairs"]))
    book["batches"] = book["batches_by_length"](book["pairs"], seed)
    return book


def known(book):
    """The share of the middle and long test sentences that occur in training."""
    seen = {sentence for sentence, _ in book["pairs"]}
    share = sum(sentence in seen for sentence, _ in book["held_out"][200:]) / 400
    return {"middle and long sentences known": (share, 0, 0)}


def translators(book, seed):
    """Return the three trained translators."""
    sizes, models = (len(book["french"]), len(book["english"])), {}
    finds = {"one vector": lambda: book["same_vector"]}
    finds["additive"] = lambda: book["AdditiveAttention"](80)
    for name, find in finds.items():
        torch.manual_seed(seed)
        decoder = book["RecurrentDecoder"](sizes[1], 80, find=find())
        models[name] = book["trained"](book["RecurrentEncoder"](sizes[0], 80), decoder)
    torch.manual_seed(seed)
    encoder = book["TransformerEncoder"](sizes[0], 64, num_heads=4)
    decoder = book["TransformerDecoder"](sizes[1], 64, num_heads=4)
    models["transformer"] = book["trained"](encoder, decoder)
    return models


def by_length(book, model):
    """Return the shares right: three thirds, and seven groups of lengths."""
    hits = book["right"](model, book["held_out"])
    lengths = torch.tensor([book["num_words"](pair) for pair in book["held_out"]])
    centres = torch.tensor([4, 7, 10, 13, 16, 19, 22])
    near = (lengths - centres[:, None]).abs() <= 1
    groups = [hits[row].mean().item() for row in near]
    return [third.mean().item() for third in hits.chunk(3)], groups


def shares(book, name, model):
    """What the table and the curves of the three translators say."""
    (short, middle, long), groups = by_length(book, model)
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


def maps(book, name, model):
    """Where rows have their largest weight, and what hiding the counterpart costs."""
    (read, written), found = (side.split() + ["<end>"] for side in book["PAIR"]), {}
    best = book["alignment"](model, book["PAIR"]).argmax(dim=-1)
    columns = {word: read[place] for word, place in zip(written, best)}
    crossed = {"black": "noir", "cat": "chat", "blue": "bleue", "car": "voiture"}
    right = sum(columns[word] == theirs for word, theirs in crossed.items())
    found[f"{name}: rows right of black, cat, blue, car"] = (right, 4, 4)
    looks = {"cat": 0.8, "blue": 0.5, "a": 0.8 if name == "transformer" else 0}
    needs = {"cat": 0.5, "blue": 0.5, "a": 0.4 if name == "transformer" else 0}
    needs |= {"does": 0.5, "not": 0}
    for word, start in book["WORDS"].items():
        pairs = book["held_out"][200:300]
        some = [pair for pair in pairs if pair[1].split().count(word) == 1]
        row = [book["look_and_need"](model, pair, word, start) for pair in some]
        look, need = torch.stack(row).mean(dim=0).tolist()
        free = {("additive", "a"): (0.75, 0.2)}.get((name, word), (1, 1))
        if word in looks:
            limits = looks[word], free[0]
            found[f"{name}: {word} looks at its counterpart"] = (look, *limits)
        limits = needs[word], 0.25 if word == "not" else free[1]
        found[f"{name}: {word} loses without it"] = (need, *limits)
    return found


def padding(book, models):
    """What 16 padded places do, with the mask and without."""
    found = {}
    for name, model in models.items():
        kept, moved = book["padded"](model, masked=True)
        broken_kept, broken_moved = book["padded"](model, masked=False)
        found[f"{name}: masked, moved"] = (moved, 0, 1e-3)
        found[f"{name}: masked, kept"] = (kept, 1, 1)
        found[f"{name}: without mask, moved"] = (broken_moved, 0.01, 1)
        if name != "additive":  # there it may be all or nothing
            most = (0, 0.6) if name == "one vector" else (0.8, 1)
            found[f"{name}: without mask, kept"] = (broken_kept, *most)
    return found


def control(seed):
    """One vector with more steps and more width."""
    book, found = prepared("deeper/a_wider_vector", seed), {}
    thirds, _ = by_length(book, book["trained"](160, 1300, 5e-3, seed))
    limits = ("short", 0.97, 1), ("middle", 0.6, 0.9), ("long", 0.01, 0.2)
    for share, (third, *limit) in zip(thirds, limits):
        found[f"160 numbers, 1300 steps: {third}"] = (share, *limit)
    return found
