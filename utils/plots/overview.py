"""The scheme that carries the course: the way of a text to its next token.

Each notebook shows it twice: first with its own part lit and empty, at the end with its
part filled. What no notebook has explained yet lies ahead, as an outline with a name.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from utils.plots import example
from utils.plots.publishing import (
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
CELL_EDGE = {"edgecolor": "#BBBBBB", "linewidth": 0.6}
HATCHED = {"facecolor": BLOCKED, "hatch": "/////"}


class _Box(NamedTuple):
    """A station on its place: the corner of its frame, its state and its content."""

    key: str
    x: float
    y: float
    lit: bool
    known: bool  # it has its content
    asks: bool  # it is what the notebook is about to explain
    foot: str

    @property
    def width(self):
        return STATIONS[self.key].width

    @property
    def ahead(self):
        return not (self.lit or self.known)


@_styled
def scheme(notebook, *, title, filled=False, alt=None):
    """Draw the way from a text to its next token, with one notebook's part lit.

    Args:
        notebook: its number as a string, "00" to "15".
        filled: False at the start of the notebook, where its part is a question; True
            at its end, where the part has its numbers.

    Raises:
        ValueError: for an unknown notebook.

    >>> scheme("00", title="The way")  # doctest: +ELLIPSIS
    Scheme of the course: The way. Stations: text; tokens; ... Lit: text. Ahead: ...
    """
    _expect(notebook in LIT, "notebook", f"one of {', '.join(LIT)}", repr(notebook))
    done = int(notebook) - (not filled)
    boxes = _boxes(notebook, filled, done)
    now = notebook if filled else None
    content = example.steps(done, other_text=now == "08", beyond_text=now == "11")
    content["turned"] = "or turned" if now == "07" else ""
    fig, ax = _canvas(WIDE, 3 * PITCH)
    _draw_ways(ax, boxes)
    for box in boxes:
        _draw_frame(ax, box, notebook)
        if not box.ahead:
            DRAW[box.key](ax, box, content)
        _label(ax, box, box.x + box.width / 2, box.foot)
        if box.asks:
            _ask(ax, box)
    _publish(fig, title, alt or _in_words(title, boxes))


def _boxes(notebook, filled, done):
    """Return the stations from left to right, row by row, each in its state."""
    boxes = []
    for row in range(3):
        stations = [key for key in STATIONS if STATIONS[key].row == row]
        free = WIDE - 2 * MARGIN - sum(STATIONS[key].width for key in stations)
        x = MARGIN
        for key in stations:
            lit = key in LIT[notebook]
            known = done >= STATIONS[key].filled
            asks = lit and not filled and notebook in STATIONS[key].explained
            asks = asks and (key, notebook) != ("text", "01")  # the text is given
            y = (3 - row) * PITCH - 0.2 - BOX
            boxes.append(_Box(key, x, y, lit, known, asks, _foot(key, done)))
            x += STATIONS[key].width + free / (len(stations) - 1)
    return boxes


def _foot(key, done):
    """Return the words under a station's content that hold by now."""
    told = [text for since, text in FEET.get(key, {}).items() if since <= done]
    return told[-1] if told else ""


def _in_words(title, boxes):
    def those(which):
        return "; ".join(STATIONS[box.key].name for box in boxes if which(box))

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
        color = DARK if i < reached else PALE
        y = box.y + BOX / 2
        start, end = (box.x + box.width, y), (after.x, after.y + BOX / 2)
        if after.x < box.x:
            _turn(ax, start, end, color)
        elif after.key in SIGNS:
            _write(ax, (start[0] + end[0]) / 2, y, SIGNS[after.key], 12, color=color)
        else:
            _arrow(ax, start, end, color)
        if box.ahead and i < reached:  # passed unchanged
            ax.plot((box.x, start[0]), (y, y), color=DARK, linewidth=1.2)


def _turn(ax, start, end, color):
    """Lead from the end of a row to the start of the next."""
    right, left, between = start[0] + 0.09, end[0] - 0.12, start[1] - BOX / 2 - 0.17
    ax.plot(
        (start[0], right, right, left, left),
        (start[1], start[1], between, between, end[1]),
        color=color,
        linewidth=1.2,
    )
    _arrow(ax, (left, end[1]), end, color)


def _arrow(ax, start, end, color):
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=8,
            color=color,
            linewidth=1.2,
            shrinkA=0,
            shrinkB=0.5,
        )
    )


