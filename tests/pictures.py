"""What the tests of pictures share: one picture of every kind, and how to read them."""

import base64
import re
from functools import partial
from html import unescape

import pytest
import torch

from utils import plots
from utils.plots import chart

WORDS = ["Your", " journey", "starts"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]
CAUSAL = torch.tril(torch.ones(3, 3, dtype=torch.bool))
IT = "the animal didn't cross the street because it was too tired".split()


def draw_marks(title):
    """Draw each mark of a `Picture` once, in every role."""
    picture = plots.Picture()
    words = picture.word((2.0, 0.2), "it"), picture.word((0.6, 1.0), " sun", lit=True)
    picture.wire(*words, "weight", weight=0.9, bend=0.3, text="0.90")
    learned = picture.block((2.2, 0.85), "W_q", "learned")
    part = picture.block((3.2, 0.85), "multi-head\nattention", lit=True)
    picture.wire(learned, part, "query")
    picture.wire(part, (6.5, 1.4), via=[(6.5, 1.1)], dashed=True, head=False)
    for i, sign in enumerate(("+", "×", "=", "softmax")):
        picture.sign((4.7 + 0.5 * i, 0.9), sign, "weight")
    for i, role in enumerate(("x", "query", "key", "value", "score", "output")):
        at = (0.2 + 1.1 * i, 2.0)
        boxes = [picture.grid(at, [[1.5, -2.25]], role, role, columns=["a", "b"])]
    picture.shelf(boxes[-1], "cached", "cached")
    weights = {"name": "weights", "rows": WORDS, "shape": "(T, S) = (3, 3)"}
    picture.grid((1.0, 2.9), WEIGHTS, "weight", mask=CAUSAL, lit=1, **weights)
    picture.grid((3.2, 2.9), [["q", "r"]] * 3, "value")
    picture.grid((4.4, 2.9), torch.arange(12).view(3, 4), owner=[0, 1, 2])
    picture.step((0.2, 2.9), 1)
    picture.note((5.8, 5.2), "a note\nin two lines", "key")
    picture.publish(title)


PICTURES = {
    "marks": draw_marks,
    "row": lambda title: plots.row(
        {"values": [[0.25], [0.75]], "role": "weight", "rows": WORDS[:2]},
        "×",
        {"values": [[1, 2], [3, 4]], "role": "value", "name": "a long name above"},
        "softmax",
        {"values": [1.5, 2], "role": "output", "shape": "(D,) = (2,)"},
        title=title,
    ),
    "heat": lambda title: chart.heat(WEIGHTS, WORDS, mask=CAUSAL, title=title),
    "heat of eleven": lambda title: chart.heat(
        [torch.eye(11) / 3] * 5, IT, names=["a map"] * 5, title=title
    ),
    "signed heat": lambda title: chart.heat(
        torch.arange(-40.0, 41).view(9, 9), signed=True, show_values=False, title=title
    ),
    "bars": lambda title: chart.bars(
        {f"group {i}": [0.5, -1, i] for i in range(4)}, WORDS, title=title
    ),
    "dots": lambda title: chart.dots(
        {"one head": [0.1, 0.2, 0.3], "four": [0.5, 0.6, 0.7]},
        baseline={"guessing": 0.25, "best": 1},
        xlabel="accuracy",
        title=title,
    ),
    "lines": lambda title: chart.lines(
        {"plain": [1, 2, 4, float("nan")], "fused": [4, 2, 1, 0.5]},
        [1, 10, 100, 1000],
        log_x=True,
        log_y=True,
        reference={"a height": 3},
        marks={"a place": 30},
        xlabel="tokens T",
        ylabel="bytes",
        title=title,
    ),
    "smooth lines": lambda title: chart.lines(
        {f"run {i}": torch.arange(60) % 7 + i for i in range(6)},
        smooth=5,
        xlabel="step",
        ylabel="loss",
        title=title,
    ),
    "dials": lambda title: chart.dials(
        torch.arange(7).view(1, 7) / torch.ones(5, 1),
        "abcde",
        labels="0123456",
        shaded=[2, 3, 4, 5, 9],
        title=title,
    ),
    "points": lambda title: chart.points(
        torch.arange(12.0).reshape(2, 3, 2),
        WORDS,
        groups=["u", "v", "u"],
        names=["before", "after"],
        reach=20,
        title=title,
    ),
}
X = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])
VECTORS = torch.arange(12.0).view(3, 4)
SCENES = {
    "attention_frame": ((WORDS, 2, X[2], X, X), {"mask": CAUSAL[1]}),
    "machine": ((), {}),
    "looks": (([IT, [*IT[:-1], "wide"]], [7, 7], [[0, 0.9] + [0.1 / 9] * 9] * 2), {}),
    "both_ways": ((["sun", "Hello"], X[:2], X[:1].T, X[1:2].T), {}),
    "cache": ((), {}),
    "gpt": ((["the", "cat"], ["cat", "sat"]), {}),
    "stream": (([VECTORS[:2]] * 3, [VECTORS[1:]] * 2), {}),
    "blockwise": ((X[0], X[1]), {"split": 1}),
    "turns": (("le chat", "the cat"), {}),
    "pattern": (("chat <end>", "<start> cat"), {}),
}
PICTURES |= {
    name: partial(getattr(plots.scenes, name), *args, **kwargs)
    for name, (args, kwargs) in SCENES.items()
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


def parts_of(html):
    """Return the alternative text and the bytes of a picture."""
    text = re.search(r'<img alt="([^"]*)"', html)[1]
    png = re.search(r'src="data:image/png;base64,([^"]*)"', html)[1]
    return unescape(text), base64.b64decode(png)
