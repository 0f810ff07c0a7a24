"""Each test pins one sentence about what a picture takes, and what it refuses."""

import re
from functools import partial

import pytest
import torch
from pictures import CAUSAL, WEIGHTS, WORDS, every_picture

from utils import plots

FLAT, WIDE = torch.zeros(3), torch.zeros(2, 3)
MAPS = {"maps": [WEIGHTS, WEIGHTS]}
LINES = {"series": {"one": WEIGHTS[0]}, "xlabel": "x", "ylabel": "y"}
CELLS = {"arrays": [WIDE], "titles": ["x"], "colors": [WIDE]}

WRONG = {
    "values: expected 2 axes, got shape (3,)": partial(plots.heatmap, FLAT),
    "rows: expected 3 of them, got 2": partial(plots.heatmap, WEIGHTS, WORDS[:2]),
    "mask: expected booleans, True = may attend, got float32": partial(
        plots.heatmap, WEIGHTS, WORDS, mask=CAUSAL.float()
    ),
    "mask: expected shape (3, 3), got (2, 3)": partial(
        plots.heatmap, WEIGHTS, WORDS, mask=CAUSAL[:2]
    ),
    "values: expected weights from 0 to 1 (else use signed=True or vmax=), "
    "got values from -0.01 to 0.25": partial(plots.heatmap, [[-0.01, 0.25]]),
    "maps: expected 3 axes, got shape (3, 3)": partial(
        plots.heatmaps, WEIGHTS, titles=WORDS
    ),
    "titles: expected 2 of them, got 3": partial(plots.heatmaps, **MAPS, titles=WORDS),
    "two: expected 3 of them, got 2": partial(
        plots.bars, {"one": WEIGHTS[0], "two": WEIGHTS[0][:2]}, WORDS
    ),
    "one: expected 2 values, one for each x, got 3": partial(
        plots.curves, **LINES, x={"one": [1, 2]}
    ),
    "positions: expected shape (N, 2) for each panel, got (3,)": partial(
        plots.points, FLAT, WORDS
    ),
    "groups: expected 3 of them, got 2": partial(
        plots.points, WIDE.T, WORDS, groups=["a", "b"]
    ),
    "angles: expected 2 axes, got shape (3,)": partial(
        plots.clocks, FLAT, titles=WORDS
    ),
    "query: expected a position below 3, got 3": partial(
        plots.arrows, WEIGHTS, WORDS, 3
    ),
    "weights: expected a square matrix, got shape (2, 3)": partial(
        plots.graph, WIDE, WORDS[:2]
    ),
    "ids: expected 3 of them, got 2": partial(plots.tokens, WORDS, [1, 2]),
    "shape of x: expected one to three axes, got ()": partial(
        plots.tensors, [("x", (), "")]
    ),
    "colors: expected shapes [(2, 3)], got [(3, 3)]": partial(
        plots.cells, **CELLS | {"colors": [WEIGHTS]}
    ),
    "values: expected at least one number, got shape (0, 3)": partial(
        plots.heatmap, WIDE[:0]
    ),
    "groups: expected finite numbers, got [nan  1.]": partial(
        plots.bars, {"one": [float("nan"), 1]}, WORDS[:2]
    ),
    "pieces: expected at least one token, got []": partial(plots.tokens, []),
    "text: expected at least one character, got ''": partial(plots.merge_steps, "", {}),
    "merges: expected pairs of bytes or of ids learned before, got (256, 119)": partial(
        plots.merge_steps, "low", {(256, 119): 257}
    ),
    "shape of x: expected no axis of length 0, got (0, 3)": partial(
        plots.tensors, [("x", (0, 3), ("T", "D"))]
    ),
    "notebook: expected one of 00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, "
    "14, 15, got '16'": partial(plots.scheme, "16"),
    "row_labels: expected 2 of them, got 3": partial(
        plots.cells, **CELLS, row_labels=[WORDS]
    ),
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_drawn_is_an_error_that_says_what_was_expected(says):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
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
