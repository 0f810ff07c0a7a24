"""The drawing primitives: grids, words, wires, and the other marks of a diagram.

A place `at` is `(x, y)` in inches from the upper left corner below the title, y grows
downwards. Every mark returns a `Box`, whose sides are the ends of wires.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import (
    Arc,
    Circle,
    FancyArrowPatch,
    FancyBboxPatch,
    Wedge,
)
from matplotlib.path import Path

from utils.plots.publishing import (
    FADED_TEXT,
    FILL,
    GREY,
    HIDDEN,
    INK,
    LABEL,
    LEARNED,
    NAME,
    OWNERS,
    PALE,
    SHELVES,
    SMALLEST,
    TITLE,
    WEIGHTS,
    WIDTH,
    drawable,
    end_sentence,
    expect,
    format_number,
    in_course_style,
    lighten,
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

CELL, LINE = 0.3, 0.28  # inches: the least width of a cell, and its height
MONO = 0.602 * LABEL / 72  # inches: the width of a letter of DejaVu Sans Mono
MOST_TOLD = 40  # cells of a grid whose content the alternative text gives
ROLES = "query", "key", "value"
FREE_SIGNS = "=", "→", "@"
THINNEST = 0.05  # the smallest weight that gets a wire


@dataclass(frozen=True)
class Box:
    """Where a mark is, in inches; its sides are points that wires start and end at."""

    x: float
    y: float
    width: float
    height: float
    name: str = ""
    rows: int = 1
    columns: int = 1

    @property
    def middle(self):
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def left(self):
        return self.x, self.middle[1]

    @property
    def right(self):
        return self.x + self.width, self.middle[1]

    @property
    def top(self):
        return self.middle[0], self.y

    @property
    def bottom(self):
        return self.middle[0], self.y + self.height

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

    Args:
        height, width: in inches, without the title.

    >>> picture = Picture(1.0)
    >>> hello, sun = picture.sentence((0.2, 0.3), ["Hello", "sun"], lit=[1])
    >>> _ = picture.wire(sun, hello, "weight", weight=0.8, bend=0.3)
    >>> picture.publish("sun looks at Hello")
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello.
    """

    @in_course_style
    def __init__(self, height: float, width: float = WIDTH):
        self.figure = new_figure(height, width)
        self.width, limits = width, {"xlim": (0, width), "ylim": (height, 0)}
        self.axes = self.figure.add_axes((0, 0, 1, 1), **limits)
        self.axes.axis("off")
        self.sentences = []  # of the alternative text

    # --- marks ----------------------------------------------------------------

    @in_course_style
    def _write(self, x, y, text, size=LABEL, color="black", **style):
        style = {"ha": "center", "va": "center_baseline", "zorder": 6} | style
        self.axes.text(x, y, text, fontsize=size, color=color, **style)

    def _add(self, artist):
        artist.set_clip_on(False)  # so that `publish` notices what lies outside
        self.axes.add_artist(artist)

    @in_course_style
    def _add_box(self, box, rounding=0, gap=0, **style):
        size = box.width + 2 * gap, box.height + 2 * gap
        shape = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
        corner = box.x - gap, box.y - gap
        self._add(FancyBboxPatch(corner, *size, boxstyle=shape, **style))

    @in_course_style
    def _add_circle(self, middle, radius, **style):
        self._add(Circle(middle, radius, **style))

    @in_course_style
    def _add_line(self, points, **style):
        self._add(Line2D(*zip(*points), **style))

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
        fade=(),
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
            fade: the rows that are pale.
            lit: the row with a frame.
            cell: the width of a cell in inches, if not as wide as its text.

        Raises:
            ValueError: for an unknown role, or sizes that don't agree.
        """
        expect(role in INK, "role", f"one of {', '.join(filter(None, INK))}", role)
        numbers, texts = _cell_texts(values)
        shown, ink = to_mask(mask, texts.shape), INK[role]
        owners = None if owner is None else _owner_of_cells(owner, texts.shape)
        width = cell or _cell_width(texts)
        box = Box(*at, texts.shape[1] * width, len(texts) * LINE, name, *texts.shape)
        for (i, j), text in np.ndenumerate(texts):
            place, pale = box.cell(i, j), i in fade
            fill = FILL[role]
            if role == "weight" and numbers is not None:
                fill = WEIGHTS(float(np.clip(numbers[i, j], 0, 1)))
            if owners is not None:
                fill = OWNERS[owners[i, j]] if owners[i, j] >= 0 else "white"
            if not shown[i, j]:
                fill, text = HIDDEN, ""
            fill = lighten(fill) if pale else fill
            edge = "white" if owners is not None else PALE if pale else ink
            hatch = None if shown[i, j] else "/////"
            style = {"facecolor": fill, "edgecolor": edge, "hatch": hatch}
            self._add_box(place, linewidth=0.9, **style)
            color = FADED_TEXT if pale else text_color(fill)
            if role == "score" and not pale:
                color = ink
            self._write(*place.middle, text, color=color)
        frame = {"fill": False, "edgecolor": "black", "zorder": 4}
        if role == "output":
            self._add_box(box, linewidth=2, **frame)
        if lit is not None:
            self._add_box(box.row(lit), gap=0.03, linewidth=1.8, **frame)
        for i, label in enumerate(to_names(rows, len(texts), "rows") if rows else ()):
            color = FADED_TEXT if i in fade else "black"
            y = box.row(i).middle[1]
            self._write(box.x - 0.07, y, label, color=color, ha="right")
        names = to_names(columns, texts.shape[1], "columns") if columns else ()
        for j, label in enumerate(names):
            self._write(box.cell(0, j).middle[0], box.y - 0.11, label, color=GREY)
        style = {"weight": "bold", "color": ink, "size": NAME}
        self._write(box.top[0], box.y - (0.33 if columns else 0.14), name, **style)
        style = {"color": GREY, "family": "DejaVu Sans Mono"}
        self._write(box.bottom[0], box.bottom[1] + 0.05, shape, va="top", **style)
        self._tell(_grid_sentence(name or role, texts, shown, rows, shape))
        return replace(box, name=name or role or "")

    def word(self, at: tuple, text, role=None, *, lit=False) -> Box:
        """Write a word in a rounded frame, its middle at `at`."""
        text = visible(text)
        width = text_width(text, TITLE, "bold") + 0.2
        box = Box(at[0] - width / 2, at[1] - 0.15, width, 0.3, text)
        style = {"edgecolor": "black" if lit else PALE, "facecolor": "white"}
        thick = 1.8 if lit else 0.9
        self._add_box(box, 0.07, linewidth=thick, **style)
        color = INK[role] if role else "black"
        weight = "bold" if lit else "normal"
        self._write(*box.middle, text, TITLE, color=color, weight=weight)
        self._tell(f"Word: {text}" + (" (followed)" if lit else ""))
        return box

    def sentence(
        self, at: tuple, words, *, roles=None, lit=(), gap: float = 0.2
    ) -> list[Box]:
        """Write words in a line that starts at `at`, closer than `gap` if they need it.

        Args:
            roles: dict from a position to the role that colours it.
            lit: the positions in bold.
        """
        texts, boxes = [visible(word) for word in words], []
        widths = [max(text_width(text, NAME, "bold"), 0.1) for text in texts]
        free = self.width - 0.1 - at[0] - sum(widths)
        gap, x = min(gap, free / max(1, len(texts) - 1)), at[0]
        expect(gap > 0.04, "words", f"a line of {self.width} inches", " ".join(texts))
        for i, (text, width) in enumerate(zip(texts, widths)):
            box = Box(x, at[1] - 0.1, width, 0.2, text)
            color = INK[roles[i]] if roles and i in roles else "black"
            weight = "bold" if i in lit or roles and i in roles else "normal"
            self._write(*box.middle, text, NAME, color=color, weight=weight)
            boxes.append(box)
            x += width + gap
        self._tell(f"Words: {' '.join(texts)}")
        return boxes

    def block(self, at: tuple, text: str, kind="op", *, size=None, lit=False) -> Box:
        """Draw a box that something is done in, its upper left corner at `at`.

        Args:
            kind: "op", "learned" (a matrix, grey) or "part" (a part of a model, dashed
                edge, to be opened elsewhere).
            size: `(width, height)` in inches, if not as wide as its text.
        """
        kinds = {"op": "white", "learned": LEARNED, "part": "white"}
        expect(kind in kinds, "kind", f"one of {', '.join(kinds)}", kind)
        lines = text.count("\n") + 1
        width, height = size or (text_width(text, NAME) + 0.24, 0.2 + 0.17 * lines)
        box = Box(*at, width, height, text.replace("\n", " "))
        style = {"facecolor": kinds[kind], "edgecolor": INK[None]}
        style |= {"linewidth": 2 if lit else 1.1}
        style |= {"linestyle": "--" if kind == "part" else "-"}
        self._add_box(box, 0.07, **style)
        style = {"va": "center", "linespacing": 1.2, "weight": "bold" if lit else None}
        self._write(*box.middle, text, NAME, **style)
        self._tell(f"Box: {box.name}")
        return box

    @in_course_style
    def wire(
        self,
        start,
        end,
        role: str | None = None,
        *,
        weight: float | None = None,
        via=(),
        bend: float = 0,
        text: str = "",
        head: bool = True,
        dashed: bool = False,
    ) -> None:
        """Draw an arrow along which data flows, in the ink of what flows.

        Args:
            start, end: boxes or points; of boxes the sides that face each other.
            weight: from 0 to 1, gives the width; below 0.05 nothing is drawn.
            via: the points between, for right angles.
            bend: how many inches the middle of an arrow hangs below its ends.
            text: on the middle of the longest part.
            head: False for a line without its head.
        """
        expect(role in INK, "role", f"one of {', '.join(filter(None, INK))}", role)
        if weight is not None and weight < THINNEST:
            return
        names = [getattr(end_, "name", "") for end_ in (start, end)]
        points = [*_facing(start, end, via, bend)]
        path, middle = Path(points), _middle_of_longest(points)
        if bend:
            (x0, y0), (x1, y1) = points
            middle = (x0 + x1) / 2, (y0 + y1) / 2 + bend
            control = middle[0], middle[1] + bend
            path = Path([points[0], control, points[1]], [1, 3, 3])
        width = 1.3 if weight is None else 0.6 + 5 * weight
        style = {"color": INK[role], "linewidth": width, "joinstyle": "miter"}
        style |= {"linestyle": "--" if dashed else "-", "fill": None}
        style |= {"mutation_scale": 9 + 1.5 * width, "capstyle": "butt"}
        arrow = FancyArrowPatch(path=path, arrowstyle="-|>" if head else "-", **style)
        arrow.set_fill(head)
        self._add(arrow)
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        if text:
            self._write(*middle, text, color=INK[role], bbox=paper)
        if all(names):
            self._tell(" → ".join(names) + (f" ({role})" if role in ROLES else ""))

    def sign(self, at: tuple, text: str, role: str | None = None) -> Box:
        """Draw +, ×, = or an operation such as "softmax" or "÷ √2", its middle at `at`.

        A + or × is in a circle and an operation in a pill; =, @ and → have no edge.
        """
        is_round = len(text) == 1
        half = 0.12 if is_round else text_width(text) / 2 + 0.1
        box = Box(at[0] - half, at[1] - 0.12, 2 * half, 0.24, text)
        style = {"facecolor": "white", "edgecolor": INK[role], "linewidth": 1.2}
        if text not in FREE_SIGNS and is_round:
            self._add_circle(at, half, zorder=5, **style)
        elif text not in FREE_SIGNS:
            self._add_box(box, 0.12, zorder=5, **style)
        size = TITLE if is_round else LABEL
        self._write(*box.middle, text, size, color=INK[role])
        self._tell(text)
        return box

    def shelf(self, boxes, text: str = "", kind: str = "cached") -> Box:
        """Lay a coloured ground below boxes: what is cached, or whose it is.

        Args:
            kind: "cached", "process", "memory" or "head"; also the text, by default.
        """
        expect(kind in SHELVES, "kind", f"one of {', '.join(SHELVES)}", kind)
        left, top = (min(getattr(box, side) for box in boxes) for side in "xy")
        right = max(box.x + box.width for box in boxes)
        bottom = max(box.y + box.height for box in boxes)
        box = Box(left - 0.1, top - 0.3, right - left + 0.2, bottom - top + 0.4)
        self._add_box(box, facecolor=SHELVES[kind], edgecolor="none", zorder=0.5)
        style = {"color": "#444444", "weight": "bold", "ha": "left"}
        self._write(box.x + 0.08, box.y + 0.14, text or kind, **style)
        self._tell(f"Shelf: {text or kind}")
        return replace(box, name=text or kind)

    def step(self, at: tuple, number: int) -> None:
        """Draw a black disc with the number of a step, which the text explains."""
        self._add_circle(at, 0.11, facecolor="black", zorder=6)
        style = {"color": "white", "weight": "bold", "zorder": 7}
        self._write(*at, str(number), SMALLEST, **style)
        self._tell(f"Step {number}")

    def note(self, at: tuple, text: str, role=None, *, align="left", bold=False):
        """Write a label or a remark; `at` is the middle of its left side."""
        style = {"ha": align, "va": "center", "linespacing": 1.3}
        style |= {"weight": "bold"} if bold else {}
        color = INK[role] if role else "#333333"
        self._write(*at, text, NAME if bold else LABEL, color=color, **style)
        self._tell(text.replace("\n", " "))

    @in_course_style
    def dial(
        self, at: tuple, angles, name: str = "", *, radius=0.6, labels=None, seen=0
    ) -> Box:
        """Draw a clock: a hand for each angle, from twelve o'clock clockwise.

        Args:
            at: the middle.
            angles: in radians, one a hand.
            labels: one a hand; 0, 1, 2 … by default, where there is room.
            seen: the angle in radians up to which the clock is shaded.
        """
        x, y = at
        angles = to_array(angles, "angles", 1)
        labels = range(len(angles)) if labels is None else labels
        names = to_names(labels, len(angles), "labels")
        self._add_circle(at, radius, facecolor="white", edgecolor=GREY)
        if seen:  # y grows downwards, so angles run clockwise
            sector = -90, math.degrees(min(float(seen), 2 * math.pi)) - 90
            self._add(Wedge(at, radius, *sector, facecolor=WEIGHTS(0.2)))
        written = []
        for angle, label in zip(angles, names):
            ahead = np.array([math.sin(angle), -math.cos(angle)])
            tip, place = at + radius * ahead, at + (radius + 0.12) * ahead
            self._add_line((at, tip), color=INK["weight"], linewidth=1.2)
            if all(np.linalg.norm(place - other) > 0.17 for other in written):
                written.append(place)
                self._write(*place, label, SMALLEST, va="center")
        self._write(x, y - radius - 0.32, name, NAME, weight="bold")
        self._tell(f"Clock {name} with {len(angles)} hands")
        return Box(x - radius, y - radius, 2 * radius, 2 * radius, name)

    @in_course_style
    def plane(
        self,
        at: tuple,
        vectors,
        names,
        *,
        roles=None,
        reach: float = 1,
        radius: float = 0.8,
        angle: bool = False,
        drop: bool = False,
    ) -> Box:
        """Draw vectors of two numbers as arrows from one point.

        Args:
            at: that point.
            vectors, names, roles: `(N, 2)`, and N of each.
            reach: the length that is `radius` inches long.
            angle: mark by how many degrees the first is ahead of the second.
            drop: let a dashed line fall from each tip to the line of the first, with
                the product of the two at its foot.
        """
        vectors = to_array(vectors, "vectors", 2)
        names = to_names(names, len(vectors), "names")
        roles = [None] * len(names) if roles is None else roles
        (x, y), unit = at, radius / reach
        for axis in (
            [(x - radius, y), (x + radius, y)],
            [(x, y - radius), (x, y + radius)],
        ):
            self._add_line(axis, color=PALE, linewidth=0.8, zorder=0.8)
        for vector, label, role in zip(vectors, names, roles):
            tip = at + unit * vector * (1, -1)
            self.wire(at, tuple(tip), role)
            beyond = tip - at
            place = tip + 0.14 * beyond / max(np.linalg.norm(beyond), 1e-9)
            self._write(*place, label, color=INK[role], weight="bold", va="center")
            if drop:
                along = vector @ vectors[0] / (vectors[0] @ vectors[0])
                foot = at + unit * along * vectors[0] * (1, -1)
                style = {"linestyle": "--", "linewidth": 0.9, "zorder": 0.8}
                self._add_line([tip, foot], color=GREY, **style)
                product = format_number(vector @ vectors[0], 3)
                self._write(foot[0], foot[1] + 0.15, product, color=INK["score"])
        if angle:
            self._mark_angle(at, *vectors[:2])
        self._tell(f"Arrows: {', '.join(names)}")
        return Box(x - radius, y - radius, 2 * radius, 2 * radius)

    def _mark_angle(self, at, first, second):
        start, ahead = (math.atan2(v[1], v[0]) for v in (second, first))
        between = (ahead - start) % (2 * math.pi)
        turn = math.degrees(-start - between), math.degrees(-start)
        self._add(Arc(at, 0.5, 0.5, theta1=turn[0], theta2=turn[1], color=GREY))
        middle = start + between / 2
        place = at[0] + 0.45 * math.cos(middle), at[1] - 0.4 * math.sin(middle)
        self._write(*place, f"{math.degrees(between):.0f}°", va="center")

    # --- the whole ------------------------------------------------------------

    def _tell(self, sentence):
        if sentence:
            self.sentences.append(end_sentence(drawable(sentence)))

    @in_course_style
    def publish(self, title: str) -> None:
        """Show the picture below its title, which states the finding."""
        alt = " ".join([f"Picture: {end_sentence(title)}", *self.sentences])
        publish(self.figure, title, alt)


def row(*parts, title: str) -> None:
    """Draw grids side by side, with signs between them, and publish them.

    Args:
        parts: dicts with the arguments of `Picture.grid` (all but `at`), and texts
            such as "×", "=" or "softmax" that become signs.

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
    sizes = [[_room(part) for part in line] for line in lines]
    heights = [
        [max(size[side] for size in line) for side in ("above", "height", "below")]
        for line in sizes
    ]
    picture, y = Picture(sum(map(sum, heights)) + 0.1 * len(lines)), 0.0
    for line, line_sizes, (above, height, below) in zip(lines, sizes, heights):
        needed = sum(size["before"] + size["width"] for size in line_sizes)
        free = WIDTH - 0.2 - needed
        gap = min(0.3, free / max(1, len(line) - 1))
        expect(gap >= 0, "parts", f"at most {WIDTH - 0.2} inches", f"{needed:.2f}")
        x, y = 0.1, y + above + 0.05
        for part, size in zip(line, line_sizes):
            x += size["before"]
            if isinstance(part, str):
                picture.sign((x + size["width"] / 2, y + height / 2), part)
            else:
                picture.grid((x, y + (height - size["height"]) / 2), **part)
            x += size["width"] + gap
        y += height + below + 0.05
    picture.publish(title)


