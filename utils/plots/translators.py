"""Translators from bottom to top: what is read, what is found, what is written."""

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from utils.plots.old_publishing import (
    BLUE,
    EDGE,
    GREY,
    WIDE,
    _canvas,
    _describe,
    _expect,
    _publish,
    _styled,
    _tint,
)

FRENCH = "la", "voiture", "bleue", "<end>"
WAYS = {  # how it reads, how it writes, what `find` does, the width, what goes in
    "one vector": ("a GRU, both ways", "a GRU", "the same\nvector", 80, "old state"),
    "additive": ("a GRU, both ways", "a GRU", "additive\nattention", 80, "old state"),
    "transformer": (
        "self-attention, MLP",
        "self-attention, MLP",
        "cross-\nattention",
        64,
        "<start>",
    ),
}
DARK = "#444444"
ACROSS, HEIGHT, SIZE = 4.05, 4.45, 8.5  # of one translator in units, points


@_styled
def translator(*ways, title, alt=None):
    """Draw one or two translators in the moment in which they write "blue".

    A GRU asks with its old state s_1, which has read `<start>` alone, and reads "the"
    then; the transformer has read both words when it asks.

    Args:
        ways: one or two of "one vector", "additive" and "transformer".

    Raises:
        ValueError: for another way, for none and for more than two.

    >>> translator("additive", title="It looks back")
    Translator: It looks back. Ways: additive. Reads: la, voiture, bleue, <end>. \
additive: encoder, a GRU, both ways; find, additive attention; decoder, a GRU; goes \
in, old state and the.
    """
    _expect(1 <= len(ways) <= 2, "ways", "one or two", len(ways))
    for way in ways:
        _expect(way in WAYS, "way", f"one of {', '.join(WAYS)}", repr(way))
    scale = WIDE / (2 * ACROSS)  # inches in a unit, alike for one and for two
    fig, ax = _canvas(len(ways) * ACROSS * scale, HEIGHT * scale)
    ax.set(xlim=(0, len(ways) * ACROSS), ylim=(0, HEIGHT))
    for i, way in enumerate(ways):
        _draw(ax, i * ACROSS, way)
    said = {"Ways": ways, "Reads": ", ".join(FRENCH)} | {w: _said(w) for w in ways}
    _publish(fig, title, alt or _describe("Translator", title, **said))


def _said(way):
    reads, writes, find, _, first = WAYS[way]
    find = find.replace("-\n", "-").replace("\n", " ")
    return (
        f"encoder, {reads}; find, {find}; decoder, {writes}; goes in, {first} and the"
    )


def _draw(ax, left, way):
    reads, writes, find, width, first = WAYS[way]
    asks, recurrent = way != "one vector", way != "transformer"
    ax.text(left + 0.12, 4.3, way, fontsize=SIZE + 1, color=BLUE, weight="bold")
    for i, word in enumerate(FRENCH):
        x = left + 0.44 + 0.72 * i
        _box(ax, x - 0.33, 0.05, 0.66, 0.3, word)
        _arrow(ax, (x, 0.35), (x, 0.6))
        _arrow(ax, (x, 1.0), (x, 1.2))
        _vector(ax, x, 1.2)
        if asks:
            ax.plot((x, x, left + 0.66), (1.82, 1.92, 1.92), color=DARK, linewidth=1.2)
    _box(ax, left + 0.11, 0.6, 2.82, 0.4, f"encoder: {reads}")
    every = f"a vector for each word\n(4, {width})" + ("" if asks else ", unused")
    _text(ax, left + (0.76 if asks else 0.12), 1.97, every, ha="left", va="bottom")
    _box(ax, left + 0.11, 2.5, 1.15, 0.65, f"find:\n{find}", lit=True)
    if asks:
        _arrow(ax, (left + 0.66, 1.92), (left + 0.66, 2.5))
    if asks and recurrent:
        _arrow(ax, (left + 2.02, 2.72), (left + 1.26, 2.72))
        _text(ax, left + 1.64, 2.77, "asks", va="bottom")
    elif asks:
        _arrow(ax, (left + 1.1, 3.45), (left + 1.1, 3.15))
        _text(ax, left + 1.18, 3.3, "“the” asks", ha="left", va="center")
    if recurrent:
        vector = left + 3.5
        _arrow(ax, (left + 2.93, 0.85), (vector - 0.05, 1.2))
        _vector(ax, vector, 1.2)
        _text(ax, vector, 0.6, f"one vector\n({width},)", va="center")
        _arrow(ax, (vector, 1.82), (left + 3.0, 2.45), color=GREY)
        _text(ax, vector - 0.12, 1.95, "s₀ reads\n<start>", ha="left", va="bottom")
        if not asks:
            _arrow(ax, (vector - 0.12, 1.7), (left + 1.26, 2.6))
    else:
        _text(ax, left + 3.0, 2.3, "both read before “the” asks", va="bottom")
    _box(ax, left + 0.11, 3.45, 3.8, 0.4, f"decoder: {writes}")
    _arrow(ax, (left + 0.4, 3.15), (left + 0.4, 3.45))
    _text(ax, left + 0.48, 3.3, "found", ha="left", va="center")
    goes_in = (first, "the")
    if recurrent:
        goes_in = ("old state s₁:\n<start> read", "the:\nread now")
    for x, half, words in zip((2.56, 3.52), (0.54, 0.38), goes_in):
        _box(ax, left + x - half, 2.5, 2 * half, 0.45, words)
        _arrow(ax, (left + x, 2.95), (left + x, 3.45), color=GREY)
    _arrow(ax, (left + 2.0, 3.85), (left + 2.0, 4.1))
    _box(ax, left + 1.65, 4.1, 0.7, 0.3, "blue")


def _text(ax, x, y, text, **style):
    ax.text(x, y, text, fontsize=SIZE, **{"ha": "center"} | style)


def _box(ax, x, y, width, height, text, lit=False):
    style = {"facecolor": "white", "edgecolor": DARK, "linewidth": 1.0}
    if lit:
        style = {"facecolor": _tint(BLUE, 0.2), "edgecolor": BLUE, "linewidth": 2.2}
    shape = f"round,pad=0,rounding_size={min(height, 0.4) / 4}"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **style))
    centre = x + width / 2, y + height / 2
    ax.text(*centre, text, ha="center", va="center", fontsize=SIZE)


def _vector(ax, x, y):
    for i in range(5):
        shape = FancyBboxPatch(
            (x - 0.1, y + i * 0.12),
            0.2,
            0.12,
            boxstyle="square,pad=0",
            facecolor=_tint(BLUE, 0.35),
            edgecolor=EDGE,
        )
        ax.add_patch(shape)


def _arrow(ax, start, end, color=DARK):
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            color=color,
            linewidth=1.2,
            shrinkA=0,
            shrinkB=0,
        )
    )
