"""Charts: matrices as heat maps, lines, bars, dots, and points in the plane."""

import itertools
import math

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator

from utils.plots import theme
from utils.plots.publishing import (
    expect_dict,
    expect_length,
    format_number,
    in_course_style,
    new_figure,
    num_digits,
    publish,
    shorten,
    text_color,
    text_width,
    to_array,
    to_finite,
    to_mask,
    to_names,
    visible,
    wrap,
)
from utils.validation import check_int, check_ints, check_type, is_int, raise_unless

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("--", ":", "-.")  # of reference lines
MAX_COLUMNS = 4  # panels side by side before a new row starts
LABEL_ROOM = 0.15  # inches that a label takes across its axis
LABEL_LENGTH = 2.2  # inches of a label of a matrix, at most

# --- matrices ---------------------------------------------------------------------


@in_course_style
def heat(
    maps,
    rows=None,
    columns=None,
    *,
    title: str,
    names=None,
    row_axis: str = "query",
    column_axis: str = "key",
    mask=None,
    signed: bool = False,
    show_values: bool | None = None,
    vmax: float | None = None,
    framed=(),
) -> None:
    """Draw matrices side by side on one colour scale, by default attention weights.

    maps: one matrix (T, S), or several of one shape, (H, T, S): weights from 0
        to `vmax`, or any sign with `signed=True`
    rows, columns: token strings, or pairs (name, number) that name several
        neighbours at once; without columns the rows name both axes
    names: one for each of several matrices
    mask: boolean (T, S) or (H, T, S), True = may attend; others hatched
    signed: colours centred on zero
    show_values: write the numbers; by default in cells that have room for them
    vmax: the end of the colour scale, above 0; 1, or the largest magnitude if
        signed
    framed: cells (row, column) that get a frame, in each matrix

    >>> heat([[1.0, 0.0], [0.4, 0.6]], "ab", framed=[(1, 0)], title="Rows sum to 1")
    Heat map: Rows sum to 1. Rows (query): 0 a, 1 b. Columns (key): 0 a, 1 b. \
Framed: 1 b / 0 a.
    """
    check_type("signed", signed, bool)
    check_type("show_values", show_values is None or show_values, bool)
    maps = to_array(maps, "maps")
    raise_unless(maps.ndim in (2, 3), "maps with 2 or 3 axes", maps.shape)
    maps = maps[None] if maps.ndim == 2 else maps
    height, width = maps.shape[1:]
    if columns is None and height == width:
        columns = rows
    names = to_names([""] * len(maps) if names is None else names, len(maps), "names")
    masks = to_mask(mask, maps.shape)
    finite = maps[masks & (np.isfinite(maps) if signed else ~np.isnan(maps))]
    raise_unless(finite.size, "maps with a finite number that isn't hidden", "none")
    scale = _color_scale(finite, signed, vmax)
    for at in (framed := [*framed]):
        is_cell = np.shape(at) == (2,) and all(map(is_int, at))
        is_cell = is_cell and tuple(at) in np.ndindex(height, width)
        raise_unless(is_cell, f"framed cells of {height} by {width}", at)
    row_labels = _axis_labels(rows, height, "rows")
    column_labels = _axis_labels(columns, width, "columns")
    row_names, column_names = (
        [name if number == 1 else f"{number} {name}" for name, number in labels]
        for labels in (row_labels, column_labels)
    )
    num_columns = min(len(maps), MAX_COLUMNS)
    num_rows = math.ceil(len(maps) / num_columns)
    free_width = theme.WIDTH - max(map(text_width, row_names)) - 0.9
    cell = min(0.5, (free_width / num_columns - 0.2) / width, 5.5 / height)  # inches
    label_height = max(map(text_width, column_names)) + 0.4
    fig = new_figure(num_rows * (height * cell + 0.35) + label_height, "compressed")
    axes = fig.subplots(num_rows, num_columns, squeeze=False)
    for ax in axes.flat[len(maps) :]:
        ax.axis("off")
    digits = num_digits(finite)
    if show_values is None:
        widest = max(text_width(format_number(value, digits)) for value in finite)
        show_values = cell > widest + 0.05
    for ax, name, values, mask in zip(axes.flat, names, maps, masks):
        _draw_map(ax, values, mask, scale, digits if show_values else None, framed)
        ax.set_title(wrap(name, max(width * cell, 1.2)))
    for ax in axes[:, 0]:
        _label_axis(ax.yaxis, row_labels, cell)
        ax.set_ylabel(row_axis)
    for ax in axes.flat[max(0, len(maps) - num_columns) : len(maps)]:  # none is below
        _label_axis(ax.xaxis, column_labels, cell)
        ax.set_xlabel(column_axis)
    if not show_values:
        fig.colorbar(ScalarMappable(*scale), ax=axes, shrink=0.8, aspect=25)
    parts = {"Panels": [name for name in names if name]}
    parts |= {f"Rows ({row_axis})": row_names, f"Columns ({column_axis})": column_names}
    parts["Framed"] = [f"{row_names[i]} / {column_names[j]}" for i, j in framed]
    publish(fig, "Heat map", title, parts)


