"""Each test pins one sentence about the scheme that carries the course."""

import io
import itertools
import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib import colors as mcolors
from matplotlib.patches import FancyBboxPatch, Rectangle
from PIL import Image
from torch.nn import functional as F

from utils import plots
from utils.plots import example, exploring, overview, publishing
from utils.tokenizer import load_tokenizer

NOTEBOOKS = [f"{number:02d}" for number in range(14)]
every_state = pytest.mark.parametrize(
    "notebook, filled", [*itertools.product(NOTEBOOKS, (False, True))]
)
NAMES = [
    "text",
    "tokens",
    "embeddings",
    "positions",
    "inputs x",
    "queries, keys, values",
    "scores",
    "mask",
    "weights",
    "context",
    "heads",
    "block",
    "GPT",
    "next token",
]
LIT = {
    "00": "text",
    "01": "text; tokens",
    "02": "embeddings; positions; inputs x",
    "03": "scores; weights; context",
    "04": "queries, keys, values; scores",
    "05": "mask; weights",
    "06": "heads",
    "07": "positions",
    "08": "queries, keys, values",
    "09": "block; GPT; next token",
    "10": "scores; weights",
    "11": "text",
    "12": "queries, keys, values; scores; mask; weights; context; heads",
    "13": "; ".join(NAMES),
}
FILLED = {  # after a notebook, what was empty before
    "01": "tokens",
    "02": LIT["02"],
    "03": LIT["03"],
    "04": "queries, keys, values",
    "05": "mask",
    "06": "heads",
    "09": LIT["09"],
}
WORDS = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])


@cache
def draw(notebook, filled=True):
    """Draw a scheme; return its figure, its text and its stations by name."""

    def keep(fig, title, alt):
        fig.draw_without_rendering()
        drawn.update(ax=fig.axes[0], texts=fig.axes[0].texts, alt=alt)

    drawn = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "_publish", keep)
        plots.scheme(notebook, filled=filled, title="t")
    boxes = overview._boxes(notebook, filled, int(notebook))
    places = {overview.STATIONS[box.key].name: box for box in boxes}
    return SimpleNamespace(places=places, **drawn)


@pytest.fixture(autouse=True, scope="module")
def nothing_drawn():
    """Let no scheme stand for one that `utils` no longer draws."""
    draw.cache_clear()


def inside(place, x, y):
    across = place.x <= x <= place.x + place.width
    return across and place.y + 0.09 <= y <= place.y + overview.BOX


def numbers(picture, name):
    """Return what is written in a station and is a number, row by row."""
    texts = [
        text
        for text in picture.texts
        if inside(picture.places[name], *text.get_position())
        and re.fullmatch(r"−?\d+\.\d\d", text.get_text())
    ]
    texts.sort(key=lambda text: (-text.get_position()[1], text.get_position()[0]))
    return [float(text.get_text().replace("−", "-")) for text in texts]


def close(written, computed):
    return written == pytest.approx(computed.flatten().tolist(), abs=0.0051)


def said(alt, part):
    found = re.search(rf"{part}: (.*?)\.( |$)", alt)
    return found[1] if found else ""


@every_state
def test_the_text_says_which_stations_are_filled_lit_and_ahead(notebook, filled):
    alt = draw(notebook, filled).alt
    done = [
        FILLED.get(n, "") for n in NOTEBOOKS if n < notebook or filled and n == notebook
    ]
    known = {"text"} | {name for names in done for name in names.split("; ")} - {""}
    assert said(alt, "Stations") == "; ".join(NAMES)
    assert said(alt, "Lit") == LIT[notebook]
    assert set(said(alt, "Filled in").split("; ")) == known
    ahead = set(NAMES) - known - set(LIT[notebook].split("; "))
    assert set(said(alt, "Ahead").split("; ")) - {""} == ahead
    assert not re.search(r"\d", alt)


@every_state
def test_every_station_is_named_whatever_its_state(notebook, filled):
    texts = [text.get_text() for text in draw(notebook, filled).texts]
    assert [text for text in texts if text in NAMES] == NAMES


