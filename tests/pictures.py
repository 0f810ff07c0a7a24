"""What the tests of pictures share: one picture of each kind, and what is in it."""

import base64
import re
from html import unescape

import pytest
import torch

from utils import plots

WORDS = ["Your", " journey", "starts"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]
CAUSAL = torch.tril(torch.ones(3, 3, dtype=torch.bool))

PICTURES = {
    "heatmap": lambda **k: plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, **k),
    "heatmaps": lambda **k: plots.heatmaps(
        [WEIGHTS] * 5, WORDS, titles=[f"head {h}" for h in range(5)], **k
    ),
    "arrows": lambda **k: plots.arrows(WEIGHTS, WORDS, 2, **k),
    "graph": lambda **k: plots.graph(WEIGHTS, WORDS, **k),
    "tokens": lambda **k: plots.tokens(WORDS, [7120, 7002, 4940], **k),
    "tokens without ids": lambda **k: plots.tokens(WORDS, **k),
    "bars": lambda **k: plots.bars({"one": WEIGHTS[1], "two": WEIGHTS[2]}, WORDS, **k),
    "curves": lambda **k: plots.curves(
        {"a": [1.0, 2.0, 4.0], "b": [3.0, 2.0, 1.0]},
        [4, 16, 64],
        xlabel="x",
        ylabel="y",
        log_x=True,
        log_y=True,
        reference={"one": 1.0},
        **k,
    ),
    "points": lambda **k: plots.points(
        torch.arange(12.0).reshape(2, 3, 2),
        WORDS,
        groups=["u", "v", "u"],
        titles=["before", "after"],
        **k,
    ),
    "clocks": lambda **k: plots.clocks(
        torch.arange(6.0).reshape(2, 3), titles=["fast", "slow"], **k
    ),
    "tensors": lambda **k: plots.tensors(
        [
            ("x", (8, 4, 256), ("B samples", "T tokens", "D features")),
            "@",
            ("W", (256, 64), ("D", "K")),
            "=",
            ("b", (64,), ("K",)),
        ],
        **k,
    ),
    "cells": lambda **k: plots.cells(
        [torch.arange(6).view(2, 3)],
        titles=["x"],
        colors=[[[0, 0, 1], [0, 0, 1]]],
        row_labels=[["u", "v"]],
        **k,
    ),
    "course_map": lambda **k: plots.course_map(
        [
            (0, "Start here", 15, 0, 0, []),
            (1, "Tokens", 60, 1, 2, [0]),
            (7, "Positions", 60, 0, 2, [6]),
            (12, "The clinic", 40, 0, 0, [6]),
            (None, "Faster byte pairs", 25, 0, 0, [1]),
        ],
        **k,
    ),
    "scheme": lambda **k: plots.scheme("05", filled=True, **k),
    "scheme of another text": lambda **k: plots.scheme("08", filled=True, **k),
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


def one_bar(height):
    plots.bars({"w": [height]}, ["a"], title="One bar", ylim=(0, 1))


def parts_of(html):
    """Return the alternative text and the bytes of a picture."""
    found = re.fullmatch(
        r'<img alt="([^"]*)" style="[^"]*" src="data:image/png;base64,([^"]*)">', html
    )
    return unescape(found[1]), base64.b64decode(found[2])
