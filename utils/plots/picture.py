"""The drawing primitives: grids, words, wires, and the other marks of a diagram.

A place `at` is `(x, y)` in inches from the upper left corner below the title, y grows
downwards. Every mark returns a `Box`, whose sides are the ends of wires.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Arc, Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.text import Text

from utils.plots import theme
from utils.plots.publishing import (
    drawable,
    end_sentence,
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
)

INK, LABEL, NAME, WIDTH = theme.INK, theme.LABEL, theme.NAME, theme.WIDTH
CELL, LINE = 0.3, 0.28  # inches: the least width of a cell, and its height
MONO = 0.602 * LABEL / 72  # inches: the width of a letter of DejaVu Sans Mono
MAX_DESCRIBED = 40  # cells of a grid whose content the alternative text gives
FREE_SIGNS = "=←@ "
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


class Picture:
    """A sheet to draw on, which keeps what is drawn for its alternative text.

    It is 6.9 inches wide and as high as the marks need.

    >>> picture = Picture()
    >>> hello, sun = picture.sentence((0.2, 0.3), ["Hello", "sun"], lit=[1])
    >>> _ = picture.wire(sun, hello, "weight", weight=0.8, bend=0.3)
    >>> picture.publish("sun looks at Hello")
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello.
    """

    def __init__(self):
        self.marks = []  # functions that return artists of matplotlib
        self.sentences = []  # of the alternative text

    # --- marks ----------------------------------------------------------------

    def _add(self, kind, *args, **style):
        self.marks.append(partial(kind, *args, **style))

    def _write(self, x, y, text, size=LABEL, color="black", **style):
        style = {"ha": "center", "va": "center_baseline", "zorder": 6} | style
        if text:
            self._add(Text, x, y, text, fontsize=size, color=color, **style)

    def _add_box(self, box, rounding=0, gap=0, **style):
        size = box.width + 2 * gap, box.height + 2 * gap
        shape = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
        corner = box.x - gap, box.y - gap
        self._add(FancyBboxPatch, corner, *size, boxstyle=shape, **style)

    def _add_sentence(self, sentence):
        if sentence.strip():
            self.sentences.append(end_sentence(drawable(sentence)))

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
    ) -> Box:
        """Draw numbers or texts in cells: a vector is a row, a matrix has one a token.

        Args:
            at: the upper left corner of the first cell; labels lie outside.
            values: `(n, m)`, or `(m,)` for one row; empty texts leave cells blank.
            role: "x", "query", "key", "value", "score", "weight" (blue, from 0 to 1) or
                "output"; it gives the colours.
            name: above the grid.
            rows, columns: labels beside the rows and above the columns.
            shape: below the grid, such as "(T, D) = (3, 2)".
            mask: boolean, of the shape of `values`, True = may attend; others hatched.
            owner: 0 to 5, of the shape of `values` or one a row, for the colours of
                identity instead of role; -1 for none.
            lit: the row with a frame.
            cell: the width of a cell in inches, if not as wide as its text.

        Raises:
            ValueError: if sizes don't agree.
        """
        numbers, texts = _cell_texts(values)
        shown, ink = to_mask(mask, texts.shape), INK[role]
        owners = np.array(-1 if owner is None else owner)
        owners = owners[:, None] if owners.ndim == 1 else owners
        owners = np.broadcast_to(owners, texts.shape)
        cell = cell or max(CELL, 0.12 + max(map(text_width, texts.flat)))
        size = texts.shape[1] * cell, len(texts) * LINE
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
            self._write(*place.middle, text, color=color)
        frame = {"fill": False, "edgecolor": "black", "zorder": 4}
        if role == "output":
            self._add_box(box, linewidth=2, **frame)
        if lit is not None:
            self._add_box(box.row(lit), gap=0.03, linewidth=1.8, **frame)
        for i, label in enumerate(to_names(rows, len(texts), "rows") if rows else ()):
            self._write(box.x - 0.07, box.row(i).middle[1], label, ha="right")
        names = to_names(columns, texts.shape[1], "columns") if columns else ()
        for j, label in enumerate(names):
            self._write(box.cell(0, j).middle[0], box.y - 0.11, label, color=theme.GREY)
        style = {"weight": "bold", "color": ink, "size": NAME}
        self._write(box.top[0], box.y - (0.33 if columns else 0.14), name, **style)
        style = {"color": theme.GREY, "family": "DejaVu Sans Mono"}
        self._write(box.bottom[0], box.bottom[1] + 0.05, shape, va="top", **style)
        self._add_sentence(_grid_sentence(box.name, texts, shown, rows, shape))
        return box

    def word(self, at: tuple, text, *, lit=False) -> Box:
        """Write a word in a rounded frame, its middle at `at`; bold if it is `lit`."""
        text = visible(text)
        width = text_width(text, theme.TITLE, "bold") + 0.2
        box = Box(at[0] - width / 2, at[1] - 0.15, width, 0.3, text)
        style = {"edgecolor": "black" if lit else theme.PALE, "facecolor": "white"}
        self._add_box(box, 0.07, linewidth=1.8 if lit else 0.9, **style)
        self._write(*box.middle, text, theme.TITLE, weight="bold" if lit else "normal")
        self._add_sentence(f"Word: {text}" + (" (followed)" if lit else ""))
        return box

    def sentence(
        self, at: tuple, words, *, roles: dict | None = None, lit=(), gap: float = 0.2
    ) -> list[Box]:
        """Write words in a line that starts at `at`, closer than `gap` if they need it.

        Args:
            roles: dict from a position to the role that colours it.
            lit: the positions in bold.
        """
        texts, boxes, roles = [visible(word) for word in words], [], roles or {}
        widths = [max(text_width(text, NAME, "bold"), 0.1) for text in texts]
        free = WIDTH - 0.1 - at[0] - sum(widths)
        gap, x = min(gap, free / max(1, len(texts) - 1)), at[0]
        expect(gap > 0.04, "words", f"a line of {WIDTH} inches", " ".join(texts))
        for i, (text, width) in enumerate(zip(texts, widths)):
            boxes.append(Box(x, at[1] - 0.1, width, 0.2, text))
            color = INK[roles[i]] if i in roles else "black"
            weight = "bold" if i in lit or i in roles else "normal"
            self._write(*boxes[i].middle, text, NAME, color=color, weight=weight)
            x += width + gap
        self._add_sentence(f"Words: {' '.join(texts)}")
        return boxes

    def block(self, at: tuple, text: str, kind="op", *, size=None, lit=False) -> Box:
        """Draw a box that something is done in, its upper left corner at `at`.

        Args:
            kind: "op", "learned" (a matrix, grey), or a role.
            size: `(width, height)` in inches, if not as wide as its text.
        """
        kinds = {"op": "white", "learned": theme.LEARNED} | theme.FILL
        lines = text.count("\n") + 1
        width, height = size or (text_width(text, NAME) + 0.24, 0.2 + 0.17 * lines)
        box = Box(*at, width, height, text.replace("\n", " "))
        style = {"facecolor": kinds[kind], "edgecolor": INK.get(kind, INK[None])}
        self._add_box(box, min(0.07, width / 2), linewidth=2 if lit else 1.1, **style)
        style = {"va": "center", "linespacing": 1.2, "weight": "bold" if lit else None}
        self._write(*box.middle, text, NAME, **style)
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

        Args:
            start, end: boxes or points; of boxes the sides that face each other.
            role: by default that of the box at the start, or at the end.
            weight: from 0 to 1, gives the width; below 0.05 nothing is drawn.
            turn: where across a wire with right angles goes up or down.
            via: other points between.
            bend: how many inches the middle of an arrow hangs below its ends.
            text: on the middle of the longest part, or above the word at the end of an
                arrow that hangs.
            head: False for a line without its head.
        """
        if weight is not None and weight < THINNEST:
            return
        boxes = [mark for mark in (start, end) if isinstance(mark, Box)]
        role = role or next((box.role for box in boxes if box.role), None)
        if len(boxes) == 2 and start.name and end.name:
            flows = f" ({role})" if role in ("query", "key", "value") else ""
            self._add_sentence(f"{start.name} → {end.name}{flows}")
        points = _route(start, end, turn, via, bend)
        longest = max(zip(points, points[1:]), key=lambda part: math.dist(*part))
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
            self._write(end.top[0], end.y - 0.11, text, color=INK[role])
        elif text:
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            self._write(x, y, text, color=INK[role], bbox=paper)

    def chain(self, *boxes) -> None:
        """Draw a wire from each box to the next."""
        for start, end in pairwise(boxes):
            self.wire(start, end)

    def sign(self, at: tuple, text: str, role: str | None = None) -> Box:
        """Draw +, ×, = or an operation such as "softmax" or "÷ √2", its middle at `at`.

        A + or × is in a circle and an operation in a pill; = and @ have no edge, a → is
        an arrow, below the text before it, and a space leaves a gap.
        """
        is_arrow, is_round = text.endswith("→"), len(text) == 1
        label = text.removesuffix("→").strip()
        half = 0.12 if is_round else text_width(label) / 2 + 0.1
        half = max(half, 0.2) if is_arrow else half
        box = Box(at[0] - half, at[1] - 0.12, 2 * half, 0.24, text, role)
        style = {"facecolor": "white", "edgecolor": INK[role], "linewidth": 1.2}
        if is_arrow:
            self.wire(box.at(0.1, 0.5), box.at(0.9, 0.5))
        elif not is_round:
            self._add_box(box, 0.12, zorder=5, **style)
        elif text not in FREE_SIGNS:
            self._add(Circle, at, half, zorder=5, **style)
        y, size = at[1] - 0.13 * is_arrow, theme.TITLE if is_round else LABEL
        self._write(at[0], y, label, size, color=INK[role])
        self._add_sentence(text)
        return box

    def shelf(self, boxes, text: str = "", kind: str = "cached") -> Box:
        """Lay a coloured ground below boxes: what is cached, or whose it is.

        Args:
            kind: "cached", "process" or "memory"; also the text, by default.
        """
        left, top = (min(getattr(box, side) for box in boxes) for side in "xy")
        right, bottom = (max(box.at(1, 1)[i] for box in boxes) for i in (0, 1))
        size = right - left + 0.2, bottom - top + 0.4
        box = Box(left - 0.1, top - 0.3, *size, text or kind)
        self._add_box(box, facecolor=theme.SHELVES[kind], edgecolor="none", zorder=0.5)
        style = {"color": "#444444", "weight": "bold", "ha": "left"}
        self._write(box.x + 0.08, box.y + 0.14, box.name, **style)
        self._add_sentence(f"Shelf: {box.name}")
        return box

    def step(self, at: tuple, number: int) -> None:
        """Draw a black disc with the number of a step, which the text explains."""
        self._add(Circle, at, 0.11, facecolor="black", zorder=6)
        style = {"color": "white", "weight": "bold", "zorder": 7}
        self._write(*at, str(number), theme.SMALLEST, **style)
        self._add_sentence(f"Step {number}")

    def note(self, at: tuple, text: str, role=None, *, align="left", bold=False):
        """Write a label or a remark; `at` is the middle of its left side."""
        style = {"ha": align, "va": "center", "linespacing": 1.3}
        style["weight"] = "bold" if bold else "normal"
        if bold and "\n" not in text:  # so that headings side by side are level
            style["va"], at = "baseline", (at[0], at[1] + 0.36 * NAME / 72)
        color = INK[role] if role else "#333333"
        self._write(*at, text, NAME if bold else LABEL, color=color, **style)
        self._add_sentence(text.replace("\n", " "))

    def angle(self, at: tuple, vectors, names, *, roles, reach: float) -> None:
        """Draw two vectors as arrows from one point, and the angle between them.

        Args:
            at: that point.
            vectors, names, roles: `(2, 2)`, and two of each; the angle is that by
                which the first is ahead of the second.
            reach: the length that is 0.62 inches long.
        """
        vectors, at = to_array(vectors, "vectors", 2), np.array(at)
        for axis in np.eye(2) * 0.62:
            style = {"color": theme.PALE, "linewidth": 0.8, "zorder": 0.8}
            self._add(Line2D, *zip(at - axis, at + axis), **style)
        for vector, name, role in zip(vectors, names, roles):
            ahead = vector / np.hypot(*vector) * (1, -1)  # y grows downwards
            tip = at + 0.62 / reach * np.hypot(*vector) * ahead
            self.wire(tuple(at), tuple(tip), role)
            style = {"color": INK[role], "weight": "bold", "va": "center"}
            self._write(*(tip + 0.14 * ahead), name, **style)
        first, second = np.arctan2(vectors[:, 1], vectors[:, 0])
        between = (first - second) % (2 * math.pi)
        ends = np.degrees([-second - between, -second])
        self._add(Arc, at, 0.5, 0.5, theta1=ends[0], theta2=ends[1], color=theme.GREY)
        middle = second + between / 2
        place = at + (0.45 * math.cos(middle), -0.4 * math.sin(middle))
        self._write(*place, f"{math.degrees(between):.0f}°", va="center")
        self._add_sentence(f"Arrows: {', '.join(names)}")

    @in_course_style
    def publish(self, title: str) -> None:
        """Show the picture below its title, which states the finding."""
        alt = " ".join([f"Picture: {end_sentence(title)}", *self.sentences])
        publish(self.draw(), title, alt)

    def draw(self) -> Figure:
        """Return a figure with all marks, one unit an inch."""
        figure = new_figure(0.1)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0.1, 0))
        axes.axis("off")
        for mark in self.marks:
            artist = axes.add_artist(mark())
            artist.set_clip_on(False)  # so that `publish` notices what lies outside
        return figure


