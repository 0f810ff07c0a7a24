"""Each test pins one sentence about the pictures of the course."""

import base64
import io
import warnings

import matplotlib
import torch
from matplotlib import pyplot
from pictures import WEIGHTS, WORDS, every_picture, one_bar, parts_of
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


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తెలుగు", "हिन्दी", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.tokens(words, range(6), title="t")
        plots.heatmap(torch.eye(6), words, title="t")
        plots.arrows(torch.ones(6) / 6, words, 0, title="t")
        plots.bars({"తె": torch.ones(6)}, words, title="తెలుగు")
    assert len(published) == 4