def _axis_labels(labels, size, what):
    """Return pairs (label, how many cells it names); tokens get their positions."""
    if labels is None:
        return [(str(i), 1) for i in range(size)]
    lengths = {len(label) if isinstance(label, tuple) else 0 for label in labels}
    if lengths - {0}:
        expected = "texts only, or pairs (name, number) only"
        raise_unless(lengths == {2}, expected, f"{labels!r:.80}", where=what)
        numbers = [number for _, number in labels]
        check_ints(what, numbers)
        is_sum = sum(numbers) == size and min(numbers) > 0
        raise_unless(is_sum, f"numbers above 0 that sum to {size}", numbers, where=what)
        return [(shorten(name, LABEL_LENGTH), number) for name, number in labels]
    names = to_names(labels, size, what)
    if not isinstance(labels, range):
        names = [f"{i} {name}" for i, name in enumerate(names)]
    return [(shorten(name, LABEL_LENGTH), 1) for name in names]


def _color_scale(finite, signed, vmax):
    """Return (norm, colour map) for all maps: weights from 0, signed around 0."""
    low, high = finite.min(initial=0), finite.max(initial=0)
    top = (max(high, -low, 1e-12) if signed else 1) if vmax is None else vmax
    top = float(to_finite(top, "vmax"))
    raise_unless(top > 0, "vmax above 0", vmax)
    bottom = -top if signed else 0
    expected = f"maps with {'values' if signed else 'weights'} from {bottom:g} to "
    expected += f"{top:g} (else use signed=True or vmax=)"
    is_inside = bottom - 1e-6 <= low and high <= top + 1e-6
    raise_unless(is_inside, expected, f"values from {low:.3g} to {high:.3g}")
    return Normalize(bottom, top), theme.SIGNED if signed else theme.WEIGHTS


def _draw_map(ax, values, mask, scale, digits, framed):
    """Draw one matrix; with a number of digits its values are written in its cells."""
    norm, cmap = scale
    shown = np.where(mask, values, np.nan)
    rules = {"edgecolors": theme.PALE, "linewidth": 0.6 if max(shown.shape) < 30 else 0}
    ax.pcolormesh(shown, norm=norm, cmap=cmap, clip_on=False, **rules)
    ax.set(aspect="equal", xticks=[], yticks=[], ylim=(len(values), 0))
    ax.spines[:].set(visible=True, color=theme.PALE)
    if not mask.all():  # the ground shows where nothing is drawn
        ax.patch.set(facecolor=theme.HIDDEN, edgecolor="#808080", hatch="////")
    if digits is not None:
        for i, j in np.argwhere(np.isfinite(shown)):
            text, color = format_number(shown[i, j], digits), cmap(norm(shown[i, j]))
            style = {"ha": "center", "va": "center", "color": text_color(color)}
            ax.text(j + 0.5, i + 0.5, text, **style)
    for i, j in framed:
        style = {"fill": False, "edgecolor": "black", "linewidth": 2}
        ax.add_patch(Rectangle((j, i), 1, 1, clip_on=False, zorder=3, **style))


def _label_axis(axis, labels, cell):
    """Write a label at each cell, or at every second, third … where cells are small.

    Labels of several cells are all written, with a line at each border.
    """
    names, numbers = zip(*labels)
    ends = np.cumsum([0, *numbers])
    middles = (ends[:-1] + ends[1:]) / 2
    axis.set_tick_params(length=2)
    if max(numbers) > 1:
        axis.set_ticks(middles, names)
        axis.set_ticks(ends[1:-1], minor=True)
        axis.grid(which="minor", color="black", linewidth=1)
        return
    step = math.ceil(LABEL_ROOM / cell)
    widest = max(map(text_width, names))
    is_tight = axis.axis_name == "x" and widest > cell * step
    axis.set_ticks(middles[::step], names[::step], rotation=90 if is_tight else 0)


