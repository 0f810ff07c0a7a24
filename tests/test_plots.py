"""Each test pins one sentence about the pictures of the course."""

import base64
import io
import itertools
import re
import sys
import warnings
from html import unescape
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import colors as mcolors
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from utils import plots
from utils.plots import (
    charts,
    diagrams,
    exploring,
    overview,
    publishing,
    route,
)

WORDS = ["Your", " journey", "starts"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]]
CAUSAL = torch.tril(torch.ones(3, 3, dtype=torch.bool))

PICTURES = {
    "heatmap": lambda **k: plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, **k),
    "heatmaps": lambda **k: plots.heatmaps(
        [WEIGHTS] * 5, WORDS, titles=[f"head {h}" for h in range(5)], **k
    ),
    "arrows": lambda **k: plots.arrows(WEIGHTS, WORDS, 2, **k),
    "graph": lambda **k: plots.graph(WEIGHTS, WORDS, **k),
    "tokens": lambda **k: plots.tokens(WORDS, [7120, 7002, 4940], **k),
    "tokens without ids": lambda **k: plots.tokens(WORDS, **k),
    "bars": lambda **k: plots.bars({"one": WEIGHTS[1], "two": WEIGHTS[2]}, WORDS, **k),
    "curves": lambda **k: plots.curves(
        {"a": [1.0, 2.0, 4.0], "b": [3.0, 2.0, 1.0]},
        [4, 16, 64],
        xlabel="x",
        ylabel="y",
        log_x=True,
        log_y=True,
        reference={"one": 1.0},
        **k,
    ),
    "points": lambda **k: plots.points(
        torch.arange(12.0).reshape(2, 3, 2),
        WORDS,
        groups=["u", "v", "u"],
        titles=["before", "after"],
        **k,
    ),
    "clocks": lambda **k: plots.clocks(
        torch.arange(6.0).reshape(2, 3), titles=["fast", "slow"], **k
    ),
    "tensors": lambda **k: plots.tensors(
        [
            ("x", (8, 4, 256), ("B samples", "T tokens", "D features")),
            "@",
            ("W", (256, 64), ("D", "K")),
            "=",
            ("b", (64,), ("K",)),
        ],
        **k,
    ),
    "cells": lambda **k: plots.cells(
        [torch.arange(6).view(2, 3)],
        titles=["x"],
        colors=[[[0, 0, 1], [0, 0, 1]]],
        row_labels=[["u", "v"]],
        **k,
    ),
    "course_map": lambda **k: plots.course_map(
        [
            (0, "Start here", 15, 0, 0, []),
            (1, "Tokens", 60, 1, 2, [0]),
            (7, "Positions", 60, 0, 2, [6]),
            (12, "The clinic", 40, 0, 0, [6]),
            (None, "Faster byte pairs", 25, 0, 0, [1]),
        ],
        **k,
    ),
    "scheme": lambda **k: plots.scheme("05", filled=True, **k),
    "scheme of another text": lambda **k: plots.scheme("08", filled=True, **k),
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


def one_bar(height):
    plots.bars({"w": [height]}, ["a"], title="One bar", ylim=(0, 1))


@pytest.fixture
def published(monkeypatch):
    """Collect the bundles that would reach a notebook."""
    outputs = []

    def display(bundle, raw):
        assert raw
        outputs.append(bundle)

    for room in (publishing, exploring):
        monkeypatch.setattr(room, "get_ipython", lambda: SimpleNamespace())
    monkeypatch.setattr(publishing, "display", display)
    return outputs


@pytest.fixture
def figures(monkeypatch):
    """Collect the figures instead of publishing them."""
    drawn = []

    def keep(fig, title, alt, caption=None, colors=256):
        fig.draw_without_rendering()
        drawn.append(SimpleNamespace(fig=fig, alt=alt, caption=caption))

    for room in (charts, diagrams, overview, route):
        monkeypatch.setattr(room, "_publish", keep)
    return drawn


def parts_of(html):
    """Return the alternative text and the bytes of a picture."""
    found = re.fullmatch(
        r'<img alt="([^"]*)" style="[^"]*" src="data:image/png;base64,([^"]*)">', html
    )
    return unescape(found[1]), base64.b64decode(found[2])