# --- compositions -----------------------------------------------------------------


def row(*parts, title: str) -> None:
    """Draw grids side by side, with signs between them, and publish them.

    Args:
        parts: dicts with the arguments of `Picture.grid` (all but `at`), texts such as
            "×", "=" or "softmax" that become signs, and pairs of dicts: a factor with
            the product below it.

    >>> row(dict(values=[[1, 2]], role="query", name="q"), "=", dict(values=[[3, 4]]),
    ...     title="Two grids")
    Picture: Two grids. q: 1 2. =. 3 4.
    """
    column(parts, title=title)


def column(*lines, title: str) -> None:
    """Draw several lines of grids and signs below each other; see `row`.

    >>> column(["a →", dict(values=[[1]])], ["b →", dict(values=[[2]])], title="Two")
    Picture: Two. a →. 1. b →. 2.
    """
    rooms = [[_room(part) for part in line] for line in lines]
    for i, parts in enumerate(zip(*lines)):
        if all(isinstance(part, str) for part in parts):  # what follows is aligned
            left, right = (max(line[i][side] for line in rooms) for side in (0, 1))
            for line in rooms:
                line[i][:2] = left, right
    picture, y = Picture(), 0.0
    for parts, line in zip(lines, rooms):
        lefts, rights, above, below = zip(*line)
        needed = sum(lefts) + sum(rights)
        gap = min(0.3, (WIDTH - 0.2 - needed) / max(1, len(line) - 1))
        expect(gap >= 0, "parts", f"at most {WIDTH - 0.2} inches", f"{needed:.2f}")
        x, y = 0.1, y + 0.05 + max(above)
        for part, left, right in zip(parts, lefts, rights):
            _draw_part(picture, (x + left, y), part)
            x += left + right + gap
        y += max(below) + 0.1
    picture.publish(title)


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


