"""The scheme that carries the course: the way of a text to its next token.

What no notebook has explained yet lies ahead, as an outline with a name. A notebook
lights its own part: with its content at its end, as a question at its start.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from utils.plots import example
from utils.plots.old_publishing import (
    BLOCKED,
    BLUE,
    EDGE,
    GREY,
    TINTS,
    WEIGHTS,
    WIDE,
    _canvas,
    _describe,
    _expect,
    _ink,
    _number,
    _publish,
    _styled,
    _tint,
    _visible,
)


class Station(NamedTuple):
    name: str
    row: int
    width: float  # in inches
    filled: int  # the notebook at whose end it has its content; -1: from the start
    explained: tuple  # the notebooks that stand beside it


STATIONS = {
    "text": Station("text", 0, 1.12, -1, ("01", "11")),
    "tokens": Station("tokens", 0, 1.22, 1, ("01",)),
    "embeddings": Station("embeddings", 0, 1.06, 2, ("02",)),
    "positions": Station("positions", 0, 1.06, 2, ("02", "07")),
    "inputs": Station("inputs x", 0, 1.06, 2, ("02",)),
    "roles": Station("queries, keys, values", 1, 2.6, 4, ("04", "08")),
    "scores": Station("scores", 1, 1.14, 3, ("03", "04", "10")),
    "mask": Station("mask", 1, 0.76, 5, ("05",)),
    "weights": Station("weights", 1, 0.98, 3, ("03", "05", "10")),
    "context": Station("context", 1, 0.98, 3, ("03",)),
    "heads": Station("heads", 2, 2.98, 6, ("06",)),
    "block": Station("block", 2, 1.46, 9, ("09",)),
    "gpt": Station("GPT", 2, 0.98, 9, ("09",)),
    "next": Station("next token", 2, 1.1, 9, ("09",)),
}
LIT = {  # the stations that each notebook is about
    "00": ("text",),
    "01": ("text", "tokens"),
    "02": ("embeddings", "positions", "inputs"),
    "03": ("scores", "weights", "context"),
    "04": ("roles", "scores"),
    "05": ("mask", "weights"),
    "06": ("heads",),
    "07": ("positions", "roles", "scores"),
    "08": ("roles",),
    "09": ("block", "gpt", "next"),
    "10": ("scores", "weights"),
    "11": ("text",),
    "12": ("roles", "scores", "mask", "weights", "context", "heads"),
    "13": tuple(STATIONS),
    "14": ("roles", "scores"),
    "15": ("scores", "weights", "context"),
}
FEET = {  # what a station does, in a word, from the end of a notebook on
    "tokens": {1: "one id for each"},
    "embeddings": {2: "from the table"},
    "positions": {2: "of places 0, 1, 2", 7: "added here", 8: "of places 0, 1, 2"},
    "inputs": {2: "their sum"},
    "scores": {
        3: "x · xᵀ",
        4: "q · kᵀ / √2",
        7: "or + a bias",
        8: "q · kᵀ / √2",
        10: "T × T numbers",
        11: "q · kᵀ / √2",
    },
    "weights": {3: "softmax", 10: "T × T numbers", 11: "softmax"},
    "context": {3: "weights · x", 4: "weights · v"},
    "gpt": {9: "GPT-2: N = 12"},
    "next": {9: "probabilities"},
}
SIGNS = {"positions": "+", "inputs": "="}  # before a station, instead of an arrow
BOX, PITCH, MARGIN = 0.95, 1.42, 0.17  # inches: a frame's height, a row's, the edges
CELL, SIGNED_CELL, LINE = 0.28, 0.33, 0.2  # two widths of a cell, and its height
SMALL = 7  # points
DARK, PALE = "#444444", EDGE


class _Box(NamedTuple):
    """A station on its place: the corner of its frame, and its state."""

    key: str
    x: float
    y: float
    lit: bool
    known: bool  # it has its content
    asks: bool  # it is what the notebook is about to explain
    foot: str

    @property
    def station(self):
        return STATIONS[self.key]

    @property
    def width(self):
        return self.station.width

    @property
    def middle(self):
        return self.x + self.width / 2

    @property
    def top(self):  # of the content
        return self.y + BOX - 0.08

    @property
    def ahead(self):
        return not (self.lit or self.known)


@_styled
def scheme(notebook, *, title, filled=False, alt=None):
    """Draw the way from a text to its next token, with one notebook's part lit.

    Args:
        notebook: its number as a string, "00" to "15".
        filled: False at the start of the notebook, where its part is a question; True
            at its end, where the part has its content.

    Raises:
        ValueError: for an unknown notebook.

    >>> scheme("00", title="The way")  # doctest: +ELLIPSIS
    Scheme of the course: The way. Stations: text; tokens; ... Lit: text. Ahead: ...
    """
    _expect(notebook in LIT, "notebook", f"one of {', '.join(LIT)}", repr(notebook))
    done = int(notebook) - (not filled)
    boxes = _boxes(notebook, filled, done)
    content = example.steps(done, other_text=filled and notebook == "08")
    fig, ax = _canvas(WIDE, 3 * PITCH)
    _draw_ways(ax, boxes)
    for box in boxes:
        _draw_frame(ax, box, notebook)
        if box.known:
            DRAW.get(box.key, _draw_matrix)(ax, box, content)
        _label(ax, box, box.middle, box.foot)
        if box.asks:
            at = box.x + box.width - 0.02, box.y + BOX - 0.02
            ax.add_patch(Circle(at, 0.095, facecolor=BLUE, edgecolor="white"))
            _write(ax, *at, "?", 9, color="white", fontweight="bold")
    _publish(fig, title, alt or _in_words(title, boxes))


def _boxes(notebook, filled, done):
    """Return the stations from left to right, row by row, each in its state."""
    boxes = []
    for row in range(3):
        stations = {k: s for k, s in STATIONS.items() if s.row == row}
        free = WIDE - 2 * MARGIN - sum(s.width for s in stations.values())
        x, y = MARGIN, (3 - row) * PITCH - 0.2 - BOX
        for key, station in stations.items():
            lit, known = key in LIT[notebook], done >= station.filled
            asks = lit and not (known or filled)
            feet = [text for n, text in FEET.get(key, {}).items() if n <= done]
            boxes.append(_Box(key, x, y, lit, known, asks, feet[-1] if feet else ""))
            x += station.width + free / (len(stations) - 1)
    return boxes


def _in_words(title, boxes):
    def those(which):
        return "; ".join(box.station.name for box in boxes if which(box))

    return _describe(
        "Scheme of the course",
        title,
        Stations=those(lambda box: True),
        Filled_in=those(lambda box: box.known),
        Lit=those(lambda box: box.lit),
        In_question=those(lambda box: box.asks),
        Ahead=those(lambda box: box.ahead),
    )


# --- the way ----------------------------------------------------------------------


def _draw_ways(ax, boxes):
    """Draw the arrows between stations, dark as far as the course has come."""
    reached = max(i for i, box in enumerate(boxes) if not box.ahead)
    for i, (box, after) in enumerate(zip(boxes, boxes[1:])):
        color, y = DARK if i < reached else PALE, box.y + BOX / 2
        start, end = (box.x + box.width, y), (after.x, after.y + BOX / 2)
        if after.x < box.x:  # from the end of a row to the start of the next
            right, left, low = start[0] + 0.09, end[0] - 0.12, y - BOX / 2 - 0.17
            _line(
                ax,
                (start[0], right, right, left, left),
                (y, y, low, low, end[1]),
                color,
            )
            _arrow(ax, (left, end[1]), end, color)
        elif after.key in SIGNS:
            _write(ax, (start[0] + end[0]) / 2, y, SIGNS[after.key], 12, color=color)
        else:
            _arrow(ax, start, end, color)
        if box.ahead and i < reached:  # passed unchanged
            _line(ax, (box.x, start[0]), (y, y), DARK)


def _line(ax, x, y, color, linewidth=1.2):
    ax.plot(x, y, color=color, linewidth=linewidth)


def _arrow(ax, start, end, color):
    head = {"arrowstyle": "-|>", "mutation_scale": 8, "shrinkA": 0, "shrinkB": 0.5}
    ax.add_patch(FancyArrowPatch(start, end, color=color, linewidth=1.2, **head))


def _draw_frame(ax, box, notebook):
    """Draw a station's frame with its name and the notebooks that explain it."""
    color, fill, thick = DARK, "white", 1.0
    if box.lit:
        color, fill, thick = BLUE, _tint(BLUE, 0.13), 2.2
    elif box.ahead:
        color, thick = PALE, 0.8
    style = {"facecolor": fill, "edgecolor": color, "linewidth": thick}
    _rounded(ax, box.x, box.y, box.width, BOX, 0.04, **style)
    ax.text(
        box.x + 0.01,
        box.y + BOX + 0.045,
        box.station.name,
        fontsize=8.5,
        fontweight="normal" if box.ahead else "bold",
        color=BLUE if box.lit else GREY if box.ahead else "black",
    )
    x, edge = box.x + box.width - 0.07, BLUE if box.lit else PALE if box.ahead else GREY
    for number in reversed(box.station.explained):
        here = box.lit and number == notebook
        x -= 0.2
        style = {"facecolor": BLUE if here else "white", "edgecolor": edge}
        _rounded(ax, x, box.y - 0.07, 0.18, 0.14, 0.02, linewidth=0.6, **style)
        _write(ax, x + 0.09, box.y - 0.003, number, color="white" if here else GREY)


