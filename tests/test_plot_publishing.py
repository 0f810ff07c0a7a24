"""Each test pins one sentence about what all pictures share, from text to PNG."""

import io

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import colors as mcolors
from matplotlib import font_manager, ft2font
from PIL import Image

from utils.plots import publishing


@pytest.fixture(autouse=True)
def nothing_kept():
    """Let each test compute what publishing keeps from call to call."""
    publishing._text_width.cache_clear()
    publishing._glyphs.cache_clear()


# --- inputs -----------------------------------------------------------------------


def test_a_list_may_mix_tensors_and_numbers():
    first = torch.tensor([1.0, 2.0], requires_grad=True)
    array = publishing._array([first, [3.0, 4.0]], "x", 2)
    assert array.tolist() == [[1, 2], [3, 4]] and array.dtype == np.float64


def test_an_empty_list_is_an_array_of_no_values():
    assert publishing._array([], "x").shape == (0,)


def test_a_wrong_number_of_axes_is_an_error_with_the_shape():
    with pytest.raises(ValueError) as caught:
        publishing._array([1.0, 2.0, 3.0], "weights", 2)
    assert str(caught.value) == "weights: expected 2 axes, got shape (3,)"


def test_a_wrong_number_of_names_is_an_error_with_both_numbers():
    with pytest.raises(ValueError) as caught:
        publishing._names(["a", "b"], 3, "labels")
    assert str(caught.value) == "labels: expected 3 of them, got 2"


def test_ticks_are_positions_and_where_there_are_tokens_their_names():
    assert publishing._ticks(None, 3, "rows") == ["0", "1", "2"]
    assert publishing._ticks(["a", " b"], 2, "rows") == ["0 a", "1 ·b"]
    with pytest.raises(ValueError) as caught:
        publishing._ticks(["a"], 2, "rows")
    assert str(caught.value) == "rows: expected 2 of them, got 1"


def glyphs(face):
    return {*ft2font.FT2Font(font_manager.findfont(face)).get_charmap()}


def test_a_character_is_drawn_if_both_faces_have_it():
    wide, mono = glyphs("DejaVu Sans"), glyphs("DejaVu Sans Mono")
    for missing in (min(wide - mono), min(mono - wide)):
        shown = publishing._drawable(chr(missing))
        assert shown == chr(missing).encode("unicode_escape").decode()
    shared = chr(max(c for c in wide & mono if chr(c).isprintable()))
    assert publishing._drawable(f"a\n{shared}") == f"a\n{shared}"


@pytest.mark.parametrize(
    "token, shown",
    [
        ("a\tb", "a→b"),
        ("  a b ", "··a b "),
        (" \n ", "·↵ "),
        ("\r ", "\\r·"),
        (bytearray(b" a"), "·a"),
        (" X", "·X"),
        (7, "7"),
    ],
)
def test_spaces_before_a_token_are_dots_and_so_are_those_of_blank_ones(token, shown):
    assert publishing._visible(token) == shown


# --- figures ----------------------------------------------------------------------


def test_a_drawing_function_meets_the_style_of_the_course_alone():
    def draw(*sizes, **names):
        return sizes, names, dict(matplotlib.rcParams)

    with matplotlib.rc_context({"font.size": 20, "axes.grid": True}):
        sizes, names, style = publishing._styled(draw)(1, 2, name="a")
    assert (sizes, names) == ((1, 2), {"name": "a"})
    assert (style["font.size"], style["axes.grid"]) == (10, False)


@pytest.mark.parametrize(
    "panels, shape, width", [(1, (1, 1), 5.0), (3, (1, 3), 7.5), (5, (2, 4), 7.5)]
)
def test_panels_stand_at_most_four_to_a_row(panels, shape, width):
    fig, axes, columns = publishing._grid(panels, 2.0)
    assert len(axes) == panels and columns == shape[1]
    assert axes[0].get_gridspec().get_geometry() == shape
    assert list(fig.get_size_inches()) == [width, 2.0 * shape[0]]
    assert fig.get_layout_engine().__class__.__name__ == "ConstrainedLayoutEngine"
    assert [ax.axison for ax in fig.axes] == [ax in axes for ax in fig.axes]
    assert fig.dpi == publishing.DPI


