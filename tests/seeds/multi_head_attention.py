"""What notebook 06 and its two deeper ones state, measured with any seed."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.attention import (
    MultiHeadAttention,
    causal_mask,
    scaled_dot_product_attention,
    split_heads,
)

HELD = {"one head carries one word, each": 8}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book = definitions("06_multi_head_attention")
    deeper = definitions("deeper/heads_that_resolve_it")
    found = readouts(book, seed) | control(seed) | layers(book, seed)
    return found | pronouns(deeper, seed)


def words_back(book, seed, num_heads, readout, num_back, **training):
    """Return a model trained to name the last words."""
    torch.manual_seed(seed)
    sizes = 32, 32 // num_heads, 16, 0.0, num_heads
    heads = book["MultiHeadAttentionWrapper"](*sizes)
    model = book["LastWords"](heads, readout(num_back), num_back)
    return book["trained"](model, **training)


def readouts(book, seed):
    """One head and a matrix, one head and an MLP, as many heads as words."""
    matrix, mlp, right = book["matrix"], book["mlp"], book["right"]
    limits = {
        2: ((0.5, 0.98), (0.99, 1), (0.99, 1)),
        4: ((0.4, 0.7), (0.86, 0.95), (0.99, 1)),
        8: ((0.25, 0.45), (0.45, 0.62), (0.99, 1)),
    }
    found = {}
    for n, limit in limits.items():
        for name, num_heads, readout, allowed in zip(
            ("1 head, matrix", "1 head, MLP", "n heads, MLP"),
            (1, 1, n),
            (matrix, mlp, mlp),
            limit,
        ):
            model = words_back(book, seed, num_heads, readout, n)
            found[f"{n} words: {name}"] = (right(model).mean().item(), *allowed)
            if (n, name) == (4, "1 head, MLP"):
                found |= shares(book, model)
    return found


def shares(book, model):
    """How the one head hands out its weights: each about half of the one before."""
    words = torch.randint(6, (500, 16), generator=torch.Generator().manual_seed(1))
    _, weights = model.attention.heads[0](model.embedding(words), need_weights=True)
    mean = weights.mean(dim=0)[:10, :10].detach()
    found = sorted(mean.diagonal(-k)[4:].mean().item() for k in (1, 2, 3, 4))
    return {
        f"share {i} of the one head times 15": (15 * share, 0.5 * 2**i, 1.2 * 2**i)
        for i, share in enumerate(found)
    }


def control(seed):
    """One head with five times the steps and eight times the MLP; takes minutes."""
    book = definitions("06_multi_head_attention")
    found = {}
    for n, allowed in ((4, (0.95, 1)), (8, (0.6, 0.7))):
        wide = partial(book["mlp"], width=512)
        model = words_back(book, seed, 1, wide, n, steps=2000, lr=2e-3)
        name = f"{n} words: 1 head, more of everything"
        found[name] = (book["right"](model).mean().item(), *allowed)
    return found


def layers(book, seed):
    """A scrambled layer, and a head taken away."""
    torch.manual_seed(seed)
    scrambled = book["ScrambledAttention"](32, 32, 16, 0.0, num_heads=2)
    model = book["LastWords"](scrambled, book["mlp"](1), 1)
    learned = book["right"](book["trained"](model)).item()
    x = torch.randn(3, 16, 32)
    far = (scrambled(x) - book["loop_over_heads"](scrambled, x)).abs().max().item()
    found = {
        "scrambled: right": (learned, 0.9, 0.97),
        "scrambled: leak": (book["future_leaks"](scrambled, x).item(), 0, 1e-5),
        "scrambled: far from the loop": (far, 0.1, 100),
    }
    torch.manual_seed(seed)
    attention = MultiHeadAttention(32, 32, 16, 0.0, 4)
    model = book["trained"](book["LastWords"](attention, book["mlp"](4), 4))
    table = torch.stack([book["right"](book["without"](model, h)) for h in range(4)])
    lost, kept = table < 0.45, table > 0.9
    each = (lost.sum(0) == 1) & (lost.sum(1) == 1) & ((lost | kept).all(1))
    found |= mean_ablation(book, model, table)
    found["one head carries one word, each"] = (each.float().min().item(), 1, 1)
    return found


@torch.no_grad()
def mean_ablation(book, model, table):
    """How far the shares move when a head writes its average instead of nothing."""
    words = torch.randint(6, (500, 16), generator=torch.Generator().manual_seed(3))
    layer, x, moves = model.attention, model.embedding(words), []
    projections = layer.W_query, layer.W_key, layer.W_value
    query, key, value = (split_heads(W(x), num_heads=4) for W in projections)
    mask = causal_mask(16)
    heads, _ = scaled_dot_product_attention(query, key, value, mask=mask)
    for head, zero in enumerate(table):
        ablated, rows = book["without"](model, head), slice(8 * head, 8 * head + 8)
        mean = heads[:, head, 4:].mean(dim=(0, 1))  # (K,)
        ablated.attention.out_proj.bias += layer.out_proj.weight[:, rows] @ mean
        moves.append((book["right"](ablated) - zero).abs().max().item())
    return {"mean against zero ablation, words back": (max(moves), 0, 0.08)}


@torch.no_grad()
def pronouns(book, seed):
    """What the two layers of the small model of *it* do, and what is left without."""
    with torch.enable_grad():
        model, narrow = book["trained"](seed), book["trained"](seed, num_heads=1)
    held_out = book["pronoun_sentences"](1000, held_out=True, seed=1)
    ids, places, nouns = book["encode_pronouns"](held_out)

    def right(model, replace, where=True):
        found = book["answer"](model, ids, places, replace, where)
        return (found == nouns).float().mean().item()

    start = "the animal didn't cross the street because it was too".split()
    famous = [(start + ["tired"], 7, 1), (start + ["wide"], 7, 5)]
    _, weights = model(book["encode_pronouns"](famous)[0])
    to_nouns = torch.stack([weights[0, :, 7, 1], weights[1, :, 7, 5]])  # (2, H)
    zero = torch.zeros(32)
    nouns_at = book["noun_places"](held_out, ids.shape[1])
    it_at = torch.arange(ids.shape[1]) == places[:, None]
    gone, here = {(1, 0): zero, (1, 1): zero}, it_at | nouns_at
    table = book["table"](model, ids, places, nouns)  # (layer, what, way)
    both = {(2, 0): zero, (2, 1): zero}
    return {
        "it: held out": (right(model, {}), 0.98, 1),
        "it: one head per layer": (right(narrow, {}), 0.97, 1),
        "it: arrow to animal": (to_nouns[0].max().item(), 0.9, 1),
        "it: one head for both nouns": (to_nouns.amin(dim=0).max().item(), 0.8, 1),
        "layer 2 without its missed head": (table[1, 1].min().item(), 0.5, 0.95),
        "layer 2 without both": (table[1, 2].max().item(), 0, 0.124),
        "layer 2: zero minus mean, spared": (
            (table[1, 0, 0] - table[1, 0, 1]).item(),
            -0.2,
            0.2,
        ),
        "layer 1 without both": (right(model, gone), 0.4, 0.65),
        "layer 1 removed at it": (right(model, gone, it_at), 0.7, 1),
        "layer 1 removed at the nouns": (right(model, gone, nouns_at), 0.55, 1),
        "layer 1 removed at all three": (right(model, gone, here), 0.4, 0.67),
        "layer 2 without both, as named": (right(model, both), 0, 0.124),
    }