# --- numbers ----------------------------------------------------------------------


@in_course_style
def bars(groups: dict, labels, *, title: str, ylabel: str) -> None:
    """Draw one panel of bars for each group, side by side on one scale.

    groups: dict from the panel's name to its values, one for each label
    labels: the categories, such as tokens

    >>> bars({"one": [0.2, 0.8]}, ["a", "b"], title="b is heavier", ylabel="weight")
    Bars: b is heavier. Panels: one. Categories: a, b. Height: weight.
    """
    names = [visible(label) for label in labels]
    expect_dict("groups", groups)
    fig = new_figure(2.6, "constrained")
    axes = fig.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    slot = ((theme.WIDTH - 0.7) / len(groups) - 0.15) / (len(names) + 0.3)  # inches
    for ax, (name, values) in zip(axes, groups.items()):
        values = to_finite(values, name, 1)
        expect_length(len(names), name, values)
        bar = ax.bar(np.arange(len(names)) + 0.5, values, 0.75, color=theme.SERIES[0])
        numbers = [format_number(value, num_digits(values)) for value in values]
        if max(map(text_width, numbers)) < 0.9 * slot:
            ax.bar_label(bar, numbers, padding=1)
        ax.set_title(wrap(name, slot * len(names)))
        ax.margins(x=0.02, y=0.15)
        _label_axis(ax.xaxis, [(name, 1) for name in names], slot)
    axes[0].set_ylabel(ylabel)
    parts = {"Panels": list(groups), "Categories": names, "Height": ylabel}
    publish(fig, "Bars", title, parts)


