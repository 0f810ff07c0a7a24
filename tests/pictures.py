"""What the tests of pictures share: one picture of every kind, and how to read them."""

import base64
import re
from functools import partial
from html import unescape

import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

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
    "translator": (("one vector", "transformer"), {}),
}
PICTURES |= {
    name: partial(getattr(plots.scenes, name), *args, **kwargs)
    for name, (args, kwargs) in SCENES.items()
}
MERGES = {(108, 111): 256, (256, 119): 257, (32, 257): 258}
STEP_ARRAYS = {
    "merges": (("low low", MERGES), {}),
    "compare_share_mix": ((WORDS, 2, X[2], X, X), {"divisor": ("√3", 3**0.5)}),
    "rotate_query": ((X[0, :2], X[:, :2], X[:, 1:], WORDS), {}),
    "causal_rows": ((torch.arange(16.0).view(4, 4), "abcd"), {}),
    "split_and_merge": ((torch.arange(12).view(3, 4), 2), {}),
    "rotate_together": ((X[0, :2], X[1, :2], 0.5, 3), {}),
    "draw_token": (
        (torch.arange(6.0), "abcdef", 5),
        {"temperature": 0.7, "top_k": 4, "top_p": 0.8},
    ),
    "write_state": ((torch.eye(2), X[:2, :2], X[0, :2], X[2, :2], 0.5), {}),
    "softmax_in_blocks": ((X.flatten()[:8], X.flatten()[1:], 2), {}),
}


PYTHON = {"name": "python", "pygments_lexer": "ipython3"}


def draw_steps(title):
    """Show a row that grows in four states."""
    frames = []
    for number in (1, 2, 3, 4):
        picture = plots.Picture()
        picture.grid((0.3, 0.3), range(number), "weight", columns=range(number))
        frames.append((picture, f"State {number} & <more>."))
    plots.steps(frames, title=title)


def steps_notebook(bundle):
    """Return a notebook with one cell, which shows what `draw_steps` published."""
    source = "from tests.pictures import draw_steps\ndraw_steps('t')"
    outputs = [new_output("display_data", bundle)]
    cells = [new_markdown_cell("# Steps"), new_code_cell(source, outputs=outputs)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return new_notebook(cells=cells, metadata=metadata | {"language_info": PYTHON})


STEP_SCENES = {
    name: partial(getattr(plots.step_scenes, name), *args, **kwargs)
    for name, (args, kwargs) in STEP_ARRAYS.items()
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


def parts_of(html):
    """Return the alternative text and the bytes of a picture."""
    text = re.search(r'<img alt="([^"]*)"', html)[1]
    png = re.search(r'src="data:image/png;base64,([^"]*)"', html)[1]
    return unescape(text), base64.b64decode(png)
