"""Each test pins one sentence about what a picture takes, and what it refuses."""

import math
import re
from functools import partial

import pytest
import torch
from pictures import CAUSAL, WEIGHTS, WORDS, every_picture

from utils import plots

FLAT, WIDE = torch.zeros(3), torch.zeros(2, 3)
MAPS = {"maps": [WEIGHTS, WEIGHTS]}
LINES = {"series": {"one": WEIGHTS[0]}, "xlabel": "x", "ylabel": "y"}
CELLS = {"arrays": [WIDE], "titles": ["x"]}

WRONG = {
    "values: expected 2 axes, got shape (3,)": partial(plots.heatmap, FLAT),
    "values: expected at least one number": partial(plots.heatmap, WIDE[:0]),
    "values: expected weights from 0 to 1": partial(plots.heatmap, [[-0.01, 0.25]]),
    "rows: expected 3 of them, got 2": partial(plots.heatmap, WEIGHTS, WORDS[:2]),
    "mask: expected booleans": partial(plots.heatmap, WEIGHTS, mask=CAUSAL.float()),
    "mask: expected shape (3, 3)": partial(plots.heatmap, WEIGHTS, mask=CAUSAL[:2]),
    "maps: expected 3 axes": partial(plots.heatmaps, WEIGHTS, titles=WORDS),
    "titles: expected 2 of them, got 3": partial(plots.heatmaps, **MAPS, titles=WORDS),
    "two: expected 3 of them": partial(plots.bars, {"one": FLAT, "two": [1, 2]}, WORDS),
    "groups: expected finite": partial(plots.bars, {"one": [math.nan, 1]}, WORDS[:2]),
    "one: expected 2 values": partial(plots.curves, **LINES, x={"one": [1, 2]}),
    "positions: expected shape (N, 2) for each": partial(plots.points, FLAT, WORDS),
    "groups: expected 3 of": partial(plots.points, WIDE.T, WORDS, groups=["a", "b"]),
    "angles: expected 2 axes": partial(plots.clocks, FLAT, titles=WORDS),
    "query: expected a position below 3": partial(plots.arrows, WEIGHTS, WORDS, 3),
    "weights: expected a square matrix": partial(plots.graph, WIDE, WORDS[:2]),
    "ids: expected 3 of them, got 2": partial(plots.tokens, WORDS, [1, 2]),
    "pieces: expected at least one token, got []": partial(plots.tokens, []),
    "text: expected at least one character": partial(plots.merge_steps, "", {}),
    "merges: expected pairs of": partial(plots.merge_steps, "low", {(256, 119): 257}),
    "shape of x: expected one to three": partial(plots.tensors, [("x", (), "")]),
    "shape of x: expected no axis of": partial(plots.tensors, [("x", (0, 3), "TD")]),
    "colors: expected shapes [(2, 3)]": partial(plots.cells, **CELLS, colors=[WEIGHTS]),
    "row_labels: expected 2 of them": partial(plots.cells, **CELLS, row_labels=[WORDS]),
    "notebook: expected one of 00, 01": partial(plots.scheme, "16"),
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_drawn_is_an_error_that_says_what_was_expected(says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        WRONG[says](title="t")


@every_picture
def test_a_text_of_ones_own_stands_for_the_picture(draw, figures):
    draw(title="t", alt="What I say.")
    assert figures[0].alt == "What I say."


def test_masks_may_be_nested_lists_and_one_for_all_maps_or_one_for_each(published):
    rows = CAUSAL.tolist()
    one = CAUSAL, CAUSAL.numpy(), rows, tuple(map(tuple, rows))
    for mask in (*one, [CAUSAL] * 2, (CAUSAL, CAUSAL), [rows] * 2):
        plots.heatmaps(**MAPS, titles=["a", "b"], mask=mask, title="t")
        assert published[-1] == published[0]
