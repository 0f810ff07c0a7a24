"""Each test pins one sentence about where the texts of a picture stand."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from utils.plots import charts, publishing

STEPS = {13: 1, 14: 2, 27: 5, 66: 10, 131: 20, 261: 50, 651: 100, 1_301: 500}


@pytest.mark.parametrize("number, step", [*STEPS.items(), (10_001, 10_000)])
def test_plain_positions_are_thinned_to_thirteen_in_round_steps(number, step):
    ticks, _ = charts._thinned(["7"] * number, 0.1, plain=True)
    assert ticks == range(0, number, step)


@pytest.mark.parametrize("points, step", [(6.18, 1), (6.17, 2), (3.08, 5)])
def test_names_are_thinned_where_they_are_nearer_than_their_letters(points, step):
    ticks, size = charts._thinned(["a"] * 20, points / 72, plain=False)
    assert ticks == range(0, 20, step) and size == 6.5


@pytest.mark.parametrize("share, angle", [(0.91, 0), (0.93, 45)])
def test_labels_are_level_where_they_fill_nine_tenths_of_their_room(share, angle):
    ax = Figure().subplots()
    room = publishing._text_width("journey", 9) / share
    charts._label_columns(ax, ["journey"] * 3, room)
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {angle}


def test_what_a_label_covers_is_its_share_of_others_and_outside_of_the_frame():
    box, frame = Bbox.from_bounds(0, 0, 4, 3), Bbox.from_bounds(-9, -9, 20, 20)
    others = [Bbox.from_bounds(3, -1, 5, 5), Bbox.from_bounds(7, 7, 1, 1), box]
    assert charts._covered(box, others[:2], frame) == 3
    assert charts._covered(box, others, frame) == 15
    assert charts._covered(box, [], Bbox.from_bounds(2, 1, 9, 9)) == 8
    assert charts._covered(box, [], Bbox.from_bounds(7, 7, 1, 1)) == 12


@pytest.mark.parametrize("apart, side", [(5.5, "right"), (4.5, "left")])
@pytest.mark.parametrize("way", [1, -1], ids=["above", "below"])
def test_a_label_goes_to_the_left_where_a_point_would_lie_on_it(way, apart, side):
    ax = Figure((6.4, 4.8), dpi=100).add_axes(
        (0, 0, 1, 1), xlim=(0, 640), ylim=(0, 480)
    )  # in pixels
    other = 320, 200 + way * (13 / 2 + apart)
    charts._label_points(ax, np.array([(300, 200), other]), ["a long name", "b"])
    assert ("right" if ax.texts[0].xy[0] > 300 else "left") == side
