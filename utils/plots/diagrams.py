"""Schemes: arrows between tokens, graphs, blocks, grids, numbers that are sent."""

import math

import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from utils.data import sliding_windows
from utils.plots.old_publishing import (
    BLUE,
    EDGE,
    FILLS,
    GREY,
    MAX_COLUMNS,
    SERIES,
    TINTS,
    WIDE,
    _array,
    _canvas,
    _counted,
    _describe,
    _expect,
    _names,
    _number,
    _publish,
    _styled,
    _text_width,
    _tint,
    _visible,
    _whole,
    _widest,
)
from utils.tokenizer import merge

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
    count = len(weights) if weights.ndim == 2 else len(names)
    _expect(-count <= query < count, "query", f"a position below {count}", query)
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
            ax.text(
                x,
                1.82,
                f"{name}  {number}",
                ha="center",
                va="bottom",
                fontsize=size,
                rotation=90,
                color=color,
            )
        else:
            ax.text(x, 1.84, number, ha="center", fontsize=9, color=color)
            ax.text(x, 2.06, name, ha="center", color=color)
    numbered = [f"{i} {name}" for i, name in enumerate(names)]
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Arrows between tokens", title, Query=numbered[query], Keys=numbered
        ),
    )


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
    ax.add_patch(
        FancyArrowPatch(
            (start, 0.36),
            (end, 1.75),
            arrowstyle="-|>",
            color=BLUE,
            shrinkA=0,
            shrinkB=0,
            linewidth=0.5 + 4.5 * share,
            mutation_scale=6 + 10 * share,
            alpha=0.7 + 0.3 * share,
            capstyle="butt",
        )
    )


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
def graph(weights, tokens, *, title, queries=None, threshold=0.1, alt=None):
    """Draw attention as a directed graph: an arrow from each query to its keys.

    Args:
        weights: `(T, T)`, rows are queries.
        tokens: the T token strings, set on an ellipse from the top clockwise.
        queries: the positions whose arrows are drawn, each in its colour; those they
            reach are light blue, all others grey. None stands for all.
        threshold: arrows of smaller weight are left out, and the caption says so.

    >>> graph([[1.0, 0.0], [0.5, 0.5]], ["a", "b"], title="a looks at itself")
    Directed graph, arrows from queries to keys: a looks at itself. Tokens: 0 a, 1 b.
    """
    weights = _array(weights, "weights", 2)
    names = _names(tokens, len(weights), "tokens")
    _expect(
        weights.shape[0] == weights.shape[1],
        "weights",
        "a square matrix",
        f"shape {weights.shape}",
    )
    drawn = (weights >= threshold) & (weights > 0)
    colors = [SERIES[i % 6] for i in range(len(names))]
    if queries is not None:
        drawn[[i for i in range(len(names)) if i not in queries]] = False
        colors = [BLUE if reached else EDGE for reached in drawn.any(0)]
        for color, query in zip(SERIES[1:], queries):
            colors[query] = color
    fig, ax = _canvas(WIDE, 4.6)
    angles = math.pi / 2 - 2 * math.pi * np.arange(len(names)) / len(names)
    ellipse = np.stack([2.9 * np.cos(angles), 1.75 * np.sin(angles)], 1)
    centres = ellipse + (WIDE / 2, 2.3)
    nodes = [
        _node(ax, *centre, name, color)
        for centre, name, color in zip(centres, names, colors)
    ]
    taken = np.full((1, 2), np.inf)
    for query, key in np.argwhere(drawn):
        weight = weights[query, key]
        style = _edge_style(weight, colors[query])
        if query == key:
            free = _loop(ax, centres[key], names[key], angles[key], style)
        else:
            free = _edge(ax, centres[[query, key]], nodes[query], nodes[key], style)
        if len(names) <= 6:
            place = max(free, key=lambda at: np.hypot(*(taken - at).T).min())
            taken = np.vstack([taken, place])
            ax.text(
                *place,
                _number(weight),
                ha="center",
                va="center",
                fontsize=8,
                bbox={"facecolor": "white", "pad": 0.6, "edgecolor": "none"},
            )
    left_out = f"below {threshold:g}" if threshold > 0 else "of 0"
    caption = (
        f"An arrow leads from the query to the key, in the query's colour; "
        f"weights {left_out} are left out."
    )
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Directed graph, arrows from queries to keys",
            title,
            Tokens=[f"{i} {name}" for i, name in enumerate(names)],
        ),
        caption,
    )


