"""The drawing primitives: grids, words, wires, and the other marks of a diagram.

A place `at` is `(x, y)` in inches from the upper left corner below the title, y grows
downwards. Every mark returns a `Box`, whose sides are the ends of wires.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Arc, Circle, FancyArrowPatch, FancyBboxPatch, Wedge
from matplotlib.path import Path

from utils.plots import theme
from utils.plots.publishing import (
    drawable,
    end_sentence,
    expect,
    expect_one_of,
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
FREE_SIGNS = "=→←@ "
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

    Args:
        height: in inches, without the title; the width is 6.9.

    >>> picture = Picture(1.0)
    >>> hello, sun = picture.sentence((0.2, 0.3), ["Hello", "sun"], lit=[1])
    >>> _ = picture.wire(sun, hello, "weight", weight=0.8, bend=0.3)
    >>> picture.publish("sun looks at Hello")
    Picture: sun looks at Hello. Words: Hello sun. sun → Hello.
    """

    @in_course_style
    def __init__(self, height: float):
        self.figure = new_figure(height)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        self.axes.axis("off")
        self.sentences = []  # of the alternative text

    # --- marks ----------------------------------------------------------------

    @in_course_style
    def _write(self, x, y, text, size=LABEL, color="black", **style):
        style = {"ha": "center", "va": "center_baseline", "zorder": 6} | style
        self.axes.text(x, y, text, fontsize=size, color=color, **style)

    @in_course_style
    def _add(self, kind, *args, **style):
        artist = kind(*args, **style)
        artist.set_clip_on(False)  # so that `publish` notices what lies outside
        self.axes.add_artist(artist)

    def _add_box(self, box, rounding=0, gap=0, **style):
        size = box.width + 2 * gap, box.height + 2 * gap
        shape = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
        corner = box.x - gap, box.y - gap
        self._add(FancyBboxPatch, corner, *size, boxstyle=shape, **style)

    def _add_line(self, start, end, **style):
        self._add(Line2D, *zip(start, end), **style)

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
            ValueError: for an unknown role, or sizes that don't agree.
        """
        expect_one_of(INK, "role", role)
        numbers, texts = _cell_texts(values)
        shown, ink = to_mask(mask, texts.shape), INK[role]
        owners = None if owner is None else _owner_of_cells(owner, texts.shape)
        width = cell or _cell_width(texts)
        box = Box(*at, texts.shape[1] * width, len(texts) * LINE, name, *texts.shape)
        for (i, j), text in np.ndenumerate(texts):
            place, fill = box.cell(i, j), theme.FILL[role]
            if not shown[i, j]:
                fill, text = theme.HIDDEN, ""
            elif owners is not None:
                fill = theme.OWNERS[owners[i, j]] if owners[i, j] >= 0 else "white"
            elif role == "weight" and numbers is not None:
                fill = theme.WEIGHTS(float(np.clip(numbers[i, j], 0, 1)))
            style = {"facecolor": fill, "hatch": None if shown[i, j] else "/////"}
            style["edgecolor"] = ink if owners is None else "white"
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
        self._add_sentence(_grid_sentence(name or role, texts, shown, rows, shape))
        return replace(box, name=name or role or "")

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
            box = Box(x, at[1] - 0.1, width, 0.2, text)
            color = INK[roles[i]] if i in roles else "black"
            weight = "bold" if i in lit or i in roles else "normal"
            self._write(*box.middle, text, NAME, color=color, weight=weight)
            boxes.append(box)
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
        expect_one_of(kinds, "kind", kind)
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
        expect_one_of(INK, "role", role)
        if weight is not None and weight < THINNEST:
            return
        points = _facing(start, end, via, bend)
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
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        if text:
            self._write(x, y + bend, text, color=INK[role], bbox=paper)
        names = [getattr(mark, "name", "") for mark in (start, end)]
        if all(names):
            has_role = role in ("query", "key", "value")
            self._add_sentence(" → ".join(names) + (f" ({role})" if has_role else ""))

    def sign(self, at: tuple, text: str, role: str | None = None) -> Box:
        """Draw +, ×, = or an operation such as "softmax" or "÷ √2", its middle at `at`.

        A + or × is in a circle and an operation in a pill; = and @ have no edge, a → is
        an arrow, below the text before it, and a space leaves a gap.
        """
        if text.endswith("→"):
            return self._draw_arrow(at, text)
        is_round = len(text) == 1
        half = 0.12 if is_round else text_width(text) / 2 + 0.1
        box = Box(at[0] - half, at[1] - 0.12, 2 * half, 0.24, text)
        style = {"facecolor": "white", "edgecolor": INK[role], "linewidth": 1.2}
        if is_round and text not in FREE_SIGNS:
            self._add(Circle, at, half, zorder=5, **style)
        elif not is_round:
            self._add_box(box, 0.12, zorder=5, **style)
        size = theme.TITLE if is_round else LABEL
        self._write(*box.middle, text, size, color=INK[role])
        self._add_sentence(text)
        return box

    def _draw_arrow(self, at, text):
        above = text[:-1].strip()
        half = max(text_width(above) / 2, 0.2) if above else 0.18
        box = Box(at[0] - half, at[1] - 0.12, 2 * half, 0.24)
        self.wire(box.left, box.right)
        self._write(at[0], at[1] - 0.13, above, color=INK[None])
        self._add_sentence(text)
        return box

    def shelf(self, boxes, text: str = "", kind: str = "cached") -> Box:
        """Lay a coloured ground below boxes: what is cached, or whose it is.

        Args:
            kind: "cached", "process" or "memory"; also the text, by default.
        """
        expect_one_of(theme.SHELVES, "kind", kind)
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

    def dial(
        self,
        at: tuple,
        angles,
        name: str = "",
        *,
        radius=0.6,
        labels=None,
        shaded=0,
        roles=None,
    ) -> Box:
        """Draw a clock: a hand for each angle, from twelve o'clock clockwise.

        Args:
            at: the middle.
            angles: in radians, one a hand.
            labels: one a hand; 0, 1, 2 … by default, where there is room.
            shaded: the angle in radians up to which the clock is shaded.
            roles: one a hand; of two hands at one place, both show.
        """
        angles = to_array(angles, "angles", 1)
        labels = range(len(angles)) if labels is None else labels
        names = to_names(labels, len(angles), "labels")
        self._add(Circle, at, radius, facecolor="white", edgecolor=theme.GREY)
        if shaded:  # y grows downwards, so angles run clockwise
            end = math.degrees(min(float(shaded), 2 * math.pi)) - 90
            self._add(Wedge, at, radius, -90, end, facecolor=theme.WEIGHTS(0.2))
        written, roles = [], list(roles or ())
        if roles and len(set(angles.tolist())) == 1:
            names[0] = " = ".join(names)
        for i, (angle, label) in enumerate(zip(angles, names)):
            ahead = np.array([math.sin(angle), -math.cos(angle)])
            place = at + (radius + 0.12) * ahead
            style = {"color": INK["weight"], "linewidth": 1.2}
            if roles:  # each is thinner than the one below it
                style = {"color": INK[roles[i]], "linewidth": 3.6 / (i + 1)}
            self._add_line(at, at + radius * ahead, **style)
            if all(math.dist(place, other) > 0.17 for other in written):
                written.append(place)
                self._write(*place, label, theme.SMALLEST, va="center")
        self._write(at[0], at[1] - radius - 0.32, name, NAME, weight="bold")
        self._add_sentence(f"Clock {name} with {len(angles)} hands")
        return Box(at[0] - radius, at[1] - radius, 2 * radius, 2 * radius, name)

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
        first, unit = vectors[0], np.array([1, -1]) * radius / reach
        box = Box(at[0] - radius, at[1] - radius, 2 * radius, 2 * radius)
        for axis in ((box.left, box.right), (box.top, box.bottom)):
            self._add_line(*axis, color=theme.PALE, linewidth=0.8, zorder=0.8)
        for vector, label, role in zip(vectors, names, roles or [None] * len(names)):
            tip = at + unit * vector
            self.wire(at, tuple(tip), role)
            place = tip + 0.14 * (tip - at) / max(math.dist(tip, at), 1e-9)
            self._write(*place, label, color=INK[role], weight="bold", va="center")
            if drop:
                foot = at + unit * first * (vector @ first) / (first @ first)
                style = {"linestyle": "--", "linewidth": 0.9, "zorder": 0.8}
                self._add_line(tip, foot, color=theme.GREY, **style)
                product = format_number(vector @ first, 3)
                self._write(foot[0], foot[1] + 0.15, product, color=INK["score"])
        if angle:
            self._mark_angle(at, first, vectors[1])
        self._add_sentence(f"Arrows: {', '.join(names)}")
        return box

    def _mark_angle(self, at, first, second):
        start, ahead = (math.atan2(v[1], v[0]) for v in (second, first))
        between = (ahead - start) % (2 * math.pi)
        turn = math.degrees(-start - between), math.degrees(-start)
        self._add(Arc, at, 0.5, 0.5, theta1=turn[0], theta2=turn[1], color=theme.GREY)
        middle = start + between / 2
        place = at[0] + 0.45 * math.cos(middle), at[1] - 0.4 * math.sin(middle)
        self._write(*place, f"{math.degrees(between):.0f}°", va="center")

    @in_course_style
    def publish(self, title: str) -> None:
        """Show the picture below its title, which states the finding."""
        alt = " ".join([f"Picture: {end_sentence(title)}", *self.sentences])
        publish(self.figure, title, alt)


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
    sizes = [[_room(part) for part in line] for line in lines]
    for parts, rooms in zip(zip(*lines), zip(*sizes)):
        if all(isinstance(part, str) for part in parts):  # what follows is aligned
            widest = max(room["width"] for room in rooms)
            for room in rooms:
                room["width"] = widest
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
            x, top = x + size["before"], y + (height - size["height"]) / 2
            if isinstance(part, str):
                picture.sign((x + size["width"] / 2, y + height / 2), part)
            elif isinstance(part, tuple):
                picture.grid(
                    (x, top - size["above"] + _room(part[0])["above"]), **part[0]
                )
                picture.grid((x, top), **part[1])
            else:
                picture.grid((x, top), **part)
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
        picture.note(((i + 0.5) * width, 0.12), name, align="center", bold=True)
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
    texts, numbers = np.empty((len(lines), *widths), object), None
    if any(isinstance(v, (str, bytes)) for line in lines for v in line):
        texts[:] = [[visible(v) if v != "" else "" for v in line] for line in lines]
    else:
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
    parts = [name] if name else []
    if texts.size <= MAX_DESCRIBED:
        cells = np.where(shown, texts, "hidden")
        lines = [" ".join(filter(None, line)) for line in cells]
        if rows:
            lines = [f"{visible(r)} {line}".strip() for r, line in zip(rows, lines)]
        parts += [" / ".join(lines)] if any(lines) else []
    elif rows:
        parts.append("rows " + ", ".join(map(visible, rows)))
    shape = shape.replace("\n", " = ")
    return ": ".join(parts) + (f", shape {shape}" if shape and parts else shape)


def _room(part):
    """Return the inches that a part of a row needs around and between its cells."""
    if isinstance(part, str):
        width = 0.26 if len(part) == 1 else text_width(part) + 0.2
        width = 0.4 if part == "→" else width
        return {"above": 0, "height": 0.26, "below": 0, "before": 0, "width": width}
    if isinstance(part, tuple):
        factor, product = map(_room, part)
        room = {side: max(factor[side], product[side]) for side in factor}
        above = factor["above"] + factor["height"] + 0.1 + product["above"]
        return room | {"above": above, "height": product["height"]}
    _, texts = _cell_texts(part["values"])
    labels = max((text_width(visible(r)) for r in part.get("rows") or ()), default=0)
    cells = texts.shape[1] * (part.get("cell") or _cell_width(texts))
    name = text_width(part.get("name", ""), NAME, "bold")
    lines = part.get("shape", "").split("\n")
    shape = max(map(len, lines)) * MONO
    over = max(0, name - cells, shape - cells) / 2
    return {
        "above": 0.22 * bool(part.get("columns")) + 0.26 * bool(name),
        "height": len(texts) * LINE,
        "below": 0.08 + 0.17 * len(lines) if shape else 0,
        "before": max(over, labels + 0.1 if labels else 0),
        "width": cells + over,
    }


def _facing(start, end, via, bend):
    """Return the points of a wire; of a box the side that faces the next point."""
    ends = [start, *via, end]
    points = [mark.middle if isinstance(mark, Box) else mark for mark in ends]
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