@pytest.mark.parametrize("share", [False, True])
def test_panels_share_their_scales_if_asked(share):
    _, axes, _ = publishing._grid(2, 2.0, *[share] * share)
    axes[0].set(xlim=(3, 5), ylim=(7, 11))
    shared = axes[1].get_xlim() == (3, 5), axes[1].get_ylim() == (7, 11)
    assert shared == (share, share)


def test_a_canvas_is_measured_in_inches_and_has_no_axes():
    fig, ax = publishing._canvas(5, 3)
    assert ax.get_xlim() == (0, 5) and ax.get_ylim() == (0, 3) and not ax.axison
    assert ax.get_position().bounds == (0, 0, 1, 1)
    assert list(fig.get_size_inches()) == [5, 3]


# --- text -------------------------------------------------------------------------


def test_the_width_of_a_text_is_in_inches_and_grows_with_its_size_and_weight():
    ten = publishing._text_width("a word", 10)
    assert publishing._text_width("a word", 20) == pytest.approx(2 * ten, rel=0.02)
    assert publishing._text_width("a word", 10, "bold") > 1.05 * ten
    fig = publishing._figure(5, 3)
    drawn = fig.text(0, 0, "a word", fontsize=10).get_window_extent()
    assert ten == pytest.approx(drawn.width / publishing.DPI, rel=0.03)
    assert publishing._text_width(" ", 10) == 0
    escaped = publishing._text_width("\\u0c38\\u0c41", 10)
    assert publishing._text_width("\u0c38\u0c41", 10) == escaped


def test_the_width_of_a_text_is_that_in_the_face_of_the_course():
    ten = publishing._text_width("a word", 10)
    publishing._text_width.cache_clear()
    with matplotlib.rc_context({"font.family": "monospace", "font.weight": "bold"}):
        assert publishing._text_width("a word", 10) == ten


def test_the_widest_of_no_texts_has_no_width():
    wide = publishing._text_width("mmm", 8)
    assert publishing._widest(["i", "mmm", "ii"], 8) == wide
    assert publishing._widest([], 8) == 0


@pytest.mark.parametrize("weight", ["normal", "bold"])
@pytest.mark.parametrize("size, width", [(10, 3.0), (10, 1.2), (9, 6.0), (1, 0.5)])
def test_a_wrapped_line_is_as_full_as_it_can_be(size, width, weight):
    first = publishing._wrap("n" * 200, width, size, weight).split("\n")[0]
    one = publishing._text_width("n" * 100, size, weight) / 100
    assert 0.95 * width - one < publishing._text_width(first, size, weight) < width


def test_a_short_text_is_wrapped_at_its_width_too():
    assert publishing._wrap("iiii" * 5, 0.06, 1) == "i" * 13 + "\n" + "i" * 7


def test_a_line_is_not_wrapped_before_ten_characters():
    assert publishing._wrap("four five six", 0.1) == "four five\nsix"
    assert publishing._wrap("four five seven", 0.1) == "four five\nseven"
    assert publishing._wrap("three seven", 0.1) == "three\nseven"
    assert publishing._wrap("four seven", 0.1) == "four seven"


def test_a_text_is_wrapped_at_ten_points_unless_another_size_is_given():
    assert publishing._wrap("n" * 100, 3) == publishing._wrap("n" * 100, 3, 10)


def test_what_the_font_lacks_is_wrapped_as_it_is_drawn():
    assert publishing._wrap("\u0c38" * 4, 0.1) == "\\u0c38\\u0c\n38\\u0c38\\u\n0c38"


@pytest.mark.parametrize(
    "color, luminance",
    [
        ("white", 1),
        ("black", 0),
        ("red", 0.2126),
        ("lime", 0.7152),
        ("blue", 0.0722),
        ("#767676", 0.1812),
        ("#0A0A0A", 0.0030353),
        ("#0B0B0B", 0.0033465),
    ],
)
def test_the_luminance_is_that_of_the_guidelines(color, luminance):
    assert publishing._luminance(color) == pytest.approx(luminance, rel=3e-4)


def test_a_tint_is_a_share_of_its_colour_on_white():
    assert mcolors.to_hex(publishing._tint("black")) == "#a6a6a6"
    assert mcolors.to_hex(publishing._tint("red", 0.2)) == "#ffcccc"