def _node(ax, x, y, name, color):
    half = _text_width(name, 10) / 2 + 0.04
    box = FancyBboxPatch(
        (x - half, y - 0.1),
        2 * half,
        0.2,
        facecolor=_tint(color),
        boxstyle="round,pad=0.06",
        edgecolor=color,
        zorder=2.5,
    )  # above the arrows that pass behind it
    ax.add_patch(box)
    ax.text(x, y - 0.05, name, ha="center")
    return box


def _edge_style(weight, color):
    return {
        "color": color,
        "arrowstyle": "-|>",
        "linewidth": 0.5 + 4 * weight,
        "mutation_scale": 8 + 6 * weight,
    }


def _edge(ax, ends, node_a, node_b, style, bend=0.16):
    """Draw a curved arrow; return places for its label, near the query first."""
    ax.add_patch(
        FancyArrowPatch(
            *ends,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=1,
            shrinkB=1,
            patchA=node_a,
            patchB=node_b,
            **style,
        )
    )
    (dx, dy) = ends[1] - ends[0]
    knee = ends.mean(0) + bend * np.array([dy, -dx])
    return [
        np.array([(1 - t) ** 2, 2 * t * (1 - t), t**2]) @ [ends[0], knee, ends[1]]
        for t in (0.35, 0.45, 0.55, 0.25)
    ]


def _loop(ax, centre, name, angle, style):
    """Draw an arrow from a node to itself, on the side away from the others."""
    if abs(math.sin(angle)) < 0.3:
        out = np.array([np.sign(math.cos(angle)), 0.0])
        start = centre + out * (_text_width(name, 10) / 2 + 0.1)
    else:
        out = np.array([0.0, np.sign(math.sin(angle))])
        start = centre + out * 0.16
    side = np.array([-out[1], out[0]]) * 0.11
    ax.add_patch(
        FancyArrowPatch(
            start + side,
            start - side,
            shrinkA=0,
            shrinkB=0,
            connectionstyle="arc3,rad=-2.2",
            **style,
        )
    )
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
    _expect(names, "pieces", "at least one token", pieces)
    numbers = [""] * len(names)
    if ids is not None:
        numbers = [str(int(i)) for i in _counted(ids, len(names), "ids")]
    widths = [
        0.1 + max(len(name) * 0.602 * 11 / 72, len(number) * 0.602 * 8 / 72)
        for name, number in zip(names, numbers)
    ]  # 0.602: the advance of Mono
    places, num_lines = _broken(widths, WIDE - 0.2)
    step = 0.38 if ids is None else 0.56
    fig, ax = _canvas(WIDE, num_lines * step)
    for i, (x, line) in enumerate(places):
        y = (num_lines - line) * step - 0.3
        ax.add_patch(Rectangle((x, y), widths[i], 0.27, facecolor=TINTS[i % 2]))
        style = {"ha": "center", "family": "DejaVu Sans Mono"}
        ax.text(x + widths[i] / 2, y + 0.08, names[i], fontsize=11, **style)
        ax.text(
            x + widths[i] / 2, y - 0.13, numbers[i], fontsize=8, color=GREY, **style
        )
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


