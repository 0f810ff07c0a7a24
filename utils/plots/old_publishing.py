"""The style of every picture, and the way each takes into a notebook.

The other files draw on a figure of `_figure` or `_canvas` and hand it to `_publish`,
which puts the title above it and shows one PNG with the text that stands for it.
What begins with an underscore is for the files of this package.
"""

import functools
import io
import math
import textwrap

import matplotlib
import numpy as np
import torch
from matplotlib import colors as mcolors
from matplotlib import font_manager, ft2font
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox
from PIL import Image

# Lines and bars: the colours of Okabe and Ito (2008) that stand out from white, and the
# wine of Paul Tol. Orange, sky blue and yellow are too light for a line.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#882255", "#000000")
# Areas under black text: tints of all their colours, some light and some less, because
# to the colour-blind equally light tints look alike.
FILLS = ("#99C7E0", "#EFC159", "#4DBB9D", "#E49659", "#CCCCCC", "#F8F2A0")
# Weights: from white to dark blue through the first colour of SERIES, in steps of equal
# lightness (CIE L*, 100 to 13), so that twice the weight looks like twice the ink.
WEIGHTS = mcolors.LinearSegmentedColormap.from_list(
    "white to blue",
    (
        "#FFFFFF",
        "#D7E1F0",
        "#AEC3E0",
        "#84A7D0",
        "#558BC1",
        "#0071B0",
        "#03548E",
        "#02386D",
        "#001F4D",
    ),
)
SIGNED = matplotlib.colormaps["RdBu_r"]  # scores: red above zero, blue below
TINTS = ("#C9DFEE", "#E6E6E6")  # tokens by turns: colour says only where one ends
EDGE, BLOCKED = "#CCCCCC", "#F4F4F4"  # between cells; the ground of the hatched ones
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BLUE, GREY = SERIES[0], "#666666"
WIDE, NARROW = 7.5, 5.0  # the two widths of a figure, in inches
DPI = 110
COLORS = 256  # of a picture: as many as a palette holds
MAX_COLUMNS = 4  # panels side by side before a new row starts

STYLE = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same everywhere
    "font.size": 10,
    "text.parse_math": False,  # a token may hold a dollar sign
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "axes.formatter.limits": (-4, 9),
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    "hatch.color": "#808080",
}

# What the open picture is handed to instead of the notebook; see `explore`.
from utils.plots.publishing import captured as _capture, show as _show_new  # noqa: E402,I001


# --- inputs -----------------------------------------------------------------------


def _expect(condition, what, expected, got):
    if not condition:
        raise ValueError(f"{what}: expected {expected}, got {got}")


def _array(values, what, ndim=None):
    if isinstance(values, (list, tuple)) and any(torch.is_tensor(v) for v in values):
        values = torch.stack([torch.as_tensor(v) for v in values])
    array = torch.as_tensor(values).detach().cpu().double().numpy()
    if ndim is not None:
        _expect(array.ndim == ndim, what, f"{ndim} axes", f"shape {array.shape}")
    _expect(array.size, what, "at least one number", f"shape {array.shape}")
    return array


def _counted(items, size, what):
    """Return the items as a list, if there are as many as there should be."""
    _expect(len(items) == size, what, f"{size} of them", len(items))
    return list(items)


def _names(tokens, size, what):
    return [_visible(token) for token in _counted(tokens, size, what)]


def _ticks(tokens, size, what):
    """Return tick labels "position token", or positions where there are no tokens."""
    names = [""] * size if tokens is None else _names(tokens, size, what)
    return [f"{i} {name}".rstrip() for i, name in enumerate(names)]


@functools.lru_cache
def _glyphs():
    faces = ("DejaVu Sans", "DejaVu Sans Mono")
    paths = [font_manager.findfont(face) for face in faces]
    return set.intersection(*(set(ft2font.FT2Font(p).get_charmap()) for p in paths))


def _visible(piece):
    """Return a token as text with its spaces, breaks and bytes made visible."""
    if isinstance(piece, (bytes, bytearray)):
        piece = bytes(piece).decode("utf-8", errors="backslashreplace")
    shown = str(piece).replace("\n", "↵").replace("\t", "→")
    stripped = shown.lstrip(" ")
    shown = "·" * (len(shown) - len(stripped)) + stripped
    if not stripped.strip():
        shown = shown.replace(" ", "·")
    return _drawable(shown)


def _drawable(text):
    """Return the text with escapes for what the font lacks."""
    return "".join(
        c
        if c == "\n" or ord(c) in _glyphs() and c.isprintable()
        else c.encode("unicode_escape").decode()
        for c in text
    )


# --- figures ----------------------------------------------------------------------


def _styled(draw):
    """Run a drawing function in the course's style and leave the reader's alone."""

    @functools.wraps(draw)
    def styled(*args, **kwargs):
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            return draw(*args, **kwargs)

    return styled


def _figure(width, height, layout=None):
    # A Figure without pyplot: nothing global opens, so nothing is left to close.
    return Figure(figsize=(width, height), dpi=DPI, layout=layout)


def _canvas(width, height):
    """Return a figure and an empty axes whose unit is the inch."""
    fig = _figure(width, height)
    ax = fig.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    return fig, ax


