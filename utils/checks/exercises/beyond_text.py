"""Exercise of the notebook beyond text: an image as a sequence of patches."""

import torch

from utils import embeddings
from utils.checks.definition import Case, Exercise, Mistake, draw


def patchify(images, patch_size):
    p = patch_size
    B, C, height, width = images.shape
    rows, columns = height // p, width // p
    cells = images.reshape(B, C, rows, p, columns, p)
    patches = 2, 4  # in the order of the result
    inside = 1, 3, 5
    moved = cells.permute(0, *patches, *inside)
    return moved.reshape(B, rows * columns, C * p**2)


exercise_15_1 = Exercise(
    id="15.1",
    right=patchify,
    course=embeddings.patchify,
    smallest_inputs={"patch_size": 1},
    returns="the patches (B, N, C*p*p), row by row, each with the channel first",
    mistakes=[
        Mistake("plain-reshape", "You cut the image along its rows, so a token is a strip and not a square: split the height into (rows, p) and the width into (columns, p), then move both p to the end.", "moved = cells"),
        Mistake("column-by-column", "You read the patches column by column: read {rows} rows of {columns} patches, as you read a page.", "patches = 4, 2"),
        Mistake("pixels-by-columns", "You read the pixels of a patch column by column: inside a patch, too, the rows come first.", "inside = 1, 5, 3"),
        Mistake("channels-last", "You put the channel last in a patch: it comes first, the whole patch of channel 0, then that of channel 1.", "inside = 3, 5, 1"),
        Mistake("height-for-width", "You took the height for the width too, so your code needs square images: there are height/p rows and width/p columns of patches.", "rows, columns = (height // p,) * 2"),
    ],
    cases=[
        Case(torch.arange(24.0).reshape(1, 1, 4, 6), 2),
        Case(draw(2, 3, 4, 6), 2, note="three channels"),
        Case(draw(3, 2, 15, 6), 3, note="patches of 3 x 3"),
        Case(draw(2, 3, 4, 4), 2, note="square images"),
        Case(draw(2, 5, 3, 3), 3, note="one patch is the whole image"),
    ],
)  # fmt: skip
