"""The drawing primitives: grids, words, wires, and the other marks of a diagram.

A place `at` is `(x, y)` in inches from the upper left corner below the title, y grows
downwards. Every mark returns a `Box`, whose sides are the ends of wires.
"""

import math
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import accumulate, pairwise

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.text import Text

from utils.plots import theme
from utils.plots.publishing import (
    drawable,
    format_number,
    in_course_style,
    new_figure,
    num_digits,
    publish,
    text_color,
    text_width,
    to_mask,
    visible,
)
from utils.validation import raise_unless

INK, LABEL, NAME, WIDTH = theme.INK, theme.LABEL, theme.NAME, theme.WIDTH
CELL, LINE = 0.3, 0.28  # inches: the least width of a cell, and its height
MAX_DESCRIBED = 40  # cells of a grid whose content the alternative text gives
THINNEST = 0.05  # the smallest weight that gets a wire


@dataclass(frozen=True)
class Box:
    """Where a mark is, in inches; its sides are points that wires start and end at."""

    x: float
    y: float
    width: float
    height: float
    name: str = ""
    role: str | None = None
    rows: int = 1
    columns: int = 1

    def at(self, across: float, down: float) -> tuple:
        """Return a point: (0, 0) is the upper left corner, (1, 1) the lower right."""
        return self.x + across * self.width, self.y + down * self.height

    left = property(lambda box: box.at(0, 0.5))
    right = property(lambda box: box.at(1, 0.5))
    top = property(lambda box: box.at(0.5, 0))
    bottom = property(lambda box: box.at(0.5, 1))
    middle = property(lambda box: box.at(0.5, 0.5))

    def row(self, i: int) -> "Box":
        """Return the box of one row of a grid."""
        height = self.height / self.rows
        return replace(self, y=self.y + i * height, height=height, rows=1)

    def cell(self, i: int, j: int) -> "Box":
        """Return the box of one cell of a grid."""
        row, width = self.row(i), self.width / self.columns
        return replace(row, x=self.x + j * width, width=width, columns=1)

    def facing(self, goal: tuple) -> tuple:
        """Return the middle of the side that faces a point."""
        dx, dy = np.subtract(goal, self.middle)
        if abs(dx) * self.height > abs(dy) * self.width:
            return self.right if dx > 0 else self.left
        return self.bottom if dy > 0 else self.top


