"""Draw every picture of the course in one style.

Each function draws one matplotlib figure, publishes it as one PNG with an alternative
text, and returns None. Arrays may be tensors, NumPy arrays or nested
lists; they are never changed. Token strings are shown with their spaces visible.
Outside a notebook, where a picture has nowhere to go, the alternative text is printed.
"""

import base64
import functools
import io
import math
import textwrap
import traceback
from html import escape

import matplotlib
import numpy as np
import torch
from IPython import get_ipython
from IPython.display import display
from matplotlib import colors as mcolors
from matplotlib import font_manager, ft2font
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import (
    FancyArrowPatch,
    FancyBboxPatch,
    Patch,
    PathPatch,
    Polygon,
    Rectangle,
)
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from PIL import Image

# Lines and bars: the colours of Okabe and Ito (2008) that stand out from white, and the
# wine of Paul Tol. Orange, sky blue and yellow are too light for a line.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#882255", "#000000")
# Areas under black text: tints of all their colours, some light and some less, because
# to the colour-blind equally light tints look alike.
FILLS = ("#99C7E0", "#EFC159", "#4DBB9D", "#E49659", "#CCCCCC", "#F8F2A0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BLUE, GREY = SERIES[0], "#666666"
WIDE, NARROW = 7.5, 5.0  # the two widths of a figure, in inches
DPI = 110
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
_capture = []


# --- inputs -----------------------------------------------------------------------


def _expect(condition, what, expected, received):
    if not condition:
        raise ValueError(f"{what}: expected {expected}, received {received}")


def _array(values, what="values", ndim=None):
    if isinstance(values, (list, tuple)) and any(torch.is_tensor(v) for v in values):
        values = torch.stack([torch.as_tensor(v) for v in values])
    array = torch.as_tensor(values).detach().cpu().double().numpy()
    if ndim is not None:
        _expect(array.ndim == ndim, what, f"{ndim} axes", f"shape {array.shape}")
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
        c if c == "\n" or ord(c) in _glyphs() and c.isprintable()
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
def _text_width(text, size=10.0, weight="normal"):
    """Return the width of a text in inches."""
    if not text.strip():
        return 0.0
    prop = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
    path = TextPath((0, 0), _drawable(text), size=size, prop=prop)
    return path.get_extents().width / 72


def _widest(texts, size=10.0):
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
    texts = [(title, 10, "bold", "black", box.y1 + 0.12, "bottom"),
             (caption, 9, "normal", GREY, box.y0 - 0.12, "top")]
    for text, size, weight, color, y, side in texts:
        if text:
            wrapped = _wrap(text, width - 0.2, size, weight)
            fig.text(0.1 / width, y / height, wrapped, va=side, fontsize=size,
                     fontweight=weight, color=color, linespacing=1.25)
    box = _drawn_box(fig)
    crop = Bbox.from_extents(min(0, box.x0), box.y0 - 0.06, max(width, box.x1),
                             box.y1 + 0.06)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=DPI, bbox_inches=crop)
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
    boxes = [mark.get_tightbbox() for mark in marks
             if not isinstance(mark, Text) or mark.get_text()]
    return Bbox.union(boxes).transformed(fig.dpi_scale_trans.inverted())