def frames(draw, states: dict, *, height: float, title: str) -> None:
    """Draw one state after the other, side by side in frames of one width.

    Args:
        draw: called as `draw(picture, left, state)` for each state; `left` is where
            its frame begins. A state has `6.9 / len(states)` inches.
        states: dict from the name above a frame to its state.
        height: in inches, without the title.

    >>> def tokens(picture, left, count):
    ...     picture.grid((left + 0.2, 0.6), [range(count)], "key")
    >>> frames(tokens, {"prefill": 2, "decode": 3}, height=1, title="A key a token")
    Picture: A key a token. prefill. key: 0 1. decode. key: 0 1 2.
    """
    picture, width = Picture(height), WIDTH / len(states)
    for i, (name, state) in enumerate(states.items()):
        place = (i + 0.5) * width, 0.12
        picture.note(place, name, align="center", bold=True)
        draw(picture, i * width, state)
    picture.publish(title)


# --- insides ----------------------------------------------------------------------


def _cell_texts(values):
    """Return the numbers of a grid, or None for texts, and what its cells show."""
    lines = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    if not all(isinstance(line, (list, tuple, range)) for line in lines):
        lines = [lines]
    widths = {len(line) for line in lines}
    fits = len(widths) == 1 and not isinstance(lines[0][0], list)
    expect(fits, "values", "one or two axes", f"rows of {sorted(widths)}")
    texts = np.empty((len(lines), *widths), object)
    if any(isinstance(v, (str, bytes)) for line in lines for v in line):
        texts[:] = [[visible(v) if v != "" else "" for v in line] for line in lines]
        return None, texts
    numbers = np.array(lines, float)
    digits = num_digits(numbers)
    texts[:] = [
        ["" if v != v else format_number(v, digits) for v in n] for n in numbers
    ]
    return numbers, texts


