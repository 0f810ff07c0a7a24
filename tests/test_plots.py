"""What a reader sees of the pictures, and errors that say what was expected."""

import base64
import io
import math
import re
import warnings
from html import unescape

import matplotlib
import pytest
import torch
from matplotlib import pyplot
from PIL import Image, ImageColor

from tests.step_pictures import draw_steps
from utils import plots
from utils.plots import chart, theme
from utils.plots.publishing import to_array

WORDS = ["Your", " journey", "starts"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]
PICTURES = {
    "scatter": lambda title: chart.scatter(
        {"near": [[1, 10], [3, 2]], "far": [[1000], [2.5]]},
        labels={"first": (1, 3), "last": (1000, 2.5)},
        offsets={"first": (8, 0)},
        joined=["near"],
        log_x=True,
        ylim=(0, 4),
        xlabel="bytes",
        ylabel="loss",
        title=title,
    ),
    "row": lambda title: plots.row(
        {"values": [[0.25], [0.75]], "role": "weight", "rows": WORDS[:2]},
        "×",
        {"values": [[1, 2], [3, 4]], "role": "value", "name": "a long name above"},
        "softmax",
        {"values": [1.5, 2], "role": "output", "shape": "(D,) = (2,)"},
        title=title,
    ),
    "lines": lambda title: chart.lines(
        {"plain": [1, 2, 4, float("nan")], "fused": [4, 2, 1, 0.5]},
        [1, 10, 100, 1000],
        log_x=True,
        log_y=True,
        reference={"a height": 3},
        marks={"a place": 30},
        smooth=2,
        thin={"plain": [[2, 3, 4, 5]]},
        xlabel="tokens T",
        ylabel="bytes",
        title=title,
    ),
}


@pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)
def test_a_picture_is_one_small_image_with_its_text(draw, published):
    style, title = dict(matplotlib.rcParams), "A finding that takes many words, " * 5
    assert draw(title=title) is None
    [bundle] = published
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    match = re.search('alt="([^"]*)".*base64,([^"]*)"', bundle["text/html"])
    alt, image = match[1], base64.b64decode(match[2])
    assert unescape(alt) == bundle["text/plain"]
    assert title in alt
    assert len(image) < 100_000
    assert abs(Image.open(io.BytesIO(image)).width - 2 * theme.PIXELS) < 2
    assert dict(matplotlib.rcParams) == style, "the style of the reader was changed"
    assert pyplot.get_fignums() == [], "a figure stays open"


@pytest.mark.parametrize("title", [None, ""])
@pytest.mark.parametrize("draw", [*PICTURES.values(), draw_steps])
def test_a_title_that_is_no_text_is_an_error(draw, title):
    with pytest.raises(ValueError, match=f"expected title as a text, got {title!r}"):
        draw(title=title)


def test_a_mark_beyond_the_width_is_an_error():
    picture = plots.Picture()
    picture.grid((5, 0.2), [range(10)])
    with pytest.raises(
        ValueError, match=r"t: expected a picture of 6\.9 inches, got marks from"
    ):
        picture.publish("t")


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తె", "हि", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.row({"values": [words[:1] + words[2:]]}, title="t")
        chart.heat(torch.eye(6), words, title="t")
    assert len(published) == 2


@pytest.mark.parametrize("most, is_green", [(0.29, False), (0.31, True)])
def test_a_word_is_green_only_if_it_gets_much(most, is_green, published):
    weights = [[most, (1 - most) / 3, (1 - most) / 3, (1 - most) / 3]]
    plots.scenes.looks([["a", "b", "c", "d"]], [3], weights, title="t")
    image = Image.open(io.BytesIO(base64.b64decode(published[0]["image/png"])))
    colors = {color for _, color in image.convert("RGB").getcolors()}
    assert (ImageColor.getrgb(theme.INK["key"]) in colors) is is_green


def test_a_number_of_python_keeps_its_digits_and_its_size():
    numbers = [16777217.0, 1e39, 1e-50]
    assert to_array(numbers, "numbers").tolist() == numbers


def test_a_cross_is_where_a_line_ends_and_not_where_it_has_a_gap(monkeypatch):
    figures, nan = [], math.nan
    monkeypatch.setattr(chart, "publish", lambda fig, *texts: figures.append(fig))
    for y in ([1, 2, nan, nan], [nan, 1, 2, nan], [1, nan, 2, 3], [1, nan, 2, nan]):
        chart.lines({"a": y}, xlabel="x", ylabel="y", title="t")
    panel_lines = [fig.axes[0].lines[1:] for fig in figures]
    crosses = [[line.get_xdata().tolist() for line in lines] for lines in panel_lines]
    assert crosses == [[[1]], [[2]], [], [[2]]]
