"""What a reader sees of the pictures: one small PNG with a text, nothing clipped, and
errors that say what was expected.
"""

import io
import math
import re
import warnings
from functools import partial

import matplotlib
import pytest
import torch
from matplotlib import pyplot
from PIL import Image

from tests.pictures import CAUSAL, WEIGHTS, WORDS, every_picture, parts_of
from utils import plots
from utils.plots import chart, theme


@every_picture
def test_a_picture_is_one_small_png_with_its_text(draw, published):
    style, title = dict(matplotlib.rcParams), "A finding that takes many words, " * 5
    assert draw(title=title) is None
    [bundle] = published
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    alt, png = parts_of(bundle["text/html"])
    assert alt == bundle["text/plain"]
    assert title in alt
    assert len(png) < 100_000
    assert abs(Image.open(io.BytesIO(png)).width - 2 * theme.PIXELS) < 2
    assert dict(matplotlib.rcParams) == style, "the style of the reader was changed"
    assert pyplot.get_fignums() == [], "a figure stays open"


def test_a_mark_beyond_the_width_is_an_error():
    picture = plots.Picture()
    picture.grid((5, 0.2), [range(10)])
    with pytest.raises(ValueError, match="picture 't': expected nothing beyond its"):
        picture.publish("t")


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తె", "हि", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.row({"values": [words[:1] + words[2:]]}, title="t")
        chart.heat(torch.eye(6), words, title="t")
    assert len(published) == 2


def test_a_long_label_of_a_matrix_is_cut(published):
    chart.heat(WEIGHTS, ["a", "b" * 80, "W" * 80], title="t")
    assert re.search("1 b{20,40}…, 2 W{10,30}…", parts_of(published[0]["text/html"])[0])


FLAT, WIDE = torch.zeros(3), torch.zeros(2, 3)
LINES = {"series": {"one": WEIGHTS[0]}, "xlabel": "x", "ylabel": "y"}
NAN = [math.nan, 1]
PLANE = {"labels": WORDS, "names": ["a"], "groups": ["b"], "reach": 1}

WRONG = {
    "maps: expected 2 or 3 axes, got shape (3,)": partial(chart.heat, FLAT),
    "maps: expected at least one number": partial(chart.heat, WIDE[:0]),
    "maps: expected at least one finite number": partial(chart.heat, [NAN[:1] * 2] * 2),
    "vmax: expected a number above 0": partial(chart.heat, WEIGHTS, vmax=0),
    "rows: expected 3 of them, got 0": partial(chart.heat, WEIGHTS, []),
    "groups: expected one or more": partial(chart.bars, {}, WORDS),
    "maps: expected weights from 0 to 1": partial(chart.heat, [[-0.01, 0.25]]),
    "rows: expected 3 of them, got 2": partial(chart.heat, WEIGHTS, WORDS[:2]),
    "mask: expected booleans": partial(chart.heat, WEIGHTS, mask=CAUSAL.float()),
    "mask: expected shape (3, 3)": partial(chart.heat, WEIGHTS, mask=CAUSAL[:2]),
    "names: expected 2 of them": partial(chart.heat, [WEIGHTS] * 2, names=["a"]),
    "two: expected 3 of them": partial(chart.bars, {"two": NAN}, WORDS),
    "one: expected 2 values": partial(chart.lines, **LINES, x=[1, 2]),
    "positions: expected 3 axes": partial(chart.points, FLAT, **PLANE),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_chart_that_cannot_be_drawn_says_what_was_expected(message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        WRONG[message](title="t")