class Picture:
    """A sheet to draw on, which keeps what is drawn for its alternative text.

    It is 6.9 inches wide and as high as the marks need.

    >>> picture = Picture()
    >>> hello, sun = picture.word((0.5, 0.3), "Hello"), picture.word((2.0, 0.3), "sun")
    >>> picture.wire(sun, hello, "weight", weight=0.8, bend=0.3)
    >>> picture.publish("sun looks at Hello")
    Picture: sun looks at Hello. Word: Hello. Word: sun. sun → Hello.
    """

    def __init__(self, rows=(), columns=()):
        self.lay_out(dict(rows), dict(columns))
        self.marks = []  # functions that return artists of matplotlib
        self.sentences = []  # of the alternative text
        self.is_pale = False  # whether to draw what follows pale, as known already
        self.num_colors = theme.DRAWING_COLORS

    # --- places ---------------------------------------------------------------

    def lay_out(self, rows: dict, columns: dict) -> None:
        """Name rows below each other and columns over the whole width, of these sizes.

        >>> picture = Picture({"word": 0.4, "weight": 0.6}, {0: 1, 1: 1})
        >>> picture.at("weight", 1)
        (6.3, 0.7)
        """
        gap = (WIDTH - 0.2 - sum(columns.values())) / max(1, len(columns) - 1)
        self.columns = _middles(columns, 0.1, gap)
        self.rows = _middles(rows, 0.0, 0.0)

    def at(self, row, column) -> tuple:
        """Return the middle of a place."""
        return self.columns[column], self.rows[row]

    def put(self, row, column, values, role=None, cell=None, name="", **style) -> Box:
        """Draw a grid in the middle of a place; see `grid`."""
        style |= {"cell": cell, "centred": True}
        return self.grid(self.at(row, column), values, role, name, **style)

    def label(self, texts: dict, *, bold=()) -> None:
        """Write the names of rows at their left, some of them bold."""
        for row, text in texts.items():
            self.note((0.1, self.rows[row]), text, bold=row in bold)

    def head(self, row, column, text: str) -> None:
        """Write the name of a column in a row."""
        self.note(self.at(row, column), text, align="center", bold=True)

    # --- marks ----------------------------------------------------------------

    def _add(self, kind, *args, **style):
        for part in {"color", "facecolor", "edgecolor"} & style.keys():
            if self.is_pale and style[part] != "none":
                pale_color = tuple(0.3 * np.array(to_rgb(style[part])) + 0.7)
                style[part] = INK[None] if kind is Text else pale_color
        self.marks.append(partial(kind, *args, **style))

    def write(self, x, y, text, size=LABEL, color="black", **style):
        """Put a text with its middle at a place, but not into the alternative text."""
        style = {"ha": "center", "va": "center_baseline", "zorder": 6} | style
        if text:
            self._add(Text, x, y, text, fontsize=size, color=color, **style)

    def _add_box(self, box, rounding=0, **style):
        corner_and_size = (box.x, box.y), box.width, box.height
        shape = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
        self._add(FancyBboxPatch, *corner_and_size, boxstyle=shape, **style)

    def _add_sentence(self, sentence):
        if sentence.strip():
            self.sentences.append(drawable(sentence))

    def grid(
        self,
        at: tuple,
        values,
        role: str | None = None,
        name: str = "",
        *,
        rows=None,
        columns=None,
        shape: str = "",
        mask=None,
        owner=None,
        lit: int | None = None,
        cell: float | None = None,
        centred: bool = False,
    ) -> Box:
        """Draw numbers or texts in cells, with a name above and labels at its sides.

        at: the upper left corner of the first cell, or the middle if `centred`
        values: (n, m), or (m,) for one row
        role: gives the colours, see `theme.INK`; a "weight" is from 0 to 1
        shape: below the grid, such as "(T, D) = (3, 2)"
        mask: boolean, of the shape of `values`, True = may attend; others hatched
        owner: 0 to 5, a colour for each value or row instead of the role's; -1 for
            none
        lit: the row with a frame
        cell: the width of a cell in inches, if not as wide as its text
        """
        numbers, texts = _cell_texts(values)
        shown, ink = to_mask(mask, texts.shape), INK[role]
        owners = np.asarray(-1 if owner is None else owner)
        raise_unless({*owners.flat} <= {*range(-1, 6)}, "owner from -1 to 5", owners)
        owners = owners[:, None] if owners.ndim == 1 else owners
        owners = np.broadcast_to(owners, texts.shape)
        cell = cell or max(CELL, 0.12 + max(map(text_width, texts.flat)))
        size = texts.shape[1] * cell, len(texts) * LINE
        at = (at[0] - size[0] / 2, at[1] - size[1] / 2) if centred else at
        box = Box(*at, *size, name or role or "", role, *texts.shape)
        for (i, j), text in np.ndenumerate(texts):
            place, fill = box.cell(i, j), theme.FILL[role]
            if not shown[i, j]:
                fill, text = theme.HIDDEN, ""
            elif owner is not None:
                fill = (*theme.OWNERS, "white")[owners[i, j]]
            elif role == "weight" and numbers is not None:
                fill = theme.WEIGHTS(float(np.clip(numbers[i, j], 0, 1)))
            style = {"facecolor": fill, "hatch": None if shown[i, j] else "/////"}
            style["edgecolor"] = ink if owner is None else "white"
            self._add_box(place, linewidth=0.9, **style)
            color = ink if role == "score" else text_color(fill)
            self.write(*place.middle, text, color=color)
        frame = {"fill": False, "edgecolor": "black", "zorder": 4}
        if role == "output" and lit is None:
            self._add_box(box, linewidth=2, **frame)
        if lit is not None:
            self._add_box(box.row(lit), linewidth=2, **frame)
        for i, label in enumerate(rows or ()):
            y = box.row(i).middle[1]
            self.write(box.x - 0.07, y, visible(label), ha="right")
        for j, label in enumerate(columns or ()):
            x = box.cell(0, j).middle[0]
            self.write(x, box.y - 0.11, visible(label), color=theme.GREY)
        style = {"weight": "bold", "color": ink, "size": NAME}
        self.write(box.top[0], box.y - (0.33 if columns else 0.14), name, **style)
        style = {"color": theme.GREY, "family": "DejaVu Sans Mono"}
        self.write(box.bottom[0], box.bottom[1] + 0.05, shape, va="top", **style)
        self._add_sentence(_grid_sentence(box.name, texts, shown, rows, shape))
        return box

    def word(self, at: tuple, text, *, lit=False) -> Box:
        """Write a word in a rounded frame, its middle at `at`; bold if it is `lit`."""
        text = visible(text)
        width = text_width(text, theme.TITLE, "bold") + 0.2
        box = Box(at[0] - width / 2, at[1] - 0.15, width, 0.3, text)
        style = {"edgecolor": "black" if lit else theme.PALE, "facecolor": "white"}
        self._add_box(box, 0.07, linewidth=1.8 if lit else 0.9, **style)
        self.write(*box.middle, text, theme.TITLE, weight="bold" if lit else "normal")
        self._add_sentence(f"Word: {text}" + (" (followed)" if lit else ""))
        return box

    def block(self, at, text, kind="op", *, size=None, centred=False) -> Box:
        """Draw a box that something is done in, with its corner or middle as a `grid`.

        `kind` is "op", "learned" (a matrix, grey) or a role; `size` is in inches.
        """
        kinds = theme.Known({"op": "white", "learned": theme.LEARNED} | theme.FILL)
        lines = text.count("\n") + 1
        width, height = size or (text_width(text, NAME) + 0.24, 0.2 + 0.17 * lines)
        at = (at[0] - width / 2, at[1] - height / 2) if centred else at
        box = Box(*at, width, height, text.replace("\n", " "))
        style = {"facecolor": kinds[kind], "edgecolor": INK.get(kind, INK[None])}
        self._add_box(box, min(0.07, width / 2), linewidth=1.1, **style)
        self.write(*box.middle, text, NAME, va="center", linespacing=1.2)
        self._add_sentence(f"Box: {box.name}")
        return box

    def wire(
        self,
        start,
        end,
        role: str | None = None,
        *,
        weight: float | None = None,
        turn: float | None = None,
        via=(),
        bend: float = 0,
        text: str = "",
        head: bool = True,
        dashed: bool = False,
    ) -> None:
        """Draw an arrow along which data flows, in the ink of what flows.

        start, end: boxes or points; of boxes the sides that face each other
        role: by default that of the box at the start, or at the end
        weight: from 0 to 1, gives the width; below 0.05 nothing is drawn
        turn: where across a wire with right angles goes up or down
        via: other points between
        bend: how far the middle of an arrow hangs below its ends, two boxes
        text: on the longest part, or above the end of an arrow that hangs
        """
        if weight is not None and weight < THINNEST:
            return
        start, end = (m if isinstance(m, Box) else Box(*m, 0, 0) for m in (start, end))
        role = role or start.role or end.role
        if start.name and end.name:
            flows = f" ({role})" if role in ("query", "key", "value") else ""
            self._add_sentence(f"{start.name} → {end.name}{flows}")
        ends = start.middle, end.middle
        if turn is not None:
            via = [(turn, y) for x, y in ends if not math.isclose(x, turn)]
        goals = [*via[:1], *via[-1:]] or ends[::-1]
        points = [start.facing(goals[0]), *via, end.facing(goals[1])]
        if bend:
            points = [box.bottom if bend > 0 else box.top for box in (start, end)]
        longest = max(pairwise(points), key=lambda part: math.dist(*part))
        x, y = np.mean(longest, axis=0)
        path = Path(points)
        if bend:
            path = Path([points[0], (x, y + 2 * bend), points[1]], [1, 3, 3])
        width = 1.3 if weight is None else 0.6 + 5 * weight
        style = {"color": INK[role], "linewidth": width, "joinstyle": "miter"}
        style |= {"linestyle": "--" if dashed else "-", "fill": head}
        style |= {"mutation_scale": 9 + 1.5 * width, "capstyle": "butt"}
        style["arrowstyle"] = "-|>" if head else "-"
        self._add(FancyArrowPatch, path=path, **style)
        if bend > 0 and text:
            self.write(end.top[0], end.y - 0.11, text, color=INK[role])
        elif text:
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            self.write(x, y, text, color=INK[role], bbox=paper)

    def chain(self, *boxes) -> None:
        """Draw a wire from each box to the next."""
        for start, end in pairwise(boxes):
            self.wire(start, end)

    def sign(self, at: tuple, text: str, role: str | None = None) -> Box:
        """Draw +, ×, = or an operation such as "softmax" or "÷ √2", its middle at `at`.

        = has no edge, a → is an arrow below the text before it, a space leaves a gap.
        """
        is_arrow, label = text.endswith("→"), text.removesuffix("→").strip()
        half = max(0.2, text_width(label) / 2 + 0.1) if text[1:] or is_arrow else 0.12
        box = Box(at[0] - half, at[1] - 0.12, 2 * half, 0.24, text, role)
        style = {"facecolor": "white", "edgecolor": INK[role], "linewidth": 1.2}
        if is_arrow:
            self.wire(box.at(0.1, 0.5), box.at(0.9, 0.5))
        elif len(text) > 1:
            self._add_box(box, 0.12, zorder=5, **style)
        elif text not in "= ":
            self._add(Circle, at, half, zorder=5, **style)
        size = theme.TITLE if len(text) == 1 else LABEL
        self.write(at[0], at[1] - 0.13 * is_arrow, label, size, color=INK[role])
        self._add_sentence(text)
        return box

    def shelf(self, box: Box, text: str, kind: str) -> Box:
        """Lay a ground below a box, in the colour of a kind of `theme.SHELVES`."""
        size = box.width + 0.2, box.height + 0.4
        ground = Box(box.x - 0.1, box.y - 0.3, *size, text)
        color = theme.SHELVES[kind]
        self._add_box(ground, facecolor=color, edgecolor="none", zorder=0.5)
        style = {"color": "#444444", "weight": "bold", "ha": "left"}
        self.write(ground.x + 0.08, ground.y + 0.14, text, **style)
        self._add_sentence(f"Shelf: {text}")
        return ground

    def step(self, at: tuple, number: int) -> None:
        """Draw a black disc with the number of a step, which the text explains."""
        self._add(Circle, at, 0.11, facecolor="black", zorder=6)
        self.write(*at, str(number), color="white", weight="bold", zorder=7)
        self._add_sentence(f"Step {number}")

    def note(self, at: tuple, text: str, role=None, *, align="left", bold=False):
        """Write a label or a remark; `at` is the middle of its left side."""
        style = {"ha": align, "weight": "bold" if bold else "normal"}
        if "\n" in text:
            style |= {"va": "center", "linespacing": 1.3}
        color = INK[role] if role else "#333333"
        self.write(*at, text, NAME if bold else LABEL, color=color, **style)
        self._add_sentence(text.replace("\n", " "))

    def plane(self, at: tuple, size: float, vectors):
        """Draw two axes; return the function from a vector to its point, in inches.

        at: the middle, where the axes cross
        size: of the square, in inches, which is wide enough for vectors like these
        """
        box = Box(at[0] - size / 2, at[1] - size / 2, size, size)
        for ends in ((box.left, box.right), (box.bottom, box.top)):
            self._add(Line2D, *zip(*ends), color=theme.PALE, linewidth=1, zorder=0.6)
        scale = size / 2.8 / float(max(vector.norm() for vector in vectors))
        return lambda vector: (
            at[0] + scale * float(vector[0]),
            at[1] - scale * float(vector[1]),
        )

    def dot(self, at: tuple, role: str, radius: float = 0.07) -> None:
        """Draw a point in the ink of a role; an output has a black edge."""
        style = {"facecolor": INK[role], "edgecolor": INK[role]}
        if role == "output":
            style = {"facecolor": theme.FILL[role], "edgecolor": "black"}
        self._add(Circle, at, radius, linewidth=2, zorder=5, **style)

    @in_course_style
    def publish(self, title: str) -> None:
        """Show the picture below its title, which states the finding."""
        publish(self.draw(), "Picture", title, self.sentences, self.num_colors)

    def draw(self) -> Figure:
        """Return a figure with all marks, one unit an inch."""
        figure = new_figure(0.1)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0.1, 0))
        axes.axis("off")
        for mark in self.marks:
            artist = axes.add_artist(mark())
            artist.set_clip_on(False)  # so that `publish` notices what lies outside
        return figure


