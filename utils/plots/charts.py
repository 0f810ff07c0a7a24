"""Numbers as pictures: matrices, bars, lines and points."""

import math

import numpy as np
import torch
from matplotlib import colors as mcolors
from matplotlib.cm import ScalarMappable
from matplotlib.patches import (
    Arc,
    Circle,
    FancyArrowPatch,
    Patch,
    PathPatch,
    Wedge,
)
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from utils.plots.old_publishing import (
    BLOCKED,
    BLUE,
    DPI,
    EDGE,
    GREY,
    MARKERS,
    MAX_COLUMNS,
    NARROW,
    SERIES,
    SIGNED,
    WEIGHTS,
    WIDE,
    _array,
    _canvas,
    _counted,
    _describe,
    _digits,
    _expect,
    _figure,
    _grid,
    _ink,
    _names,
    _number,
    _publish,
    _styled,
    _text_width,
    _ticks,
    _tint,
    _visible,
    _whole,
    _widest,
    _wrap,
)

LINES = "-", "--", "-.", ":"
ARROW = {"arrowstyle": "-|>", "mutation_scale": 9, "color": BLUE, "linewidth": 1.2}
ARROW |= {"shrinkA": 0, "shrinkB": 0}

# --- matrices ---------------------------------------------------------------------


@_styled
def heatmap(
    values,
    rows=None,
    columns=None,
    *,
    title,
    row_axis="query",
    column_axis="key",
    mask=None,
    signed=False,
    show_values=None,
    vmax=None,
    alt=None,
):
    """Draw a matrix, by default attention weights: rows are queries, columns keys.

    Args:
        values: `(T, S)`; weights from 0 to `vmax`, or any sign with `signed=True`.
        rows, columns: token strings, or pairs (name, number) that name several
            neighbours at once; without columns the rows name both axes.
        mask: boolean `(T, S)`, True = may attend; blocked cells are hatched.
        signed: colours centred on zero.
        show_values: write the numbers; by default in maps up to 10 by 10.
        vmax: the end of the colour scale; 1, or the largest magnitude if signed.

    Raises:
        ValueError: for a wrong number of labels, a mask of another shape, or
            weights outside the scale.

    >>> heatmap([[1.0, 0.0], [0.4, 0.6]], ["a", "b"], title="Rows sum to 1")
    Heatmap: Rows sum to 1. Rows (query): 0 a, 1 b. Columns (key): 0 a, 1 b.
    >>> parts = [("name", 2), ("place", 1)]
    >>> heatmap([[1, 0, 0], [0, 1, 0], [0, 0, 1]], parts, title="Parts")
    Heatmap: Parts. Rows (query): 2 name, 1 place. Columns (key): 2 name, 1 place.
    """
    values = _array(values, "values", 2)
    _maps(
        [values],
        rows,
        columns,
        [None],
        title,
        row_axis,
        column_axis,
        [mask],
        signed,
        show_values,
        vmax,
        alt,
    )


@_styled
def heatmaps(
    maps,
    rows=None,
    columns=None,
    *,
    titles,
    title,
    row_axis="query",
    column_axis="key",
    mask=None,
    signed=False,
    show_values=None,
    vmax=None,
    alt=None,
):
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
    _maps(
        maps,
        rows,
        columns,
        titles,
        title,
        row_axis,
        column_axis,
        masks,
        signed,
        show_values,
        vmax,
        alt,
    )


def _is_matrix(nested):
    return isinstance(nested[0], (list, tuple)) and isinstance(nested[0][0], bool)