@_styled
def merge_steps(text, merges, *, title, alt=None):
    """Draw how merges join the bytes of a word: a row for each, in their order.

    A single byte is a white box. A piece that merges have made is one wide box.

    Args:
        text: a word, whose leading space is shown as a dot.
        merges: dict from a pair of ids to its new id, as `train_bpe` returns it.

    >>> merge_steps(" low", {(108, 111): 256, (256, 119): 257}, title="Two merges")
    Merges: Two merges. Rows: bytes · l o w, lo · lo w, low · low.
    """
    ids = list(text.encode("utf-8"))
    _expect(ids, "text", "at least one character", repr(text))
    pieces = {byte: bytes([byte]) for byte in range(256)}
    rows = [("bytes", [pieces[i] for i in ids])]
    for number, (pair, new_id) in enumerate(merges.items(), 1):
        known = pieces.keys() >= set(pair)
        _expect(known, "merges", "pairs of bytes or of ids learned before", pair)
        pieces[new_id] = pieces[pair[0]] + pieces[pair[1]]
        ids = merge(ids, pair, new_id)
        rows.append((f"{number}: {_visible(pieces[new_id])}", [pieces[i] for i in ids]))
    room = _widest([name for name, _ in rows], 9) + 0.3
    cell = min(0.55, (WIDE - room - 0.1) / len(text.encode("utf-8")))
    fig, ax = _canvas(WIDE, len(rows) * 0.42)
    for row, (name, parts) in enumerate(rows):
        _draw_pieces(ax, room, (len(rows) - row) * 0.42 - 0.38, cell, parts)
        y = (len(rows) - row) * 0.42 - 0.21
        ax.text(room - 0.1, y, name, ha="right", va="center", fontsize=9, color=GREY)
    said = [
        f"{name.split(': ')[-1]} {' '.join(map(_visible, parts))}"
        for name, parts in rows
    ]
    _publish(fig, title, alt or _describe("Merges", title, Rows=said))


def _draw_pieces(ax, x, y, cell, parts):
    """Draw pieces as boxes in a row, each as wide as the bytes that it holds."""
    for part in parts:
        width, fill = len(part) * cell, FILLS[1] if len(part) > 1 else "white"
        ax.add_patch(
            Rectangle((x + 0.02, y), width - 0.04, 0.34, facecolor=fill, edgecolor=GREY)
        )
        shown = _visible(part)
        size = min(10, 10 * (width - 0.1) / max(_text_width(shown, 10), 0.01))
        style = {"ha": "center", "va": "center_baseline", "fontsize": size}
        ax.text(x + width / 2, y + 0.17, shown, **style)
        x += width


# --- shapes and layouts -----------------------------------------------------------


@_styled
def tensors(blocks, *, title, alt=None):
    """Draw tensors as blocks whose sides carry the names and sizes of the axes.

    Args:
        blocks: a list of `(name, shape, axis_names)` with one to three axes, and of
            strings such as "@", "=" or "→" that stand between blocks. The last
            axis runs across, the one before it down, the first of three backwards.
            A block may have a fourth entry, an image from 0 to 1 that is drawn on it.

    >>> tensors([("x", (4, 256), ("T tokens", "D features"))], title="A sentence")
    Tensors as blocks: A sentence. Blocks: x (T tokens = 4, D features = 256).
    """
    parts = [item if isinstance(item, str) else _block(*item) for item in blocks]
    spans = [
        _text_width(p, 12) + 0.3 if isinstance(p, str) else p["span"] for p in parts
    ]
    needed = sum(spans) + 0.2
    zoom = min(1.0, WIDE / needed)  # everything shrinks alike, texts too
    height = max(p["rise"] for p in parts if not isinstance(p, str)) + 0.8
    fig, ax = _canvas(WIDE, height * zoom)
    ax.set(xlim=(0, WIDE / zoom), ylim=(0, height))
    x = (WIDE / zoom - needed) / 2 + 0.1
    for part, span in zip(parts, spans):
        if isinstance(part, str):
            ax.text(
                x + span / 2,
                height / 2,
                part,
                ha="center",
                va="center",
                fontsize=12 * zoom,
            )
        else:
            _draw_block(ax, x, height / 2, part, zoom)
        x += span
    said = [
        p if isinstance(p, str) else f"{p['name']} ({', '.join(p['axes'])})"
        for p in parts
    ]
    _publish(
        fig, title, alt or _describe("Tensors as blocks", title, Blocks=" ".join(said))
    )


