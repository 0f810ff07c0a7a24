"""Pictures of heads: what each of them brings, and which features it gets."""

import numpy as np

from utils.plots.diagrams import cells
from utils.plots.old_publishing import _array


def apart(first, second, *, title, alt=None):
    """Draw what one head and two heads bring of two words, in both orders.

    One head averages the words, half and half; of two heads each brings one.

    Args:
        first, second: the vectors of the words, of one length.

    >>> apart([1, 2], [4, 7], title="Kept apart")
    Grids of cells: Kept apart. Arrays: one head 2.5 4.5; swapped 2.5 4.5; \
two heads 1 2 / 4 7; swapped 4 7 / 1 2.
    """
    words = np.stack([_array(first, "first", 1), _array(second, "second", 1)])
    average = words.mean(axis=0, keepdims=True)
    grids, heads = [average, average, words, words[::-1]], ["head 0", "head 1"]
    cells(
        [[[f"{value:.3g}" for value in row] for row in grid] for grid in grids],
        titles=["one head", "swapped", "two heads", "swapped"],
        colors=[[2], [2], [1, 0], [0, 1]],
        row_labels=[None, None, heads, heads],
        title=title,
        alt=alt,
    )


def split(features, reshaped, tokens, *, title, alt=None):
    """Draw the features that heads should get, and beside them what a reshape gives.

    Args:
        features: `(T, D)`, whole numbers; a token has a colour.
        reshaped: the same numbers in the same order, as `(H, T, D/H)`.
        tokens: the T tokens.

    >>> split([[0, 1], [2, 3]], [[[0], [1]], [[2], [3]]], ["a", "b"], title="Split")
    Grids of cells: Split. Arrays: head 0 0 / 2; head 1 1 / 3; \
reshape: 0 0 / 1; reshape: 1 2 / 3.
    """
    features = _array(features, "features", 2).astype(int)
    reshaped = _array(reshaped, "reshaped", 3).astype(int)
    heads = len(reshaped)
    token = np.indices(features.shape)[0]  # whose feature it is
    cells(
        [*np.split(features, heads, 1), *reshaped],
        titles=[f"{name}{h}" for name in ("head ", "reshape: ") for h in range(heads)],
        colors=[*np.split(token, heads, 1), *token.reshape(reshaped.shape)],
        row_labels=[tokens] + [None] * (2 * heads - 1),
        title=title,
        alt=alt,
    )
