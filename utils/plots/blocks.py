"""A block of a GPT with its numbers, and a model's parts in a row."""

from utils.plots.old_publishing import (
    BLUE,
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

SIZE = 9  # points
STREAM, BRANCH = 0.35, 1.35  # heights of the two lines, in inches


@_styled
def block(streams, reads, *, title, parts=("attention", "MLP"), alt=None):
    """Draw what a block does to one token: each part reads, writes and is added.

    Args:
        streams: `(3, D)`: the token's vector at the start and after each part.
        reads: `(2, D)`: what each part gets from its norm.
        parts: the names of the two parts.

    Raises:
        ValueError: for other numbers of vectors.

    >>> block([[1, 3]] * 3, [[0, 0]] * 2, title="Nothing is added")
    Block: Nothing is added. Parts: attention, MLP.
    """
    streams, reads = _array(streams, "streams", 2), _array(reads, "reads", 2)
    counts = len(streams), len(reads)
    _expect(counts == (3, 2), "vectors", "3 streams and 2 reads", counts)
    writes = streams[1:] - streams[:2]
    fig, ax = _canvas(WIDE, 1.85)
    for i, part in enumerate(parts):
        x = 0.1 + 3.2 * i
        _write_vector(ax, x + 0.35, STREAM, streams[i], weight="bold", color=BLUE)
        _stream(ax, x + 0.75, x + 2.54)
        _line(ax, (x + 0.85, x + 0.85), (STREAM, BRANCH))
        _arrow(ax, (x + 0.85, BRANCH), (x + 0.98, BRANCH))
        _box(ax, x + 0.98, BRANCH - 0.15, 0.45, 0.3, f"norm{i + 1}")
        _arrow(ax, (x + 1.43, BRANCH), (x + 1.75, BRANCH))
        _write_vector(ax, x + 1.59, BRANCH + 0.3, reads[i], "reads ")
        _box(ax, x + 1.75, BRANCH - 0.15, 0.8, 0.3, part, lit=True)
        _line(ax, (x + 2.55, x + 2.66), (BRANCH, BRANCH))
        _arrow(ax, (x + 2.66, BRANCH), (x + 2.66, STREAM + 0.12))
        _write_vector(ax, x + 2.6, 0.82, writes[i], "writes ", ha="right")
        _box(ax, x + 2.54, STREAM - 0.12, 0.24, 0.24, "+")
        _stream(ax, x + 2.78, x + 3.03)
    _write_vector(ax, 6.5 + 0.4, STREAM, streams[2], weight="bold", color=BLUE)
    ax.text(0.45, 0.02, "the stream", color=BLUE, fontsize=SIZE, ha="center")
    _publish(fig, title, alt or _describe("Block", title, Parts=list(parts)))


def _write_vector(ax, x, y, vector, before="", **style):
    numbers = ", ".join(_number(value, 1).removesuffix(".0") for value in vector)
    style = {"ha": "center", "va": "center", "fontsize": SIZE, **style}
    ax.text(x, y, f"{before}[{numbers}]", **style)


def _stream(ax, start, end):
    _arrow(ax, (start, STREAM), (end, STREAM), color=BLUE)


def _line(ax, x, y):
    ax.plot(x, y, color=DARK, linewidth=1.2)


@_styled
def chain(parts, shapes, *, title, alt=None):
    """Draw the parts of a model in a row, with the shape that goes along each arrow.

    Args:
        parts: the names, in the order in which a batch passes them; blocks are lit.
        shapes: the shape of what goes into each part, and of what leaves the last.

    Raises:
        ValueError: where there isn't one shape more than there are parts.

    >>> chain(["embedding", "block"], [(8, 64), (8, 64, 4), (8, 64, 4)], title="Two")
    Chain: Two. On the way: (8, 64); embedding; (8, 64, 4); block; (8, 64, 4).
    """
    counted = f"{len(parts) + 1} shapes, one more than there are parts"
    _expect(len(shapes) == len(parts) + 1, "shapes", counted, len(shapes))
    fig, ax = _canvas(WIDE, 1.05)
    step = (WIDE - 0.3) / len(shapes)
    gap = min(0.4 * step, 0.6)  # between two parts
    start = (WIDE - len(parts) * step - gap) / 2  # of the first arrow
    for i, shape in enumerate(shapes):
        x = start + i * step
        _arrow(ax, (x, 0.75), (x + gap, 0.75), color=BLUE)
        size = " × ".join(str(side) for side in shape)
        ax.text(x + gap / 2, 0.3, size, color=BLUE, fontsize=SIZE, ha="center")
        if i < len(parts):
            lit = parts[i].startswith("block")
            _box(ax, x + gap, 0.58, step - gap, 0.34, parts[i], lit=lit)
    way = [str(tuple(shapes[0]))]
    for part, shape in zip(parts, shapes[1:]):
        way += [part, str(tuple(shape))]
    _publish(fig, title, alt or _describe("Chain", title, On_the_way="; ".join(way)))