def _block(name, shape, axis_names, picture=None):
    """Measure a block: its sides, the labels of its axes, the room it needs."""
    _expect(1 <= len(shape) <= 3, f"shape of {name}", "one to three axes", shape)
    _expect(min(shape) > 0, f"shape of {name}", "no axis of length 0", shape)
    _counted(axis_names, len(shape), f"axis_names of {name}")
    axes = [f"{axis} = {size:,}" for axis, size in zip(axis_names, shape)]
    counts = (1,) * (3 - len(shape)) + tuple(int(size) for size in shape)
    deep, high, wide = (_side(size) for size in counts)
    back = np.array([0.42, 0.33]) * (deep if len(shape) == 3 else 0)
    tail = any(back) * max(back[0], back[0] / 2 + 0.1 + _text_width(axes[0], 8.5))
    heading = f"{name} {tuple(shape)}"
    span = (
        max(
            0.3 + wide + tail,
            _text_width(axes[-1], 8.5),
            _text_width(heading, 10, "bold"),
        )
        + 0.15
    )
    return {
        "name": name,
        "heading": heading,
        "axes": axes,
        "counts": counts,
        "picture": picture,
        "wide": wide,
        "high": high,
        "back": back,
        "tail": tail,
        "span": span,
        "rise": high + back[1],
    }


def _side(size):
    """Return the length of a side: true up to eight, then with the logarithm."""
    return 0.16 * min(size, 8) + 0.06 * max(0.0, math.log2(size / 8))


def _draw_block(ax, x, middle, block, zoom):
    wide, high, back = block["wide"], block["high"], block["back"]
    count_z, count_y, count_x = block["counts"]
    left = x + (block["span"] + 0.15 - wide - block["tail"]) / 2
    corner = np.array([left, middle - block["rise"] / 2])
    right, up = np.array([wide, 0]), np.array([0, high])
    faces = [
        (corner, right, up, count_x, count_y, 0.25),
        (corner + up, right, back, count_x, count_z, 0.12),
        (corner + right, back, up, count_z, count_y, 0.4),
    ]
    for face in faces if any(back) else faces[:1]:
        _draw_face(ax, *face)
    if block["picture"] is not None:
        (x0, y0), (x1, y1) = corner, corner + right + up
        look = {"cmap": "gray_r", "vmin": 0, "vmax": 1, "aspect": "auto", "zorder": 3}
        ax.imshow(block["picture"], extent=(x0, x1, y0, y1), **look)
    size = 8.5 * zoom
    ax.text(
        left + (wide + back[0]) / 2,
        middle + block["rise"] / 2 + 0.1,
        block["heading"],
        ha="center",
        fontsize=10 * zoom,
        fontweight="bold",
    )
    ax.text(
        left + wide / 2,
        corner[1] - 0.07,
        block["axes"][-1],
        ha="center",
        va="top",
        fontsize=size,
    )
    if len(block["axes"]) > 1:
        ax.text(
            left - 0.06,
            corner[1] + high / 2,
            block["axes"][-2],
            ha="right",
            va="center",
            rotation=90,
            fontsize=size,
        )
    if any(back):
        ax.text(
            *(corner + right + back / 2 + (0.07, -0.05)),
            block["axes"][0],
            va="top",
            fontsize=size,
        )


def _draw_face(ax, start, a, b, count_a, count_b, share):
    ax.add_patch(
        Polygon(
            [start, start + a, start + a + b, start + b],
            edgecolor=BLUE,
            facecolor=_tint(BLUE, share),
        )
    )
    for along, across, count, most in ((a, b, count_a, 8), (b, a, count_b, 17)):
        for k in range(1, count if count <= most else 0):
            line = start + along * k / count
            ax.plot(*np.stack([line, line + across]).T, color=BLUE, linewidth=0.5)


def inputs(shape, *, title, alt=None):
    """Draw how token ids (B, T) become the input (B, T, D) of a model, as blocks."""
    axes = "B samples", "T tokens", "D features"
    blocks = [
        ("token ids", shape[:2], axes[:2]),
        "→",
        ("tokens", shape, axes),
        "+",
        ("positions", shape[1:], axes[1:]),
        "=",
        ("x", shape, axes),
    ]
    tensors(blocks, title=title, alt=alt)


