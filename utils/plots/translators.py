"""One translator from left to right: what is read, what is found, what is written."""

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from utils.plots.publishing import (
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
WAYS = {  # how it reads, how it writes, what `find` does, whether it is asked
    "one vector": ("a GRU, in both directions", "a GRU", "the same\nvector", 80),
    "additive": ("a GRU, in both directions", "a GRU", "additive\nattention", 80),
    "transformer": (
        "self-attention, MLP",
        "self-attention,\nMLP",
        "cross-\nattention",
        64,
    ),
}
DARK = "#444444"
ACROSS, HEIGHT, SIZE = 8.1, 2.9, 8.5  # units, units, points


@_styled
def translator(way, *, title, alt=None):
    """Draw a translator at the moment in which it writes "blue", with `find` lit.

    A GRU asks with its old state, which has read `<start>` alone, and reads "the" then;
    the transformer has read both words when it asks.

    Args:
        way: "one vector", "additive" or "transformer".

    Raises:
        ValueError: for another way.

    >>> translator("additive", title="It looks back")
    Translator: It looks back. Reads: la, voiture, bleue, <end>. Encoder: a GRU, in \
both directions. Find: additive attention. Decoder: a GRU. Goes in: old state, the.
    """
    _expect(way in WAYS, "way", f"one of {', '.join(WAYS)}", repr(way))
    reads, writes, find, width = WAYS[way]
    asks = way != "one vector"
    fig, ax = _canvas(WIDE, HEIGHT * WIDE / ACROSS)  # all lengths shrink alike
    ax.set(xlim=(0, ACROSS), ylim=(0, HEIGHT))
    centres = [0.5 + 0.78 * i for i in range(4)]
    for x, word in zip(centres, FRENCH):
        _box(ax, x - 0.35, 0.1, 0.7, 0.3, word)
        _arrow(ax, (x, 0.4), (x, 0.7))
        _arrow(ax, (x, 1.25), (x, 1.5))
        _vector(ax, x, 1.5)
    _box(ax, 0.12, 0.7, 3.1, 0.55, f"encoder: {reads}")
    ax.text(
        1.67, 2.23, f"a vector for each word (4, {width})", ha="center", fontsize=SIZE
    )
    if asks:
        _arrow(ax, (3.13, 1.8), (4.05, 1.8))
    else:
        _arrow(ax, (3.22, 0.98), (3.6, 0.98))
        _vector(ax, 3.7, 0.68)
        ax.text(3.7, 0.5, f"one vector ({width},)", ha="center", fontsize=SIZE)
        _arrow(ax, (3.8, 1.1), (4.4, 1.45))
    _box(ax, 4.05, 1.45, 1.1, 0.7, f"find:\n{find}", lit=True)
    _arrow(ax, (5.15, 1.95), (6.05, 1.95))
    ax.text(5.6, 2.02, f"found\n({width},)", ha="center", va="bottom", fontsize=SIZE)
    if asks:
        _arrow(ax, (6.05, 1.6), (5.15, 1.6))
        who = "asks" if way == "transformer" else "old state\nasks"
        ax.text(5.6, 1.53, f"{who}\n({width},)", ha="center", va="top", fontsize=SIZE)
    _box(ax, 6.05, 1.45, 1.9, 0.7, f"decoder:\n{writes}")
    if way == "transformer":
        goes_in, below = ("<start>", "the"), {7.0: "written so far"}
    else:
        goes_in, below = (
            ("old state", "the"),
            {6.5: "has read\n<start>", 7.4: "next word"},
        )
    for x, word in zip((6.5, 7.4), goes_in):
        _box(ax, x - 0.4, 0.6, 0.8, 0.3, word)
        _arrow(ax, (x, 0.9), (x, 1.45), color=GREY)
    for x, text in below.items():
        ax.text(x, 0.5, text, ha="center", va="top", fontsize=SIZE)
    _arrow(ax, (7.0, 2.15), (7.0, 2.45))
    _box(ax, 6.65, 2.45, 0.7, 0.3, "blue")
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Translator",
            title,
            Reads=", ".join(FRENCH),
            Encoder=reads,
            Find=find.replace("-\n", "-").replace("\n", " "),
            Decoder=writes.replace("\n", " "),
            Goes_in=", ".join(goes_in),
        ),
    )


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