def _compressed(buffer):
    """Return the PNG with a palette, a third of its size."""
    picture = Image.open(buffer).convert("RGB").quantize(
        256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small = io.BytesIO()
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


def _show(png, alt, **views):
    """Publish one bundle: the picture, the text that stands for it, other views."""
    if get_ipython() is None:
        print(alt)
        return
    display({**views, "text/html": _img(png, alt), "text/plain": alt}, raw=True)


def _img(png, alt):
    # As HTML, because no viewer puts the text of an image/png output on its page.
    encoded = base64.b64encode(png).decode()
    return (f'<img alt="{escape(alt)}" style="max-width: 100%" '
            f'src="data:image/png;base64,{encoded}">')


# --- matrices ---------------------------------------------------------------------


@_styled
def heatmap(values, rows=None, columns=None, *, title, row_axis="query",
            column_axis="key", mask=None, signed=False, show_values=None, vmax=None,
            alt=None):
    """Draw a matrix, by default attention weights: rows are queries, columns keys.

    Args:
        values: `(T, S)`; weights from 0 to `vmax`, or any sign with `signed=True`.
        rows, columns: token strings; without columns the rows name both axes.
        mask: boolean `(T, S)`, True = may attend; blocked cells are hatched.
        signed: colours centred on zero.
        show_values: write the numbers; by default in maps up to 10 by 10.
        vmax: the end of the colour scale; 1, or the largest magnitude if signed.

    Raises:
        ValueError: for a wrong number of labels, a mask of another shape, or
            weights outside the scale.

    >>> heatmap([[1.0, 0.0], [0.4, 0.6]], ["a", "b"], title="Rows sum to 1")
    Heatmap: Rows sum to 1. Rows (query): 0 a, 1 b. Columns (key): 0 a, 1 b.
    """
    values = _array(values, "values", 2)
    _maps([values], rows, columns, [None], title, row_axis, column_axis, [mask],
          signed, show_values, vmax, alt)


@_styled
def heatmaps(maps, rows=None, columns=None, *, titles, title, row_axis="query",
             column_axis="key", mask=None, signed=False, show_values=None, vmax=None,
             alt=None):
    """Draw matrices side by side on one colour scale, at most four to a row.

    Args:
        maps: `(H, T, S)`, or a list of `(T, S)` matrices of one shape.
        titles: one for each matrix.
        mask: boolean `(T, S)`, True = may attend, for all matrices; or a list with
            one mask, or None, for each.

    The other arguments are those of `heatmap`.

    >>> heatmaps([[[1.0]], [[0.5]]], ["a"], titles=["one", "two"], title="Two heads")
    Heatmaps side by side: Two heads. Panels: one, two. Rows (query): 0 a. \
Columns (key): 0 a.
    """
    maps = list(_array(maps, "maps", 3))
    titles = _counted(titles, len(maps), "titles")
    several = isinstance(mask, (list, tuple)) and not _is_matrix(mask)
    masks = _counted(mask, len(maps), "mask") if several else [mask] * len(maps)
    _maps(maps, rows, columns, titles, title, row_axis, column_axis, masks, signed,
          show_values, vmax, alt)


def _is_matrix(nested):
    return isinstance(nested[0], (list, tuple)) and isinstance(nested[0][0], bool)


def _maps(maps, rows, columns, titles, title, row_axis, column_axis, masks, signed,
          show_values, vmax, alt):
    shape = maps[0].shape
    if columns is None and shape[0] == shape[1]:
        columns = rows
    row_names = _ticks(rows, shape[0], "rows")
    column_names = _ticks(columns, shape[1], "columns")
    masks = [_mask(mask, shape) for mask in masks]
    scale = _scale(maps, masks, signed, vmax)
    fig, axes, cell, across = _map_panels(len(maps), shape, row_names, column_names)
    if show_values is None:
        show_values = max(shape) <= 10 and cell >= 0.3
    for i, (ax, values, mask) in enumerate(zip(axes, maps, masks)):
        _draw_map(ax, values, mask, scale, cell if show_values else None)
        if titles[i]:
            ax.set_title(_wrap(titles[i], max(shape[1] * cell, 1.2)))
        if i + across >= len(axes):  # no panel below
            _label_columns(ax, column_names, cell, columns is None)
            ax.set_xlabel(column_axis)
        if i % across == 0:
            _label_rows(ax, row_names, cell, rows is None)
            ax.set_ylabel(row_axis)
    if not show_values:
        seen = np.concatenate([values[mask] for values, mask in zip(maps, masks)])
        _draw_key(fig, axes, axes[across - 1], set(seen), scale)
    kind = "Heatmap" if titles == [None] else "Heatmaps side by side"
    _publish(fig, title, alt or _describe(
        kind, title, Panels=[t for t in titles if t],
        **{f"Rows_({row_axis})": row_names, f"Columns_({column_axis})": column_names}))


def _mask(mask, shape):
    if mask is None:
        return np.ones(shape, dtype=bool)
    mask = torch.as_tensor(mask).cpu().numpy()
    _expect(mask.dtype == bool, "mask", "booleans, True = may attend", mask.dtype)
    _expect(mask.shape == shape, "mask", f"shape {shape}", f"{mask.shape}")
    return mask


def _scale(maps, masks, signed, vmax):
    """Return (norm, colour map) for all maps: weights from 0, signed around 0."""
    seen = np.concatenate([values[mask] for values, mask in zip(maps, masks)])
    seen = seen[np.isfinite(seen)]
    low, high = seen.min(initial=0), seen.max(initial=0)
    top = vmax or (max(high, -low, 1e-12) if signed else 1)
    bottom = -top if signed else 0
    _expect(bottom - 1e-6 <= low and high <= top + 1e-6, "values",
            f"{'values' if signed else 'weights'} from {bottom:g} to {top:g} "
            "(else use signed=True or vmax=)", f"values from {low:.3g} to {high:.3g}")
    return (mcolors.Normalize(bottom, top),
            matplotlib.colormaps["RdBu_r" if signed else "cividis"])


def _map_panels(num_maps, shape, row_names, column_names):
    """Return a figure whose panels have the proportions of the matrices."""
    width = NARROW if num_maps == 1 and shape[1] <= 8 else WIDE
    free = width - _widest(row_names, 9) - 0.8
    # Few panels to a row where cells would be too small to tell apart.
    for across in range(min(num_maps, MAX_COLUMNS), 0, -1):
        cell = min(0.55, (free / across - 0.2) / shape[1], 6.5 / shape[0])
        if cell >= 0.16 or across <= 2:
            break
    down = math.ceil(num_maps / across)
    across = math.ceil(num_maps / down)
    below = 0.4 + _widest(column_names, 9)
    fig = _figure(width, down * (shape[0] * cell + 0.35) + below, "compressed")
    axes = fig.subplots(down, across, squeeze=False)
    for ax in axes.flat[num_maps:]:
        ax.axis("off")
    return fig, list(axes.flat[:num_maps]), cell, across


def _draw_map(ax, values, mask, scale, cell):
    """Draw one matrix; `cell` is the width of a cell that has its number written."""
    norm, cmap = scale
    known = mask & np.isfinite(values)
    ax.imshow(np.where(known, values, np.nan), norm=norm, cmap=cmap, aspect="equal")
    ax.spines[:].set_visible(False)
    ax.set(xticks=[], yticks=[])
    if not mask.all():
        squares = [Path.unit_rectangle().vertices + (j - 0.5, i - 0.5)
                   for i, j in np.argwhere(~mask)]
        blocked = Path.make_compound_path(*(Path(s, closed=True) for s in squares))
        ax.add_patch(PathPatch(blocked, facecolor="#f4f4f4", edgecolor="#808080",
                               hatch="////", linewidth=0))
    digits = _digits(values[mask])
    for i, j in np.argwhere(mask if cell else mask & ~known):
        color = cmap(norm(values[i, j])) if known[i, j] else "white"
        text = _number(values[i, j], digits)
        size = min(9, (cell or 0.3) * 0.85 * 9 / max(_text_width(text, 9), 0.1))
        ax.text(j, i, text, ha="center", va="center", color=_ink(color), fontsize=size)


def _draw_key(fig, axes, corner, values, scale):
    """Say what the colours mean: a bar, or squares where all values are 0 or 1."""
    norm, cmap = scale
    if set(values) <= {0.0, 1.0}:
        squares = [Patch(facecolor=cmap(norm(value)), edgecolor=GREY, label=int(value))
                   for value in sorted(values, reverse=True)]
        corner.legend(handles=squares, loc="upper left", bbox_to_anchor=(1, 1))
    else:
        fig.colorbar(ScalarMappable(*scale), ax=axes, shrink=0.8, aspect=25)


def _thinned(names, cell, plain):
    """Return the positions that get a tick, and the size of their labels."""
    size = min(9.0, max(6.5, cell * 72 * 0.9))
    least = len(names) / 13 if plain else size / 72 / cell * 0.95
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 500, 10_000) if s >= least)
    return list(range(0, len(names), step)), size


