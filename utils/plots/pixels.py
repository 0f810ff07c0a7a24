"""Pictures of images: how they are cut, and their way to an answer."""

import numpy as np

from utils.plots.diagrams import cells, tensors
from utils.plots.old_publishing import _array

WAY = [
    ("patches", (16, 4), ("N", "pixels")),
    "linear layer,\nclass token,\npositions →",
    ("tokens", (17, 32), ("N + 1", "D")),
    "2 blocks\n→",
    ("mixed", (17, 32), ("N + 1", "D")),
    "row 0\n→",
    ("answer", (10,), ["digits"]),
]
REST = 4  # the grey of patches that are not shown as rows
SHOWN = [0, 1, 2, 3, 5]  # the fills of those that are


def vision(image, *, title, alt=None):
    """Draw the way of an 8 × 8 digit through the vision transformer of notebook 11.

    Args:
        image: `(8, 8)`, from 0 (white paper) to 1 (black ink).

    >>> vision([[0.0, 1.0] * 4] * 8, title="The way of a digit")
    Tensors as blocks: The way of a digit. Blocks: image (H = 8, W = 8) cut
    → patches (N = 16, pixels = 4) linear layer,
    class token,
    positions → tokens (N + 1 = 17, D = 32) 2 blocks
    → mixed (N + 1 = 17, D = 32) row 0
    → answer (digits = 10).
    """
    start = ("image", (8, 8), ("H", "W"), _array(image, "image", 2))
    tensors([start, "cut\n→", *WAY], title=title, alt=alt)


def patches(image, rows, *, title, alt=None):
    """Draw an image of numbers, and beside it its first patches as rows.

    A patch has one colour on both sides; those that aren't shown as rows are grey.

    Args:
        image: `(H, W)`, whole numbers.
        rows: at most five, each with the numbers of a square patch; row by row.

    >>> patches([[5, 6], [7, 8]], [[5], [6]], title="Cut")
    Grids of cells: Cut. Arrays: the image 5 6 / 7 8; the first 2 patches 5 / 6.
    """
    image, rows = _array(image, "image", 2), _array(rows, "rows", 2)
    side = round(rows.shape[1] ** 0.5)
    down, across = np.indices(image.shape) // side
    number = down * (image.shape[1] // side) + across  # of the patch of each pixel
    fills = np.array(SHOWN[: len(rows)] + [REST] * int(number.max() + 1))
    beside = np.repeat(fills[: len(rows), None], rows.shape[1], axis=1)
    cells(
        [image.astype(int), rows.astype(int)],
        titles=["the image", f"the first {len(rows)} patches"],
        colors=[fills[number], beside],
        row_labels=[None, [f"patch {i}" for i in range(len(rows))]],
        title=title,
        alt=alt,
    )