def _maps(
    maps,
    rows,
    columns,
    titles,
    title,
    row_axis,
    column_axis,
    masks,
    signed,
    show_values,
    vmax,
    alt,
):
    shape = maps[0].shape
    if columns is None and shape[0] == shape[1]:
        columns = rows
    parts = [_parts(rows, shape[0], "rows"), _parts(columns, shape[1], "columns")]
    row_names = parts[0] or _ticks(rows, shape[0], "rows")
    column_names = parts[1] or _ticks(columns, shape[1], "columns")
    masks = [_mask(mask, shape) for mask in masks]
    scale = _scale(maps, masks, signed, vmax)
    fig, axes, cell, across = _map_panels(len(maps), shape, row_names, column_names)
    if show_values is None:
        show_values = max(shape) <= 10 and cell >= 0.3
    for i, (ax, values, mask) in enumerate(zip(axes, maps, masks)):
        _draw_map(ax, values, mask, scale, cell if show_values else None)
        _rule(ax, shape, cell)
        if titles[i]:
            ax.set_title(_wrap(titles[i], max(shape[1] * cell, 1.2)))
        if i + across >= len(axes):  # no panel below
            if parts[1]:
                _label_parts(ax.xaxis, columns)
            else:
                _label_columns(ax, column_names, cell, columns is None)
            ax.set_xlabel(column_axis)
        if i % across == 0:
            if parts[0]:
                _label_parts(ax.yaxis, rows)
            else:
                _label_rows(ax, row_names, cell, rows is None)
            ax.set_ylabel(row_axis)
    if not show_values:
        seen = np.concatenate([values[mask] for values, mask in zip(maps, masks)])
        _draw_key(fig, axes, axes[across - 1], set(seen), scale)
    kind = "Heatmap" if titles == [None] else "Heatmaps side by side"
    _publish(
        fig,
        title,
        alt
        or _describe(
            kind,
            title,
            Panels=[t for t in titles if t],
            **{
                f"Rows_({row_axis})": row_names,
                f"Columns_({column_axis})": column_names,
            },
        ),
    )


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
    _expect(
        bottom - 1e-6 <= low and high <= top + 1e-6,
        "values",
        f"{'values' if signed else 'weights'} from {bottom:g} to {top:g} "
        "(else use signed=True or vmax=)",
        f"values from {low:.3g} to {high:.3g}",
    )
    return mcolors.Normalize(bottom, top), SIGNED if signed else WEIGHTS


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
        squares = [
            Path.unit_rectangle().vertices + (j - 0.5, i - 0.5)
            for i, j in np.argwhere(~mask)
        ]
        blocked = Path.make_compound_path(*map(Path, squares))
        ax.add_patch(
            PathPatch(
                blocked,
                facecolor=BLOCKED,
                edgecolor="#808080",
                hatch="////",
                linewidth=0,
            )
        )
    digits = _digits(values[mask])
    for i, j in np.argwhere(mask if cell else mask & ~known):
        color = cmap(norm(values[i, j])) if known[i, j] else "white"
        text = _number(values[i, j], digits)
        size = min(9, (cell or 0.3) * 0.85 * 9 / max(_text_width(text, 9), 0.1))
        ax.text(j, i, text, ha="center", va="center", color=_ink(color), fontsize=size)


def _rule(ax, shape, cell):
    """Draw pale lines between the cells, or around all of them where they are small."""
    steps = [range(size + 1) if cell >= 0.12 else (0, size) for size in shape]
    (top, *_, bottom), (left, *_, right) = steps
    style = {"color": EDGE, "linewidth": 0.6, "clip_on": False}
    ax.hlines(np.array(steps[0]) - 0.5, left - 0.5, right - 0.5, **style)
    ax.vlines(np.array(steps[1]) - 0.5, top - 0.5, bottom - 0.5, **style)


def _draw_key(fig, axes, corner, values, scale):
    """Say what the colours mean: a bar, or squares where all values are 0 or 1."""
    norm, cmap = scale
    if set(values) <= {0.0, 1.0}:
        squares = [
            Patch(facecolor=cmap(norm(value)), edgecolor=GREY, label=int(value))
            for value in sorted(values, reverse=True)
        ]
        corner.legend(handles=squares, loc="upper left", bbox_to_anchor=(1, 1))
    else:
        fig.colorbar(ScalarMappable(*scale), ax=axes, shrink=0.8, aspect=25)


def _thinned(names, cell, plain):
    """Return the positions that get a tick, and the size of their labels."""
    size = min(9.0, max(6.5, cell * 72 * 0.9))
    least = len(names) / 13 if plain else size / 72 / cell * 0.95
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 500, 10_000) if s >= least)
    return range(0, len(names), step), size