def _label_columns(ax, names, cell, plain=False):
    ticks, size = _thinned(names, cell, plain)
    apart = cell * (ticks[1] if len(ticks) > 1 else 1)
    style = {"fontsize": size, "rotation": 90 if apart < 0.25 else 45,
             "rotation_mode": "anchor", "ha": "right",
             "va": "center" if apart < 0.25 else "top"}
    if _widest([names[i] for i in ticks], 9) < apart * 0.92:
        style = {"fontsize": 9}
    ax.set_xticks(ticks, [names[i] for i in ticks], **style)
    ax.tick_params(axis="x", length=2)


def _label_rows(ax, names, cell, plain):
    ticks, size = _thinned(names, cell, plain)
    ax.set_yticks(ticks, [names[i] for i in ticks], fontsize=size)
    ax.tick_params(axis="y", length=2)


# --- tokens and arrows ------------------------------------------------------------


@_styled
def arrows(weights, tokens, query, *, title, alt=None):
    """Draw arrows from one token, the query, to every token it attends to.

    Args:
        weights: the row `(S,)` of the query, or all rows `(T, S)`.
        tokens: the S token strings.
        query: the position of the query.

    >>> arrows([0.2, 0.8], ["Hello", "sun"], 1, title="sun attends to itself")
    Arrows between tokens: sun attends to itself. Query: 1 sun. Keys: 0 Hello, 1 sun.
    """
    weights = _array(weights, "weights")
    names = _names(tokens, weights.shape[-1], "tokens")
    _expect(-len(names) <= query < len(names), "query",
            f"a position below {len(names)}", query)
    row = weights[query] if weights.ndim == 2 else weights
    places, size, turned = _spread(names, WIDE)
    fig, ax = _canvas(WIDE, 2.4)
    at = _write_query(ax, places[query], names[query])
    for x, name, weight in zip(places, names, row):
        if weight > 0:
            _point_at(ax, at, x, weight / row.max())
        color = "black" if weight > 0 else GREY
        number = _number(weight)
        if turned:
            ax.text(x, 1.82, f"{name}  {number}", ha="center", va="bottom",
                    fontsize=size, rotation=90, color=color)
        else:
            ax.text(x, 1.84, number, ha="center", fontsize=9, color=color)
            ax.text(x, 2.06, name, ha="center", fontsize=size, color=color)
    numbered = [f"{i} {name}" for i, name in enumerate(names)]
    _publish(fig, title, alt or _describe("Arrows between tokens", title,
                                          Query=numbered[query], Keys=numbered))


def _write_query(ax, x, name):
    """Write the query below the keys, inside the figure; return where it stands."""
    half = _text_width(name, 11, "bold") / 2 + 0.05
    x = min(max(x, half), WIDE - half)
    ax.text(x, 0.15, name, ha="center", fontsize=11, fontweight="bold", color=BLUE)
    if x > WIDE / 2:
        ax.text(x - half, 0.15, "query ", color=GREY, ha="right")
    else:
        ax.text(x + half, 0.15, " query", color=GREY)
    return x


def _point_at(ax, start, end, share):
    ax.add_patch(FancyArrowPatch(
        (start, 0.36), (end, 1.75), arrowstyle="-|>", color=BLUE, shrinkA=0, shrinkB=0,
        linewidth=0.5 + 4.5 * share, mutation_scale=6 + 10 * share,
        alpha=0.7 + 0.3 * share, capstyle="butt"))


def _spread(names, width):
    """Place words on a line; return x positions, font size, whether they are turned."""
    sizes = np.array([max(_text_width(name, 10), 0.36) + 0.14 for name in names])
    if sizes.sum() <= width:
        sizes += min(0.5, (width - sizes.sum()) / len(names))
        start = (width - sizes.sum()) / 2
        return start + np.cumsum(sizes) - sizes / 2, 10, False
    slot = (width - 0.2) / len(names)
    return 0.1 + slot * (np.arange(len(names)) + 0.5), min(9, slot * 65), True


