"""Pictures of notebook 10: how large matrices are, and what lies in which memory."""

import numpy as np
from matplotlib.patches import Rectangle

from utils.plots.diagrams import cells
from utils.plots.old_publishing import (
    BLUE,
    FILLS,
    GREY,
    TINTS,
    WIDE,
    _array,
    _canvas,
    _describe,
    _expect,
    _publish,
    _styled,
    _tint,
)
from utils.plots.translators import _arrow

SIDE = 2.4  # of the longest axis of a picture true to scale, in inches
CELL, ROW, SLOT = 0.55, 0.3, 2.35  # of what travels, in inches


@_styled
def true_scale(matrices, *, title, alt=None):
    """Draw matrices side by side, each as large as it is, with its bytes below.

    Args:
        matrices: dict from a name to `(rows, columns)`, of numbers with 4 bytes.

    >>> true_scale({"scores": (1024, 1024)}, title="A square")
    Matrices true to scale: A square. Matrices: scores 1,024 × 1,024 (4 MiB).
    """
    longest = max(max(shape) for shape in matrices.values())
    widths = [SIDE * shape[1] / longest for shape in matrices.values()]
    gap = (WIDE - sum(widths)) / (len(matrices) + 1)
    fig, ax = _canvas(WIDE, SIDE + 0.9)
    x, said = gap, []
    for (name, (rows, columns)), width in zip(matrices.items(), widths):
        height, middle = SIDE * rows / longest, x + width / 2
        corner = x, 0.5 + SIDE - height
        look = {"facecolor": _tint(BLUE), "edgecolor": BLUE, "linewidth": 0.8}
        ax.add_patch(Rectangle(corner, width, height, **look))
        shape, size = f"{rows:,} × {columns:,}", f"{4 * rows * columns / 2**20:g} MiB"
        ax.text(middle, SIDE + 0.6, name, ha="center")
        style = {"ha": "center", "va": "top", "fontsize": 9, "color": GREY}
        ax.text(middle, corner[1] - 0.08, f"{shape}\n{size}", linespacing=1.3, **style)
        said.append(f"{name} {shape} ({size})")
        x += width + gap
    kind = "Matrices true to scale"
    _publish(fig, title, alt or _describe(kind, title, Matrices="; ".join(said)))


@_styled
def travel(scores, values, split, *, title, alt=None):
    """Draw which numbers of an online softmax lie in the fast memory, in two blocks.

    Args:
        scores, values: `(S,)`, of one query. The scores stand for the keys.
        split: so many keys are in the first block, at most three in each.

    >>> travel([0.0, 0.0], [6, 12], 1, title="Two blocks")
    Slow and fast memory: Two blocks. Slow: 0 6; 0 12; output 9. \
m, l, a: 0 1 6; 0 2 18.
    """
    scores, values = _array(scores, "scores", 1), _array(values, "values", 1)
    sizes = split, len(scores) - split
    _expect(1 <= min(sizes) and max(sizes) <= 3, "blocks", "one to three keys", sizes)
    fig, ax = _canvas(WIDE, 3.3)
    for y, height, name in ((2.2, 0.85, "slow memory"), (0, 1.35, "fast memory")):
        ax.add_patch(Rectangle((0.1, y), WIDE - 0.2, height, facecolor=TINTS[1]))
        ax.text(0.1, y + height + 0.06, name, fontweight="bold", color=GREY)
    maximum, denominator, accumulator, states = -np.inf, 0.0, 0.0, []
    for i, block in enumerate((slice(0, split), slice(split, None))):
        x = 1.1 + i * SLOT
        columns = np.stack([scores[block], values[block]])
        for y in (2.3, 0.7):
            names = ("", "") if i else ("key", "value")
            _write_rows(ax, (x, y), columns, FILLS[1 + i], names)
        _arrow(ax, (x + CELL / 2, 2.25), (x + CELL / 2, 1.36), color=BLUE)
        ax.text(x + CELL / 2 + 0.08, 1.72, f"block {i + 1} is fetched", fontsize=9)
        new = max(maximum, scores[block].max())
        factor, weights = np.exp(maximum - new), np.exp(scores[block] - new)
        denominator = denominator * factor + weights.sum()
        accumulator = accumulator * factor + weights @ values[block]
        maximum = new
        states.append(np.array([[maximum, denominator, accumulator]]))
        names = [""] if i else ["m, l, a"]
        _write_rows(ax, (x, 0.15), states[-1], FILLS[0], names)
    _arrow(ax, (1.1 + 3 * CELL + 0.06, 0.3), (1.1 + SLOT - 0.06, 0.3), color=BLUE)
    end = 1.1 + 2 * SLOT + 0.7
    _arrow(ax, (1.1 + SLOT + 3 * CELL + 0.06, 0.3), (end - 0.06, 0.3), color=BLUE)
    ax.text(end, 0.3, "a / l", va="center")
    _arrow(ax, (end + 0.2, 0.45), (end + 0.2, 2.42), color=BLUE)
    output = np.array([[accumulator / denominator]])
    _write_rows(ax, (end + 0.2 - CELL / 2, 2.45), output, FILLS[0], [""])
    ax.text(end + 0.2, 2.81, "output", ha="center", fontsize=9)
    said = [f"{_plainly(s)} {_plainly(v)}" for s, v in zip(scores, values)]
    said.append(f"output {_plainly(output[0, 0])}")
    held = [" ".join(map(_plainly, state[0])) for state in states]
    parts = {"Slow": "; ".join(said), "m,_l,_a": "; ".join(held)}
    _publish(fig, title, alt or _describe("Slow and fast memory", title, **parts))


def _plainly(value):
    """Return a number with as few decimals as it has, at most two."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _write_rows(ax, corner, rows, fill, names):
    """Write rows of numbers into coloured cells, from the top, with a name before."""
    for i, (row, name) in enumerate(zip(rows, names)):
        y = corner[1] + (len(rows) - 1 - i) * ROW
        for j, value in enumerate(row):
            at, text = (corner[0] + j * CELL, y), _plainly(value)
            look = {"facecolor": fill, "edgecolor": "white", "linewidth": 1.5}
            ax.add_patch(Rectangle(at, CELL, ROW, **look))
            style = {"ha": "center", "va": "center_baseline", "fontsize": 9}
            ax.text(at[0] + CELL / 2, y + ROW / 2, text, **style)
        style = {"ha": "right", "va": "center", "fontsize": 9}
        ax.text(corner[0] - 0.08, y + ROW / 2, name, **style)


def band(num_tokens, size, *, title, alt=None):
    """Draw which scores of a sliding window are computed: by its mask, and in chunks.

    >>> band(2, 1, title="One")
    Grids of cells: One. Arrays: the mask alone: 4 computed 1 0 / 0 1; \
in chunks of 1: 3 computed 1 · / 0 1.
    """
    i = np.arange(num_tokens)
    distance, chunks = i[:, None] - i, i[:, None] // size - i // size
    seen, near = (distance >= 0) & (distance < size), (chunks == 0) | (chunks == 1)
    states = [1 + seen, near * (1 + seen)]  # 2 seen, 1 computed, 0 neither
    names = [f"the mask alone: {num_tokens**2} computed"]
    names.append(f"in chunks of {size}: {near.sum()} computed")
    cells(
        [[["·01"[n] for n in row] for row in state] for state in states],
        titles=names,
        title=title,
        colors=[np.array([4, 1, 0])[state].tolist() for state in states],
        row_labels=[[f"query {n}" for n in i]] * 2,
        alt=alt,
    )
