"""What the tests of pictures share: pictures of every kind, and what is in them.

    python -m tests.pictures

draws those of `DRAWN` and keeps them in `drawn/`: each as a PNG, and beside it the text
that stands for it. `test_plots.py` compares them with what is drawn later.
"""

import base64
import re
from html import unescape
from pathlib import Path

import pytest
import torch

from utils import plots
from utils.plots import exploring

KEPT = Path(__file__).with_name("drawn")
WORDS = ["Your", " journey", "starts"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]
CAUSAL = torch.tril(torch.ones(3, 3, dtype=torch.bool))
TIRED = "the animal didn't cross the street because it was too tired".split()
PEOPLE = torch.eye(3, 38) + torch.eye(3, 38).roll((1, 16), (0, 1))
MERGES = {(108, 111): 256, (256, 119): 257, (32, 257): 258, (115, 115): 259}


def scores(rows, columns):
    """Return whole numbers from -8 to 8 that look like chance."""
    return (torch.arange(rows * columns).view(rows, columns) ** 3 % 17 - 8).double()


def weights(rows, columns, hidden=None):
    """Return rows that sum to 1, with 0 where a mask hides the key."""
    shares = scores(rows, columns).add(8) ** 2 + 1
    shares = shares if hidden is None else shares.masked_fill(hidden, 0)
    return shares / shares.sum(dim=1, keepdim=True)


def causal(size):
    return torch.ones(size, size, dtype=torch.bool).tril()