def _rounded(ax, x, y, width, height, pad, **style):
    size, shape = (width - 2 * pad, height - 2 * pad), f"round,pad={pad}"
    ax.add_patch(FancyBboxPatch((x + pad, y + pad), *size, boxstyle=shape, **style))


# --- what the stations hold -------------------------------------------------------


def _write(ax, x, y, text, size=SMALL, **style):
    style = {"ha": "center", "va": "center_baseline", **style}
    ax.text(x, y, text, fontsize=size, **style)


def _label(ax, box, x, text):
    _write(ax, x, box.y + 0.165, text, color=DARK)


def _fill(ax, x, y, width, height, color, **style):
    ax.add_patch(Rectangle((x, y), width, height, facecolor=color, **style))


def _two_decimals(value):
    return _number(round(value, 9))  # so that no processor rounds the other way


def _cells(ax, x, top, values, wide, mask=None, cmap=None, write=_two_decimals):
    """Draw a matrix with its corner at `x, top`; what the mask hides is hatched."""
    edge = {"edgecolor": "#BBBBBB", "linewidth": 0.6}
    for (i, j), value in np.ndenumerate(np.asarray(values)):
        left, bottom = x + j * wide, top - (i + 1) * LINE
        if mask is not None and not mask[i, j]:
            _fill(ax, left, bottom, wide, LINE, BLOCKED, hatch="/////", **edge)
            continue
        color = cmap(round(value, 9)) if cmap else "white"
        _fill(ax, left, bottom, wide, LINE, color, **edge)
        middle = left + wide / 2, bottom + LINE / 2
        _write(ax, *middle, write(value), color=_ink(color))