@pytest.mark.parametrize(
    "value, digits, shown",
    [
        (1234.5678, 1, "1,234.6"),
        (-0.001, 2, "0.00"),
        (-2, 0, "−2"),
        (float("-inf"), 2, "−∞"),
    ],
)
def test_a_number_is_written_as_in_print(value, digits, shown):
    assert publishing._number(value, digits) == shown


def test_a_number_has_two_decimals_unless_all_are_whole():
    assert publishing._number(0.125001) == "0.13"
    assert publishing._digits([1.0, float("nan"), 3.0]) == 0
    assert publishing._digits([1.0, 2.5]) == 2


def test_twelve_names_are_listed_and_the_rest_is_counted():
    names = list("abcdefghijklm")
    assert publishing._listed(names[:12]) == "a, b, c, d, e, f, g, h, i, j, k, l"
    assert publishing._listed(names) == "a, b, c, d, e, f, g, h, i, j, k, l and 1 more"


@pytest.mark.parametrize("title", ["The way.", "Which way?", "This way!", "The way X"])
def test_the_text_of_a_picture_is_made_of_sentences(title):
    said = publishing._describe("Kind", title, Filled_in=["a", "b"], Ahead=[], Lit="c")
    point = "." * title.endswith("X")
    assert said == f"Kind: {title}{point} Filled in: a, b. Lit: c."


# --- the PNG ----------------------------------------------------------------------


SHADES = {"w": (255, 255, 255), "r": (200, 10, 20), "g": (30, 180, 40)}
SHADES |= {"b": (60, 50, 220), "o": (210, 30, 20)}
SHADES |= {"1": (245, 245, 245), "2": (236, 236, 236), "3": (234, 234, 234)}


def compressed(pixels):
    """Return the PNG of a picture."""
    buffer = io.BytesIO()
    Image.fromarray(np.array(pixels, dtype=np.uint8)).save(buffer, format="png")
    return publishing._compressed(buffer)


def through_a_palette(rows, colors, monkeypatch):
    """Return a picture of letters as it is with a palette of so many colours."""
    monkeypatch.setattr(publishing, "COLORS", colors)
    png = compressed([[SHADES[letter] for letter in row] for row in rows])
    back = {shade: letter for letter, shade in SHADES.items()}
    seen = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return ["".join(back[tuple(map(int, at))] for at in row) for row in seen]


def test_with_enough_colours_nothing_changes(monkeypatch):
    rows = ["wrgb", "orwg", "bbow"]
    assert through_a_palette(rows, 5, monkeypatch) == rows


def test_a_colour_that_is_left_out_becomes_the_nearest(monkeypatch):
    rows = ["wwww", "rrgg", "bbwo"]
    assert through_a_palette(rows, 4, monkeypatch) == ["wwww", "rrgg", "bbwr"]


def test_a_rare_colour_is_kept_before_one_more_shade_of_a_frequent_one(monkeypatch):
    rows = ["wwwwwwrrrrrrr", "wwwwwwooooobw"]
    kept = ["wwwwwwrrrrrrr", "wwwwwwrrrrrbw"]
    assert through_a_palette(rows, 3, monkeypatch) == kept


@pytest.mark.parametrize(
    "rows, kept",  # of four pixels 10 steps from white and one 19 or 21 steps away
    [
        (["wwwww", "11112"], ["wwwww", "11111"]),
        (["wwwww", "11113"], ["wwwww", "wwww3"]),
    ],
)
def test_pixels_count_by_the_square_of_their_distance(rows, kept, monkeypatch):
    assert through_a_palette(rows, 2, monkeypatch) == kept


def test_of_more_colours_as_many_are_kept_as_a_palette_holds():
    blues = [[(i // 2, i // 2, i % 2) for i in range(400)]]
    picture = Image.open(io.BytesIO(compressed(blues)))
    assert len(picture.getcolors()) == 256


def test_the_png_is_as_small_as_it_gets():
    rows = ["wrgb" * 64] * 32 + ["bbwr" * 64] * 32
    png = compressed([[SHADES[letter] for letter in row] for row in rows])
    small = io.BytesIO()
    Image.open(io.BytesIO(png)).save(small, format="png", optimize=True)
    assert len(png) <= len(small.getvalue())