def scene(draw):
    """Let a function that draws on a picture publish it below a `title`."""

    @wraps(draw)
    def publish_scene(*args, title, **kwargs):
        picture = Picture()
        draw(picture, *args, **kwargs)
        picture.publish(title)

    return publish_scene


def _middles(sizes, start, gap):
    """Return the middle of each of some places that are next to each other."""
    ends = accumulate((size + gap for size in sizes.values()), initial=start)
    parts = zip(sizes.items(), ends)
    return {name: round(end + size / 2, 4) for (name, size), end in parts}


# --- compositions -----------------------------------------------------------------


def row(*parts, title: str) -> None:
    """Draw grids side by side, with signs between them, and publish them.

    parts: dicts with the arguments of `Picture.grid` (all but `at`), texts that
        become signs, and pairs of dicts: a factor with the product below it

    >>> row({"values": [[1, 2]], "name": "q"}, "=", {"values": [3, 4]}, title="Grids")
    Picture: Grids. q: 1 2. =. 3 4.
    """
    column(parts, title=title)


def column(*lines, title: str) -> None:
    """Draw several lines of grids and signs below each other; see `row`.

    >>> column(["a →", {"values": [1]}], ["b →", {"values": [2]}], title="Two")
    Picture: Two. a →. 1. b →. 2.
    """
    raise_unless(lines and all(lines), "one part or more in each line", "none")
    for parts in lines:
        is_line = isinstance(parts, list | tuple) and all(map(_is_part, parts))
        expected = "texts, dicts with `values` or pairs of these in each line"
        raise_unless(is_line, expected, f"{parts!r:.80}")
    draw_lines(*lines).publish(title)