@in_course_style
def dots(
    groups: dict, *, title: str, xlabel: str, baseline: dict | None = None, xlim=None
) -> None:
    """Draw one line of dots for each group: an experiment's seeds beside a baseline.

    A short upright line marks the median of several values. Each seed has its own
    height, the same in all groups, the first on top.

    groups: dict from a name to its values, one a seed
    baseline: dict from a name to a value, drawn as dashed upright lines
    xlim: (left, right) of the scale

    >>> dots({"one head": [0.5, 0.6], "four": [0.9, 0.9]}, title="Four heads find more",
    ...      xlabel="accuracy", baseline={"guessing": 0.25})
    Dots: Four heads find more. Across: accuracy. Rows: one head, four. \
Baselines: guessing.
    """
    expect_dict("groups", groups)
    expect_dict("baseline", baseline or groups)
    fig = new_figure(0.9 + 0.46 * len(groups), "constrained")
    ax = fig.subplots()
    style = {"markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    for i, (name, values) in enumerate(groups.items()):
        values = to_finite(values, name, 1)
        heights = [i]
        if len(values) > 1:
            heights = i + np.linspace(-0.3, 0.3, len(values))
            ax.plot(
                [np.median(values)] * 2, [i - 0.4, i + 0.4], color="black", zorder=1
            )
        ax.plot(values, heights, "o", color=theme.SERIES[0], **style)
    _draw_references(ax.axvline, baseline)
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set(xlabel=xlabel, ylim=(len(groups) - 0.5, -0.5))
    ax.set_xlim(_two_numbers("xlim", xlim))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.set_axisbelow(True)  # or the grid crosses the median bars
    if baseline:
        fig.legend(loc="outside lower right", ncols=3)
    parts = {"Across": xlabel, "Rows": list(groups), "Baselines": list(baseline or ())}
    publish(fig, "Dots", title, parts)


def _two_numbers(what, values, log=None):
    """Return two finite numbers, such as the ends of an axis; None stays."""
    if values is not None:
        values = to_finite(values, what, 1, log)
        expect_length(2, what, values)
    return values


def _draw_references(draw, places, log=None):
    """Draw dashed lines across the panel, at places by name; log: as in `to_finite`."""
    for (name, place), dashes in zip((places or {}).items(), itertools.cycle(DASHES)):
        style = {"color": theme.GREY, "linestyle": dashes, "linewidth": 1.2}
        draw(float(to_finite(place, name, log=log)), label=name, zorder=0, **style)


@in_course_style
def lines(
    series: dict,
    x=None,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    log_x: bool = False,
    log_y: bool = False,
    reference: dict | None = None,
    marks: dict | None = None,
    smooth: int = 1,
    thin: dict | None = None,
    ylim=None,
) -> None:
    """Draw lines, each with its own colour and marker.

    If a line ends early, a cross marks its last finite value. Earlier NaNs leave gaps,
    wider ones if `smooth` is above 1.

    series: dict from a name to its values
    x: positions shared by all; by default 0, 1, 2 …
    log_x, log_y: logarithmic axes
    reference: dict from a name to a height, drawn as dashed lines
    marks: dict from a name to a place across, drawn as dashed upright lines, or to
        a pair (place, text) with a text for the legend
    smooth: width of a moving average; the values themselves stay, faint
    thin: dict from a name in `series` to more lines, drawn thin in its colour
    ylim: (bottom, top)

    >>> style = {"xlabel": "step", "ylabel": "loss", "marks": {"late": (1, "A cat")}}
    >>> lines({"loss": [3.0, 2.0]}, title="It falls", **style)
    Lines: It falls. Across: step. Up: loss. Lines: loss. late: A cat.
    """
    check_type("log_x", log_x, bool)
    check_type("log_y", log_y, bool)
    expect_dict("series", series)
    expect_dict("reference", reference or series)
    expect_dict("marks", marks or series)
    expect_dict("thin", thin or series)
    check_int("smooth", smooth)
    log_x, log_y = log_x and "log_x", log_y and "log_y"
    unknown = [*{*(thin or ())} - {*series}]
    raise_unless(not unknown, f"thin with names from {[*series]}", unknown)
    samples = {k: mark for k, mark in (marks or {}).items() if isinstance(mark, tuple)}
    are_pairs = all(len(mark) == 2 for mark in samples.values())
    raise_unless(are_pairs, "marks as places, or as pairs (place, text)", samples)
    marks = {k: mark for k, mark in (marks or {}).items() if k not in samples}
    names = [*series, *(reference or {}), *marks]
    places = {}  # of the samples, by the texts in the legend
    for name, (place, text) in samples.items():
        text = f"{name}: {visible(text)}".replace("↵", "↵ ")
        places[wrap(text, theme.WIDTH - 1.0)] = place
    entries = "\n".join(names + [*places]) if samples else ""
    fig = new_figure(3.3 + 0.17 * entries.count("\n"), "constrained")
    ax = fig.subplots()
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    for i, (name, values) in enumerate(series.items()):
        y, color = to_array(values, name, 1), theme.SERIES[i % len(theme.SERIES)]
        at = to_finite(range(len(y)) if x is None else x, "x", 1, log_x)
        expect_length(len(at), name, y)
        is_drawn, where = not (log_y and (y <= 0).any()), {"where": name}
        raise_unless(np.isfinite(y).any(), "a finite number or more", "none", **where)
        raise_unless(is_drawn, "numbers above 0 for log_y", np.nanmin(y), **where)
        raise_unless(smooth <= len(y), f"smooth from 1 to {len(y)}", smooth)
        for other in (thin or {}).get(name, ()):
            other = to_array(other, name, 1)
            expect_length(len(at), name, other)
            ax.plot(at, other, color=color, alpha=0.7, linewidth=0.9)
        if smooth > 1:
            ax.plot(at, y, color=color, alpha=0.25, linewidth=0.8)
            y, at = np.convolve(y, np.ones(smooth) / smooth, "valid"), at[smooth - 1 :]
        _draw_line(ax, i, name, at, y)
    _draw_references(ax.axhline, reference, log_y)
    _draw_references(ax.axvline, marks | places, log_x)
    ax.set_ylim(_two_numbers("ylim", ylim, log_y))
    for axis, is_log in ((ax.xaxis, log_x), (ax.yaxis, log_y)):
        if is_log:
            _label_log_axis(axis)
    if x is not None and len(x) <= 8:
        ax.set_xticks(x, [f"{float(value):,.9g}" for value in x])
        ax.set_xticks([], minor=True)
    elif not log_x:
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="y")
    widest = max(map(text_width, names + [*places]))
    columns = int((theme.WIDTH - 0.4) / (widest + 0.65))
    fig.legend(loc="outside lower center", ncols=max(1, columns))
    parts = {"Across": xlabel, "Up": ylabel, "Lines": names}
    raise_unless(not parts.keys() & samples, f"marks not named {[*parts]}", [*samples])
    parts |= {name: " ".join(text.split()) for name, (_, text) in samples.items()}
    publish(fig, "Lines", title, parts)


