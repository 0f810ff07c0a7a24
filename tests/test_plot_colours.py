"""Colours stand out from the background and from each other, for all eyes."""

import itertools

import numpy as np
import pytest
from matplotlib import colors as mcolors

from utils.plots.theme import FILL, INK, OWNERS, SERIES, SHELVES

# What eyes without one kind of cone see, on linear RGB: Machado, Oliveira and Fernandes
# (2009), A Physiologically-based Model for Simulation of Color Vision Deficiency, the
# matrices of severity 1.
SIGHTS = {
    "all cones": "1 0 0  0 1 0  0 0 1",
    "protanopia": "0.152 1.053 -0.205  0.115 0.786 0.099  -0.004 -0.048 1.052",
    "deuteranopia": "0.367 0.861 -0.228  0.280 0.673 0.047  -0.012 0.043 0.969",
    "tritanopia": "1.256 -0.077 -0.179  -0.078 0.931 0.148  0.005 0.691 0.304",
}
# From linear sRGB to XYZ.
TO_XYZ = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.950]])
ROLES = ("query", "key", "value")
PALETTES = {  # and how far any two of its colours are apart at least, in CIE Lab
    "lines": (SERIES, 14),
    "owners": (OWNERS, 14),
    "inks": ([INK[role] for role in (*ROLES, "weight")], 17),
    "fills": ([FILL[role] for role in ROLES] + ["#AEC3E0"], 14),
}


def lab(color, sight):
    """Return the CIE Lab coordinates of a colour as these eyes see it."""
    rgb = np.array(mcolors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    sight = np.array(SIGHTS[sight].split(), dtype=float).reshape(3, 3)
    xyz = TO_XYZ @ np.clip(sight @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def luminance(color):
    """Return the relative luminance of a colour (WCAG), from 0 to 1."""
    rgb = np.array(mcolors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(first, second):
    light, dark = sorted(map(luminance, (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colors, distance", PALETTES.values(), ids=PALETTES)
def test_any_two_colours_are_apart_for_all_eyes(colors, distance, sight):
    for first, second in itertools.combinations(colors, 2):
        between = np.linalg.norm(lab(first, sight) - lab(second, sight))
        assert between > distance, (first, second)


def test_inks_stand_out_from_white_and_black_stands_out_from_fills():
    assert min(contrast(ink, "white") for ink in INK.values()) >= 5
    assert min(contrast("black", fill) for fill in FILL.values()) >= 8
    assert min(contrast(line, "white") for line in SERIES) >= 3
    assert min(contrast(INK["query"], shelf) for shelf in SHELVES.values()) >= 4.5