def draw_lines(*lines) -> Picture:
    """Return a picture with the lines of a `column`."""
    picture, y = Picture(), 0.0
    for parts in lines:
        lefts, rights, above, below = zip(*map(_room, parts))
        free = WIDTH - 0.2 - sum(lefts) - sum(rights)
        gap = max(0, min(0.3, free / max(1, len(parts) - 1)))
        x, y = 0.1, y + 0.05 + max(above)
        for part, left, right in zip(parts, lefts, rights):
            _draw_part(picture, (x + left, y), part)
            x += left + right + gap
        y += max(below) + 0.1
    return picture


def _is_part(part):
    pair = part if isinstance(part, tuple) and len(part) == 2 else (part,)
    are_grids = all(isinstance(grid, dict) and "values" in grid for grid in pair)
    return isinstance(part, str) or are_grids


def _draw_part(picture, at, part):
    """Draw a part of a row; `at` is the middle of a sign, or of a grid's left side."""
    if isinstance(part, str):
        return picture.sign(at, part)
    factor, part = part if isinstance(part, tuple) else (None, part)
    top = at[1] - len(_cell_texts(part["values"])[1]) * LINE / 2
    if factor:
        height = len(_cell_texts(factor["values"])[1]) * LINE
        picture.grid((at[0], top - height - 0.1), **factor)
    return picture.grid((at[0], top), **part)