PICTURES = {
    "heatmap": lambda **k: plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, **k),
    "heatmaps": lambda **k: plots.heatmaps(
        [weights(10, 10, ~causal(10))] * 5,
        TIRED[:10],
        titles=["one head", *(f"four heads: {h}" for h in range(4))],
        mask=causal(10),
        show_values=False,
        **k,
    ),
    "arrows": lambda **k: plots.arrows(
        weights(11, 11, torch.arange(11) % 5 == 3),
        ["an unusually long word", *TIRED[1:]],
        0,
        **k,
    ),
    "graph": lambda **k: plots.graph(WEIGHTS, WORDS, **k),
    "tokens": lambda **k: plots.tokens(
        ["a" * 80, " low", "\n", "  ", "é", b"\xe2\x82", "🙂", *TIRED * 2],
        [3, 50_256, 1_234_567, *range(26)],
        **k,
    ),
    "tokens without ids": lambda **k: plots.tokens(WORDS, **k),
    "bars": lambda **k: plots.bars(
        {f"number {i} of five long names": scores(6, 3)[i] / 3 for i in range(5)},
        ["a", "b", " c"],
        ylabel="score",
        **k,
    ),
    "curves": lambda **k: plots.curves(
        {f"a line, numbered {i}": weights(9, 13)[i] * 4**i for i in range(9)},
        [2**i for i in range(13)],
        xlabel="tokens T",
        ylabel="bytes",
        log_x=True,
        log_y=True,
        reference={f"height {10**i:,}": 10**i for i in range(4)},
        **k,
    ),
    "points": lambda **k: plots.points(
        torch.arange(12.0).reshape(2, 3, 2),
        WORDS,
        groups=["u", "v", "u"],
        titles=["before", "after"],
        **k,
    ),
    "merge_steps": lambda **k: plots.merge_steps(" lowest", MERGES, **k),
    "clocks": lambda **k: plots.clocks(
        torch.arange(7) / torch.tensor([[1], [2], [7], [20], [1000]]),
        titles=[f"clock {i}" for i in range(5)],
        **k,
    ),
    "turned": lambda **k: plots.turned([3.0, 4.0], [1.0, 2.0], [[2, 0], [8, 6]], **k),
    "tensors": lambda **k: plots.tensors(
        [
            ("Q", (5, 3), ("T", "d_k")),
            "@",
            ("Kᵀ", (3, 7), ("d_k", "S")),
            "→ ÷ √d_k, softmax →",
            ("weights", (5, 7), ("T queries", "S keys")),
            "@",
            ("V", (7, 11), ("S", "d_v")),
            "=",
            ("output", (50_257, 11), ("T", "d_v")),
        ],
        **k,
    ),
    "cells": lambda **k: plots.cells(
        [scores(2, 3), scores(4, 2).long(), [["Your", " journey"], ["2 3", ""]], [[7]]],
        titles=["floats", "whole", "words", "one"],
        colors=[scores(2, 3) + 8, scores(4, 2) + 8, [[0, 1], [2, 3]], [[7]]],
        row_labels=[None, list("abcd"), None, ["a row"]],
        column_labels=[None, ["u", "v"], None, None],
        **k,
    ),
    "apart": lambda **k: plots.apart([0.43, 0.15, 0.89], [0.55, 0.87, 0.66], **k),
    "split": lambda **k: plots.split(
        torch.arange(18).reshape(3, 6), torch.arange(18).reshape(2, 3, 3), WORDS, **k
    ),
    "embeddings": lambda **k: plots.embeddings(
        WORDS, [1, 0, 1], [[0.5, -1.0], [2.0, 0.25], [3.0, 1.0]], **k
    ),
    "inputs": lambda **k: plots.inputs((8, 4, 256), **k),
    "windows": lambda **k: plots.windows(TIRED, 3, (1, 3), lit="street", **k),
    "exchange": lambda **k: plots.exchange(
        ["send", "pass on", "all-reduce", "all-gather", "reduce-scatter"],
        scores(4, 4) / 3,
        digits=1,
        **k,
    ),
    "true_scale": lambda **k: plots.true_scale(
        {"query": (1024, 64), "scores": (1024, 1024)}, **k
    ),
    "travel": lambda **k: plots.travel([0.0, 0.5, 1.25], [6, 12, 3.5], 2, **k),
    "band": lambda **k: plots.band(7, 2, **k),
    "shares": lambda **k: plots.shares(
        [scores(4, 3), scores(2, 4)], [0, 1], titles=["W", "V"], **k
    ),
    "ring": lambda **k: plots.ring(3, **k),
    "projections": lambda **k: plots.projections([[1, 0], [-0.6, 0.8]], "kl", **k),
    "course_map": lambda **k: plots.course_map(
        [
            *((i, f"Notebook {i}", 60, i % 4, 3, [i - 1] * (i > 0)) for i in range(9)),
            (9, "Cross-attention and translation", 75, 0, 0, [6, 7]),
            (12, "The clinic", 75, 0, 9, [6]),
            (None, "Hairpins with loops of any length, long or short", 25, 0, 0, [9]),
            (None, "Where it looks", 0, 0, 0, []),
        ],
        **k,
    ),
    "translator": lambda **k: plots.translator("one vector", "additive", **k),
    "block": lambda **k: plots.block(
        [[1, 1, 3, 3], [0, 0, 4, 4], [-2, -2, 6, 6]], [[-1, -1, 1, 1]] * 2, **k
    ),
    "chain": lambda **k: plots.chain(
        ["embedding", "block 1", "block 2", "norm", "output"],
        [(8, 64), *[(8, 64, 64)] * 4, (8, 64, 512)],
        **k,
    ),
    "vision": lambda **k: plots.vision(torch.arange(64).view(8, 8) / 63, **k),
    "patches": lambda **k: plots.patches(
        torch.arange(24).view(4, 6), [[0, 1, 6, 7], [2, 3, 8, 9]], **k
    ),
    "room": lambda **k: plots.room(PEOPLE, [0, 2, 5], WORDS, **k),
    "scheme": lambda **k: plots.scheme("05", filled=True, **k),
    "scheme of another text": lambda **k: plots.scheme("08", filled=True, **k),
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