@every_state
def test_the_part_of_a_notebook_is_framed_in_blue(notebook, filled):
    picture = draw(notebook, filled)
    framed = [
        p
        for p in picture.ax.patches
        if isinstance(p, FancyBboxPatch)
        and mcolors.to_hex(p.get_edgecolor()).upper() == publishing.BLUE
        and p.get_linewidth() > 2
    ]
    assert len(framed) == len(LIT[notebook].split("; "))
    for frame in framed:
        assert publishing._luminance(frame.get_facecolor()[:3]) > 0.75
        assert publishing._luminance(frame.get_edgecolor()[:3]) < 0.2


@every_state
def test_a_question_mark_stands_at_the_start_and_not_at_the_end(notebook, filled):
    marks = [text for text in draw(notebook, filled).texts if text.get_text() == "?"]
    asked = (
        0
        if filled or notebook in ("00", "12", "13")
        else len(LIT[notebook].split("; ")) - (notebook == "01")
    )
    assert len(marks) == asked


@every_state
def test_no_text_is_small_or_leaves_its_frame(notebook, filled):
    picture = draw(notebook, filled)
    to_inches = picture.ax.transData.inverted()
    assert min(text.get_fontsize() for text in picture.texts) >= 7
    written = [text for text in picture.texts if text.get_text() not in ("", "?")]
    for text, place in itertools.product(written, picture.places.values()):
        if inside(place, *text.get_position()):
            box = text.get_window_extent().transformed(to_inches)
            assert place.x < box.x0 + 0.01 and box.x1 - 0.01 < place.x + place.width


@every_state
def test_no_two_texts_overlap(notebook, filled):
    texts = [text for text in draw(notebook, filled).texts if text.get_text()]
    boxes = [text.get_window_extent().padded(-1) for text in texts]
    for (a, text_a), (b, text_b) in itertools.combinations(zip(boxes, texts), 2):
        assert not a.overlaps(b), (text_a.get_text(), text_b.get_text())


def published(notebook, filled, title):
    """Return the PNG of a scheme."""
    controls = {"filled": SimpleNamespace(value=filled)}
    png, _ = exploring._drawn(
        lambda filled: plots.scheme(notebook, filled=filled, title=title), controls
    )
    return png


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_scheme_takes_less_than_40_kilobytes(notebook):
    assert len(published(notebook, True, "A title of two lines " * 5)) < 40_000


def test_the_palette_keeps_the_colours_of_the_weights():
    picture = Image.open(io.BytesIO(published("12", True, "t")))
    picture = picture.convert("RGB")
    seen = {
        mcolors.to_hex(np.array(color) / 255)
        for _, color in picture.getcolors(picture.width * picture.height)
    }
    weights = example.steps(12)["weights"]
    wanted = {mcolors.to_hex(publishing.WEIGHTS(w)) for w in weights.flatten().tolist()}
    assert wanted <= seen and "#000000" in seen


def test_the_notebook_that_is_open_stands_white_on_blue_beside_its_stations():
    picture = draw("10")
    white = [
        t.get_text()
        for t in picture.texts
        if t.get_color() == "white" and t.get_text() in NOTEBOOKS
    ]
    assert white == ["10", "10"]


@pytest.mark.parametrize("notebook", ["14", "3", 3, None])
def test_an_unknown_notebook_is_an_error_that_names_the_known(notebook):
    with pytest.raises(ValueError) as caught:
        plots.scheme(notebook, title="t")
    known = "00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13"
    expected = f"notebook: expected one of {known}, got {notebook!r}"
    assert str(caught.value) == expected


def test_at_the_start_of_11_a_text_enters_and_is_in_question(figures):
    plots.scheme("11", title="t")
    assert said(figures[0].alt, "In question") == "text"
    written = [text.get_text() for text in figures[0].fig.axes[0].texts]
    assert "Hello shiny sun" in written and "?" in written


def test_the_ids_are_those_of_the_vocabulary():
    texts = [text.get_text() for text in draw("01").texts]
    for number in load_tokenizer().encode("Hello shiny sun"):
        assert str(number) in texts
    assert {"Hello", "·shiny", "·sun"} <= set(texts)


def test_embeddings_and_positions_add_up_to_the_words_of_notebook_03():
    picture = draw("02")
    parts = [
        torch.tensor(numbers(picture, name))
        for name in ("embeddings", "positions", "inputs x")
    ]
    assert torch.allclose(parts[0] + parts[1], parts[2])
    assert close(numbers(picture, "inputs x"), WORDS)