@in_course_style
def _room(part):
    """Return the inches that a part takes to the left, right, above and below `at`."""
    picture = Picture()
    box = _draw_part(picture, (0, 0), part)
    [axes], ends = picture.draw().axes, [box.at(0, 0), box.at(1, 1)]
    for mark in (*axes.texts, *axes.patches):
        pixels = mark.get_window_extent().get_points()
        ends += axes.transData.inverted().transform(pixels).tolist()
    (left, above), (right, below) = np.min(ends, axis=0), np.max(ends, axis=0)
    return [-left, right, -above, below]


# --- insides ----------------------------------------------------------------------


def _cell_texts(values):
    """Return the numbers of a grid, or None for texts, and what its cells show."""
    lines = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    lengths = {len(v) if isinstance(v, list | tuple | range) else 0 for v in lines}
    raise_unless(len(lengths) == 1, "rows of one length", f"{lines!r:.80}")
    cells = np.atleast_2d(np.array(lines, dtype=object))
    raise_unless(cells.ndim == 2 and cells.size, "one row or more", cells.shape)
    if any(isinstance(v, (str, bytes)) for v in cells.flat):
        return None, np.array([[visible(v) for v in line] for line in cells])
    numbers = cells.astype(float)
    digits = num_digits(numbers)
    return numbers, np.array([[format_number(v, digits) for v in n] for n in numbers])


def _grid_sentence(name, texts, shown, rows, shape):
    """Return what the alternative text gives of a grid: all of it, if it is small."""
    labels = [visible(label) for label in rows or [""] * len(texts)]
    if texts.size <= MAX_DESCRIBED:
        lines = zip(labels, *np.where(shown, texts, "hidden").T)
        lines = [" ".join(filter(None, line)) for line in lines]
        content = " / ".join(lines) if any(lines) else ""
    else:
        content = "rows " + ", ".join(labels) if rows else ""
    text = ": ".join(filter(None, (name, content)))
    return ", ".join(filter(None, (text, shape and f"shape {shape}")))
