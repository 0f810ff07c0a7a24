"""The colours and sizes of all pictures.

Colour is role: a query is amber, a key green, a value plum, a weight blue, wherever
they appear. Every picture is 6.9 inches wide and shown 759 pixels wide, so its smallest
label, of 8.5 points, keeps its size on the page.
"""

import matplotlib
from matplotlib.colors import LinearSegmentedColormap

from utils.validation import raise_value_error

WIDTH, PIXELS, DPI = 6.9, 759, 220  # inches; pixels on the page; dots per inch of a PNG
TITLE, NAME, LABEL = 11, 10, 9  # points
SMALLEST = 8.5
NUM_COLORS = 128  # of a chart
DRAWING_COLORS = 48  # of a drawing, in all its states together


class Known(dict):
    """A dict that says what it has if it is asked for something else."""

    def __missing__(self, name):
        raise_value_error(f"one of {', '.join(map(str, self))}", repr(name))


INK = Known(  # edges, names and wires
    {None: "#444444"},
    x="#555555",
    query="#A85B00",
    key="#0E4F3A",
    value="#7B2362",
    score="#0072B2",
    weight="#0072B2",
    output="#7B2362",
)
FILL = dict.fromkeys(INK, "#FFFFFF") | {
    "query": "#EBC07A",
    "key": "#BDEFC6",
    "value": "#E38799",
    "output": "#E38799",
}
# Whose number it is, where that is the question; never beside the colours of roles.
# They differ in lightness, because a colour-blind reader may see nothing else.
OWNERS = ("#99C7E0", "#EFC159", "#4DBB9D", "#E49659", "#CCCCCC", "#F8F2A0")
# Lines of charts: the colours of Okabe and Ito (2008) that stand out from white, and
# the wine of Paul Tol.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#882255", "#000000")
# Weights: from white to dark blue in steps of equal lightness (CIE L*, 100 to 13), so
# that twice the weight looks like twice the ink.
WEIGHTS = LinearSegmentedColormap.from_list(
    "white to blue",
    "#FFFFFF #D7E1F0 #AEC3E0 #84A7D0 #558BC1 #0071B0 #03548E #02386D #001F4D".split(),
)
SIGNED = matplotlib.colormaps["RdBu_r"]  # red above zero, blue below
SHELVES = Known(cached="#FFF3C4", process="#EFF4F9", memory="#F4F4F4")
LEARNED, HIDDEN, PALE, GREY = "#E9E9E9", "#F4F4F4", "#C8C8C8", "#666666"

STYLE = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same everywhere
    "font.size": LABEL,
    "text.parse_math": False,  # a token may hold a dollar sign
    "axes.titlesize": NAME,
    "axes.formatter.limits": (-4, 9),
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "hatch.color": "#808080",
}
