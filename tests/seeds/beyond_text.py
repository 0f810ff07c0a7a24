"""What notebook 11 states after training, measured with any seed."""

import torch
from sklearn.datasets import load_digits

from tests.seeds import definitions


def main(seed):
    """Train the five models; return name -> (measured, lowest, highest allowed)."""
    book, digits = definitions("11_beyond_text"), load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    shuffled = torch.randperm(
        len(images), generator=torch.Generator().manual_seed(seed)
    )
    book["labels"] = torch.tensor(digits.target)
    book["known"], book["held_out"] = shuffled[:1500], shuffled[1500:]
    tokens = book["patchify"](images, 2)
    torn = images.reshape(len(images), 16, 4)
    share = {
        name: book["accuracy"](book["train_on"](cut, places, seed), cut)
        for name, cut, places in [
            ("digits, patches", tokens, True),
            ("digits, plain reshape", torn, True),
            ("digits, no positions", tokens, False),
        ]
    }
    limits = [(0.95, 1.0), (0.94, 1.0), (0.3, 0.85)]
    found = {name: (share[name], *limit) for name, limit in zip(share, limits)}

    stem, length = book["STEM"], book["LENGTH"]
    folded, one_way = (book["train_reader"](causal, seed) for causal in (False, True))
    torch.manual_seed(seed + 100)
    strands = book["hairpins"](500)
    both = book["named"](folded, strands)
    causal = book["named"](one_way, strands)
    arms = torch.cat((both[:stem], both[-stem:]))
    loop = both[stem : length - stem]
    found["hairpins, worst place in the stem"] = (arms.min().item(), 0.95, 1.0)
    found["hairpins, best place in the loop"] = (loop.max().item(), 0.15, 0.4)
    found["causal, worst place of the second arm"] = (
        causal[-stem:].min().item(),
        0.95,
        1.0,
    )
    found["causal, best place of the first arm"] = (
        causal[:stem].max().item(),
        0.15,
        0.4,
    )
    shifted = book["named"](folded, strands.roll(1, dims=1)).mean().item()
    found["hairpins shifted by one place"] = (shifted, 0.15, 0.4)
    hidden = book["hide_each"](strands[:50])
    with torch.no_grad():
        weights = book["weights_of"](folded.block, folded.embed(hidden))
    weights = weights[:, 0].view(50, length, length, length)
    pairs = weights.diagonal(dim1=1, dim2=2).mean(dim=0).T
    places = torch.arange(length)
    partner = pairs[places, length - 1 - places]
    worst = torch.cat((partner[:stem], partner[-stem:])).min().item()
    found["hairpins, least weight on a partner"] = (worst, 0.5, 1.0)
    return found
