"""Each test pins one sentence about the pictures of the course."""

import base64
import io
import warnings

import matplotlib
import pytest
import torch
from matplotlib import pyplot
from pictures import CAUSAL, WEIGHTS, WORDS, every_picture, one_bar, parts_of
from PIL import Image

from utils import plots
from utils.plots import publishing


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


def test_blocked_cells_are_hatched_and_hold_no_number(figures):
    plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, title="t")
    ax = figures[0].fig.axes[0]
    [hatched] = [patch for patch in ax.patches if patch.get_hatch()]
    for i in range(3):
        for j in range(3):
            assert hatched.get_path().contains_point((j, i)) == (not CAUSAL[i, j])
    assert {text.get_position() for text in ax.texts} == {
        (j, i) for i in range(3) for j in range(i + 1)
    }


def test_nan_and_infinity_are_written_out(figures):
    plots.heatmap(
        [[float("nan"), float("-inf"), 0.5]], ["a"], list("bcd"), title="t", signed=True
    )
    texts = [text.get_text() for text in figures[0].fig.axes[0].texts]
    assert texts == ["nan", "−∞", "0.50"]


@pytest.mark.parametrize("num_tokens", [3, 12, 30, 64])
def test_column_labels_do_not_overlap(num_tokens, figures):
    words = [" attention"] * num_tokens
    plots.heatmap(torch.zeros(num_tokens, num_tokens), words, title="t")
    ax = figures[0].fig.axes[0]
    labels = ax.get_xticklabels()
    lefts = [label.get_window_extent().x0 for label in labels]
    if labels[0].get_rotation() == 0:
        rights = [label.get_window_extent().x1 for label in labels]
        assert all(r < next_ for r, next_ in zip(rights, lefts[1:]))
    else:
        height = labels[0].get_fontsize() * publishing.DPI / 72
        assert all(b - a > 0.75 * height for a, b in zip(lefts, lefts[1:]))


def test_names_of_points_do_not_cover_each_other(figures):
    places = torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.1], [2.0, 2.0]])
    plots.points(places, ["cat", "dog", "horse", "cow", "sky"], title="t")
    boxes = [t.get_window_extent() for t in figures[0].fig.axes[0].texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తెలుగు", "हिन्दी", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.tokens(words, range(6), title="t")
        plots.heatmap(torch.eye(6), words, title="t")
        plots.arrows(torch.ones(6) / 6, words, 0, title="t")
        plots.bars({"తె": torch.ones(6)}, words, title="తెలుగు")
    assert len(published) == 4
