"""Charts: matrices as heat maps, lines, bars, dots, and points in the plane."""

import math

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from utils.plots import theme
from utils.plots.publishing import (
    describe,
    expect,
    format_number,
    in_course_style,
    new_figure,
    num_digits,
    publish,
    text_color,
    text_width,
    to_array,
    to_mask,
    to_names,
    visible,
    wrap,
)

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("--", ":", "-.")  # of reference lines
MAX_COLUMNS = 4  # panels side by side before a new row starts
FEW_POINTS = 30  # of a line, which then has a marker at each

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
    numbered: bool = True,
) -> None:
    """Draw matrices on one colour scale, by default attention weights.

    Rows are queries and columns are keys; several matrices stand side by side.

    Args:
        maps: one matrix `(T, S)`, or several of one shape, `(H, T, S)`: weights from 0
            to `vmax`, or any sign with `signed=True`.
        rows, columns: token strings, or pairs (name, number) that name several
            neighbours at once; without columns the rows name both axes.
        names: one for each of several matrices.
        mask: boolean `(T, S)` or `(H, T, S)`, True = may attend.
        signed: colours centred on zero.
        show_values: write the numbers; by default in cells that have room for them.
        vmax: the end of the colour scale; 1, or the largest magnitude if signed.
        numbered: write positions before the tokens.

    Raises:
        ValueError: for a wrong number of labels, a mask of another shape, or
            weights outside the scale.

    >>> heat([[1.0, 0.0], [0.4, 0.6]], ["a", "b"], title="Rows sum to 1")
    Heat map: Rows sum to 1. Rows (query): 0 a, 1 b. Columns (key): 0 a, 1 b.
    """
    maps = to_array(maps, "maps")
    expect(maps.ndim in (2, 3), "maps", "2 or 3 axes", f"shape {maps.shape}")
    maps = maps[None] if maps.ndim == 2 else maps
    shape = maps.shape[1:]
    if columns is None and shape[0] == shape[1]:
        columns = rows
    names = [""] * len(maps) if names is None else names
    expect(len(names) == len(maps), "names", f"{len(maps)} of them", len(names))
    masks = to_mask(mask, maps.shape)
    known = maps[masks & np.isfinite(maps)]
    scale = _color_scale(known, signed, vmax)
    row_labels = _axis_labels(rows, shape[0], "rows", numbered)
    column_labels = _axis_labels(columns, shape[1], "columns", numbered)
    room = 0.16 if show_values is False or max(shape) > 8 else 0.35
    labels = [
        [name if number == 1 else f"{number} {name}" for name, number in pairs]
        for pairs in (row_labels, column_labels)
    ]
    fig, axes, cell, across = _map_panels(len(maps), shape, labels, room)
    digits = num_digits(known)
    widest = max(text_width(format_number(value, digits)) for value in known[:1000])
    if show_values is None:
        show_values = cell >= max(0.24, widest + 0.05)
    for i, (ax, values, mask) in enumerate(zip(axes, maps, masks)):
        _draw_map(ax, values, mask, scale, cell, digits if show_values else None)
        ax.set_title(wrap(names[i], max(shape[1] * cell, 1.2)) if names[i] else "")
        if i + across >= len(axes):  # no panel below
            _label_axis(ax.xaxis, column_labels, cell, columns is None)
            ax.set_xlabel(column_axis)
        if i % across == 0:
            _label_axis(ax.yaxis, row_labels, cell, rows is None)
            ax.set_ylabel(row_axis)
    if not show_values:
        fig.colorbar(ScalarMappable(*scale), ax=axes, shrink=0.8, aspect=25)
    parts = {"Panels": [name for name in names if name]}
    parts |= {f"Rows ({row_axis})": labels[0], f"Columns ({column_axis})": labels[1]}
    publish(fig, title, describe("Heat map", title, **parts))