@_styled
def graph(weights, tokens, *, title, threshold=0.1, alt=None):
    """Draw attention as a directed graph: an arrow from each query to its keys.

    Args:
        weights: `(T, T)`, rows are queries.
        tokens: the T token strings, set on an ellipse from the top clockwise.
        threshold: arrows of smaller weight are left out, and the caption says so.

    >>> graph([[1.0, 0.0], [0.5, 0.5]], ["a", "b"], title="a looks at itself")
    Directed graph, arrows from queries to keys: a looks at itself. Tokens: 0 a, 1 b.
    """
    weights = _array(weights, "weights", 2)
    names = _names(tokens, len(weights), "tokens")
    _expect(weights.shape[0] == weights.shape[1], "weights", "a square matrix",
            f"shape {weights.shape}")
    fig, ax = _canvas(WIDE, 4.6)
    angles = math.pi / 2 - 2 * math.pi * np.arange(len(names)) / len(names)
    ellipse = np.stack([2.9 * np.cos(angles), 1.75 * np.sin(angles)], 1)
    centres = ellipse + (WIDE / 2, 2.3)
    nodes = [_node(ax, *centre, name, SERIES[i % 6])
             for i, (centre, name) in enumerate(zip(centres, names))]
    taken = np.full((1, 2), np.inf)
    for query, key in np.argwhere((weights >= threshold) & (weights > 0)):
        weight = weights[query, key]
        style = _edge_style(weight, SERIES[query % 6])
        if query == key:
            free = _loop(ax, centres[key], names[key], angles[key], style)
        else:
            free = _edge(ax, centres[[query, key]], nodes[query], nodes[key], style)
        if len(names) <= 6:
            place = max(free, key=lambda at: np.hypot(*(taken - at).T).min())
            taken = np.vstack([taken, place])
            ax.text(*place, _number(weight), ha="center", va="center", fontsize=8,
                    bbox={"facecolor": "white", "pad": 0.6, "edgecolor": "none"})
    caption = (f"An arrow leads from the query to the key, in the query's colour; "
               f"weights below {threshold:g} are left out.")
    _publish(fig, title, alt or _describe(
        "Directed graph, arrows from queries to keys", title,
        Tokens=[f"{i} {name}" for i, name in enumerate(names)]), caption)


def _node(ax, x, y, name, color):
    half = _text_width(name, 10) / 2 + 0.04
    box = FancyBboxPatch((x - half, y - 0.1), 2 * half, 0.2, facecolor=_tint(color),
                         boxstyle="round,pad=0.06", edgecolor=color,
                         zorder=2.5)  # above the arrows that pass behind it
    ax.add_patch(box)
    ax.text(x, y - 0.05, name, ha="center", zorder=5)
    return box


def _edge_style(weight, color):
    return {"color": color, "arrowstyle": "-|>", "linewidth": 0.5 + 4 * weight,
            "mutation_scale": 8 + 6 * weight}


def _edge(ax, ends, node_a, node_b, style, bend=0.16):
    """Draw a curved arrow; return places for its label, near the query first."""
    ax.add_patch(FancyArrowPatch(*ends, connectionstyle=f"arc3,rad={bend}", shrinkA=1,
                                 shrinkB=1, patchA=node_a, patchB=node_b, **style))
    (dx, dy) = ends[1] - ends[0]
    knee = ends.mean(0) + bend * np.array([dy, -dx])
    return [np.array([(1 - t) ** 2, 2 * t * (1 - t), t**2]) @ [ends[0], knee, ends[1]]
            for t in (0.35, 0.45, 0.55, 0.25)]


def _loop(ax, centre, name, angle, style):
    """Draw an arrow from a node to itself, on the side away from the others."""
    if abs(math.sin(angle)) < 0.3:
        out = np.array([np.sign(math.cos(angle)), 0.0])
        start = centre + out * (_text_width(name, 10) / 2 + 0.1)
    else:
        out = np.array([0.0, np.sign(math.sin(angle))])
        start = centre + out * 0.16
    side = np.array([-out[1], out[0]]) * 0.11
    ax.add_patch(FancyArrowPatch(start + side, start - side, shrinkA=0, shrinkB=0,
                                 connectionstyle="arc3,rad=-2.2", **style))
    return [start + out * 0.36]


@_styled
def tokens(pieces, ids=None, *, title, alt=None):
    """Draw a text as a strip of token boxes, with the ids below.

    A leading space is shown as a dot, a new line as an arrow, and what the font
    lacks (other scripts, single bytes) as an escape.

    Args:
        pieces: strings or bytes, one for each token.
        ids: their ids.

    >>> tokens(["Hello", " sun"], [15496, 4252], title="The space belongs to the word")
    Text as token boxes: The space belongs to the word. Tokens: Hello, ·sun.
    """
    names = [_visible(piece) for piece in pieces]
    numbers = [""] * len(names)
    if ids is not None:
        numbers = [str(int(i)) for i in _counted(ids, len(names), "ids")]
    widths = [0.1 + max(len(name) * 0.602 * 11 / 72, len(number) * 0.602 * 8 / 72)
              for name, number in zip(names, numbers)]  # 0.602: the advance of Mono
    places, num_lines = _broken(widths, WIDE - 0.2)
    step = 0.38 if ids is None else 0.56
    fig, ax = _canvas(WIDE, num_lines * step)
    for i, (x, line) in enumerate(places):
        y = (num_lines - line) * step - 0.3
        ax.add_patch(Rectangle((x, y), widths[i], 0.27, edgecolor="none",
                               facecolor=FILLS[i % 6]))
        style = {"ha": "center", "family": "DejaVu Sans Mono"}
        ax.text(x + widths[i] / 2, y + 0.08, names[i], fontsize=11, **style)
        ax.text(x + widths[i] / 2, y - 0.13, numbers[i], fontsize=8, color=GREY,
                **style)
    _publish(fig, title, alt or _describe("Text as token boxes", title, Tokens=names))


def _broken(widths, room):
    """Set boxes on lines; return the `(x, line)` of each and the number of lines."""
    places, x, line = [], 0.0, 0
    for width in widths:
        if x > 0 and x + width > room:
            x, line = 0.0, line + 1
        places.append((0.1 + x, line))
        x += width + 0.03
    return places, line + 1


# --- numbers ----------------------------------------------------------------------