def _draw_frame(ax, box, notebook):
    style = {"facecolor": "white", "edgecolor": DARK, "linewidth": 1.0}
    if box.lit:
        style = {"facecolor": _tint(BLUE, 0.13), "edgecolor": BLUE, "linewidth": 2.2}
    elif box.ahead:
        style = {"facecolor": "white", "edgecolor": PALE, "linewidth": 0.8}
    ax.add_patch(
        FancyBboxPatch(
            (box.x + 0.04, box.y + 0.04),
            box.width - 0.08,
            BOX - 0.08,
            boxstyle="round,pad=0.04",
            **style,
        )
    )
    ax.text(
        box.x + 0.01,
        box.y + BOX + 0.045,
        STATIONS[box.key].name,
        fontsize=8.5,
        fontweight="normal" if box.ahead else "bold",
        color=BLUE if box.lit else GREY if box.ahead else "black",
    )
    _number_notebooks(ax, box, notebook)


def _number_notebooks(ax, box, notebook):
    """Write on the frame's lower edge which notebooks explain the station."""
    x = box.x + box.width - 0.07
    for number in reversed(STATIONS[box.key].explained):
        here = box.lit and number == notebook
        x -= 0.2
        ax.add_patch(
            FancyBboxPatch(
                (x + 0.02, box.y - 0.05),
                0.14,
                0.1,
                boxstyle="round,pad=0.02",
                facecolor=BLUE if here else "white",
                linewidth=0.6,
                edgecolor=BLUE if box.lit else PALE if box.ahead else GREY,
            )
        )
        ax.text(
            x + 0.09,
            box.y - 0.003,
            number,
            ha="center",
            va="center_baseline",
            fontsize=SMALL,
            color="white" if here else GREY,
        )


def _ask(ax, box):
    """Mark a lit station as the question of the notebook."""
    at = (box.x + box.width - 0.02, box.y + BOX - 0.02)
    ax.add_patch(Circle(at, 0.095, facecolor=BLUE, edgecolor="white"))
    ax.text(
        *at,
        "?",
        color="white",
        fontweight="bold",
        fontsize=9,
        ha="center",
        va="center_baseline",
    )


# --- what the stations hold -------------------------------------------------------


def _write(ax, x, y, text, size=SMALL, **style):
    ax.text(
        x, y, text, fontsize=size, **{"ha": "center", "va": "center_baseline", **style}
    )


def _label(ax, box, x, text):
    _write(ax, x, box.y + 0.165, text, color=DARK)


def _two_decimals(value):
    return _number(round(value, 9))  # so that no processor rounds the other way


def _matrix(
    ax, x, top, values, wide=CELL, cmap=None, mask=None, known=True, write=_two_decimals
):
    """Draw a matrix with its corner at `x, top`; unless known, its cells are empty."""
    for (i, j), value in np.ndenumerate(np.asarray(values)):
        at = (x + j * wide, top - (i + 1) * LINE)
        allowed = mask is None or bool(mask[i, j])
        color = cmap(round(value, 9)) if cmap and known else "white"
        style = {"facecolor": color} if allowed or not known else HATCHED
        ax.add_patch(Rectangle(at, wide, LINE, **CELL_EDGE, **style))
        if known and allowed:
            _write(
                ax, at[0] + wide / 2, at[1] + LINE / 2, write(value), color=_ink(color)
            )


def _top(box):
    return box.y + BOX - 0.08


def _draw_one(ax, box, content, name, **style):
    """Draw a station of one matrix in the middle."""
    values = content[name]
    wide = SIGNED_CELL if (values < 0).any() else CELL
    mask = content["mask"] if name == "weights" else None
    x = box.x + (box.width - wide * values.shape[1]) / 2
    _matrix(ax, x, _top(box), values, wide, mask=mask, known=box.known, **style)


def _draw_text(ax, box, content):
    _write(
        ax,
        box.x + box.width / 2,
        box.y + BOX / 2,
        content["text"],
        8.5,
        linespacing=1.4,
    )


def _draw_tokens(ax, box, content):
    pieces, ids = example.token_ids() if box.known else [("",) * 3] * 2
    for i, (piece, number) in enumerate(zip(map(_visible, pieces), ids)):
        y = _top(box) - (i + 1) * LINE
        ax.add_patch(
            Rectangle(
                (box.x + 0.1, y + 0.02), 0.54, LINE - 0.04, facecolor=TINTS[i % 2]
            )
        )
        _write(ax, box.x + 0.37, y + LINE / 2, piece, 8)
        _write(ax, box.x + 0.92, y + LINE / 2, str(number), 8)


def _draw_roles(ax, box, content):
    for i, name in enumerate(example.TEXT.split()):
        _write(ax, box.x + 0.39, _top(box) - (i + 0.5) * LINE, name, ha="right")
    x = box.x + 0.43
    for name in ("query", "key", "value"):
        values = content[name] if box.known else np.zeros((3, 2))
        _matrix(ax, x, _top(box), values, SIGNED_CELL, known=box.known)
        if box.known:
            turned = content["turned"] if name != "value" else ""
            _label(ax, box, x + SIGNED_CELL, turned or f"x·W_{name}")
        x += 2 * SIGNED_CELL + 0.07
    if len(content["key"]) < 3:
        _name_source(ax, x - 0.07, _top(box) - 3 * LINE)