def _axis_labels(labels, size, what, numbered):
    """Return pairs (label, how many cells it names): positions, tokens, or as given."""
    if labels is None:
        return [(str(i), 1) for i in range(size)]
    if isinstance(labels[0], tuple):
        total = sum(number for _, number in labels)
        expect(total == size, what, f"numbers that sum to {size}", total)
        return labels
    names = enumerate(to_names(labels, size, what))
    return [(f"{i} {name}" if numbered else name, 1) for i, name in names]


def _color_scale(known, signed, vmax):
    """Return (norm, colour map) for all maps: weights from 0, signed around 0."""
    low, high = known.min(initial=0), known.max(initial=0)
    top = vmax or (max(high, -low, 1e-12) if signed else 1)
    bottom = -top if signed else 0
    expect(
        bottom - 1e-6 <= low and high <= top + 1e-6,
        "maps",
        f"{'values' if signed else 'weights'} from {bottom:g} to {top:g} "
        "(else use signed=True or vmax=)",
        f"values from {low:.3g} to {high:.3g}",
    )
    return Normalize(bottom, top), theme.SIGNED if signed else theme.WEIGHTS


def _map_panels(num_maps, shape, labels, room):
    """Return a figure whose panels have the proportions of the matrices.

    Few panels are side by side where cells would be narrower than `room`.
    """
    left, below = (max(map(text_width, names)) for names in labels)
    free = theme.WIDTH - left - 0.9
    for across in range(min(num_maps, MAX_COLUMNS), 0, -1):
        cell = min(0.5, (free / across - 0.2) / shape[1], 5.5 / shape[0])
        if cell >= room or across <= 2:
            break
    down = math.ceil(num_maps / across)
    across = math.ceil(num_maps / down)
    fig = new_figure(down * (shape[0] * cell + 0.35) + below + 0.4, "compressed")
    axes = fig.subplots(down, across, squeeze=False).flat
    for ax in axes[num_maps:]:
        ax.axis("off")
    return fig, list(axes[:num_maps]), cell, across


def _draw_map(ax, values, mask, scale, cell, digits):
    """Draw one matrix; with a number of digits its values are written in its cells."""
    norm, cmap = scale
    known = mask & np.isfinite(values)
    rules = {"edgecolors": theme.PALE, "linewidth": 0.6 if cell >= 0.12 else 0}
    shown = np.where(known, values, np.nan)
    ax.pcolormesh(shown, norm=norm, cmap=cmap, clip_on=False, **rules)
    ax.set(aspect="equal", xticks=[], yticks=[], ylim=(len(values), 0))
    ax.spines[:].set(visible=cell < 0.12, color=theme.PALE)
    if not mask.all():
        hidden, color = np.ma.masked_array(values, mask), ListedColormap([theme.HIDDEN])
        style = {"hatch": "////", "edgecolor": "#808080", "linewidth": 0}
        ax.pcolor(hidden, cmap=color, clip_on=False, **style)
    for i, j in np.argwhere(mask) if digits is not None else ():
        color = text_color(cmap(norm(values[i, j])) if known[i, j] else "white")
        text = format_number(values[i, j], digits)
        ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=color)


def _label_axis(axis, labels, cell, is_plain=False):
    """Write a label at each cell, or at every second, fifth … where cells are small.

    Labels of several cells are all written, with a line at each border.
    """
    names, numbers = zip(*labels)
    ends = np.cumsum([0, *numbers])
    if max(numbers) > 1:
        axis.set_ticks((ends[:-1] + ends[1:]) / 2, names)
        axis.set_ticks(ends, minor=True)
        draw = axis.axes.axvline if axis.axis_name == "x" else axis.axes.axhline
        for border in ends[1:-1]:
            draw(border, color="black", linewidth=1)
        axis.set_tick_params(length=0)
        return axis.set_tick_params(which="minor", length=8)
    needed = len(labels) / 13 if is_plain else 0.14 / cell
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 500, 10_000) if n >= needed)
    ticks, style = ends[:-1:step], {}
    widest = max(map(text_width, names[::step]))
    if axis.axis_name == "x" and widest > cell * step * 0.92:
        is_steep = cell * step < 0.25
        style = {"rotation": 90 if is_steep else 45, "rotation_mode": "anchor"}
        style |= {"ha": "right", "va": "center" if is_steep else "top"}
    axis.set_ticks(ticks + 0.5, names[::step], **style)
    axis.set_tick_params(length=2)


