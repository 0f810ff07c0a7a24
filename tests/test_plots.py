"""Each test pins one sentence about the pictures of the course: what each is, what it
takes and refuses, how it answers to controls, and that it is drawn as it is kept.
"""

import base64
import io
import math
import re
import sys
import warnings
from functools import partial
from types import SimpleNamespace

import ipywidgets
import matplotlib
import numpy as np
import pictures
import pytest
import torch
from matplotlib import pyplot
from pictures import CAUSAL, WEIGHTS, WORDS, every_picture, one_bar, parts_of
from PIL import Image

from utils import plots
from utils.plots import exploring, publishing


@every_picture
def test_a_picture_is_one_small_png_with_its_text(draw, published):
    rc, title = dict(matplotlib.rcParams), "A finding that takes many words, " * 5
    assert draw(title=title) is None
    [bundle] = published
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    alt, png = parts_of(bundle["text/html"])
    assert base64.b64decode(bundle["image/png"]) == png
    assert alt == bundle["text/plain"]
    assert title in alt
    assert len(png) < 40_000
    assert Image.open(io.BytesIO(png)).size[0] <= publishing.WIDE * publishing.DPI + 1
    assert dict(matplotlib.rcParams) == rc, "the style of the reader was changed"
    assert pyplot.get_fignums() == [], "a figure stays open"


def test_the_style_of_the_reader_does_not_reach_the_picture(published):
    one_bar(0.5)
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True}):
        one_bar(0.5)
    assert published[0] == published[1]


def test_the_text_says_nothing_measured(published):
    for weights in (WEIGHTS, torch.tensor(WEIGHTS) / 3):
        plots.heatmap(weights, WORDS, title="t")
        plots.bars({"one": weights[2]}, WORDS, title="t")
    texts = [bundle["text/plain"] for bundle in published]
    assert texts[:2] == texts[2:]


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తెలుగు", "हिन्दी", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.tokens(words, range(6), title="t")
        plots.heatmap(torch.eye(6), words, title="t")
        plots.arrows(torch.ones(6) / 6, words, 0, title="t")
        plots.bars({"తె": torch.ones(6)}, words, title="తెలుగు")
    assert len(published) == 4


# Of 255 steps, in the root of the mean square over all pixels. A processor draws the
# same with its oldest instructions as with all; another one may be a hair off.
TOLERANCE = 0.3


def pixels(picture):
    return np.asarray(Image.open(picture).convert("RGB")).astype(float)


def differ(first, second):
    """Return whether two arrays of pixels are different pictures."""
    if first.shape != second.shape:
        return True
    return np.sqrt(((first - second) ** 2).mean()) > TOLERANCE


@pytest.mark.parametrize("name", pictures.DRAWN)
def test_every_picture_is_drawn_as_it_is_kept(name, tmp_path):
    (picture, text), (png, alt) = pictures.kept(name), pictures.drawn(name)
    if differ(pixels(picture), pixels(io.BytesIO(png))):
        now = tmp_path / picture.name
        now.write_bytes(png)
        pytest.fail(
            f"{name}: {picture} is kept, {now} is drawn. If that is right, keep it: "
            "python -m tests.pictures"
        )
    assert alt == text.read_text(encoding="utf-8").removesuffix("\n")


def test_what_is_kept_is_drawn_and_small():
    names = {path.name for name in pictures.DRAWN for path in pictures.kept(name)}
    sizes = {path.name: path.stat().st_size for path in pictures.KEPT.iterdir()}
    assert sizes.keys() == names
    assert max(sizes.values()) < 40_000 and sum(sizes.values()) < 1_200_000


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


WIDGETS = "application/vnd.jupyter.widget-view+json"


def test_explore_publishes_controls_and_first_picture_in_one_bundle(published):
    plots.explore(one_bar, height=ipywidgets.FloatSlider(value=0.5))
    [bundle] = published
    assert set(bundle) == {WIDGETS, "text/html", "image/png", "text/plain"}
    assert bundle["text/plain"].endswith("(interactive: height)")
    one_bar(0.5)
    pictures = [parts_of(bundle["text/html"])[1] for bundle in published]
    assert pictures[0] == pictures[1]


def panel_of(draw, **controls):
    first = publishing._img(*exploring._drawn(draw, controls))
    *_, picture, trouble = exploring._panel(ipywidgets, draw, controls, first).children
    return picture, trouble


def test_explore_redraws_when_a_control_moves(published):
    slider = ipywidgets.FloatSlider(value=0.5, max=1.0)
    picture, trouble = panel_of(one_bar, height=slider)
    first = picture.value
    assert parts_of(first) and trouble.value == ""
    slider.value = 0.9
    assert picture.value != first
    assert parts_of(picture.value)[0] == parts_of(first)[0] != ""
    slider.value = 0.5
    assert picture.value == first
    assert published == []


def test_explore_shows_an_error_and_recovers(published):
    def fragile(height):
        if height > 1:
            raise RuntimeError("<too high>")
        one_bar(height)

    slider = ipywidgets.FloatSlider(value=0.5)
    _, trouble = panel_of(fragile, height=slider)
    slider.value = 2
    assert "RuntimeError: &lt;too high&gt;" in trouble.value
    slider.value = 0.7
    assert trouble.value == ""


def test_explore_without_ipywidgets_publishes_the_picture(published, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    low, high = SimpleNamespace(value=0.5), SimpleNamespace(value=1)
    plots.explore(lambda low, high: one_bar(low / high), low=low, high=high)
    assert set(published[0]) == {"text/html", "image/png", "text/plain"}
    assert published[0]["text/plain"].endswith("weight. (interactive: low, high)")


@pytest.mark.parametrize("count", [0, 2])
def test_explore_asks_for_exactly_one_picture(count, published):
    def draw(height):
        for _ in range(count):
            one_bar(height)

    with pytest.raises(ValueError, match=f"draw: expected one picture, got {count}"):
        plots.explore(draw, height=SimpleNamespace(value=0.5))
    one_bar(0.5)
    assert len(published) == 1, "the picture after an error is not shown"
