"""Each test pins one sentence about pictures that answer to controls."""

import sys
from types import SimpleNamespace

import ipywidgets
import pytest
from pictures import one_bar, parts_of

from utils import plots
from utils.plots import exploring, publishing

WIDGETS = "application/vnd.jupyter.widget-view+json"


def test_explore_publishes_controls_and_first_picture_in_one_bundle(published):
    plots.explore(one_bar, height=ipywidgets.FloatSlider(value=0.5))
    [bundle] = published
    assert set(bundle) == {WIDGETS, "text/html", "image/png", "text/plain"}
    assert bundle["text/plain"].endswith("(interactive: height)")
    one_bar(0.5)
    pictures = [parts_of(bundle["text/html"])[1] for bundle in published]
    assert pictures[0] == pictures[1]


def panel_of(draw, **controls):
    first = publishing._img(*exploring._drawn(draw, controls))
    *_, picture, trouble = exploring._panel(ipywidgets, draw, controls, first).children
    return picture, trouble


def test_explore_redraws_when_a_control_moves(published):
    slider = ipywidgets.FloatSlider(value=0.5, max=1.0)
    picture, trouble = panel_of(one_bar, height=slider)
    first = picture.value
    assert parts_of(first) and trouble.value == ""
    slider.value = 0.9
    assert picture.value != first
    assert parts_of(picture.value)[0] == parts_of(first)[0] != ""
    slider.value = 0.5
    assert picture.value == first
    assert published == []


def test_explore_shows_an_error_and_recovers(published):

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


def test_explore_without_ipywidgets_publishes_the_picture(published, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    low, high = SimpleNamespace(value=0.5), SimpleNamespace(value=1)
    plots.explore(lambda low, high: one_bar(low / high), low=low, high=high)
    assert set(published[0]) == {"text/html", "image/png", "text/plain"}
    assert published[0]["text/plain"].endswith("weight. (interactive: low, high)")


@pytest.mark.parametrize("count", [0, 2])
def test_explore_asks_for_exactly_one_picture(count, published):
    def draw(height):
        for _ in range(count):
            one_bar(height)

    with pytest.raises(ValueError, match=f"draw: expected one picture, got {count}"):
        plots.explore(draw, height=SimpleNamespace(value=0.5))
    one_bar(0.5)
    assert len(published) == 1, "the picture after an error is not shown"