def _draw_matrix(ax, box, content):
    """Draw a station of one matrix in the middle."""
    values, style = content[box.key], {}
    if box.key == "weights":
        style = {"cmap": WEIGHTS, "mask": content["mask"]}
    wide = SIGNED_CELL if (values < 0).any() else CELL
    _cells(ax, box.middle - wide * values.shape[1] / 2, box.top, values, wide, **style)


def _draw_text(ax, box, content):
    text = (
        example.BEYOND_TEXT if box.lit and content["notebook"] == 11 else example.TEXT
    )
    _write(ax, box.middle, box.y + BOX / 2, text, 8.5, linespacing=1.4)


def _draw_tokens(ax, box, content):
    for i, (piece, number) in enumerate(zip(*example.token_ids())):
        y = box.top - (i + 1) * LINE
        _fill(ax, box.x + 0.1, y + 0.02, 0.54, LINE - 0.04, TINTS[i % 2])
        _write(ax, box.x + 0.37, y + LINE / 2, _visible(piece), 8)
        _write(ax, box.x + 0.92, y + LINE / 2, str(number), 8)


def _draw_roles(ax, box, content):
    for i, name in enumerate(example.TEXT.split()):
        _write(ax, box.x + 0.39, box.top - (i + 0.5) * LINE, name, ha="right")
    x = box.x + 0.43
    for name in ("query", "key", "value"):
        _cells(ax, x, box.top, content[name], SIGNED_CELL)
        turned = content["notebook"] == 7 and name != "value"
        _label(ax, box, x + SIGNED_CELL, "or turned" if turned else f"x·W_{name}")
        x += 2 * SIGNED_CELL + 0.07
    if len(content["key"]) < 3:  # the row that they leave free names their text
        width, y = 4 * SIGNED_CELL + 0.07, box.top - 3 * LINE
        _fill(ax, x - 0.07 - width, y, width, LINE, TINTS[1])
        middle = x - 0.07 - width / 2, y + LINE / 2
        _write(ax, *middle, f"from “{example.OTHER_TEXT}”")