def _parts(labels, size, what):
    """Return "number name" for each pair where labels are pairs (name, number)."""
    if not labels or not all(isinstance(label, tuple) for label in labels):
        return None
    total = sum(number for _, number in labels)
    _expect(total == size, what, f"numbers that sum to {size}", total)
    return [f"{number} {name}" for name, number in labels]


def _label_parts(axis, labels):
    """Write each name once, in the middle of its cells, with a tick at each border."""
    names, numbers = zip(*labels)
    ends = np.cumsum(numbers)
    axis.set_ticks(ends - np.array(numbers) / 2 - 0.5, names)
    axis.set_ticks(np.array([0, *ends]) - 0.5, minor=True)
    axis.set_tick_params(length=0)
    axis.set_tick_params(which="minor", length=8)


def _label_columns(ax, names, cell, plain=False):
    ticks, size = _thinned(names, cell, plain)
    apart = cell * ticks.step
    style = {
        "fontsize": size,
        "rotation": 90 if apart < 0.25 else 45,
        "rotation_mode": "anchor",
        "ha": "right",
        "va": "center" if apart < 0.25 else "top",
    }
    if _widest([names[i] for i in ticks], 9) < apart * 0.92:
        style = {"fontsize": 9}
    ax.set_xticks(ticks, [names[i] for i in ticks], **style)
    ax.tick_params(axis="x", length=2)


def _label_rows(ax, names, cell, plain):
    ticks, size = _thinned(names, cell, plain)
    ax.set_yticks(ticks, [names[i] for i in ticks], fontsize=size)
    ax.tick_params(axis="y", length=2)


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
    _expect(np.isfinite(everything).all(), "groups", "finite numbers", everything)
    if ylim is None:
        lowest, highest = min(everything.min(), 0), max(everything.max(), 0)
        room = 0.15 * (highest - lowest) or 1  # for the numbers above and below
        ylim = (lowest - room * bool(lowest < 0), highest + room)
    digits = _digits(everything)
    for i, (ax, (name, values)) in enumerate(zip(axes, groups.items())):
        drawn = ax.bar(range(len(names)), values, color=BLUE, width=0.75)
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
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Bars", title, Panels=list(groups), Categories=names, Height=ylabel
        ),
    )