# More of what the kinds do with few and many, long and short, small and large.
FURTHER = {
    "a map of ten words with its numbers": lambda **k: plots.heatmap(
        weights(10, 3), TIRED[:10], WORDS, row_axis="asks", column_axis="is asked", **k
    ),
    "a map of eleven words with a scale": lambda **k: plots.heatmap(
        weights(3, 11), WORDS, TIRED, mask=causal(11)[-3:], **k
    ),
    "a map of ninety words": lambda **k: plots.heatmap(
        scores(12, 90) > 4, TIRED + ["."], TIRED * 8 + TIRED[:2], **k
    ),
    "scores with what is not a number": lambda **k: plots.heatmap(
        [[1234.5, float("nan"), -3.25], [float("inf"), 0.0, 99.0]],
        ["a", "b"],
        WORDS,
        mask=torch.tensor([[True, True, True], [True, True, False]]),
        signed=True,
        **k,
    ),
    "a line that breaks off, and an upright one": lambda **k: plots.curves(
        {"table": [1.9, float("nan"), float("nan")], "slope": [2.0, 2.0, 3.1]},
        [32, 40, 64],
        xlabel="letters",
        ylabel="loss",
        log_x=True,
        marks={"the end": 48},
        broken="ends here",
        **k,
    ),
    "a smooth line without markers": lambda **k: plots.curves(
        {"loss": scores(1, 48)[0] / 5 + 2, "short": [1, 2, 3, 2, 1]},
        xlabel="step",
        ylabel="loss",
        smooth=5,
        markers=False,
        ylim=(0.5, 4),
        **k,
    ),
    "points that crowd": lambda **k: plots.points(
        [[0, 0], [0.1, 0], [0, 0.1], [0.1, 0.1], [2, 2], [0.05, 0.02], [2, 1.9]],
        ["cat", "dog", "horse", " a long name", "at the edge of it", "cow", "sky"],
        **k,
    ),
    "dials that are partly shaded": lambda **k: plots.clocks(
        [[1.0, 2.5], [0.4, 6.0], [3.0, 3.1]],
        titles=["a third", "nothing", "all"],
        names=["q", "k"],
        seen=[2.1, 0, 9],
        **k,
    ),
    "clocks whose hands are arrows": lambda **k: plots.clocks(
        [[1.0, 2.5], [0.4, 6.0]],
        titles=["early", "late"],
        names=["q", "k"],
        lengths=[5, 2.2],
        **k,
    ),
    "a clock with the sines and cosines of two hands": lambda **k: plots.clocks(
        [[1.0, 2.0]], titles=["once in 6.28"], names=["one", "two"], sides=True, **k
    ),
    "arrows to fifty-five words": lambda **k: plots.arrows(
        weights(1, 55)[0].masked_fill(torch.arange(55) % 6 > 0, 0), TIRED * 5, -1, **k
    ),
    "a graph of two queries and all loops": lambda **k: plots.graph(
        weights(6, 6, ~causal(6)), TIRED[:6], threshold=0.0, queries=[2, 4], **k
    ),
    "a translator alone": lambda **k: plots.translator("transformer", **k),
    "tensors of three axes": lambda **k: plots.tensors(
        [
            ("x", (1, 9, 2), ("B", "T tokens", "D")),
            "→",
            ("a tensor with a long name", (12, 2, 1), ("H very many heads", "T", "K")),
        ],
        **k,
    ),
    "merges of a long word that is not all letters": lambda **k: plots.merge_steps(
        " Zoë's superheterodyne", MERGES | {(195, 171): 300, (300, 39): 301}, **k
    ),
    "two grids of words with one lit": lambda **k: plots.cells(
        [[WORDS, TIRED[:3]], [WORDS[1:]]], titles=["a", "b"], lit=WORDS[1], **k
    ),
    "the scheme before 09": lambda **k: plots.scheme("09", **k),
    "the scheme after 11": lambda **k: plots.scheme("11", filled=True, **k),
    "the scheme after 13": lambda **k: plots.scheme("13", filled=True, **k),
}
DRAWN = PICTURES | FURTHER


def drawn(name):
    """Return the PNG of a picture as it is drawn now, and its text."""
    return exploring._drawn(lambda: DRAWN[name](title=name), {})


def kept(name):
    """Return the files that keep a picture and its text."""
    path = KEPT / f"{name.replace(' ', '_')}.png"
    return path, path.with_suffix(".txt")


def keep():
    """Keep every picture as it is drawn now."""
    now = {kept(name): drawn(name) for name in DRAWN}  # all, before one is replaced
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.iterdir():
        path.unlink()
    for (picture, text), (png, alt) in now.items():
        picture.write_bytes(png)
        text.write_text(f"{alt}\n", encoding="utf-8", newline="\n")


def one_bar(height):
    plots.bars({"w": [height]}, ["a"], title="One bar", ylim=(0, 1))


def parts_of(html):
    """Return the alternative text and the bytes of a picture."""
    found = re.fullmatch(
        r'<img alt="([^"]*)" style="[^"]*" src="data:image/png;base64,([^"]*)">', html
    )
    return unescape(found[1]), base64.b64decode(found[2])


if __name__ == "__main__":
    keep()