def _draw_line(ax, i, name, at, y):
    """Draw the line number i, with a cross at its end if it ends early."""
    color = theme.SERIES[i % len(theme.SERIES)]
    apart = max(1, len(y) // 12)  # so that markers don't hide a long line
    style = {"marker": MARKERS[i % len(MARKERS)], "markevery": (i % apart, apart)}
    ax.plot(at, y, color=color, label=name, **style)
    end = np.flatnonzero(np.isfinite(y))[-1:]
    if end.size and end[0] < len(y) - 1:
        cross = {"marker": "X", "markersize": 10, "markeredgecolor": "white"}
        ax.plot(at[end], y[end], color=color, zorder=5, clip_on=False, **cross)


def _label_log_axis(axis):
    """Write numbers such as 1,000 at a logarithmic axis, at a few of each power."""
    low, high = axis.get_view_interval()
    ticks = (1, 2, 5) if high < 3000 * low else (1,)  # of each power of ten
    axis.set_major_locator(LogLocator(subs=ticks))
    axis.set_major_formatter("{x:,.9g}")
    axis.set_minor_formatter("")


# --- points -----------------------------------------------------------------------


@in_course_style
def points(positions, labels, *, title: str, names, groups, reach: float) -> None:
    """Draw labelled points in the plane, in panels on one scale.

    The labels are in a column at the right of each panel, as high or low as the points.

    positions: (N, 2) for each panel
    labels: the N labels of the points
    names: one for each panel
    groups: the name of each point's group, which gives colour and marker
    reach: both axes go from `-reach` to `reach`

    >>> points([[[0, 1.0], [1, 0]]], ["cat", "bus"], names=["before"], reach=2,
    ...        groups=["animal", "vehicle"], title="Two words")
    Points: Two words. Panels: before. Labels: cat, bus. Groups: animal, vehicle.
    """
    panels = to_finite(positions, "positions", 3)
    is_plane = panels.shape[-1] == 2
    raise_unless(is_plane, "positions (panel, point, 2)", panels.shape)
    labels = to_names(labels, panels.shape[1], "labels")
    expect_length(len(labels), "groups", groups)
    names = to_names(names, len(panels), "names")
    farthest = np.abs(panels).max(initial=0)
    raise_unless(farthest <= reach, f"positions up to reach = {reach}", farthest)
    fig, kinds = new_figure(4.0, "constrained"), list(dict.fromkeys(groups))
    axes = fig.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
    axes[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
    for ax, panel, name in zip(axes, panels, names):
        for i, kind in enumerate(kinds):
            at = panel[[group == kind for group in groups]]
            ax.plot(*at.T, MARKERS[i % 8], color=theme.SERIES[i % 6], label=kind)
        heights = np.linspace(0.97 * reach, -0.97 * reach, len(panel))
        for i, height in zip(np.argsort(-panel[:, 1]), heights):
            style = {"va": "center", "size": theme.SMALLEST, "annotation_clip": False}
            style["arrowprops"] = {"arrowstyle": "-", "color": theme.PALE}
            ax.annotate(labels[i], panel[i], (1.05 * reach, height), **style)
        ax.set_title(name)
    handles = axes[0].get_legend_handles_labels()
    fig.legend(*handles, loc="outside lower center", ncols=len(kinds))
    parts = {"Panels": names, "Labels": labels, "Groups": kinds}
    publish(fig, "Points", title, parts)


@in_course_style
def scatter(
    groups: dict,
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    labels: dict | None = None,
    offsets: dict | None = None,
    log_x: bool = False,
    joined=(),
    ylim=None,
) -> None:
    """Draw a mark for each pair of numbers, with a colour and a marker for each group.

    groups: dict from a name to (x, y), two rows of equal length
    labels: dict from a text to the (x, y) that it names; the text is at the left
    offsets: dict from a text in `labels` to its distance from (x, y), in points
        to the right and up, if it isn't at the left
    log_x: a logarithmic axis
    joined: the names of groups whose marks are joined by a line
    ylim: (bottom, top)

    >>> scatter({"block 0": [[0.1, 0.3], [0.0, 0.2]]}, title="More weight costs more",
    ...         xlabel="weight", ylabel="cost", labels={"head 1": (0.3, 0.2)})
    Marks: More weight costs more. Across: weight. Up: cost. Groups: block 0. \
Labels: head 1.
    """
    check_type("log_x", log_x, bool)
    expect_dict("groups", groups)
    for what, names, known in (
        ("offsets", offsets or (), labels or {}),
        ("joined", joined, groups),
    ):
        unknown = [name for name in names if name not in known]
        raise_unless(not unknown, f"names from {[*known]}", unknown, where=what)
    fig = new_figure(3.3, "constrained")
    ax = fig.subplots()
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if log_x else "linear")
    for i, (name, pair) in enumerate(groups.items()):
        expect_length(2, name, pair := to_finite(pair, name, 2))
        x, y = pair
        to_finite(x, name, 1, log_x and "log_x")
        line = "-" if name in joined else ""
        style = {"color": theme.SERIES[i % 6], "label": name, "linestyle": line}
        ax.plot(x, y, marker=MARKERS[i % 8], **style)
    for text, at in (labels or {}).items():
        right, up = _two_numbers(text, (offsets or {}).get(text, (-8, 0)))
        style = {
            "textcoords": "offset points",
            "ha": ("center", "left", "right")[int(np.sign(right))],
            "va": ("center", "bottom", "top")[int(np.sign(up))],
        }
        at = _two_numbers(text, at)
        ax.annotate(text, at, (right, up), size=theme.SMALLEST, **style)
    if log_x:
        _label_log_axis(ax.xaxis)
    ax.set_ylim(_two_numbers("ylim", ylim))
    ax.grid()
    ax.set_axisbelow(True)
    fig.legend(loc="outside lower center", ncols=len(groups))
    parts = {"Across": xlabel, "Up": ylabel, "Groups": list(groups)}
    parts |= {"Labels": list(labels or ())}
    publish(fig, "Marks", title, parts)


# --- angles -----------------------------------------------------------------------


@in_course_style
def dials(angles, names, *, title: str, labels, shaded=None) -> None:
    """Draw clocks, four to a line: a hand for each angle.

    Angles are counted from the right and counter-clockwise, as vectors rotate.

    Hands that nearly coincide share a label, at the first of them.

    angles: (N, T) in radians, T hands for each of N clocks
    names: one for each clock
    labels: one for each hand
    shaded: for each clock an angle in radians up to which it is shaded

    >>> dials([[0, 1.6], [0, 3.1]], ["fast", "slow"], labels=["k", "q"], title="Two")
    Clocks: Two. Names: fast, slow. Hands: k, q.
    """
    angles = to_finite(angles, "angles", 2)
    names = to_names(names, len(angles), "names")
    labels = to_names(labels, angles.shape[1], "labels")
    expect_length(len(angles), "shaded", names if shaded is None else shaded)
    num_rows = math.ceil(len(angles) / 4)
    fig = new_figure(2 * num_rows, "constrained")
    axes = fig.subplots(num_rows, 4, squeeze=False, subplot_kw={"projection": "polar"})
    for ax in axes.flat[len(angles) :]:
        ax.axis("off")
    for i, (ax, hands) in enumerate(zip(axes.flat, angles)):
        ax.set(xticks=[], yticks=[])
        ax.set_title(names[i], pad=20)
        if shaded is not None:
            end, color = float(to_finite(shaded[i], "shaded")), theme.WEIGHTS(0.2)
            end = min(end, 2 * math.pi)
            ax.bar(0, 1, end, align="edge", color=color)
        for j, hand in enumerate(hands):
            ax.plot([hand, hand], [0, 1], color=theme.SERIES[0], linewidth=1.2)
            near = [math.cos(hand - other) >= 0.97 for other in hands]
            if not any(near[:j]):
                label = ", ".join(itertools.compress(labels, near))
                side = round(math.cos(hand))  # 1 at the right, −1 at the left
                align = ("center", "left", "right")[side]
                ax.text(hand, 1.12, label, ha=align, va="center")
        ax.set_ylim(0, 1)
    publish(fig, "Clocks", title, {"Names": names, "Hands": labels})