# --- numbers ----------------------------------------------------------------------


@in_course_style
def bars(groups: dict, labels, *, title: str, ylabel: str = "weight") -> None:
    """Draw one panel of bars for each group, side by side on one scale.

    Args:
        groups: dict from the panel's name to its values, one for each label.
        labels: the categories, such as tokens.

    >>> bars({"one": [0.2, 0.8]}, ["a", "b"], title="b is heavier")
    Bars: b is heavier. Panels: one. Categories: a, b. Height: weight.
    """
    names = [visible(label) for label in labels]
    fig = new_figure(2.6, "constrained")
    axes = fig.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    slot = ((theme.WIDTH - 0.7) / len(groups) - 0.15) / (len(names) + 0.3)
    for ax, (name, values) in zip(axes, groups.items()):
        values = to_array(values, name, 1)
        expect(len(values) == len(names), name, f"{len(names)} of them", len(values))
        bar = ax.bar(np.arange(len(names)) + 0.5, values, 0.75, color=theme.SERIES[0])
        numbers = [format_number(value, num_digits(values)) for value in values]
        if max(map(text_width, numbers)) < slot:
            ax.bar_label(bar, numbers, padding=1)
        ax.set_title(wrap(name, slot * len(names)))
        ax.margins(x=0.02, y=0.15)
        _label_axis(ax.xaxis, [(name, 1) for name in names], slot)
    axes[0].set_ylabel(ylabel)
    parts = {"Panels": list(groups), "Categories": names, "Height": ylabel}
    publish(fig, title, describe("Bars", title, **parts))