def contrast(first, second):
    light, dark = sorted(map(publishing._luminance, (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


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
    assert len(png) < 30_000
    assert Image.open(io.BytesIO(png)).size[0] <= publishing.WIDE * publishing.DPI + 1
    assert dict(matplotlib.rcParams) == rc, "the style of the reader was changed"
    assert pyplot.get_fignums() == [], "a figure stays open"


def test_the_style_of_the_reader_does_not_reach_the_picture(published):
    one_bar(0.5)
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True}):
        one_bar(0.5)
    assert published[0] == published[1]


def test_outside_a_notebook_the_text_is_printed(capsys):
    plots.bars({"one": [1.0]}, ["a"], title="t", alt="A bar.")
    assert capsys.readouterr().out == "A bar.\n"


def test_the_text_says_nothing_measured(published):
    for weights in (WEIGHTS, torch.tensor(WEIGHTS) / 3):
        plots.heatmap(weights, WORDS, title="t")
        plots.bars({"one": weights[2]}, WORDS, title="t")
    texts = [bundle["text/plain"] for bundle in published]
    assert texts[:2] == texts[2:]


def test_inputs_are_not_changed(published):
    weights, mask = torch.tensor(WEIGHTS, requires_grad=True), CAUSAL.clone()
    words, groups = list(WORDS), {"one": torch.tensor(WEIGHTS[1])}
    plots.heatmap(weights, words, mask=mask, title="t")
    plots.graph(weights, words, title="t")
    plots.bars(groups, words, title="t")
    assert torch.equal(weights, torch.tensor(WEIGHTS)) and torch.equal(mask, CAUSAL)
    assert words == WORDS and torch.equal(groups["one"], torch.tensor(WEIGHTS[1]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: plots.heatmap(WEIGHTS, WORDS[:2], title="t"),
        lambda: plots.heatmaps([WEIGHTS], WORDS[:2], titles=["one"], title="t"),
        lambda: plots.arrows(WEIGHTS, WORDS[:2], 1, title="t"),
        lambda: plots.graph(WEIGHTS, WORDS[:2], title="t"),
        lambda: plots.bars({"one": WEIGHTS[0]}, WORDS[:2], title="t"),
        lambda: plots.points(torch.zeros(3, 2), WORDS[:2], title="t"),
        lambda: plots.tokens(WORDS, [1, 2], title="t"),
        lambda: plots.curves(
            {"one": WEIGHTS[0]}, [1, 2], title="t", xlabel="x", ylabel="y"
        ),
        lambda: plots.cells(
            [WEIGHTS],
            titles=["x"],
            title="t",
            colors=[CAUSAL.int()],
            row_labels=[WORDS[:2]],
        ),
    ],
)
def test_a_wrong_number_of_labels_is_an_error_with_both_numbers(call):
    with pytest.raises(ValueError, match="2.*3|3.*2"):
        call()


def test_a_mask_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"mask: expected shape \(3, 3\)"):
        plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL[:2], title="t")


def test_a_mask_of_numbers_is_an_error():
    with pytest.raises(ValueError, match="True = may attend"):
        plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL.float(), title="t")


def test_scores_drawn_as_weights_are_an_error():
    with pytest.raises(ValueError, match="signed=True"):
        plots.heatmap([[-1.0, 2.0]], ["a"], ["b", "c"], title="t")


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


def test_ticks_are_position_and_token(figures):
    plots.heatmap(WEIGHTS, WORDS, title="t")
    labels = [text.get_text() for text in figures[0].fig.axes[0].get_yticklabels()]
    assert labels == ["0 Your", "1 ·journey", "2 starts"]


def test_weights_go_from_white_at_zero_to_dark_blue_at_one(figures):
    plots.heatmap([[0.2, 0.3]], ["a"], ["b", "c"], title="t")
    image = figures[0].fig.axes[0].images[0]
    assert image.get_cmap() == publishing.WEIGHTS and image.get_clim() == (0, 1)
    ends = [mcolors.to_hex(publishing.WEIGHTS(end)) for end in (0.0, 1.0)]
    assert ends == ["#ffffff", "#001f4d"]


@pytest.mark.parametrize("size", [3, 60])
def test_a_map_of_zeros_still_has_an_edge(size, figures):
    plots.heatmap(torch.zeros(size, size), title="t")
    lines = [
        line
        for part in figures[0].fig.axes[0].collections
        for line in part.get_segments()
    ]
    ends = {tuple(point) for line in lines for point in line}
    last = size - 0.5
    assert {(-0.5, -0.5), (last, -0.5), (-0.5, last), (last, last)} <= ends
    assert len(lines) == (8 if size == 3 else 4)