def _draw_mask(ax, box, content):
    mask = content["mask"]
    x = box.middle - LINE * mask.shape[1] / 2
    _cells(ax, x, box.top, mask, LINE, mask, write=lambda allowed: "✓")
    if not mask.all():
        _label(ax, box, box.middle, "no future")


def _draw_heads(ax, box, content):
    x = box.x + 0.1
    for i, head in enumerate(content["heads"]):
        weights, mask = head["weights"], head["mask"]
        inset = (3 - weights.shape[1]) * LINE / 2
        blank = {"cmap": WEIGHTS, "write": lambda weight: ""}
        _cells(ax, x + inset, box.top, weights, LINE, mask, **blank)
        _label(ax, box, x + 1.5 * LINE, f"head {i}")
        x += 3 * LINE + 0.08
    for head in content["heads"]:
        _cells(ax, x, box.top, head["context"], SIGNED_CELL)
        x += 2 * SIGNED_CELL + 0.04
    _label(ax, box, x - 2 * SIGNED_CELL - 0.06, "side by side, then out_proj")


def _draw_block(ax, box, content):
    """Draw two sublayers: a norm, what it does, and the sum with what went in."""
    x, plus = box.x + 0.1, box.x + 1.35
    for y, name in ((box.y + 0.68, "attention"), (box.y + 0.3, "MLP")):
        around = (x, x + 0.04, x + 0.04, plus, plus)
        _line(ax, around, (y, y, y + 0.16, y + 0.16, y), DARK, 0.9)
        _arrow(ax, (x, y), (plus - 0.07, y), DARK)
        _part(ax, x + 0.12, y, 0.34, "norm")
        _part(ax, x + 0.54, y, 0.54, name)
        style = {"facecolor": "white", "edgecolor": DARK, "zorder": 3}
        ax.add_patch(Circle((plus, y), 0.065, **style))
        _write(ax, plus, y, "+", 8)


def _part(ax, x, y, width, name):
    style = {"edgecolor": DARK, "linewidth": 0.8, "zorder": 3}
    _fill(ax, x, y - 0.08, width, 0.16, "white", **style)
    _write(ax, x + width / 2, y, name)


def _draw_gpt(ax, box, content):
    top = box.top - 0.08
    _line(ax, (box.middle, box.middle), (top, top - 0.46), DARK, 0.9)
    for i, name in enumerate(("N blocks", "norm", "linear")):
        _part(ax, box.middle - 0.27, top - i * 0.23, 0.54, name)


def _draw_next(ax, box, content):
    for i, (word, share) in enumerate(zip(example.NEXT_WORDS, example.next_token())):
        y, long = box.top - 0.06 - i * 0.155, 0.36 * round(share.item(), 9)
        _write(ax, box.x + 0.44, y, word, ha="right")
        _fill(ax, box.x + 0.49, y - 0.05, long, 0.1, BLUE)
        _write(ax, box.x + 0.52 + long, y, _two_decimals(share.item()), ha="left")


DRAW = {  # the others are one matrix each
    "text": _draw_text,
    "tokens": _draw_tokens,
    "roles": _draw_roles,
    "mask": _draw_mask,
    "heads": _draw_heads,
    "block": _draw_block,
    "gpt": _draw_gpt,
    "next": _draw_next,
}