@in_course_style
def dots(
    groups: dict,
    *,
    title: str,
    xlabel: str,
    baseline: dict | None = None,
    xlim=None,
    linked: bool = False,
) -> None:
    """Draw one line of dots for each group: an experiment's seeds beside a baseline.

    A short upright line marks the median of each group.

    Args:
        groups: dict from a name to its values, one a seed.
        baseline: dict from a name to a value, drawn as dashed upright lines.
        xlim: `(left, right)` of the scale.
        linked: join the values of one seed in neighbouring groups by a thin line.

    >>> dots({"one head": [0.5, 0.6], "four": [0.9, 0.9]}, title="Four heads find more",
    ...      xlabel="accuracy", baseline={"guessing": 0.25})
    Dots: Four heads find more. Across: accuracy. Rows: one head, four. \
Baselines: guessing.
    """
    expect(groups, "groups", "at least one", groups)
    groups = {name: to_array(values, name, 1) for name, values in groups.items()}
    for name, values in groups.items():
        expect(np.isfinite(values).all(), name, "finite numbers", values)
    ends = [*np.concatenate([*groups.values()]), *(baseline or {}).values()]
    width = 0.016 * (np.ptp(xlim) if xlim else max(ends) - min(ends))  # of a dot
    width = 0 if linked else width
    levels = [_levels(values, width) for values in groups.values()]
    most = max(abs(level).max(initial=0) for level in levels)
    height = 0.6 if linked else 0.34 if most < 2 else 0.46
    fig = new_figure(0.9 + height * len(groups), "constrained")
    ax = fig.subplots()
    if linked:
        seeds = zip(*groups.values(), strict=True)
        for values in seeds:
            ax.plot(values, range(len(values)), color=theme.GREY, lw=0.8, alpha=0.6)
    style = {"markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    style |= {"color": theme.SERIES[0], "alpha": 0.55 if linked else 1}
    for i, (values, level) in enumerate(zip(groups.values(), levels)):
        at, step = np.median(values), min(0.22, 0.4 / max(1, *abs(level)))
        ax.plot([at, at], [i - 0.4, i + 0.4], color="black", zorder=1)
        ax.plot(values, i + level * step, "o", **style)
    _draw_references(ax.axvline, baseline, zorder=0)
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set(xlabel=xlabel, ylim=(len(groups) - 0.5, -0.5))
    if xlim is not None:
        ax.set_xlim(xlim)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#E5E5E5")
    ax.set_axisbelow(True)  # or the grid crosses the median bars
    if baseline:
        _draw_legend(fig, ax, "outside lower right", 3)
    parts = {"Rows": list(groups), "Baselines": list(baseline or ())}
    publish(fig, title, describe("Dots", title, Across=xlabel, **parts))


def _draw_legend(fig, ax, loc, most):
    """Draw a legend of at most so many columns that is read row by row.

    Matplotlib fills one column after the other, so the entries are sorted for that.
    """
    entries = [*zip(*ax.get_legend_handles_labels())]
    columns = min(most, len(entries))
    entries = [entry for start in range(columns) for entry in entries[start::columns]]
    fig.legend(*zip(*entries), loc=loc, ncols=columns)


def _levels(values, width):
    """Return how many lines above or below its own each dot is, to hide no other."""
    levels, placed = np.zeros(len(values)), []
    for i in np.argsort(values, kind="stable"):
        near = {level for value, level in placed if values[i] - value < width}
        order = sorted(range(-len(values), len(values)), key=abs)
        levels[i] = next(level for level in order if level not in near)
        placed.append((values[i], levels[i]))
    return levels


def _draw_references(draw, places, **style):
    """Draw dashed lines across the panel, at places by name."""
    for i, (name, place) in enumerate((places or {}).items()):
        style |= {"color": theme.GREY, "linestyle": DASHES[i % 3], "linewidth": 1.2}
        draw(float(place), label=name, **style)


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
    ylim=None,
) -> None:
    """Draw lines, each with its own colour and marker, or dashes if it has many points.

    A cross marks where a line ends early, before its first nan.

    Args:
        series: dict from a name to its values.
        x: positions shared by all; by default 0, 1, 2 …
        log_x, log_y: logarithmic axes.
        reference: dict from a name to a height, drawn as dashed lines.
        marks: dict from a name to a place across, drawn as upright lines.
        smooth: width of a moving average; the values themselves stay, faint.
        ylim: `(bottom, top)`.

    >>> lines({"loss": [3.0, 2.0]}, title="It falls", xlabel="step", ylabel="loss")
    Lines: It falls. Across: step. Up: loss. Lines: loss.
    """
    fig = new_figure(3.3, "constrained")
    ax = fig.subplots()
    for i, (name, values) in enumerate(series.items()):
        y, color = to_array(values, name, 1), theme.SERIES[i % len(theme.SERIES)]
        at = np.arange(len(y)) if x is None else to_array(x, "x", 1)
        expect(len(at) == len(y), name, f"{len(at)} values, one for each x", len(y))
        style = {"color": color, "label": name}
        if len(y) <= FEW_POINTS:
            style["marker"] = MARKERS[i % len(MARKERS)]
        else:
            style["linestyle"] = ("-", "--", "-.", ":")[i % 4]
        if 1 < smooth < len(y):
            ax.plot(at, y, color=color, alpha=0.25, linewidth=0.8)
            y, at = np.convolve(y, np.ones(smooth) / smooth, "valid"), at[smooth - 1 :]
        ax.plot(at, y, **style)
        end = np.isnan(y).argmax() - 1  # -1 without a nan
        if end >= 0:
            cross = {"marker": "X", "markersize": 10, "markeredgecolor": "white"}
            ax.plot(at[end], y[end], color=color, zorder=5, clip_on=False, **cross)
    _draw_references(ax.axhline, reference)
    for name, place in (marks or {}).items():
        ax.axvline(float(place), color="black", linewidth=1.2, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if ylim is not None:
        ax.set_ylim(ylim)
    _place_ticks(ax, x, log_x, log_y)
    ax.grid(axis="y", color="#E5E5E5")
    names = [*series, *(reference or {}), *(marks or {})]
    columns = int((theme.WIDTH - 0.4) / (max(map(text_width, names)) + 0.65))
    _draw_legend(fig, ax, "outside lower center", max(1, columns))
    parts = {"Across": xlabel, "Up": ylabel, "Lines": names}
    publish(fig, title, describe("Lines", title, **parts))


def _place_ticks(ax, x, log_x, log_y):
    for axis, is_log in ((ax.xaxis, log_x), (ax.yaxis, log_y)):
        if is_log:
            ax.set(**{f"{axis.axis_name}scale": "log"})
            low, high = axis.get_view_interval()
            axis.set_major_formatter("{x:,.9g}")
            axis.set_minor_formatter("{x:,.9g}" if high < 10 * low else "")
    few = x is not None and 1 < len(x) <= (12 if log_x else 8)
    if few and not log_x and min(np.diff(x)) >= max(1, 0.07 * (x[-1] - x[0])):
        ax.set_xticks([float(v) for v in x], [f"{v:,.0f}" for v in x])
    elif few and log_x:
        ax.set_xticks([float(v) for v in x])
        ax.set_xticks([], minor=True)
    elif not log_x and all(num_digits(line.get_xdata()) == 0 for line in ax.lines):
        steps = MaxNLocator("auto", steps=(1, 2, 5, 10), integer=True)
        ax.xaxis.set_major_locator(steps)


# --- points -----------------------------------------------------------------------


@in_course_style
def points(positions, labels, *, title: str, names, groups, reach: float) -> None:
    """Draw labelled points in the plane, in panels on one scale.

    Args:
        positions: `(N, 2)` for each panel.
        labels: the N labels of the points.
        names: one for each panel.
        groups: the name of each point's group, which gives colour and marker.
        reach: both axes go from `-reach` to `reach`.

    >>> points([[[0, 1.0], [1, 0]]], ["cat", "bus"], names=["before"], reach=2,
    ...        groups=["animal", "vehicle"], title="Two words")
    Points: Two words. Panels: before. Labels: cat, bus. Groups: animal, vehicle.
    """
    panels, labels = to_array(positions, "positions", 3), [*map(visible, labels)]
    fig, kinds = new_figure(4.0, "constrained"), list(dict.fromkeys(groups))
    axes = fig.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
    axes[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
    for ax, panel, name in zip(axes, panels, names):
        for i, kind in enumerate(kinds):
            at = panel[[group == kind for group in groups]]
            ax.plot(*at.T, MARKERS[i % 8], color=theme.SERIES[i % 6], label=kind)
        ax.set_title(name)
        ax.grid(color="#EEEEEE")
    _draw_legend(fig, axes[0], "outside lower center", 6)
    fig.draw_without_rendering()
    for ax, panel in zip(axes, panels):
        _label_points(ax, panel, labels)
    parts = {"Panels": names, "Labels": labels, "Groups": kinds}
    publish(fig, title, describe("Points", title, **parts))


def _label_points(ax, positions, labels):
    """Write each label near its point, with a line to it where the points are dense."""
    pixels, inch = ax.transData.transform(positions), theme.DPI
    marks = [Bbox([p - 0.05 * inch, p + 0.05 * inch]) for p in pixels]
    turns = np.arange(16) * np.pi / 8
    ways = np.stack([np.cos(turns), np.sin(turns)], axis=1)  # (16, 2)
    height, boxes = 0.13 * inch, {}
    for _ in range(4):  # again, now that the others have their places
        for i, (point, label) in enumerate(zip(pixels, labels)):
            width = text_width(label, theme.SMALLEST) * inch + 0.03 * inch
            half, others = np.array([width, height]) / 2, [*marks]
            others += [box for j, box in boxes.items() if j != i]
            best = math.inf
            for gap in np.array([0.08, 0.16, 0.26, 0.38, 0.52]) * inch:
                for way in ways:
                    x, y = point + way * (half + gap)
                    box = Bbox([(x - half[0], y - half[1]), (x + half[0], y + half[1])])
                    cost = 3 * box.count_overlaps(others) + gap / inch
                    cost += 3 * (box.x0 < ax.bbox.x0 or box.x1 > ax.bbox.x1)
                    nearest = np.hypot(*(pixels - (x, y)).T)
                    cost += 0.3 * (nearest < nearest[i] - 1).sum()
                    if cost < best:
                        best, boxes[i] = cost, box
    for i, label in enumerate(labels):
        box, point = boxes[i], pixels[i]
        style = {"xycoords": "figure pixels", "fontsize": theme.SMALLEST}
        at = box.x0, box.y0 + 0.03 * inch
        ax.annotate(label, at, annotation_clip=False, **style)
        end = np.clip(point, (box.x0, box.y0), (box.x1, box.y1))
        if math.dist(point, end) > 0.14 * inch:
            places = ax.transData.inverted().transform([point, end])
            ax.plot(*places.T, color=theme.GREY, linewidth=0.6, zorder=0.9)


# --- angles -----------------------------------------------------------------------


@in_course_style
def dials(angles, names, *, title: str, labels, shaded=None, roles=None) -> None:
    """Draw clocks, four to a line: a hand for each angle, from twelve o'clock on.

    Args:
        angles: `(N, T)` in radians, T hands for each of N clocks.
        names: one for each clock.
        labels: one for each hand.
        shaded: for each clock an angle in radians up to which it is shaded.
        roles: one for each hand, which gives its colour; of two hands at one place,
            both show.

    >>> dials([[0, 1.6], [0, 3.1]], ["fast", "slow"], labels=["k", "q"], title="Two")
    Clocks: Two. Names: fast, slow. Hands: k, q.
    """
    down = math.ceil(len(angles) / 4)
    fig = new_figure(1.95 * down)
    room = {"left": 0.04, "right": 0.96, "wspace": 0.4, "hspace": 0.55}
    kinds = {"squeeze": False, "subplot_kw": {"projection": "polar"}}
    axes = fig.subplots(down, 4, **kinds, gridspec_kw=room).flat
    for ax in axes[len(angles) :]:
        ax.axis("off")
    for i, (ax, hands) in enumerate(zip(axes, to_array(angles, "angles", 2))):
        ax.set(theta_zero_location="N", theta_direction=-1, xticks=[], yticks=[])
        ax.spines["polar"].set_color(theme.GREY)
        ax.set_title(names[i], weight="bold", pad=20)
        if shaded is not None:
            end, color = min(float(shaded[i]), 2 * math.pi), theme.WEIGHTS(0.2)
            ax.bar(0, 1, end, align="edge", color=color)
        written, same = [], len(set(hands)) == 1
        for j, (hand, label) in enumerate(zip(hands, labels)):
            style = {"color": theme.SERIES[0], "linewidth": 1.2}
            if roles:  # each is thinner than the one below it
                style = {"color": theme.INK[roles[j]], "linewidth": 3.6 / (j + 1)}
            ax.plot([hand, hand], [0, 1], **style)
            if all(math.cos(hand - other) < 0.97 for other in written):
                text = " = ".join(labels) if same else label
                style = {"ha": "center", "va": "center", "size": theme.SMALLEST}
                ax.text(hand, 1.2, text, **style)
                written.append(hand)
        ax.set_ylim(0, 1)
    publish(fig, title, describe("Clocks", title, Names=names, Hands=labels))