def test_in_03_the_numbers_are_those_that_notebook_03_computes():
    picture = draw("03")
    scores = WORDS @ WORDS.T
    weights = torch.exp(scores) / torch.exp(scores).sum(dim=1, keepdim=True)
    assert close(numbers(picture, "scores"), scores)
    assert close(numbers(picture, "weights"), weights)
    assert close(numbers(picture, "context"), weights @ WORDS)


@pytest.mark.parametrize(
    "name, row",
    [
        ("scores", [0.7842, 1.3569, 1.2487]),
        ("weights", [0.2291, 0.4063, 0.3646]),
        ("context", [0.3990, 0.3854, 0.8610]),
    ],
)
def test_the_row_of_shiny_is_that_of_notebook_03_to_four_decimals(name, row):
    assert [round(value, 4) for value in example.steps(3)[name][1].tolist()] == row


def projected(head):
    return [WORDS @ matrix.float() for matrix in example.HEADS[head]]


@pytest.mark.parametrize("notebook, causal", [("04", False), ("05", True)])
def test_from_04_on_the_context_is_what_pytorch_computes(notebook, causal):
    picture, (query, key, value) = draw(notebook), projected(0)
    output = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    assert close(numbers(picture, "context"), output)
    assert close(numbers(picture, "scores"), query @ key.T / 2**0.5)
    seen = numbers(picture, "queries, keys, values")
    assert close(seen, torch.cat([query, key, value], dim=1))


def test_two_heads_stand_side_by_side_and_differ():
    outputs = [
        F.scaled_dot_product_attention(*projected(head), is_causal=True)
        for head in range(2)
    ]
    assert close(numbers(draw("06"), "heads"), torch.cat(outputs, dim=1))
    first, second = (head["weights"] for head in example.steps(6)["heads"])
    assert (first - second).abs().max() > 0.2


def test_in_08_keys_and_values_come_from_a_text_of_another_length():
    picture = draw("08")
    assert len(numbers(picture, "queries, keys, values")) == 6 + 4 + 4
    assert len(numbers(picture, "weights")) == len(numbers(picture, "scores")) == 6
    assert any("Bonjour soleil" in text.get_text() for text in picture.texts)


def test_an_empty_station_holds_no_number():
    picture = draw("03", filled=False)
    for name in ("scores", "weights", "context"):
        assert numbers(picture, name) == []


def cells(picture, name):
    return [
        patch
        for patch in picture.ax.patches
        if type(patch) is Rectangle
        and inside(picture.places[name], *patch.get_center())
    ]


def test_blocked_weights_are_hatched_and_hold_no_number():
    picture = draw("05")
    hatched = [cell for cell in cells(picture, "weights") if cell.get_hatch()]
    assert len(hatched) == 3 and len(numbers(picture, "weights")) == 6
    for cell in hatched:
        assert cell.get_facecolor()[:3] != publishing.WEIGHTS(0.0)[:3]


def test_a_cell_has_the_colour_of_its_weight():
    picture = draw("03")
    drawn = [cell.get_facecolor() for cell in cells(picture, "weights")]
    weights = torch.softmax(WORDS.double() @ WORDS.double().T, dim=1)
    expected = [publishing.WEIGHTS(weight) for weight in weights.flatten().tolist()]
    assert drawn == [pytest.approx(color, abs=0.01) for color in expected]


def test_the_probabilities_of_the_next_token_sum_to_one():
    assert sum(numbers(draw("09"), "next token")) == pytest.approx(1, abs=0.011)
    assert float(example.next_token().sum()) == pytest.approx(1)


def test_what_follows_the_text_is_an_exclamation_mark():
    shares = [round(share, 4) for share in example.next_token().tolist()]
    assert shares == [0.6937, 0.0892, 0.0445, 0.1727]
    assert example.NEXT_WORDS[0] == "!"


def test_the_own_text_is_in_the_example_unless_another_is_asked_for():
    steps = example.steps(8)
    assert steps["text"] == "Hello shiny sun" and len(steps["key"]) == 3
    assert len(example.steps(8, other_text=True)["key"]) == 2


def test_beyond_text_something_else_enters():
    assert "Hello shiny sun" in [text.get_text() for text in draw("10").texts]
    assert any("image" in text.get_text() for text in draw("11").texts)