def test_a_weight_of_zero_is_white_and_a_blocked_cell_is_not(figures):
    assert publishing.WEIGHTS(0.0)[:3] == (1, 1, 1)
    plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, title="t")
    [hatched] = [p for p in figures[0].fig.axes[0].patches if p.get_hatch()]
    assert hatched.get_facecolor()[:3] != (1, 1, 1)


def test_bars_of_all_panels_have_one_colour(figures):
    plots.bars({str(i): WEIGHTS[i] for i in range(3)}, WORDS, title="t")
    bars = [patch for ax in figures[0].fig.axes for patch in ax.patches]
    assert len(bars) == 9 and len({bar.get_facecolor() for bar in bars}) == 1


def test_tokens_take_turns_in_two_tints(figures):
    plots.tokens(["a", "b", "c", "d"], title="t")
    colors = [box.get_facecolor() for box in figures[0].fig.axes[0].patches]
    assert colors[0] == colors[2] != colors[1] == colors[3]


def test_signed_values_are_centred_on_zero(figures):
    plots.heatmap([[-1.0, 4.0]], ["a"], ["b", "c"], signed=True, title="t")
    image = figures[0].fig.axes[0].images[0]
    assert image.get_cmap().name == "RdBu_r" and image.get_clim() == (-4, 4)


@pytest.mark.parametrize("signed", [False, True])
def test_a_value_beyond_the_end_of_the_scale_is_named(signed):
    with pytest.raises(ValueError, match="to 0.5 .*to 0.9"):
        plots.heatmap([[0.9, 0.1]], title="t", vmax=0.5, signed=signed)


def test_heads_share_one_scale_and_wrap_at_four(figures):
    plots.heatmaps(torch.rand(6, 3, 3), WORDS, titles=list("abcdef"), title="t")
    panels = [ax for ax in figures[0].fig.axes if ax.images]
    assert len({panel.images[0].get_clim() for panel in panels}) == 1
    assert len({round(panel.get_position().y0, 3) for panel in panels}) == 2


def test_a_map_of_zeros_and_ones_has_two_squares_for_a_key(figures):
    plots.heatmaps([CAUSAL] * 2, WORDS, titles=["a", "b"], title="t", show_values=False)
    first, second = figures[0].fig.axes  # and no colour bar
    said = [text.get_text() for text in second.get_legend().get_texts()]
    assert said == ["1", "0"] and first.get_legend() is None


def test_each_map_can_have_its_own_mask(figures):
    plots.heatmaps(
        [WEIGHTS, WEIGHTS],
        WORDS,
        mask=[None, CAUSAL],
        title="t",
        titles=["without", "with"],
    )
    hatched = [
        any(patch.get_hatch() for patch in ax.patches) for ax in figures[0].fig.axes
    ]
    assert hatched == [False, True]


def test_nan_and_infinity_are_written_out(figures):
    plots.heatmap(
        [[float("nan"), float("-inf"), 0.5]], ["a"], list("bcd"), title="t", signed=True
    )
    texts = [text.get_text() for text in figures[0].fig.axes[0].texts]
    assert texts == ["nan", "−∞", "0.50"]


def test_whole_numbers_are_written_without_decimals(figures):
    plots.heatmap([[1234, -2]], ["a"], ["b", "c"], title="t", signed=True)
    plots.bars({"one": [3, 10_000]}, ["a", "b"], title="t")
    texts = [[t.get_text() for t in each.fig.axes[0].texts] for each in figures]
    assert texts == [["1,234", "−2"], ["3", "10,000"]]


def test_six_lines_have_six_colours_and_six_markers(figures):
    plots.curves(
        {str(i): [1.0, float(i)] for i in range(6)}, title="t", xlabel="x", ylabel="y"
    )
    lines = figures[0].fig.axes[0].lines
    colors = [mcolors.to_hex(line.get_color()).upper() for line in lines]
    assert set(colors) == set(publishing.SERIES)
    assert len({line.get_marker() for line in lines}) == 6


def test_the_legend_lies_outside_the_data(figures):
    PICTURES["curves"](title="t")
    fig = figures[0].fig
    legend, data = fig.legends[0].get_window_extent(), fig.axes[0].bbox
    assert not legend.overlaps(data)