def _grid(num_panels, height, share=False):
    """Return a figure and its panels, at most four to a row; `height` is of a row."""
    columns = min(num_panels, MAX_COLUMNS)
    rows = math.ceil(num_panels / columns)
    fig = _figure(NARROW if num_panels == 1 else WIDE, rows * height, "constrained")
    axes = fig.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    for ax in axes.flat[num_panels:]:
        ax.axis("off")
    return fig, list(axes.flat[:num_panels]), columns


@functools.lru_cache(maxsize=4096)
def _text_width(text, size, weight="normal"):
    """Return the width of a text in inches."""
    if not text.strip():
        return 0.0
    prop = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
    path = TextPath((0, 0), _drawable(text), size=size, prop=prop)
    return path.get_extents().width / 72


def _widest(texts, size):
    return max((_text_width(text, size) for text in texts), default=0.0)


def _wrap(text, width, size=10, weight="normal"):
    text = _drawable(text)
    needed = _text_width(text, size, weight) + 0.01
    return textwrap.fill(text, max(10, int(len(text) * 0.97 * width / needed)))


def _ink(color):
    """Return black or white, whichever stands out more from the colour (WCAG)."""
    return "black" if _luminance(color) > 0.179 else "white"


def _luminance(color):
    rgb = np.array(mcolors.to_rgb(color))
    linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def _tint(color, share=0.35):
    """Return a light version of a colour, on which black text reads well."""
    rgb = np.array(mcolors.to_rgb(color))
    return tuple(1 - share * (1 - rgb))


def _number(value, digits=2):
    # Adding zero turns -0.0 into 0.0.
    shown = f"{round(float(value), digits) + 0.0:,.{digits}f}"
    return shown.replace("-", "−").replace("inf", "∞")


def _whole(values):
    known = np.asarray(values)[np.isfinite(values)]
    return bool((known == known.round()).all())


def _digits(values):
    """Return the decimals that values are written with: none if all are whole."""
    return 0 if _whole(values) else 2


def _listed(names, limit=12):
    shown = ", ".join(names[:limit])
    rest = len(names) - limit
    return shown if rest <= 0 else f"{shown} and {rest} more"


def _describe(kind, title, /, **parts):
    """Return the text that stands for a picture: words and labels, nothing measured."""
    said = [f"{kind}: {title}"]
    for name, labels in parts.items():
        if labels:
            shown = labels if isinstance(labels, str) else _listed(labels)
            said.append(f"{name.replace('_', ' ')}: {shown}")
    return " ".join(part if part[-1] in ".!?" else f"{part}." for part in said)


def _publish(fig, title, alt, caption=None):
    """Put title and caption around the figure and publish it as one PNG."""
    for text in fig.findobj(Text):
        if text.get_text():
            text.set_text(_drawable(text.get_text()))
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    width, height = fig.get_size_inches()
    box = _drawn_box(fig)
    texts = [
        (title, 10, "bold", "black", box.y1 + 0.12, "bottom"),
        (caption, 9, "normal", GREY, box.y0 - 0.12, "top"),
    ]
    for text, size, weight, color, y, side in texts:
        if text:
            wrapped = _wrap(text, width - 0.2, size, weight)
            fig.text(
                0.1 / width,
                y / height,
                wrapped,
                va=side,
                fontsize=size,
                fontweight=weight,
                color=color,
                linespacing=1.25,
            )
    box = _drawn_box(fig)
    crop = Bbox.from_extents(
        min(0, box.x0), box.y0 - 0.06, max(width, box.x1), box.y1 + 0.06
    )
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", bbox_inches=crop)
    fig.clear()
    png = _compressed(buffer)
    if _capture:
        _capture[-1].append((png, alt))
    else:
        _show(png, alt)


def _drawn_box(fig):
    """Return the box around what is drawn, in inches; an empty canvas has no size."""
    marks = [*fig.texts, *fig.legends]
    for ax in fig.axes:
        marks += [ax] if ax.axison else [*ax.patches, *ax.lines, *ax.texts]
    boxes = [
        mark.get_tightbbox()
        for mark in marks
        if not isinstance(mark, Text) or mark.get_text()
    ]
    return Bbox.union(boxes).transformed(fig.dpi_scale_trans.inverted())


def _compressed(buffer):
    """Return the PNG with a palette, a third of its size.

    The palette begins with the commonest colour. Each further one is missed most by
    those before it: by the number of its pixels times the square of its distance.
    """
    pixels = np.asarray(Image.open(buffer).convert("RGB")).astype(np.int64)
    codes = pixels @ (1 << 16, 1 << 8, 1)
    seen, at, count = np.unique(codes, return_inverse=True, return_counts=True)
    rgb = np.stack([seen >> 16, seen >> 8 & 255, seen & 255], axis=1)
    missed = np.full(len(seen), 3 * 255**2)  # as far as two colours can be apart
    kept, nearest = [], np.zeros(len(seen), dtype=np.uint8)
    while len(kept) < COLORS and missed.any():
        kept.append(rgb[(count * missed).argmax()])
        distance = ((rgb - kept[-1]) ** 2).sum(axis=1)
        nearest[distance < missed] = len(kept) - 1
        missed = np.minimum(missed, distance)
    picture = Image.fromarray(nearest[at])
    picture.putpalette(np.array(kept, dtype=np.uint8).tobytes())
    small = io.BytesIO()
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


_show = _show_new