@_styled
def bars(groups, labels, *, title, ylabel="weight", ylim=None, alt=None):
    """Draw one panel of bars for each group, side by side on one scale.

    Args:
        groups: dict from the panel's name to its values, one for each label.
        labels: the categories, e.g. tokens.
        ylim: `(bottom, top)` of the scale.

    >>> bars({"one": [0.2, 0.8]}, ["a", "b"], title="b is heavier")
    Bars: b is heavier. Panels: one. Categories: a, b. Height: weight.
    """
    names = [_visible(label) for label in labels]
    groups = {name: _array(values, name, 1) for name, values in groups.items()}
    for name, values in groups.items():
        _counted(values, len(names), name)
    fig, axes, columns = _grid(len(groups), 2.6)
    slot = ((fig.get_size_inches()[0] - 0.7) / columns - 0.15) / (len(names) + 0.3)
    everything = np.concatenate(list(groups.values()))
    if ylim is None:
        lowest, highest = min(everything.min(), 0), max(everything.max(), 0)
        room = 0.15 * (highest - lowest) or 1  # for the numbers above and below
        ylim = (lowest - room * bool(lowest < 0), highest + room)
    digits = _digits(everything)
    for i, (ax, (name, values)) in enumerate(zip(axes, groups.items())):
        drawn = ax.bar(range(len(names)), values, color=SERIES[i % 6], width=0.75)
        numbers = [_number(value, digits) for value in values]
        size = min(8, 8 * slot / (_widest(numbers, 8) + 0.05))
        if size > 6.5:
            ax.bar_label(drawn, numbers, padding=1, fontsize=size)
        ax.set_title(_wrap(name, slot * len(names)))
        ax.set_ylim(*ylim)
        ax.margins(x=0.02)
        _label_columns(ax, names, slot)
        if i % columns:
            ax.set_yticklabels([])
        else:
            ax.set_ylabel(ylabel)
    _publish(fig, title, alt or _describe("Bars", title, Panels=list(groups),
                                          Categories=names, Height=ylabel))