def test_whole_numbers_across_have_ticks_at_whole_numbers(figures):
    for x in (None, [5, 6, 7, 8], [3, 6, 9, 12]):
        plots.curves({"a": [1.0, 2, 4, 3]}, x, title="t", xlabel="x", ylabel="y")
        ticks = figures[-1].fig.axes[0].get_xticklabels()
        assert [tick.get_text() for tick in ticks if "." in tick.get_text()] == []


def test_smoothing_keeps_the_values_behind_the_average(figures):
    plots.curves(
        {"loss": [4.0, 2.0, 3.0, 1.0]},
        smooth=2,
        title="t",
        xlabel="step",
        ylabel="loss",
    )
    raw, mean = figures[0].fig.axes[0].lines
    assert list(raw.get_ydata()) == [4.0, 2.0, 3.0, 1.0]
    assert list(mean.get_xdata()) == [1, 2, 3]
    assert list(mean.get_ydata()) == [3.0, 2.5, 2.0]


def test_bars_share_one_scale(figures):
    plots.bars({"a": [0.1, 0.2], "b": [0.9, 0.1]}, ["x", "y"], title="t")
    assert len({ax.get_ylim() for ax in figures[0].fig.axes}) == 1


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


def test_a_million_on_a_logarithmic_axis_is_written_out(figures):
    plots.curves({"a": [1.0, 2e6]}, log_y=True, title="t", xlabel="x", ylabel="y")
    ax = figures[0].fig.axes[0]
    assert "1,000,000" in [text.get_text() for text in ax.get_yticklabels()]


