"""Notebook 14: pieces taken away from random blocks, and words with two meanings.

The model of the second claim has only one seed, so the seed chooses what comes before
the sentences.
"""

import torch

from utils.attention import causal_mask
from utils.pages import definitions
from utils.training.text import load_tales_model

BEFORE = [
    "It was so.",
    "Now listen.",
    "This is true.",
    "Once upon a time it was so.",
    "He told a story.",
    '"Yes," she said.',
    "They were at home.",
    "That was long ago.",
    "It happened like this.",
    "The story goes on.",
]
PARTING = "fair", "rose", "light", "bear"


def main(seed):
    page = definitions("14_looking_back")
    page.block, matrices = page.random_block(seed)
    page.W_query, page.W_key, page.W_value, page.out_proj = matrices
    page.x, page.t, page.mask = torch.randn(1, 6, 32), torch.arange(6), causal_mask(6)
    stats = [page.symptoms(piece) for piece in page.PIECES]
    names = {" ".join(symptom.split()[:3]) for [symptom, *_] in stats}
    is_right = not page.symptoms("nothing") and len(names) == len(page.PIECES)

    page.tales, encode, _ = load_tales_model()
    page.tales.requires_grad_(False)
    page.encode = lambda text: encode(f"{BEFORE[seed]} ") + encode(text)
    parted = {word: difference(page, word) for word in page.SENTENCES}
    single = max(parted[word] for word in page.ONE_MEANING)
    four = [parted[word] for word in PARTING]
    others = [parted[x] for x in parted if x not in {*PARTING, *page.ONE_MEANING}]
    return {
        "pieces with one symptom, their own": is_right * sum(map(len, stats)),
        "the least of the four minus the largest of one meaning": min(four) - single,
        "the largest of the other six minus the largest of one meaning": max(others)
        - single,
        "bank": parted["bank"],
        "leaves": parted["leaves"],
        "fan minus box": parted["fan"] - parted["box"],
    }


def difference(page, word):
    """Return by how much one meaning is more alike than one of each."""
    same, mixed = page.same_and_mixed(word, 4)
    return same - mixed