def frames(draw, states: dict, *, title: str) -> None:
    """Draw one state after the other, side by side in frames of one width.

    Args:
        draw: called as `draw(picture, left, state)` for each state; `left` is where
            its frame begins. A state has `6.9 / len(states)` inches.
        states: dict from the name above a frame to its state.

    >>> def tokens(picture, left, count):
    ...     picture.grid((left + 0.2, 0.6), [range(count)], "key")
    >>> frames(tokens, {"prefill": 2, "decode": 3}, title="A key a token")
    Picture: A key a token. prefill. key: 0 1. decode. key: 0 1 2.
    """
    picture, width = Picture(), WIDTH / len(states)
    for i, (name, state) in enumerate(states.items()):
        picture.note(((i + 0.5) * width, 0.12), name, align="center", bold=True)
        draw(picture, i * width, state)
    picture.publish(title)


# --- insides ----------------------------------------------------------------------


def _cell_texts(values):
    """Return the numbers of a grid, or None for texts, and what its cells show."""
    lines = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    if not isinstance(lines[0], (list, tuple, range)):
        lines = [lines]
    if any(isinstance(v, (str, bytes)) for line in lines for v in line):
        return None, np.array([[visible(v) for v in line] for line in lines])
    numbers = np.array([[*line] for line in lines], float)
    digits = num_digits(numbers)
    texts = [["" if v != v else format_number(v, digits) for v in n] for n in numbers]
    return numbers, np.array(texts)


