"""Each test pins one sentence about the pictures of the course."""

import base64
import io
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import colors as mcolors
from matplotlib import pyplot
from pictures import CAUSAL, PICTURES, WEIGHTS, WORDS, every_picture, one_bar, parts_of
from PIL import Image

from utils import plots
from utils.plots import publishing, route


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
    assert image.get_cmap() == publishing.SIGNED and image.get_clim() == (-4, 4)


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


def test_whole_numbers_below_have_room_between_them(figures):
    plots.curves({"a": range(10)}, title="t", xlabel="x", ylabel="y")
    ax = figures[0].fig.axes[0]
    assert [tick for tick in ax.get_xticks() if 0 <= tick <= 9] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    "ylim, written", [((2, 9), ["3", "4"]), ((1, 10), []), ((2, 40), [])]
)
def test_a_logarithmic_axis_within_a_decade_has_numbers_between(ylim, written, figures):
    plots.curves({"a": [3]}, title="t", xlabel="x", ylabel="y", log_y=True, ylim=ylim)
    ax = figures[0].fig.axes[0]
    texts = [text.get_text() for text in ax.get_yticklabels(minor=True)]
    assert [text for text in texts if text in ("3", "4")] == written


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


def test_the_graph_says_that_there_are_no_arrows_for_weights_of_0(figures):
    plots.graph(WEIGHTS, WORDS, threshold=0, title="t")
    assert figures[0].caption.endswith("; weights of 0 are left out.")


def test_cells_may_be_empty(figures):
    plots.cells([[["", ""]]], titles=["x"], title="t", colors=[[[0, 1]]])
    assert len(figures[0].fig.axes[0].patches) == 2


def test_the_graph_leaves_weak_arrows_out_and_says_so(figures):
    plots.graph(WEIGHTS, WORDS, threshold=0.25, title="t")
    arrows = [p for p in figures[0].fig.axes[0].patches if hasattr(p, "get_arrowstyle")]
    assert len(arrows) == 5  # the weights 1.0, 0.4, 0.6, 0.3 and 0.5
    assert "below 0.25" in figures[0].caption


def test_sizes_are_written_at_the_axes_of_a_tensor(figures):
    PICTURES["tensors"](title="t")
    texts = {text.get_text() for text in figures[0].fig.axes[0].texts}
    assert {"B samples = 8", "T tokens = 4", "D features = 256", "@"} <= texts


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