@_styled
def curves(series, x=None, *, title, xlabel, ylabel, log_x=False, log_y=False,
           reference=None, smooth=None, ylim=None, alt=None):
    """Draw lines, each with its own colour and marker.

    Args:
        series: dict from a name to its values.
        x: positions shared by all, or a dict from the names to positions;
            by default 0, 1, 2 …
        log_x, log_y: logarithmic axes; few x positions are then written out.
        reference: dict from a name to a height, drawn as dashed lines.
        smooth: width of a moving average; the values themselves stay, faint.
        ylim: `(bottom, top)`.

    >>> curves({"loss": [3.0, 2.0]}, title="It falls", xlabel="step", ylabel="loss")
    Curves: It falls. Across: step. Up: loss. Lines: loss.
    """
    fig = _figure(WIDE, 3.3, "constrained")
    ax = fig.subplots()
    for i, (name, values) in enumerate(series.items()):
        y = _array(values, name, 1)
        at = x[name] if isinstance(x, dict) else x
        at = np.arange(len(y)) if at is None else _array(at, "x", 1)
        _expect(len(at) == len(y), name, f"{len(at)} values, one for each x", len(y))
        style = {"color": SERIES[i % 6], "marker": MARKERS[i % 8],
                 "markevery": max(1, len(y) // 12), "label": name}
        if smooth and smooth < len(y):
            ax.plot(at, y, color=style["color"], alpha=0.25, linewidth=0.8)
            y, at = np.convolve(y, np.ones(smooth) / smooth, "valid"), at[smooth - 1:]
        ax.plot(at, y, **style)
    for i, (name, height) in enumerate((reference or {}).items()):
        ax.axhline(float(height), color=GREY, linestyle=("--", ":", "-.")[i % 3],
                   linewidth=1.2, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if ylim is not None:
        ax.set_ylim(*ylim)
    _place_ticks(ax, x, log_x, log_y)
    ax.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    names = [*series, *(reference or {})]
    columns = max(1, int((WIDE - 0.4) / (_widest(names, 9) + 0.65)))
    fig.legend(loc="outside lower center", ncols=min(columns, len(names)))
    _publish(fig, title, alt or _describe("Curves", title, Across=xlabel, Up=ylabel,
                                          Lines=names))


def _place_ticks(ax, x, log_x, log_y):
    for axis, log, name in ((ax.xaxis, log_x, "x"), (ax.yaxis, log_y, "y")):
        if log:
            ax.set(**{f"{name}scale": "log"})
            axis.set_major_formatter(lambda value, _: f"{value:,.9g}")
            axis.set_minor_formatter("")
    if not log_x and all(_whole(line.get_xdata()) for line in ax.lines):
        whole = MaxNLocator("auto", steps=(1, 2, 5, 10), integer=True)
        ax.xaxis.set_major_locator(whole)
    if log_x and x is not None and not isinstance(x, dict) and len(x) <= 12:
        ax.set_xticks([float(v) for v in x], minor=False)
        ax.set_xticks([], minor=True)


@_styled
def points(positions, labels, *, title, titles=None, groups=None, alt=None):
    """Draw labelled points in the plane, in panels on one scale.

    Args:
        positions: `(N, 2)`, or one such matrix for each panel.
        labels: the N names.
        titles: one for each panel.
        groups: the name of each point's group, which gives colour and marker.

    >>> points([[0.0, 1.0], [1.0, 0.0]], ["cat", "dog"], title="Two words")
    Points: Two words. Labels: cat, dog.
    """
    panels = _array(positions, "positions")
    panels = panels[None] if panels.ndim == 2 else panels
    _expect(panels.ndim == 3 and panels.shape[2] == 2, "positions",
            "shape (N, 2) for each panel", panels.shape)
    names = _names(labels, panels.shape[1], "labels")
    titles = [""] * len(panels) if titles is None else titles
    groups = [""] * len(names) if groups is None else groups
    titles = _counted(titles, len(panels), "titles")
    groups = _counted(groups, len(names), "groups")
    fig, axes, _ = _grid(len(panels), 3.4, share=True)
    kinds = list(dict.fromkeys(groups))
    for ax, panel, panel_title in zip(axes, panels, titles):
        for i, kind in enumerate(kinds):
            at = panel[[group == kind for group in groups]]
            ax.plot(*at.T, MARKERS[i % 8], color=SERIES[i % 6], label=kind)
        ax.set_title(panel_title)
        ax.margins(0.18)
        ax.grid(color="#eeeeee", linewidth=0.8)
    if len(kinds) > 1:
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center",
                   ncols=min(6, len(kinds)))
    fig.draw_without_rendering()
    for ax, panel in zip(axes, panels):
        _label_points(ax, panel, names)
    _publish(fig, title, alt or _describe(
        "Points", title, Panels=[t for t in titles if t], Labels=names,
        Groups=[kind for kind in kinds if kind]))


def _label_points(ax, positions, names):
    """Write each name beside its point, where it covers least of the others."""
    pixels = ax.transData.transform(positions)
    taken = [Bbox.from_extents(*(p - 5), *(p + 5)) for p in pixels]
    gap, height = 8, 13
    for point, name in zip(pixels, names):
        width = _text_width(name, 9) * DPI + 3
        left, right, middle = -gap - width, gap, -width / 2
        corners = [(right, -height / 2), (left, -height / 2), (middle, gap),
                   (middle, -gap - height), (right, 4), (right, -4 - height),
                   (left, 4), (left, -4 - height)]
        boxes = [Bbox.from_bounds(*(point + corner), width, height)
                 for corner in corners]
        best = min(boxes, key=lambda box: _covered(box, taken, ax.bbox))
        taken.append(best)
        ax.annotate(name, (best.x0, best.y0 + 3), xycoords="figure pixels", fontsize=9,
                    annotation_clip=False)


def _covered(box, taken, frame):
    """Return the area of a box that lies on others or outside the frame."""
    overlaps = [Bbox.intersection(box, other) for other in taken]
    inside = Bbox.intersection(box, frame)
    area = box.width * box.height
    outside = area - (inside.width * inside.height if inside else 0)
    return outside + sum(o.width * o.height for o in overlaps if o)


# --- shapes and layouts -----------------------------------------------------------


@_styled
def tensors(blocks, *, title, alt=None):
    """Draw tensors as blocks whose sides carry the names and sizes of the axes.

    Args:
        blocks: a list of `(name, shape, axis_names)` with one to three axes, and of
            strings such as "@", "=" or "→" that stand between blocks. The last
            axis runs across, the one before it down, the first of three backwards.

    >>> tensors([("x", (4, 256), ("T tokens", "D features"))], title="A sentence")
    Tensors as blocks: A sentence. Blocks: x (T tokens = 4, D features = 256).
    """
    parts = [item if isinstance(item, str) else _block(*item) for item in blocks]
    spans = [_text_width(p, 12) + 0.3 if isinstance(p, str) else p["span"]
             for p in parts]
    needed = sum(spans) + 0.2
    zoom = min(1.0, WIDE / needed)  # everything shrinks alike, texts too
    height = max(p["rise"] for p in parts if not isinstance(p, str)) + 0.8
    fig, ax = _canvas(WIDE, height * zoom)
    ax.set(xlim=(0, WIDE / zoom), ylim=(0, height))
    x = (WIDE / zoom - needed) / 2 + 0.1
    for part, span in zip(parts, spans):
        if isinstance(part, str):
            ax.text(x + span / 2, height / 2, part, ha="center", va="center",
                    fontsize=12 * zoom)
        else:
            _draw_block(ax, x, height / 2, part, zoom)
        x += span
    said = [p if isinstance(p, str) else f"{p['name']} ({', '.join(p['axes'])})"
            for p in parts]
    _publish(fig, title, alt or _describe("Tensors as blocks", title,
                                          Blocks=" ".join(said)))


def _block(name, shape, axis_names):
    """Measure a block: its sides, the labels of its axes, the room it needs."""
    _expect(1 <= len(shape) <= 3, f"shape of {name}", "one to three axes", shape)
    _counted(axis_names, len(shape), f"axis_names of {name}")
    axes = [f"{axis} = {size:,}" for axis, size in zip(axis_names, shape)]
    counts = (1,) * (3 - len(shape)) + tuple(int(size) for size in shape)
    deep, high, wide = (_side(size) for size in counts)
    back = np.array([0.42, 0.33]) * (deep if len(shape) == 3 else 0)
    tail = any(back) * max(back[0], back[0] / 2 + 0.1 + _text_width(axes[0], 8.5))
    heading = f"{name} {tuple(shape)}"
    span = max(0.3 + wide + tail, _text_width(axes[-1], 8.5),
               _text_width(heading, 10, "bold")) + 0.15
    return {"name": name, "heading": heading, "axes": axes, "counts": counts,
            "wide": wide, "high": high, "back": back, "tail": tail, "span": span,
            "rise": high + back[1]}


def _side(size):
    """Return the length of a side: true up to eight, then with the logarithm."""
    return 0.16 * min(size, 8) + 0.06 * max(0.0, math.log2(size / 8))


def _draw_block(ax, x, middle, block, zoom):
    wide, high, back = block["wide"], block["high"], block["back"]
    count_z, count_y, count_x = block["counts"]
    left = x + (block["span"] + 0.15 - wide - block["tail"]) / 2
    corner = np.array([left, middle - block["rise"] / 2])
    right, up = np.array([wide, 0]), np.array([0, high])
    faces = [(corner, right, up, count_x, count_y, 0.25),
             (corner + up, right, back, count_x, count_z, 0.12),
             (corner + right, back, up, count_z, count_y, 0.4)]
    for face in faces if any(back) else faces[:1]:
        _draw_face(ax, *face)
    size = 8.5 * zoom
    ax.text(left + (wide + back[0]) / 2, middle + block["rise"] / 2 + 0.1,
            block["heading"], ha="center", fontsize=10 * zoom, fontweight="bold")
    ax.text(left + wide / 2, corner[1] - 0.07, block["axes"][-1], ha="center", va="top",
            fontsize=size)
    if len(block["axes"]) > 1:
        ax.text(left - 0.06, corner[1] + high / 2, block["axes"][-2], ha="right",
                va="center", rotation=90, fontsize=size)
    if any(back):
        ax.text(*(corner + right + back / 2 + (0.07, -0.05)), block["axes"][0],
                ha="left", va="top", fontsize=size)


def _draw_face(ax, start, a, b, count_a, count_b, share):
    ax.add_patch(Polygon([start, start + a, start + a + b, start + b], edgecolor=BLUE,
                         facecolor=_tint(BLUE, share), linewidth=1))
    for along, across, count in ((a, b, count_a), (b, a, count_b)):
        for k in range(1, count if count <= 8 else 0):
            line = start + along * k / count
            ax.plot(*np.stack([line, line + across]).T, color=BLUE, linewidth=0.5)


@_styled
def cells(arrays, *, titles, title, colors, row_labels=None, column_labels=None,
          alt=None):
    """Draw small arrays as grids of coloured cells, to follow what a reshape moves.

    Args:
        arrays: a list of 2-d arrays of numbers or strings, written in the cells.
        titles: one for each array.
        colors: for each array the integer group of every cell; a group has a colour.
        row_labels, column_labels: for each array a list of labels, or None.

    >>> cells([[[0, 1], [2, 3]]], titles=["x"], title="Rows", colors=[[[0, 0], [1, 1]]])
    Grids of cells: Rows. Arrays: x 0 1 / 2 3.
    """
    grids = [[[_plain(value) for value in row] for row in array] for array in arrays]
    texts = [np.array([[_cell_text(value) for value in row] for row in grid])
             for grid in grids]
    groups = [_array(c, "colors", 2).astype(int) for c in colors]
    titles = _counted(titles, len(texts), "titles")
    shapes = [text.shape for text in texts]
    _expect([g.shape for g in groups] == shapes, "colors", f"shapes {shapes}",
            [g.shape for g in groups])
    rows = _cell_labels(row_labels, shapes, 0, "row_labels")
    columns = _cell_labels(column_labels, shapes, 1, "column_labels")
    places, cell, height = _cell_places(shapes, [_widest(n, 9) + 0.4 for n in rows])
    size = min(9, 9 * cell * 0.88 / max(_widest(text.flat, 9) for text in texts))
    fig, ax = _canvas(WIDE, height)
    for i, (x, y) in enumerate(places):
        _draw_cells(ax, x, y, cell, size, texts[i], groups[i], rows[i], columns[i])
        ax.text(x + shapes[i][1] * cell / 2, y + (0.29 if any(columns) else 0.07),
                titles[i], ha="center")
    content = [f"{name} {' / '.join(' '.join(row) for row in text)}"
               for name, text in zip(titles, texts)]
    if any(isinstance(v, float) for grid in grids for row in grid for v in row):
        content = titles  # the text says nothing measured
    _publish(fig, title, alt or _describe("Grids of cells", title,
                                          Arrays="; ".join(content)))


def _cell_places(shapes, room):
    """Set grids on lines; return their top left corners, the cell and the height."""
    lines = [range(i, min(i + MAX_COLUMNS, len(shapes)))
             for i in range(0, len(shapes), MAX_COLUMNS)]
    cell = min(0.55, *((WIDE - sum(room[i] for i in line))
                       / sum(shapes[i][1] for i in line) for line in lines))
    heights = [max(shapes[i][0] for i in line) * cell + 0.6 for line in lines]
    places, y = [], sum(heights) - 0.45
    for line, height in zip(lines, heights):
        x = (WIDE - sum(room[i] + shapes[i][1] * cell for i in line)) / 2 - 0.2
        for i in line:
            places.append((x + room[i], y))
            x += room[i] + shapes[i][1] * cell
        y -= height
    return places, cell, sum(heights)


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def _cell_text(value):
    return _number(value) if isinstance(value, float) else _visible(value)


def _cell_labels(given, shapes, axis, what):
    given = _counted(given or [None] * len(shapes), len(shapes), what)
    return [[] if names is None else _names(names, shape[axis], what)
            for names, shape in zip(given, shapes)]


def _draw_cells(ax, x, y, cell, size, text, groups, rows, columns):
    for (i, j), group in np.ndenumerate(groups):
        corner = (x + j * cell, y - (i + 1) * cell)
        ax.add_patch(Rectangle(corner, cell, cell, edgecolor="white", linewidth=1.5,
                               facecolor=FILLS[group % 6]))
        ax.text(corner[0] + cell / 2, corner[1] + cell / 2, text[i, j], ha="center",
                va="center_baseline", fontsize=size)
    for j, name in enumerate(columns):
        ax.text(x + (j + 0.5) * cell, y + 0.05, name, ha="center", fontsize=size,
                color=GREY)
    for i, name in enumerate(rows):
        ax.text(x - 0.06, y - (i + 0.5) * cell, name, ha="right", va="center",
                fontsize=9, color=GREY)


@_styled
def course_map(status, *, title, alt=None):
    """Draw the notebooks in reading order, with how many exercises are passed.

    Args:
        status: tuples `(number, name, minutes, passed, total, needs)`; `needs` lists
            the numbers of notebooks to read before. Numbers up to 6 are part one.

    >>> course_map([(0, "Start here", 15, 0, 0, [])], title="One notebook")
    Map of the course: One notebook. Notebooks: 00 Start here, 15 minutes.
    """
    parts = [[s for s in status if int(s[0]) <= 6],
             [s for s in status if int(s[0]) > 6]]
    parts = [part for part in parts if part]
    fig, ax = _canvas(WIDE, 1.75 * len(parts))
    slot = (WIDE - 0.1) / max(max(len(part) for part in parts), 5)
    for i, part in enumerate(parts):
        y = 1.75 * (len(parts) - i) - 1.65
        label = "Part one" if int(part[0][0]) <= 6 else "Part two"
        ax.text(0.1, y + 1.38, label, color=GREY, fontsize=9)
        for j, entry in enumerate(part):
            _station(ax, 0.1 + j * slot, y, slot - 0.14, *entry)
            if j:
                ax.add_patch(FancyArrowPatch(
                    (j * slot - 0.05, y + 0.68), (j * slot + 0.11, y + 0.68),
                    arrowstyle="-|>", color=GREY, mutation_scale=8, shrinkA=0,
                    shrinkB=0))
    listed = [f"{int(number):02d} {name}, {minutes} minutes"
              + (f", needs {_needs(needs)}" if _needs(needs) else "")
              for number, name, minutes, _, _, needs in status]
    # How many are passed is the reader's, so the text that is compared leaves it out.
    _publish(fig, title, alt or _describe("Map of the course", title,
                                          Notebooks="; ".join(listed)))


def _needs(needs):
    return ", ".join(f"{int(number):02d}" for number in needs)


def _station(ax, x, y, width, number, name, minutes, passed, total, needs):
    ax.add_patch(Rectangle((x, y), width, 1.32, facecolor="white", edgecolor=BLUE))
    ax.text(x + 0.06, y + 1.26, f"{int(number):02d}", va="top", fontweight="bold",
            color=BLUE)
    ax.text(x + width - 0.06, y + 1.25, f"{minutes} min", va="top", ha="right",
            fontsize=8, color=GREY)
    words = textwrap.fill(name, max(9, int(width / 0.078)), break_on_hyphens=True)
    ax.text(x + 0.06, y + 1.03, words, va="top", fontsize=8.5, linespacing=1.1)
    if _needs(needs):
        ax.text(x + 0.06, y + 0.3, f"needs {_needs(needs)}", fontsize=7.5, color=GREY)
    if total:
        ax.add_patch(Rectangle((x, y), width, 0.22, facecolor="#eeeeee"))
        ax.add_patch(Rectangle((x, y), width * passed / total, 0.22,
                               facecolor=FILLS[2]))
        ax.add_patch(Rectangle((x, y), width, 1.32, fill=False, edgecolor=BLUE))
        ax.text(x + width / 2, y + 0.105, f"{passed} / {total}", ha="center",
                va="center", fontsize=8.5)


# --- pictures that answer ---------------------------------------------------------


def explore(draw, **controls):
    """Redraw a picture whenever one of the controls above it is moved.

    Args:
        draw: a function that takes the values of the controls by name and calls one
            drawing function of this module.
        controls: ipywidgets controls by keyword; one without a description gets
            its keyword.

    The picture at the starting values is published with the controls, so a page that
    shows no widgets shows it alone.

    >>> from types import SimpleNamespace
    >>> explore(lambda peak: bars({"w": [peak]}, ["a"], title="One bar"),
    ...         peak=SimpleNamespace(value=0.5))
    Bars: One bar. Panels: w. Categories: a. Height: weight. (interactive: peak)
    """
    png, alt = _drawn(draw, controls)
    views = {}
    try:
        import ipywidgets
    except ImportError:
        ipywidgets = None  # then the picture stands alone
    if ipywidgets and get_ipython() is not None:
        panel = _panel(ipywidgets, draw, controls, _img(png, alt))
        views["application/vnd.jupyter.widget-view+json"] = {
            "version_major": 2, "version_minor": 0, "model_id": panel.model_id}
    _show(png, f"{alt} (interactive: {', '.join(controls)})", **views)


def _drawn(draw, controls):
    """Call `draw` with the values of the controls; return its one picture."""
    _capture.append([])
    try:
        draw(**{name: control.value for name, control in controls.items()})
    finally:
        pictures = _capture.pop()
    _expect(len(pictures) == 1, "draw", "one picture", len(pictures))
    return pictures[0]


def _panel(ipywidgets, draw, controls, first):
    """Return the controls above their picture, tied together."""
    picture = ipywidgets.HTML(value=first)
    trouble = ipywidgets.HTML()

    def redraw(change):
        try:
            picture.value = _img(*_drawn(draw, controls))
            trouble.value = ""
        except Exception:
            # In a callback a traceback would vanish in the log.
            trouble.value = f"<pre>{escape(traceback.format_exc(limit=-2))}</pre>"

    for name, control in controls.items():
        control.description = control.description or name.replace("_", " ")
        control.tooltip = control.description  # else the label's reads "null"
        control.style.description_width = "initial"  # else long names are cut
        control.layout.width = "400px"  # room for the steps of a slider
        control.observe(redraw, names="value")
    return ipywidgets.VBox([*controls.values(), picture, trouble])