def _grid_sentence(name, texts, shown, rows, shape):
    """Return what the alternative text gives of a grid: all of it, if it is small."""
    labels, parts = [visible(label) for label in rows or ()], [name]
    if texts.size <= MAX_DESCRIBED:
        cells = np.where(shown, texts, "hidden")
        lines = [" ".join(filter(None, line)) for line in cells]
        if labels:
            lines = [f"{label} {line}".strip() for label, line in zip(labels, lines)]
        parts.append(" / ".join(lines) if any(lines) else "")
    elif labels:
        parts.append("rows " + ", ".join(labels))
    text = ": ".join(filter(None, parts))
    return ", ".join(filter(None, (text, shape and f"shape {shape}")))


def _route(start, end, turn, via, bend):
    """Return the points of a wire; of a box the side that faces the next point."""
    ends = [mark.middle if isinstance(mark, Box) else mark for mark in (start, end)]
    if turn is not None:
        via = [(turn, y) for x, y in ends if not math.isclose(x, turn)]
    goals = [*via[:1], *via[-1:]] or ends[::-1]
    if bend:
        goals = [(x, y + math.copysign(99, bend)) for x, y in ends]
    first, last = map(_facing, (start, end), goals)
    return [first, *via, last]


def _facing(mark, goal):
    """Return the point of a wire that ends at a mark and comes from a goal."""
    if not isinstance(mark, Box):
        return mark
    dx, dy = np.subtract(goal, mark.middle)
    if abs(dx) * mark.height > abs(dy) * mark.width:
        return mark.right if dx > 0 else mark.left
    return mark.bottom if dy > 0 else mark.top