@_styled
def cells(
    arrays,
    *,
    titles,
    title,
    colors=None,
    lit=None,
    row_labels=None,
    column_labels=None,
    per_line=MAX_COLUMNS,
    alt=None,
):
    """Draw small arrays as grids of coloured cells, to follow what a reshape moves.

    Args:
        arrays: a list of 2-d arrays of numbers or strings, written in the cells.
        titles: one for each array.
        colors: for each array the integer group of every cell, or one for each row; a
            group has a colour.
        lit: in place of colors a value; its cells are blue, and all others grey.
        row_labels, column_labels: for each array a list of labels, or None.
        per_line: so many arrays stand side by side.

    >>> cells([[[0, 1], [2, 3]]], titles=["x"], title="Rows", colors=[[0, 1]])
    Grids of cells: Rows. Arrays: x 0 1 / 2 3.
    """
    grids = [[[_plain(value) for value in row] for row in array] for array in arrays]
    texts = [
        np.array([[_cell_text(value) for value in row] for row in grid])
        for grid in grids
    ]
    if colors is None:
        colors = [[[4 * (value != lit) for value in row] for row in g] for g in grids]
    titles = _counted(titles, len(texts), "titles")
    shapes = [text.shape for text in texts]
    colors = _counted(colors, len(shapes), "colors")
    groups = [_groups(given, shape) for given, shape in zip(colors, shapes)]
    _expect(
        [g.shape for g in groups] == shapes,
        "colors",
        f"shapes {shapes}",
        [g.shape for g in groups],
    )
    rows = _cell_labels(row_labels, shapes, 0, "row_labels")
    columns = _cell_labels(column_labels, shapes, 1, "column_labels")
    room = [_widest(names, 9) + 0.4 for names in rows]
    places, cell, height = _cell_places(shapes, room, per_line)
    widest = max(_widest(text.flat, 9) for text in texts)
    size = min(9, 9 * cell * 0.88 / widest) if widest else 9
    fig, ax = _canvas(WIDE, height)
    for i, (x, y) in enumerate(places):
        _draw_cells(ax, x, y, cell, size, texts[i], groups[i], rows[i], columns[i])
        ax.text(
            x + shapes[i][1] * cell / 2,
            y + (0.29 if any(columns) else 0.07),
            titles[i],
            ha="center",
        )
    content = [
        f"{name} {' / '.join(' '.join(row) for row in text)}"
        for name, text in zip(titles, texts)
    ]
    if any(isinstance(v, float) for grid in grids for row in grid for v in row):
        content = titles  # the text says nothing measured
    _publish(
        fig, title, alt or _describe("Grids of cells", title, Arrays="; ".join(content))
    )


def room(people, answers, names, *, title, alt=None):
    """Draw a room of `draw_rooms` as a table: a row and a colour for each person.

    Args:
        people: `(T, 38)`, of whose names the first two numbers are shown.
        answers: the T extensions wanted.

    >>> room(np.eye(2, 38), [0, 0], ["Ann", "Bob"], title="Two people")
    Grids of cells: Two people. Arrays: name; wanted; extension; answer.
    """
    people, answers = _array(people, "people", 2), np.array(answers)
    name, wanted, extension = people[:, :16], people[:, 16:32], people[:, 32:]
    friend = (wanted[:, None] == name).all(-1).argmax(-1)  # whose name it is
    own = range(len(people))
    cells(
        [name[:, :2], wanted[:, :2], extension.argmax(-1)[:, None], answers[:, None]],
        titles=["name", "wanted", "extension", "answer"],
        colors=[own, friend, own, friend],
        row_labels=[names, None, None, None],
        title=title,
        alt=alt,
    )


def _groups(given, shape):
    """Return the group of every cell, also where each row has one."""
    groups = _array(given, "colors").astype(int)
    one_a_row = groups.ndim == 1 and len(groups) == shape[0]
    return np.broadcast_to(groups[:, None], shape) if one_a_row else groups


