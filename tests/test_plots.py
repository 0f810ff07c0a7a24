"""Each test pins one sentence about the pictures of the course."""

import base64
import io
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from pictures import (
    DRAWN,
    KEPT,
    WEIGHTS,
    WORDS,
    drawn,
    every_picture,
    kept,
    one_bar,
    parts_of,
)
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


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_is_drawn_as_it_is_kept(name, tmp_path):
    (picture, text), (png, alt) = kept(name), drawn(name)
    if differ(pixels(picture), pixels(io.BytesIO(png))):
        now = tmp_path / picture.name
        now.write_bytes(png)
        pytest.fail(
            f"{name}: {picture} is kept, {now} is drawn. If that is right, keep it: "
            "python -m tests.pictures"
        )
    assert alt == text.read_text(encoding="utf-8").removesuffix("\n")


def test_what_is_kept_is_drawn_and_small():
    names = {path.name for name in DRAWN for path in kept(name)}
    sizes = {path.name: path.stat().st_size for path in KEPT.iterdir()}
    assert sizes.keys() == names
    assert max(sizes.values()) < 40_000 and sum(sizes.values()) < 1_200_000
