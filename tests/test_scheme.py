"""Each test pins one sentence about the scheme that carries the course."""

import itertools
from collections import Counter

import pytest
import torch
from torch.nn import functional as F

from utils import plots
from utils.plots import example
from utils.tokenizer import load_tokenizer

NOTEBOOKS = [f"{number:02d}" for number in range(16)]
every_state = pytest.mark.parametrize(  # 00 and 09 draw it at their start
    "notebook, filled", [*((n, True) for n in NOTEBOOKS), ("00", False), ("09", False)]
)
WORDS = torch.tensor([[34, 22, 54], [53, 34, 98], [29, 54, 93]]).double() / 100


@pytest.fixture
def draw(figures):
    """Return a function that draws a scheme and returns its texts."""

    def texts(notebook, filled=True):
        plots.scheme(notebook, filled=filled, title="t")
        return [text for text in figures[0].fig.axes[0].texts if text.get_text()]

    return texts


def written(*matrices):
    """Return all numbers of the matrices as the scheme writes them."""
    numbers = torch.cat([matrix.flatten() for matrix in matrices]).tolist()
    return Counter(f"{round(number, 9):.2f}".replace("-", "−") for number in numbers)


@every_state
def test_no_two_texts_overlap(notebook, filled, draw):
    boxes = [(t.get_window_extent().padded(-1), t) for t in draw(notebook, filled)]
    for (a, text_a), (b, text_b) in itertools.combinations(boxes, 2):
        assert not a.overlaps(b), (text_a.get_text(), text_b.get_text())


def test_the_ids_are_those_of_the_vocabulary(draw):
    ids = map(str, load_tokenizer().encode("Hello shiny sun"))
    assert {"Hello", "·shiny", "·sun", *ids} <= {t.get_text() for t in draw("01")}


def in_03():
    scores = WORDS @ WORDS.T
    weights = torch.exp(scores) / torch.exp(scores).sum(dim=1, keepdim=True)
    return scores, weights, weights @ WORDS


def in_pytorch(causal):
    query, key, value = (WORDS @ matrix for matrix in example.HEADS[0])
    context = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    return query, key, value, query @ key.T / 2**0.5, context


@pytest.mark.parametrize(
    "notebook, computed",
    [
        ("02", [WORDS]),
        ("03", in_03()),
        ("04", in_pytorch(causal=False)),
        ("05", in_pytorch(causal=True)),
    ],
)
def test_the_numbers_are_those_of_notebook_03_and_from_04_on_of_pytorch(
    notebook, computed, draw
):
    assert written(*computed) <= Counter(t.get_text() for t in draw(notebook))
