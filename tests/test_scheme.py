"""Each test pins one sentence about the scheme that carries the course."""

import itertools
import re
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from utils import plots
from utils.plots import example, overview
from utils.tokenizer import load_tokenizer

NOTEBOOKS = [f"{number:02d}" for number in range(16)]
every_state = pytest.mark.parametrize(  # 00 and 09 draw it at their start
    "notebook, filled", [*((n, True) for n in NOTEBOOKS), ("00", False), ("09", False)]
)
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


@every_state
def test_no_two_texts_overlap(notebook, filled):
    texts = [text for text in draw(notebook, filled).texts if text.get_text()]
    boxes = [text.get_window_extent().padded(-1) for text in texts]
    for (a, text_a), (b, text_b) in itertools.combinations(zip(boxes, texts), 2):
        assert not a.overlaps(b), (text_a.get_text(), text_b.get_text())


@pytest.mark.parametrize("notebook", ["16", "3", 3, None])
def test_an_unknown_notebook_is_an_error_that_names_the_known(notebook):
    with pytest.raises(ValueError) as caught:
        plots.scheme(notebook, title="t")
    known = "00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, 14, 15"
    expected = f"notebook: expected one of {known}, got {notebook!r}"
    assert str(caught.value) == expected


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