def test_names_of_points_do_not_cover_each_other(figures):
    places = torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.1], [2.0, 2.0]])
    plots.points(places, ["cat", "dog", "horse", "cow", "sky"], title="t")
    boxes = [t.get_window_extent() for t in figures[0].fig.axes[0].texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_an_arrow_leads_to_every_key_that_has_weight(figures):
    plots.arrows(WEIGHTS, WORDS, 1, title="t")
    arrows = figures[0].fig.axes[0].patches
    assert len(arrows) == 2
    assert arrows[0].get_linewidth() < arrows[1].get_linewidth()


def test_the_graph_leaves_weak_arrows_out_and_says_so(figures):
    plots.graph(WEIGHTS, WORDS, threshold=0.25, title="t")
    arrows = [p for p in figures[0].fig.axes[0].patches if hasattr(p, "get_arrowstyle")]
    assert len(arrows) == 5  # the weights 1.0, 0.4, 0.6, 0.3 and 0.5
    assert "below 0.25" in figures[0].caption


def test_sizes_are_written_at_the_axes_of_a_tensor(figures):
    PICTURES["tensors"](title="t")
    texts = {text.get_text() for text in figures[0].fig.axes[0].texts}
    assert {"B samples = 8", "T tokens = 4", "D features = 256", "@"} <= texts


def test_a_tensor_of_four_axes_is_an_error():
    with pytest.raises(ValueError, match="one to three axes"):
        plots.tensors([("x", (2, 3, 5, 7), "BHTK")], title="t")


@pytest.mark.parametrize("name", ["cells", "graph", "arrows", "tensors", "tokens"])
def test_no_empty_band_lies_under_the_title(name, published):
    PICTURES[name](title="t")
    _, png = parts_of(published[0]["text/html"])
    ink = (np.array(Image.open(io.BytesIO(png)).convert("L")) < 250).any(axis=1)
    title, first = np.flatnonzero(np.diff(ink.astype(int)) > 0)[:2]
    height_of_title = np.flatnonzero(~ink[title + 1 :])[0]
    assert first - title - height_of_title < 0.2 * publishing.DPI


def test_cells_of_one_group_have_one_colour(figures):
    PICTURES["cells"](title="t")
    cells = [patch.get_facecolor() for patch in figures[0].fig.axes[0].patches]
    assert cells[0] == cells[1] == cells[3] != cells[2] == cells[5]


def test_the_map_shows_what_is_passed_and_its_text_does_not(figures):
    PICTURES["course_map"](title="t")
    texts = {text.get_text() for text in figures[0].fig.axes[0].texts}
    assert "1 / 2" in texts and "1 / 2" not in figures[0].alt


def test_parts_two_and_three_share_a_row_if_they_fit():
    places, rows = route._places([*range(14)])
    assert rows == 2
    assert {row for row, _, _ in map(places.get, range(7, 14))} == {1}
    assert places[12] == (1, 5, "Part three") and places[13] == (1, 6, None)


def test_the_map_has_three_parts_and_a_list_for_another_evening(figures):
    PICTURES["course_map"](title="t")
    texts = [text.get_text() for text in figures[0].fig.axes[0].texts]
    rows = ["Part one", "Part two", "Part three", "Deeper, for another evening"]
    assert [text for text in texts if text in rows] == rows
    assert texts[-2:] == ["Faster byte pairs", "25 min, needs 01"]
    assert figures[0].alt.endswith("Deeper: Faster byte pairs, 25 minutes, needs 01.")


@pytest.mark.parametrize(
    "piece, shown",
    [
        (" sun", "·sun"),
        ("\n", "↵"),
        ("  ", "··"),
        ("a b", "a b"),
        (b" sun", "·sun"),
        ("ήλιος", "ήλιος"),
        ("$5", "$5"),
        (b"\xe0\xa4", "\\xe0\\xa4"),
        ("\u0928", "\\u0928"),
        ("\U0001f600", "\\U0001f600"),
        ("\x00", "\\x00"),
    ],
)
def test_every_piece_of_text_is_made_visible(piece, shown):
    assert publishing._visible(piece) == shown


def test_scripts_and_emoji_that_the_font_lacks_draw_without_a_warning(published):
    words = ["తెలుగు", "हिन्दी", "🙂", b"\xf0\x9f", "中", "$x$"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.tokens(words, range(6), title="t")
        plots.heatmap(torch.eye(6), words, title="t")
        plots.arrows(torch.ones(6) / 6, words, 0, title="t")
        plots.bars({"తె": torch.ones(6)}, words, title="తెలుగు")
    assert len(published) == 4


# --- colours ----------------------------------------------------------------------

# What eyes without one kind of cone see, on linear RGB: Machado, Oliveira and Fernandes
# (2009), A Physiologically-based Model for Simulation of Color Vision Deficiency, the
# matrices of severity 1.
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
every_sight = pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)  # from linear sRGB
# CIE Lab: two colours side by side differ from 2.3 on; these stand apart.
APART = 14


def lab(color, sight):
    """Return the CIE Lab coordinates of a colour as these eyes see it."""
    rgb = np.array(mcolors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(sight @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@every_sight
@pytest.mark.parametrize(
    "colors", [publishing.SERIES, publishing.FILLS], ids=["lines", "areas"]
)
def test_any_two_colours_of_a_picture_are_apart_for_all_eyes(colors, sight):
    for first, second in itertools.combinations(colors, 2):
        between = np.linalg.norm(lab(first, sight) - lab(second, sight))
        assert between > APART, (first, second)


@every_sight
def test_larger_weights_are_darker_in_equal_steps_for_all_eyes(sight):
    scale = publishing.WEIGHTS(np.linspace(0, 1, 256))
    steps = -np.diff([lab(color[:3], sight)[0] for color in scale])
    assert (steps > 0).all()
    eighths = steps[:-1].reshape(-1, 2).sum(axis=1)
    assert eighths.max() < 2 * eighths.min()


@every_sight
def test_signed_values_darken_on_both_sides_which_are_apart_for_all_eyes(sight):
    scale = matplotlib.colormaps["RdBu_r"](np.linspace(0, 1, 65))
    seen = [lab(color, sight) for color in scale]
    steps = np.diff([color[0] for color in seen])
    assert (steps[:32] > 0).all() and (steps[32:] < 0).all()
    for i in range(28):  # an eighth around zero is nearly white on both sides
        assert np.linalg.norm(seen[i] - seen[-1 - i]) > APART


@pytest.mark.parametrize(
    "scale",
    [publishing.WEIGHTS, matplotlib.colormaps["RdBu_r"]],
    ids=["weights", "signed"],
)
def test_numbers_in_cells_stand_out_from_every_colour(scale):
    for color in scale(np.linspace(0, 1, 256)):
        assert contrast(color, publishing._ink(color)) >= 4.5


def test_black_text_stands_out_from_every_area():
    nodes = [publishing._tint(color) for color in publishing.SERIES]
    assert (
        min(
            contrast(color, "black")
            for color in (*publishing.FILLS, *publishing.TINTS, *nodes)
        )
        >= 4.5
    )


@every_picture
def test_all_text_stands_out_from_what_lies_behind_it(draw, figures):
    draw(title="t")
    fig = figures[0].fig
    texts = [text for text in fig.findobj(Text) if text.get_text().strip()]
    for text in texts:
        text.set_alpha(0)
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255
    for text in texts:
        left, bottom, right, top = text.get_window_extent().extents.astype(int)
        behind = pixels[bottom:top, left:right].reshape(-1, 3)
        if len(behind):  # else a tick that lies outside
            most = np.median(behind, axis=0)
            assert contrast(text.get_color(), most) >= 4.5, text.get_text()


def test_captions_stand_out_from_white():
    assert contrast(publishing.GREY, "white") >= 4.5


def test_every_line_and_bar_stands_out_from_white():
    assert min(contrast(color, "white") for color in publishing.SERIES) >= 3


@pytest.mark.parametrize(
    "name", ["arrows", "graph", "bars", "curves", "points", "tensors"]
)
def test_every_mark_stands_out_from_white_by_its_area_or_its_edge(name, figures):
    PICTURES[name](title="t")
    for ax in figures[0].fig.axes:
        colors = [(line.get_color(), line.get_color()) for line in ax.lines]
        colors += [(mark.get_facecolor(), mark.get_edgecolor()) for mark in ax.patches]
        for pair in colors:
            rgba = [np.array(mcolors.to_rgba(color)) for color in pair]
            shown = [1 - c[3] * (1 - c[:3]) for c in rgba]
            assert max(contrast(color, "white") for color in shown) >= 3


def test_the_hatch_of_blocked_cells_stands_out(figures):
    plots.heatmap(WEIGHTS, WORDS, mask=CAUSAL, title="t")
    [hatched] = [p for p in figures[0].fig.axes[0].patches if p.get_hatch()]
    assert contrast(hatched.get_facecolor(), hatched.get_edgecolor()) >= 3


# --- explore ----------------------------------------------------------------------


def test_explore_publishes_controls_and_first_picture_in_one_bundle(published):
    ipywidgets = pytest.importorskip("ipywidgets")
    plots.explore(one_bar, height=ipywidgets.FloatSlider(value=0.5))
    [bundle] = published
    assert set(bundle) == {
        "application/vnd.jupyter.widget-view+json",
        "text/html",
        "image/png",
        "text/plain",
    }
    assert bundle["text/plain"].endswith("(interactive: height)")
    one_bar(0.5)
    pictures = [parts_of(bundle["text/html"])[1] for bundle in published]
    assert pictures[0] == pictures[1]


def panel_of(draw, **controls):
    ipywidgets = pytest.importorskip("ipywidgets")
    first = publishing._img(*exploring._drawn(draw, controls))
    *_, picture, trouble = exploring._panel(ipywidgets, draw, controls, first).children
    return picture, trouble


def test_explore_redraws_when_a_control_moves(published):
    ipywidgets = pytest.importorskip("ipywidgets")
    slider = ipywidgets.FloatSlider(value=0.5, max=1.0)
    picture, _ = panel_of(one_bar, height=slider)
    first = picture.value
    slider.value = 0.9
    assert picture.value != first
    assert parts_of(picture.value)[0] == parts_of(first)[0] != ""
    slider.value = 0.5
    assert picture.value == first
    assert published == []


def test_explore_shows_an_error_and_recovers(published):
    ipywidgets = pytest.importorskip("ipywidgets")

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


def test_explore_names_a_control_after_its_keyword(published):
    ipywidgets = pytest.importorskip("ipywidgets")
    named = ipywidgets.FloatSlider(description="τ")
    unnamed = ipywidgets.IntSlider()
    panel_of(lambda top_k, temperature: one_bar(0.5), top_k=unnamed, temperature=named)
    assert (unnamed.description, named.description) == ("top k", "τ")
    assert (unnamed.tooltip, named.tooltip) == ("top k", "τ")


def test_explore_without_ipywidgets_publishes_the_picture(published, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    plots.explore(one_bar, height=SimpleNamespace(value=0.5))
    assert set(published[0]) == {"text/html", "image/png", "text/plain"}


def test_explore_asks_for_exactly_one_picture(published):
    with pytest.raises(ValueError, match="expected one picture, received 0"):
        plots.explore(lambda height: None, height=SimpleNamespace(value=0.5))