def _cell_width(texts):
    return max(CELL, max(text_width(text) for text in texts.flat) + 0.12)


def _owner_of_cells(owner, shape):
    owners = to_array(owner, "owner").astype(int)
    owners = owners[:, None].repeat(shape[1], 1) if owners.ndim == 1 else owners
    expect(owners.shape == shape, "owner", f"shape {shape}", owners.shape)
    return owners


def _grid_sentence(name, texts, shown, rows, shape):
    """Return what the alternative text gives of a grid: all of it, if it is small."""
    told = [name] if name else []
    if texts.size <= MOST_TOLD:
        cells = np.where(shown, texts, "hidden")
        lines = [" ".join(filter(None, line)) for line in cells]
        if rows:
            lines = [f"{visible(r)} {line}".strip() for r, line in zip(rows, lines)]
        told += [" / ".join(lines)] if any(lines) else []
    elif rows:
        told.append("rows " + ", ".join(map(visible, rows)))
    shape = shape.replace("\n", " = ")
    return ": ".join(told) + (f", shape {shape}" if shape and told else shape)


def _room(part):
    """Return the inches that a part of a row needs around and between its cells."""
    if isinstance(part, str):
        width = 0.26 if len(part) == 1 else text_width(part) + 0.2
        return {"above": 0, "height": 0.26, "below": 0, "before": 0, "width": width}
    _, texts = _cell_texts(part["values"])
    labels = max((text_width(visible(r)) for r in part.get("rows") or ()), default=0)
    cells = texts.shape[1] * (part.get("cell") or _cell_width(texts))
    name = text_width(part.get("name", ""), NAME, "bold")
    lines = part.get("shape", "").split("\n")
    shape = max(map(len, lines)) * MONO
    columns = bool(part.get("columns"))
    over = max(0, name - cells, shape - cells) / 2
    return {
        "above": 0.22 * columns + 0.26 * bool(name),
        "height": len(texts) * LINE,
        "below": 0.08 + 0.17 * len(lines) if shape else 0,
        "before": max(over, labels + 0.1 if labels else 0),
        "width": cells + over,
    }


def _facing(start, end, via, bend):
    """Return the points of a wire; of a box the side that faces the next point."""
    ends = [start, *via, end]
    points = [p.middle if isinstance(p, Box) else p for p in ends]
    for i, neighbour in ((0, 1), (-1, -2)):
        box = ends[i]
        if isinstance(box, Box):
            (x, y), other = points[i], points[neighbour]
            dx, dy = other[0] - x, other[1] - y
            if bend:
                points[i] = box.bottom if bend > 0 else box.top
            elif abs(dx) * box.height > abs(dy) * box.width:
                points[i] = box.right if dx > 0 else box.left
            else:
                points[i] = box.bottom if dy > 0 else box.top
    return points


def _middle_of_longest(points):
    (x0, y0), (x1, y1) = max(zip(points, points[1:]), key=lambda ends: math.dist(*ends))
    return (x0 + x1) / 2, (y0 + y1) / 2