def _name_source(ax, right, y):
    """Name the text of keys and values in the row that they leave free."""
    width = 4 * SIGNED_CELL + 0.07
    ax.add_patch(Rectangle((right - width, y), width, LINE, facecolor=TINTS[1]))
    _write(ax, right - width / 2, y + LINE / 2, f"from “{example.OTHER_TEXT}”")


def _draw_mask(ax, box, content):
    mask = content["mask"]
    x = box.x + (box.width - LINE * mask.shape[1]) / 2
    _matrix(
        ax,
        x,
        _top(box),
        mask,
        LINE,
        mask=mask,
        known=box.known,
        write=lambda allowed: "✓",
    )
    if box.known and not mask.all():
        _label(ax, box, box.x + box.width / 2, "no future")


def _draw_heads(ax, box, content):
    x = box.x + 0.1
    for i, head in enumerate(content["heads"]):
        inset = (3 - head["weights"].shape[1]) * LINE / 2
        _matrix(
            ax,
            x + inset,
            _top(box),
            head["weights"],
            LINE,
            cmap=WEIGHTS,
            mask=head["mask"],
            known=box.known,
            write=lambda weight: "",
        )
        _label(ax, box, x + 1.5 * LINE, f"head {i}")
        x += 3 * LINE + 0.08
    for head in content["heads"]:
        _matrix(ax, x, _top(box), head["context"], SIGNED_CELL, known=box.known)
        x += 2 * SIGNED_CELL + 0.04
    _label(ax, box, x - 2 * SIGNED_CELL - 0.06, "side by side, then out_proj")


def _draw_block(ax, box, content):
    if not box.known:
        return
    for y, sublayer in ((0.68, "attention"), (0.3, "MLP")):
        _sublayer(ax, box.x + 0.1, box.y + y, sublayer)


def _sublayer(ax, x, y, name):
    """Draw norm, sublayer and the sum with what went in."""
    plus = x + 1.25
    ax.plot(
        (x, x + 0.04, x + 0.04, plus, plus),
        (y, y, y + 0.16, y + 0.16, y),
        color=DARK,
        linewidth=0.9,
    )
    _arrow(ax, (x, y), (plus - 0.07, y), DARK)
    _part(ax, x + 0.12, y, 0.34, "norm")
    _part(ax, x + 0.54, y, 0.54, name)
    ax.add_patch(Circle((plus, y), 0.065, facecolor="white", edgecolor=DARK, zorder=3))
    _write(ax, plus, y, "+", 8)


def _part(ax, x, y, width, name):
    ax.add_patch(
        Rectangle(
            (x, y - 0.08),
            width,
            0.16,
            facecolor="white",
            edgecolor=DARK,
            linewidth=0.8,
            zorder=3,
        )
    )
    _write(ax, x + width / 2, y, name)


def _draw_gpt(ax, box, content):
    if not box.known:
        return
    middle, top = box.x + box.width / 2, _top(box) - 0.08
    ax.plot((middle, middle), (top, top - 0.46), color=DARK, linewidth=0.9)
    for i, name in enumerate(("N blocks", "norm", "linear")):
        _part(ax, middle - 0.27, top - i * 0.23, 0.54, name)


def _draw_next(ax, box, content):
    if not box.known:
        return
    shares = [round(share, 9) for share in example.next_token().tolist()]
    for i, (word, share) in enumerate(zip(example.NEXT_WORDS, shares)):
        y = _top(box) - 0.06 - i * 0.155
        _write(ax, box.x + 0.44, y, word, ha="right")
        ax.add_patch(
            Rectangle((box.x + 0.49, y - 0.05), 0.36 * share, 0.1, facecolor=BLUE)
        )
        _write(ax, box.x + 0.52 + 0.36 * share, y, _number(share), ha="left")


DRAW = {
    "text": _draw_text,
    "tokens": _draw_tokens,
    "embeddings": partial(_draw_one, name="embeddings"),
    "positions": partial(_draw_one, name="positions"),
    "inputs": partial(_draw_one, name="inputs"),
    "roles": _draw_roles,
    "scores": partial(_draw_one, name="scores"),
    "mask": _draw_mask,
    "weights": partial(_draw_one, name="weights", cmap=WEIGHTS),
    "context": partial(_draw_one, name="context"),
    "heads": _draw_heads,
    "block": _draw_block,
    "gpt": _draw_gpt,
    "next": _draw_next,
}
