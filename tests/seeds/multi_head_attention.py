"""What notebook 06 and its three deeper ones state, measured with any seed."""

import torch
from torch import nn

from tests.seeds import definitions
from utils.data import draw_words_back
from utils.training import train
from utils.training.words_back import (
    LastWords,
    mean_weights,
    right,
    trained,
    weights_back,
    word_loss,
)


def main(seed):
    library = definitions("deeper/into_the_library_layers")
    deeper = definitions("deeper/heads_that_resolve_it")
    found = words_back(seed) | where_it_looks(seed) | control(seed)
    return found | scrambled(library, seed) | pronouns(deeper, seed)


def words_back(seed):
    """One head and as many heads as words, at three learning rates."""
    found = {}
    for lr in (1e-2, 3e-3, 3e-2):
        for n in (2, 4, 8):
            one, many = (
                right(trained(heads, n, seed, lr=lr), n).mean() for heads in (1, n)
            )
            name = f"rate {lr}, {n} words"
            found[f"{name}: one head"] = one
            found[f"{name}: {n} heads"] = many
            found[f"{name}: heads ahead"] = many - one
    return found


def where_it_looks(seed):
    """The weights of one head for two, four and eight words, and those of two heads."""
    found = {}
    back = weights_back(trained(1, 2, seed), 2)
    found["2 words: larger weight of the one head"] = back.max()
    found["2 words: smaller weight of the one head"] = back.min()
    heads = mean_weights(trained(2, 2, seed), 2)[:, 2:]
    back = torch.stack([heads.diagonal(k, 1, 2).mean(dim=-1) for k in (1, 0)], dim=-1)
    largest, distance = back.max(dim=-1)  # of each head
    own = largest.min() if distance[0] != distance[1] else 0
    found["2 words: each of two heads, on its own distance"] = own
    for n in (4, 8):
        model = trained(1, n, seed)
        back = weights_back(model, n)
        order = back.argsort(descending=True)
        back, rights = back[order], right(model, n)[order]
        for i in range(4 if n == 4 else 0):
            off = back[i] - (8 >> i) / 15
            found[f"weight {i} of the one head, off {8 >> i}/15"] = off
        falls = (rights[:-1] - rights[1:]).min()
        found[f"{n} words: the smaller the weight, the fewer right"] = falls
    found["8 words: the fourth weight of the one head"] = back[3]
    found["8 words: right of the fourth"] = rights[3]
    return found


def control(seed):
    """One head with five times the steps and eight times the MLP; takes minutes."""
    found = {}
    for n in (4, 8):
        torch.manual_seed(seed)
        model = LastWords(1, n)
        model.mlp = nn.Sequential(nn.Linear(32, 512), nn.GELU(), nn.Linear(512, 6 * n))

        def draw(_, n=n):
            return draw_words_back(32, n)

        train(model, draw, word_loss, steps=2000, lr=2e-3)
        found[f"{n} words: one head, more of everything"] = right(model, n).mean()
    return found


def scrambled(book, seed):
    """The layer without a transpose learns, doesn't leak, and is wrong."""
    torch.manual_seed(seed)
    layer = book["ScrambledAttention"](32, 32, 16, 0.0, num_heads=2)
    model = book["LastWord"](layer)

    def draw(_):
        return book["draw_words_back"](32, 1)

    book["train"](model, draw, book["word_loss"], steps=400, lr=1e-2)
    x = torch.randn(3, 16, 32)
    return {
        "scrambled: right": book["right"](model),
        "scrambled: leak": book["future_leaks"](layer, x),
        "scrambled: far from the loop": (
            (layer(x) - book["loop_over_heads"](layer, x)).abs().max()
        ),
    }


@torch.no_grad()
def pronouns(book, seed):
    """What the two layers of the small model of *it* do, and what is left without."""
    with torch.enable_grad():
        model, narrow = book["trained"](seed), book["trained"](seed, num_heads=1)
    held_out = book["pronoun_sentences"](1000, held_out=True, seed=1)
    ids, places, nouns = book["encode_pronouns"](held_out)

    def right(model, replace, where=True):
        found = book["answer"](model, ids, places, replace, where)
        return (found == nouns).float().mean()

    start = "the animal didn't cross the street because it was too".split()
    famous = [(start + ["tired"], 7, 1), (start + ["wide"], 7, 5)]
    scores, weights = model(book["encode_pronouns"](famous)[0])
    named = [book["PRONOUN_WORDS"][i] for i in scores[:, 7].argmax(dim=-1)]
    to_nouns = torch.stack([weights[0, :, 7, 1], weights[1, :, 7, 5]])  # (2, H)
    zero = torch.zeros(32)
    nouns_at = book["noun_places"](held_out, ids.shape[1])
    it_at = torch.arange(ids.shape[1]) == places[:, None]
    gone = {(1, 0): zero, (1, 1): zero}
    table = book["table"](model, ids, places, nouns)  # (layer, what, way)
    return {
        "it: held out": right(model, {}),
        "it: one head per layer": right(narrow, {}),
        "it: both famous sentences": named == ["animal", "street"],
        "it: one head for both nouns": to_nouns.amin(dim=0).max(),
        "layer 2 without its missed head": table[1, 1].min(),
        "layer 2 without both": table[1, 2].max(),
        "layer 2: zero minus mean, spared": table[1, 0, 0] - table[1, 0, 1],
        "layer 1 without both": right(model, gone),
        "layer 1 removed at it": right(model, gone, it_at),
        "layer 1 removed at the nouns": right(model, gone, nouns_at),
        "layer 1 removed at all three": right(model, gone, it_at | nouns_at),
    }
