"""Measure the model of tales: `python -m data.tales.measure FOLDER`.

FOLDER has train.txt and the held-out books, as `make_text.py` makes them.
The table says how many bits a byte of each text costs the model, counting models that
read the same text, and two programs that compress each text by itself.
"""

import gzip
import lzma
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from utils.data import load_text
from utils.training.text import load_tales_model

BITS = 12  # of a token id, so that five ids fit into one number
SKIPPED = 128  # tokens at the start of a text that only serve as context


class CountingModel:
    """Predict a token from the `order - 1` tokens before it, by counts alone.

    Interpolated Kneser-Ney smoothing with three discounts for each order.

    ids: (N,) array of integers below 2^12, N above `order`

    >>> model = CountingModel(np.array([1, 2, 3, 1, 2, 4, 1, 2, 3] * 9), 3, 5)
    >>> probs = model.probs(np.array([[1, 2]] * 5), np.arange(5))
    >>> round(probs.sum(), 6), probs.argmax()
    (np.float64(1.0), np.int64(3))

    Source: Chen and Goodman 1999, section 3.
    """

    def __init__(self, ids, order, vocab_size):
        self.order, self.vocab_size = order, vocab_size
        windows = np.lib.stride_tricks.sliding_window_view(ids.astype(np.int64), order)
        keys = windows @ (1 << BITS * np.arange(order)[::-1])
        self.levels = []  # from the longest to single tokens
        for length in range(order, 0, -1):
            keys, counts = np.unique(keys, return_counts=True)
            self.levels.append(_Level(keys, counts))
            # What counts for a shorter one is how many tokens it was seen after.
            keys = keys & ((1 << BITS * (length - 1)) - 1)

    def probs(self, histories, tokens):
        """Return the probability (N,) of each token after its history (N, order-1)."""
        key = tokens.astype(np.int64)
        probs = np.full(len(tokens), 1 / self.vocab_size)
        for length, level in enumerate(reversed(self.levels)):
            if length:
                key = key + (histories[:, -length].astype(np.int64) << BITS * length)
            probs = level.interpolate(key, probs)
        return probs

    def nats(self, ids):
        """Return the cost of each token from number SKIPPED on, in nats."""
        order = self.order
        windows = np.lib.stride_tricks.sliding_window_view(ids, order)
        windows = windows[SKIPPED - order + 1 :]
        return -np.log(self.probs(windows[:, :-1], windows[:, -1]))


class _Level:
    """The counts of all sequences of one length, sorted by their keys."""

    def __init__(self, keys, counts):
        self.keys = keys
        ones, twos, threes, fours = (max(1, (counts == n).sum()) for n in range(1, 5))
        y = ones / (ones + 2 * twos)
        discounts = 1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos
        discounts = np.array([0, *discounts, 3 - 4 * y * fours / threes])
        taken = np.clip(discounts, 0, 1)[np.minimum(counts, 3)]
        self.kept = counts - taken
        self.histories, first = np.unique(keys >> BITS, return_index=True)
        self.totals = np.add.reduceat(counts, first)
        self.taken = np.add.reduceat(taken, first)

    def interpolate(self, keys, shorter):
        """Return the probability of each key, given those of the shorter ones."""
        kept = _look_up(self.keys, self.kept, keys)
        total = _look_up(self.histories, self.totals, keys >> BITS)
        taken = _look_up(self.histories, self.taken, keys >> BITS)
        seen = np.maximum(total, 1)
        return np.where(total > 0, (kept + taken * shorter) / seen, shorter)


def _look_up(keys, values, wanted):
    """Return the value of each wanted key, 0 if there is none."""
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, values[index], 0)


@torch.no_grad()
def model_nats(model, ids):
    """Return the cost of each token from number SKIPPED on, in nats.

    Each token is predicted from the SKIPPED tokens before it or from more.
    """
    length = model.context_length
    stride, costs = length - SKIPPED, []
    for start in range(0, len(ids) - SKIPPED, stride):
        window = ids[start : start + length + 1]
        logits = model(window[None, :-1])[0, SKIPPED - 1 :][:stride]
        targets = window[SKIPPED:][: len(logits)]
        costs.append(F.cross_entropy(logits, targets, reduction="none"))
    return torch.cat(costs)


def main(folder):
    """Print the table of README.md."""
    model, encode, decode = load_tales_model()
    texts = {p.stem: p.read_text(encoding="utf-8") for p in folder.glob("*.txt")}
    train = np.array(encode(texts.pop("train")))
    texts["story"] = load_text()
    counting = {
        f"{words}, Kneser–Ney": CountingModel(train, order, 1 << BITS)
        for order, words in enumerate(["single tokens", "pairs", "triples"], 1)
    }
    counting["five tokens, Kneser–Ney"] = CountingModel(train, 5, 1 << BITS)
    names = sorted(texts)
    rows = {name: [] for name in ["this model", *reversed(counting), "gzip", "xz"]}
    for name in names:
        ids = encode(texts[name])
        num_bytes = len(decode(ids[SKIPPED:]).encode())
        costs = {"this model": model_nats(model, torch.tensor(ids)).sum().item()}
        costs |= {key: m.nats(np.array(ids)).sum() for key, m in counting.items()}
        for key, nats in costs.items():
            rows[key].append(nats / math.log(2) / num_bytes)
        content = texts[name].encode()
        for key, compress in {"gzip": gzip.compress, "xz": lzma.compress}.items():
            rows[key].append(8 * len(compress(content)) / len(content))
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for key, values in rows.items():
        lines.append(f"| {key} | " + " | ".join(f"{x:.3f}" for x in values) + " |")
    print("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
