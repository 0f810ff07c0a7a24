"""A picture of notebook 14: what is kept of a token."""

from matplotlib.patches import Rectangle

from utils.plots.publishing import (
    BLUE,
    FILLS,
    GREY,
    TINTS,
    WIDE,
    _array,
    _canvas,
    _describe,
    _expect,
    _number,
    _publish,
    _styled,
)
from utils.plots.translators import DARK, _arrow, _box

CELL, ROW, SIZE = 0.52, 0.32, 9  # inches, points
HIGH, LOW, MIDDLE = 1.45, 0.4, 0.92  # where rows stand


@_styled
def kept(word, vector, latent, turned_key, *, title, alt=None):
    """Draw how a token's vector becomes what is kept, and what each head gets of it.

    Args:
        vector, latent, turned_key: of the token, at most four numbers each.

    >>> kept("a", [1, 2], [3.0], [4.0], title="Two")
    Kept of a token: Two. a: 1, 2. Cache: latent 3; turned key 4. From the latent each \
head makes its own keys and values, or absorbs. The turned key goes to all heads.
    """
    rows = [
        _array(numbers, name, 1)
        for numbers, name in (
            (vector, "vector"),
            (latent, "latent"),
            (turned_key, "turned_key"),
        )
    ]
    longest = max(map(len, rows))
    _expect(longest <= 4, "vectors", "four numbers or fewer", longest)
    shown = [[_number(n, 0 if n == round(n) else 2) for n in row] for row in rows]
    fig, ax = _canvas(WIDE, 2.2)
    width = CELL * max(len(latent), len(turned_key))
    left = 0.1 + CELL * len(vector)  # where the arrows begin
    cache = left + 1.15
    right = cache + width + 0.15
    frame = (cache - 0.15, 0.12), width + 0.3, 1.98
    ax.add_patch(Rectangle(*frame, facecolor=TINTS[1]))
    for corner, numbers, fill, name in (
        ((0.1, MIDDLE), shown[0], FILLS[4], f"x of {word}"),
        ((cache, HIGH), shown[1], FILLS[0], "latent"),
        ((cache, LOW), shown[2], FILLS[1], "turned key"),
    ):
        _write(ax, corner, numbers, fill, name)
    _named(ax, cache + width / 2, 2.17, "cache", weight="bold", color=GREY)
    start = left + 0.06, MIDDLE + ROW / 2
    for height, name, y in (
        (HIGH, "W_c", 1.55),
        (LOW, "made of x,\nturned", 0.2),
    ):
        _arrow(ax, start, (cache - 0.2, height + ROW / 2), color=BLUE)
        _named(ax, left + 0.45, y, name)
    head = right + 1.0
    for i, y in enumerate((1.4, 0.55)):
        ends = (right + 0.05, HIGH + ROW / 2), (head - 0.04, y + 0.26)
        _arrow(ax, *ends, color=BLUE)
        _arrow(ax, (right + 0.05, LOW + ROW / 2), (head - 0.04, y + 0.12), color=GREY)
        own = f"head {i}: makes keys and\nvalues, or absorbs"
        _box(ax, head, y, WIDE - 0.15 - head, 0.42, own, lit=True)
    _named(ax, head - 0.55, 1.78, "W_uk, W_uv")
    said = _describe("Kept of a token", title, **{word: ", ".join(shown[0])})
    latent, turned_key = (", ".join(numbers) for numbers in shown[1:])
    said += f" Cache: latent {latent}; turned key {turned_key}."
    said += " From the latent each head makes its own keys and values, or absorbs."
    said += " The turned key goes to all heads."
    _publish(fig, title, alt or said)


def _write(ax, corner, numbers, fill, name):
    for i, number in enumerate(numbers):
        at = corner[0] + i * CELL, corner[1]
        look = {"facecolor": fill, "edgecolor": "white", "linewidth": 1.5}
        ax.add_patch(Rectangle(at, CELL, ROW, **look))
        middle = at[0] + CELL / 2, at[1] + ROW / 2
        ax.text(*middle, number, ha="center", va="center", fontsize=SIZE)
    middle = corner[0] + len(numbers) * CELL / 2
    _named(ax, middle, corner[1] + ROW + 0.05, name)


def _named(ax, x, y, name, **style):
    style = {
        "fontsize": SIZE,
        "color": DARK,
        "ha": "center",
        "linespacing": 1.2,
    } | style
    ax.text(x, y, name, va="bottom", **style)