def _cell_places(shapes, room, per_line):
    """Set grids on lines; return their top left corners, the cell and the height."""
    lines = [
        range(i, min(i + per_line, len(shapes)))
        for i in range(0, len(shapes), per_line)
    ]
    cell = min(
        0.55,
        *(
            (WIDE - sum(room[i] for i in line)) / sum(shapes[i][1] for i in line)
            for line in lines
        ),
    )
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
    return [
        [] if names is None else _names(names, shape[axis], what)
        for names, shape in zip(given, shapes)
    ]


def _draw_cells(ax, x, y, cell, size, text, groups, rows, columns):
    for (i, j), group in np.ndenumerate(groups):
        corner = (x + j * cell, y - (i + 1) * cell)
        ax.add_patch(
            Rectangle(
                corner,
                cell,
                cell,
                edgecolor="white",
                linewidth=1.5,
                facecolor=FILLS[group % 6],
            )
        )
        ax.text(
            corner[0] + cell / 2,
            corner[1] + cell / 2,
            text[i, j],
            ha="center",
            va="center_baseline",
            fontsize=size,
        )
    for j, name in enumerate(columns):
        ax.text(
            x + (j + 0.5) * cell, y + 0.05, name, ha="center", fontsize=size, color=GREY
        )
    for i, name in enumerate(rows):
        ax.text(
            x - 0.06,
            y - (i + 0.5) * cell,
            name,
            ha="right",
            va="center",
            fontsize=9,
            color=GREY,
        )


def embeddings(words, ids, table, *, title, alt=None):
    """Draw the embeddings of words beside the table, a colour for each id.

    Args:
        words, ids: the T tokens and their ids.
        table: `(V, D)`.

    >>> embeddings(["the", "cat"], [1, 0], [[0.5], [2.0]], title="Two words")
    Grids of cells: Two words. Arrays: table; embeddings.
    """
    table, ids = _array(table, "table", 2), _array(ids, "ids", 1).astype(int)
    rows = range(len(table))
    style = {"colors": [rows, ids], "row_labels": [rows, words]}
    titles = ["table", "embeddings"]
    cells([table, table[ids]], titles=titles, title=title, alt=alt, **style)


def windows(pieces, context_length, strides, *, lit, title, alt=None):
    """Draw the windows that each stride cuts from a text: inputs, and targets beside.

    Args:
        pieces: the tokens of the text, as strings.
        lit: the token whose cells are blue.

    >>> windows(list("abc"), 2, [1], lit="b", title="One")
    Grids of cells: One. Arrays: inputs, stride 1 a b; targets, stride 1 b c.
    """
    grids, titles = [], []
    for stride in strides:
        parts = sliding_windows(range(len(pieces)), context_length, stride)
        for name, part in zip(("inputs", "targets"), parts):
            grids.append([[pieces[i] for i in row] for row in part.tolist()])
            titles.append(f"{name}, stride {stride}")
    cells(grids, titles=titles, title=title, lit=lit, alt=alt)


# --- between processes ------------------------------------------------------------

SUM = 4  # the fill of a number that several processes have a part in