@_styled
def curves(
    series,
    x=None,
    *,
    title,
    xlabel,
    ylabel,
    log_x=False,
    log_y=False,
    reference=None,
    marks=None,
    smooth=None,
    ylim=None,
    markers=True,
    broken=None,
    alt=None,
):
    """Draw lines, each with its own colour and marker.

    Args:
        series: dict from a name to its values.
        x: positions shared by all, or a dict from the names to positions;
            by default 0, 1, 2 …
        log_x, log_y: logarithmic axes; few x positions are then written out.
        reference: dict from a name to a height, drawn as dashed lines.
        marks: dict from a name to a place across, drawn as upright lines.
        smooth: width of a moving average; the values themselves stay, faint.
        ylim: `(bottom, top)`.
        markers: False for lines that turn often, which markers would hide.
        broken: words for the cross where a line ends, before its first nan.

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
        style = {
            "color": SERIES[i % 6],
            "label": name,
        }
        if markers:
            style |= {"marker": MARKERS[i % 8], "markevery": max(1, len(y) // 12)}
        else:
            style["linestyle"] = LINES[i % 4]
        if smooth and smooth < len(y):
            ax.plot(at, y, color=style["color"], alpha=0.25, linewidth=0.8)
            y, at = np.convolve(y, np.ones(smooth) / smooth, "valid"), at[smooth - 1 :]
        ax.plot(at, y, **style)
    for i, (name, height) in enumerate((reference or {}).items()):
        ax.axhline(
            float(height),
            color=GREY,
            linestyle=("--", ":", "-.")[i % 3],
            linewidth=1.2,
            label=name,
        )
    for name, place in (marks or {}).items():
        ax.axvline(float(place), color="black", linewidth=1.2, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if ylim is not None:
        ax.set_ylim(*ylim)
    _place_ticks(ax, x, log_x, log_y)
    if broken:
        _break_off(ax, broken)
    ax.grid(axis="y", color="#e5e5e5")
    names = [*series, *(reference or {}), *(marks or {})]
    columns = max(1, int((WIDE - 0.4) / (_widest(names, 9) + 0.65)))
    fig.legend(loc="outside lower center", ncols=min(columns, len(names)))
    _publish(
        fig,
        title,
        alt or _describe("Curves", title, Across=xlabel, Up=ylabel, Lines=names),
    )


def _break_off(ax, words):
    """Put a cross where a line ends in nan, before all other lines, and name it."""
    for line in ax.get_lines():
        at, y = map(np.asarray, line.get_data())
        missing = np.flatnonzero(np.isnan(y))
        if len(missing) and missing[0] > 0:
            color, end = line.get_color(), (at[missing[0] - 1], y[missing[0] - 1])
            cross = {"marker": "X", "markersize": 10, "markeredgecolor": "white"}
            ax.plot(*end, color=color, linestyle="", zorder=5, **cross)
            up = {"xytext": (-8, 45), "textcoords": "offset points"}
            thin = {"arrowstyle": "-", "color": color, "relpos": (0.14, 0)}
            ax.annotate(words, end, color=color, arrowprops=thin, **up)


def _place_ticks(ax, x, log_x, log_y):
    for axis, log, name in ((ax.xaxis, log_x, "x"), (ax.yaxis, log_y, "y")):
        if log:
            ax.set(**{f"{name}scale": "log"})
            low, high = axis.get_view_interval()
            axis.set_major_formatter(_written_out)
            axis.set_minor_formatter(_written_out if high < 10 * low else "")
    if not log_x and all(_whole(line.get_xdata()) for line in ax.lines):
        whole = MaxNLocator("auto", steps=(1, 2, 5, 10), integer=True)
        ax.xaxis.set_major_locator(whole)
    if log_x and x is not None and not isinstance(x, dict) and len(x) <= 12:
        ax.set_xticks([float(v) for v in x])
        ax.set_xticks([], minor=True)


def _written_out(value, _):
    return f"{value:,.9g}"


@_styled
def points(positions, labels, *, title, titles=None, groups=None, reach=None, alt=None):
    """Draw labelled points in the plane, in panels on one scale.

    Args:
        positions: `(N, 2)`, or one such matrix for each panel.
        labels: the N names.
        titles: one for each panel.
        groups: the name of each point's group, which gives colour and marker.
        reach: both axes go from `-reach` to `reach`, in panels that are higher; by
            default they go as far as the points.

    >>> points([[0.0, 1.0], [1.0, 0.0]], ["cat", "dog"], title="Two words")
    Points: Two words. Labels: cat, dog.
    """
    panels = _array(positions, "positions")
    panels = panels[None] if panels.ndim == 2 else panels
    _expect(
        panels.ndim == 3 and panels.shape[2] == 2,
        "positions",
        "shape (N, 2) for each panel",
        panels.shape,
    )
    names = _names(labels, panels.shape[1], "labels")
    titles = [""] * len(panels) if titles is None else titles
    groups = [""] * len(names) if groups is None else groups
    titles = _counted(titles, len(panels), "titles")
    groups = _counted(groups, len(names), "groups")
    fig, axes, _ = _grid(len(panels), 3.4 if reach is None else 4.3, share=True)
    kinds = list(dict.fromkeys(groups))
    for ax, panel, panel_title in zip(axes, panels, titles):
        for i, kind in enumerate(kinds):
            at = panel[[group == kind for group in groups]]
            ax.plot(*at.T, MARKERS[i % 8], color=SERIES[i % 6], label=kind)
        ax.set_title(panel_title)
        ax.margins(0.18)
        ax.grid(color="#eeeeee")
    if reach is not None:
        axes[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
    if len(kinds) > 1:
        fig.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=min(6, len(kinds)),
        )
    fig.draw_without_rendering()
    for ax, panel in zip(axes, panels):
        _label_points(ax, panel, names)
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Points",
            title,
            Panels=[t for t in titles if t],
            Labels=names,
            Groups=[kind for kind in kinds if kind],
        ),
    )


@_styled
def clocks(
    angles,
    *,
    titles,
    title,
    names=None,
    seen=None,
    lengths=None,
    sides=False,
    between=False,
    alt=None,
):
    """Draw clocks: a hand for each angle, from twelve o'clock clockwise, numbered.

    Args:
        angles: `(N, T)` in radians, T hands for each of N clocks.
        titles: one for each clock.
        names: one for each hand, in place of the numbers.
        seen: for each clock an angle in radians up to which it is shaded.
        lengths: one for each hand, which becomes an arrow; the longest reaches the rim.
        sides: draws how far right (sine) and how far up (cosine) each hand reaches.
        between: marks by how many degrees the first hand is ahead of the second one,
            counter-clockwise.

    >>> clocks([[0.0, 1.6], [0.0, 0.2]], titles=["fast", "slow"], title="Two clocks")
    Clocks: Two clocks. Clocks: fast, slow. Hands: 0 to 1.
    """
    angles = _array(angles, "angles", 2)
    titles = _counted(titles, len(angles), "titles")
    names = range(angles.shape[1]) if names is None else names
    names = _counted(names, angles.shape[1], "names")
    seen = _counted([0] * len(angles) if seen is None else seen, len(angles), "seen")
    lengths = [1] * len(names) if (plain := lengths is None) else lengths
    reach = np.array(_counted(lengths, len(names), "lengths"), dtype=float)
    reach /= reach.max()
    fig, axes, _ = _grid(len(angles), WIDE / max(min(len(angles), MAX_COLUMNS), 3))
    for ax, hands, name, turned in zip(axes, angles, titles, seen):
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.6), aspect="equal")
        ax.axis("off")
        ax.text(0, 1.4, name, ha="center")
        ax.add_patch(Circle((0, 0), 1, facecolor="white", edgecolor=GREY))
        if turned:
            start = 90 - math.degrees(min(float(turned), 2 * math.pi))
            ax.add_patch(Wedge((0, 0), 1, start, 90, facecolor=_tint(BLUE)))
        written = []
        for i, hand in enumerate(hands):
            ahead = np.array([math.sin(hand), math.cos(hand)])
            tip = reach[i] * ahead
            if plain:
                ax.plot(*zip((0, 0), tip), color=BLUE, linewidth=1.2)
            else:
                ax.add_patch(FancyArrowPatch((0, 0), tip, **ARROW))
            if sides:
                _draw_sides(ax, *tip)
            if all(np.linalg.norm(tip - other) > 0.2 for other in written):
                written.append(tip)  # nearer numbers would overlap
                place = tip + 0.15 * ahead
                ax.text(*place, names[i], ha="center", va="center", fontsize=8)
        if between:
            _draw_between(ax, *hands[:2])
    named = f"0 to {len(names) - 1}" if names == [*range(len(names))] else names
    shaded = "what was seen" if any(seen) else ""
    marked = "sine to the right, cosine up" if sides else ""
    if between:
        marked = f"how many degrees {names[0]} is ahead of {names[1]}"
    parts = {"Clocks": titles, "Hands": named, "Shaded": shaded, "Marked": marked}
    _publish(fig, title, alt or _describe("Clocks", title, **parts))


def _draw_between(ax, first, second):
    """Mark the angle from the second hand to the first, with its degrees."""
    ahead, start = math.degrees(second - first) % 360, 90 - math.degrees(second)
    color, middle = SERIES[1], math.radians(start + ahead / 2)
    arc = Arc((0, 0), 0.5, 0.5, theta1=start, theta2=start + ahead, color=color)
    ax.add_patch(arc)
    place = 0.5 * math.cos(middle), 0.42 * math.sin(middle)
    ax.text(*place, f"{ahead:.0f}°", ha="center", va="center", fontsize=8)


def _draw_sides(ax, sine, cosine):
    """Mark how far right and how far up a hand reaches, with the two numbers."""
    up, right = SERIES[2], SERIES[1]
    ax.plot((0, 0), (0, cosine), color=up, linewidth=2)
    ax.plot((0, sine), (cosine, cosine), color=right, linewidth=2)
    beside, above = (-0.05 if sine > 0 else 0.05), (0.08 if cosine > 0 else -0.08)
    style = {"ha": "right" if sine > 0 else "left", "va": "center", "fontsize": 9}
    ax.text(beside, cosine / 2, f"cos {_number(cosine)}", color=up, **style)
    style = {"ha": "center", "va": "bottom" if cosine > 0 else "top", "fontsize": 9}
    ax.text(sine / 2, cosine + above / 2, f"sin {_number(sine)}", color=right, **style)


def turned(query, key, places, *, title, alt=None):
    """Draw a query and a key as arrows, each turned by its place.

    A turn is counter-clockwise, by one radian for each place.

    Args:
        query, key: two numbers each.
        places: `(N, 2)`, for each clock the place of the query and that of the key.

    >>> turned([3.0, 4.0], [1.0, 2.0], [[2, 0], [3, 1]], title="Two places apart")
    Clocks: Two places apart. Clocks: query at 2, key at 0, query at 3, key at 1. \
