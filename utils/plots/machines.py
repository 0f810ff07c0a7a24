"""Pictures of what several processes hold: shares of matrices, and chunks in a ring."""

import numpy as np

from utils.plots.diagrams import cells
from utils.plots.old_publishing import _array, _describe


def shares(matrices, axes, *, titles, title, count=2, alt=None):
    """Draw matrices that are cut into shares; the share of each process has a colour.

    Args:
        matrices: a list of 2-d arrays.
        axes: for each the axis along which it is cut: 0 for its rows, 1 for its
            columns.
        titles: one for each matrix.
        count: how many processes there are.

    >>> shares([[[0.5, 1.0], [2.0, 4.0]]], [1], titles=["W"], title="Two shares")
    Shares of matrices: Two shares. W: columns 0 / 1 of process 0 / 1.
    """
    owners, said = [], {}
    for name, matrix, axis in zip(titles, matrices, axes):
        shape = _array(matrix, "matrices", 2).shape
        owner = np.arange(shape[axis]) * count // shape[axis]
        owners.append([owner.tolist()] * shape[0] if axis else owner.tolist())
        parts = [" ".join(map(str, np.flatnonzero(owner == r))) for r in range(count)]
        ranks = " / ".join(map(str, range(count)))
        kind = "columns" if axis else "rows"
        said[name] = f"{kind} {' / '.join(parts)} of process {ranks}"
    text = alt or _describe("Shares of matrices", title, **said)
    cells(matrices, titles=titles, title=title, colors=owners, alt=text)


def ring(count, *, title, own=2, alt=None):
    """Draw who asks and which chunk of words is held, in each turn of a ring.

    Args:
        count: how many processes there are, and so many turns.
        own: how many words each process has.

    >>> ring(2, title="Two turns")
    A ring of processes: Two turns. Turn 0: 0 1 / 2 3. Turn 1: 2 3 / 0 1.
    """
    chunks = [" ".join(map(str, range(own * r, own * (r + 1)))) for r in range(count)]
    held = [[[r, (r - turn) % count] for r in range(count)] for turn in range(count)]
    words = [[[chunks[r] for r in row] for row in grid] for grid in held]
    said = {
        f"Turn {turn}": " / ".join(row[1] for row in grid)
        for turn, grid in enumerate(words)
    }
    cells(
        words,
        titles=[f"turn {turn}" for turn in range(count)],
        title=title,
        colors=held,
        row_labels=[[f"process {r}" for r in range(count)]] * count,
        column_labels=[["asks", "holds"]] * count,
        alt=alt or _describe("A ring of processes", title, **said),
    )
