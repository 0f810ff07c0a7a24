"""Each test pins one sentence about the pictures that are kept to compare."""

import io

import numpy as np
import pytest
from pictures import DRAWN, KEPT, drawn, kept
from PIL import Image

# Of 255 steps, in the root of the mean square over all pixels. A processor draws the
# same with its oldest instructions as with all; another one may be a hair off.
TOLERANCE = 0.3


def pixels(picture):
    return np.asarray(Image.open(picture).convert("RGB")).astype(float)


def differ(first, second):
    """Return whether two arrays of pixels are different pictures."""
    if first.shape != second.shape:
        return True
    return np.sqrt(((first - second) ** 2).mean()) > TOLERANCE


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_is_drawn_as_it_is_kept(name, tmp_path):
    (picture, text), (png, alt) = kept(name), drawn(name)
    if differ(pixels(picture), pixels(io.BytesIO(png))):
        now = tmp_path / picture.name
        now.write_bytes(png)
        pytest.fail(
            f"{name}: {picture} is kept, {now} is drawn. If that is right, keep it: "
            "python -m tests.pictures"
        )
    assert alt == text.read_text(encoding="utf-8").removesuffix("\n")


def test_what_is_kept_is_drawn_and_small():
    names = {path.name for name in DRAWN for path in kept(name)}
    sizes = {path.name: path.stat().st_size for path in KEPT.iterdir()}
    assert sizes.keys() == names
    assert max(sizes.values()) < 40_000 and sum(sizes.values()) < 1_200_000