Hands: q, k. Marked: how many degrees q is ahead of k.
    """
    places = _array(places, "places", 2)
    arrows = np.stack([_array(query, "query", 1), _array(key, "key", 1)])
    ahead = np.arctan2(arrows[:, 1], arrows[:, 0])  # counter-clockwise from the right
    clocks(
        math.pi / 2 - ahead - places,
        titles=[f"query at {i:g}, key at {j:g}" for i, j in places],
        title=title,
        names=["q", "k"],
        lengths=np.linalg.norm(arrows, axis=1).tolist(),
        between=True,
        alt=alt,
    )


@_styled
def projections(vectors, names, *, title, alt=None):
    """Draw vectors of length 1 as arrows, and how far each reaches along the first.

    A dashed line falls from each tip to the line of the first vector. Where it lands
    stands the product of the two.

    Args:
        vectors: `(N, 2)`; the first points to the right, none down.
        names: one for each.

    >>> projections([[1.0, 0.0], [0.6, 0.8]], ["a", "b"], title="Two directions")
    Projections: Two directions. Vectors: a 1.000, b 0.600 along a.
    """
    vectors = _array(vectors, "vectors", 2)
    names = _counted(names, len(vectors), "names")
    products = vectors @ vectors[0]
    fig, ax = _canvas(WIDE, 2.6)
    ax.set(xlim=(-2.2, 2.2), ylim=(-0.3, 1.2), aspect="equal")
    ax.plot((-1.1, 1.1), (0, 0), color=GREY, linewidth=0.8)
    for vector, name, product in zip(vectors, names, products):
        ax.add_patch(FancyArrowPatch((0, 0), vector, **ARROW))
        place = 1.1 * vector + (0, 0.03)
        ax.text(*place, name, ha="center", va="center", fontsize=10)
        ax.plot((vector[0], product), (vector[1], 0), "--", color=EDGE, zorder=0)
        ax.text(product, -0.13, _number(product, 3), ha="center", fontsize=9)
    shown = [f"{name} {_number(p, 3)}" for name, p in zip(names, products)]
    shown[1:] = [f"{text} along {names[0]}" for text in shown[1:]]
    _publish(fig, title, alt or _describe("Projections", title, Vectors=shown))


def _label_points(ax, positions, names):
    """Write each name beside its point, where it covers least of the others."""
    pixels = ax.transData.transform(positions)
    taken = [Bbox.from_extents(*(p - 5), *(p + 5)) for p in pixels]
    gap, height = 8, 13
    for point, name in zip(pixels, names):
        width = _text_width(name, 9) * DPI + 3
        left, right, middle = -gap - width, gap, -width / 2
        corners = [
            (right, -height / 2),
            (left, -height / 2),
            (middle, gap),
            (middle, -gap - height),
            (right, 4),
            (right, -4 - height),
            (left, 4),
            (left, -4 - height),
        ]
        boxes = [
            Bbox.from_bounds(*(point + corner), width, height) for corner in corners
        ]
        best = min(boxes, key=lambda box: _covered(box, taken, ax.bbox))
        taken.append(best)
        ax.annotate(
            name,
            (best.x0, best.y0 + 3),
            xycoords="figure pixels",
            fontsize=9,
            annotation_clip=False,
        )


def _covered(box, taken, frame):
    """Return the area of a box that lies on others or outside the frame."""
    overlaps = [Bbox.intersection(box, other) for other in taken]
    inside = Bbox.intersection(box, frame)
    area = box.width * box.height
    outside = area - (inside.width * inside.height if inside else 0)
    return outside + sum(o.width * o.height for o in overlaps if o)
