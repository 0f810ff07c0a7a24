"""Notebook 06 and its deeper ones: an MLP that reads heads, library layers, *it*."""

import torch
from torch import nn

from utils.experiments import answer_loss
from utils.pages import definitions
from utils.training import train

one_head = definitions("deeper/how_far_one_head_gets")


def main(seed):
    book = definitions("deeper/how_far_one_head_gets")
    library = definitions("deeper/into_the_library_layers")
    deeper = definitions("deeper/heads_that_resolve_it")
    stats = read_by_mlp(seed)
    stats |= words_back(seed) | where_it_looks(book, seed) | control(seed)
    return stats | scrambled(library, seed) | pronouns(deeper, seed)


@torch.no_grad()
def read_by_mlp(seed):
    """Train one head and two to call two people, with an MLP that reads them."""
    with torch.enable_grad():
        one, two = (one_head.train_with_mlp(num_heads, seed) for num_heads in (1, 2))
    stats = one_head.calls.weights_on_wanted(one)  # (1, 2)
    return {
        "read by an MLP: one head": one_head.calls.two_calls_accuracy(one).mean(),
        "read by an MLP: two heads": one_head.calls.two_calls_accuracy(two).mean(),
        "read by an MLP: larger weight of the one head": stats.max(),
        "read by an MLP: smaller weight of the one head": stats.min(),
    }


def words_back(seed):
    """Train one head and several for two, four and eight words, four at two rates."""
    runs = [(lr, 4, heads) for lr in (1e-2, 3e-2) for heads in (1, 2, 4)]
    runs += [(1e-2, 2, 1), (1e-2, 8, 1), (1e-2, 8, 2), (1e-2, 8, 8)]
    stats = {}
    for lr, n, heads in runs:
        model = one_head.train_last_words(heads, n, seed, lr)
        accuracy = one_head.words_back_accuracy(model, n).mean()
        stats[f"rate {lr}, {n} words: heads {heads}"] = accuracy
    for lr in (1e-2, 3e-2):
        one, two = (stats[f"rate {lr}, 4 words: heads {heads}"] for heads in (1, 2))
        stats[f"rate {lr}, 4 words: two heads ahead of one"] = two - one
    return stats


def where_it_looks(book, seed):
    """Measure the weights of one head (four, eight words)."""
    stats = {}
    for n in (4, 8):
        model = one_head.train_last_words(1, n, seed)
        back = book["weight_by_distance"](model, n)
        order = back.argsort(descending=True)
        back, rights = back[order], one_head.words_back_accuracy(model, n)[order]
        if n == 4:
            for i in range(4):
                off = back[i] - (8 >> i) / 15
                stats[f"weight {i} of the one head, off {8 >> i}/15"] = off
            falls = (rights[:-1] - rights[1:]).min()
            stats["4 words: the smaller the weight, the fewer right"] = falls
    stats["8 words: the fourth weight of the one head"] = back[3]
    stats["8 words: right of the fourth"] = rights[3]
    return stats


def control(seed):
    """Train one head with five times the steps and eight times the MLP."""
    stats = {}
    for n in (4, 8):
        torch.manual_seed(seed)
        model = one_head.LastWords(1, n)
        model.mlp = nn.Sequential(nn.Linear(32, 512), nn.GELU(), nn.Linear(512, 6 * n))

        def draw(number, n=n):
            return one_head.draw_words_back(32, n)

        train(model, draw, answer_loss, steps=2000, lr=2e-3, show_progress=False)
        accuracy = one_head.words_back_accuracy(model, n).mean()
        stats[f"{n} words: one head, more of everything"] = accuracy
    return stats


def scrambled(book, seed):
    """Train the layer without a transpose: it learns, doesn't leak, and is wrong."""
    torch.manual_seed(seed)
    layer = book["ScrambledAttention"](32, 32, 16, 0.0, num_heads=2)
    model = book["LastWord"](layer)

    def draw(number):
        return one_head.draw_words_back(32, 1)

    train(model, draw, book["word_loss"], steps=400, lr=1e-2, show_progress=False)
    x = torch.randn(3, 16, 32)
    apart = (layer(x) - book["loop_over_heads"](layer, x)).abs().max()
    return {
        "scrambled: right": book["right"](model),
        "scrambled: leak": book["replace_later"](layer, x),
        "scrambled: far from the loop": apart,
    }


@torch.no_grad()
def pronouns(book, seed):
    """Measure what the two layers of the model of *it* do, and what is left without."""
    encode, train_model = book["encode_pronouns"], book["train_pronoun_model"]
    with torch.enable_grad():
        model, narrow = train_model(seed), train_model(seed, 1)
    held_out = book["pronoun_sentences"](1000, held_out=True, seed=1)
    ids, places, nouns = encode(held_out)

    def right(model, replace, where=True):
        answers = book["answer"](model, ids, places, replace, where)
        return (answers == nouns).float().mean()

    start = "the animal didn't cross the street because it was too".split()
    famous = [(start + ["tired"], 7, 1), (start + ["wide"], 7, 5)]
    _, weights = model(encode(famous)[0])
    to_nouns = torch.stack([weights[0, :, 7, 1], weights[1, :, 7, 5]])  # (2, H)
    nouns_at = book["noun_places"](held_out, ids.shape[1])
    it_at = torch.arange(ids.shape[1]) == places[:, None]
    gone = {(0, head): torch.zeros(32) for head in (0, 1)}
    table = book["table"](model, ids, places, nouns)  # (layer, what, way)
    return {
        "it: held out": right(model, {}),
        "it: one head per layer": right(narrow, {}),
        "it: one head for both nouns": to_nouns.amin(dim=0).max(),
        "block 1 without its missed head": table[1, 1].min(),
        "block 1 without both": table[1, 2].max(),
        "block 0 removed at it": right(model, gone, it_at),
        "block 0 removed at the nouns": right(model, gone, nouns_at),
        "block 0 removed at all three": right(model, gone, it_at | nouns_at),
    }