@_styled
def exchange(operations, numbers, *, title, digits=2, alt=None):
    """Draw what processes hold before and after they exchange numbers.

    A number has the colour of the process that it comes from, a sum is grey. Between
    the two stands how many bytes a process sends, at four bytes a number.

    Args:
        operations: names, each with a line of its own: "send" (process 0 to process
            1), "pass on" (each to the next, the last to the first), "all-reduce",
            "all-gather" or "reduce-scatter", the last three as on a ring.
        numbers: `(P, N)`, what each of two to four processes has. For an all-gather
            it has only its share of the N.
        digits: decimals of numbers that are not whole.

    >>> exchange(["send"], [[1, 2], [30, 40]], title="A message")
    Numbers that processes exchange: A message. send: 1 2 / · · → 1 2 / 1 2, 8 bytes.
    """
    numbers = _array(numbers, "numbers", 2)
    count, size = numbers.shape
    _expect(2 <= count <= 4, "numbers", "two to four processes", count)
    whole, row, gap = _whole(numbers), 0.3, 0.42
    fig, ax = _canvas(WIDE, len(operations) * (count * row + gap))
    cell = min(0.62, (WIDE - 3.2) / 2 / size)
    right, said = WIDE - 0.1 - size * cell, {}
    for i, name in enumerate(operations):
        top = (len(operations) - i) * (count * row + gap) - gap / 2
        before, after, sent = _exchanged(name, numbers)
        sides = [_held_texts(held, 0 if whole else digits) for held in (before, after)]
        _draw_held(ax, 1.0, top, (cell, row), before, sides[0])
        _draw_held(ax, right, top, (cell, row), after, sides[1])
        for rank in range(count):
            y, style = top - (rank + 0.5) * row, {"fontsize": 9, "color": GREY}
            ax.text(0.93, y, f"process {rank}", ha="right", va="center", **style)
        ends = (1.1 + size * cell, right - 0.1)
        words = f"{4 * sent:,.0f} bytes" + (" each" if name != "send" else "")
        _draw_operation(ax, ends, top - count * row / 2, name, words)
        held = " → ".join(" / ".join(map(" ".join, side)) for side in sides)
        said[name] = f"{held}, {words}" if whole else words
    kind = "Numbers that processes exchange"
    _publish(fig, title, alt or _describe(kind, title, **said))


def _exchanged(name, numbers):
    """Return what is held before and after, and how many numbers a process sends.

    Each process holds a list with (number, fill) or None for each of N places.
    """
    count, size = numbers.shape
    share, nothing = size // count, [None] * size
    own = [[(x, rank) for x in line] for rank, line in enumerate(numbers)]
    total = [(x, SUM) for x in numbers.sum(axis=0)]
    if name in ("all-gather", "reduce-scatter"):
        _expect(share * count == size, "numbers", f"a multiple of {count} each", size)
    owner = [place // max(share, 1) for place in range(size)]  # of a place

    def shares(held):
        return [
            [x if owner[i] == rank else None for i, x in enumerate(line)]
            for rank, line in enumerate(held)
        ]

    around = (count - 1) * size / count  # all but one share
    if name == "send":
        rest = [nothing] * (count - 2)
        return [own[0], nothing, *rest], [own[0], own[0], *rest], size
    if name == "pass on":
        return own, own[-1:] + own[:-1], size
    if name == "all-reduce":
        return own, [total] * count, 2 * around
    if name == "reduce-scatter":
        return own, shares([total] * count), around
    _expect(name == "all-gather", "operations", "known names", name)
    whole = [own[rank][place] for place, rank in enumerate(owner)]
    return shares(own), [whole] * count, around


def _held_texts(held, digits):
    return [
        ["·" if x is None else _number(x[0], digits) for x in line] for line in held
    ]


def _draw_held(ax, x, top, cell, held, texts):
    wide, high = cell
    widest = max(_widest(words, 9) for words in texts)
    size = min(9, 9 * wide * 0.92 / widest)
    for rank, (line, words) in enumerate(zip(held, texts)):
        for i, (entry, text) in enumerate(zip(line, words)):
            corner = (x + i * wide, top - (rank + 1) * high)
            look = {"facecolor": "white", "edgecolor": EDGE, "zorder": 0.9}
            if entry is not None:
                look = {"facecolor": FILLS[entry[1]], "edgecolor": "white"}
                centre = (corner[0] + wide / 2, corner[1] + high / 2)
                places = {"ha": "center", "va": "center_baseline", "fontsize": size}
                ax.text(*centre, text, **places)
            ax.add_patch(Rectangle(corner, wide, high, linewidth=1.2, **look))


def _draw_operation(ax, ends, y, name, words):
    style = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 1.6, "shrinkA": 0}
    tips = [(end, y) for end in ends]
    ax.add_patch(FancyArrowPatch(*tips, mutation_scale=13, shrinkB=0, **style))
    middle = sum(ends) / 2
    ax.text(middle, y + 0.09, name, ha="center", fontweight="bold", color=BLUE)
    ax.text(middle, y - 0.1, words, ha="center", va="top", fontsize=9, color=GREY)
