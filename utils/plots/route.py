"""The map of the course: its notebooks, and what the reader has done in them."""

import textwrap

from matplotlib.patches import FancyArrowPatch, Rectangle

from utils.plots.old_publishing import (
    BLUE,
    EDGE,
    FILLS,
    GREY,
    WIDE,
    _canvas,
    _describe,
    _publish,
    _styled,
    _wrap,
)

PARTS = {"Part one": range(0, 7), "Part two": range(7, 12), "Part three": range(12, 99)}
SLOTS, LIST_COLUMNS = 7, 3  # side by side
SLOT, ROW, LIST_WIDTH = 1.06, 1.72, 2.25  # inches


@_styled
def course_map(status, *, title, alt=None):
    """Draw the notebooks in reading order, with how many exercises are passed.

    Args:
        status: tuples `(number, name, minutes, passed, total, needs)`; `needs` lists
            the numbers of notebooks to read before. Those for another evening have
            None for a number and stand below the others, in a lighter list.

    >>> course_map([(0, "Start here", 15, 0, 0, []),
    ...             (None, "Byte pairs", 25, 0, 0, [1])], title="Two notebooks")
    Map of the course: Two notebooks. Notebooks: 00 Start here, 15 minutes. \
Deeper: Byte pairs, 25 minutes, needs 01.
    """
    numbered = [entry for entry in status if entry[0] is not None]
    deeper = [entry for entry in status if entry[0] is None]
    places, rows = _places([number for number, *_ in numbered])
    lines = _lines(deeper)
    listed = sum(step for step, _ in lines)
    fig, ax = _canvas(WIDE, ROW * rows + listed + 0.28)
    top = fig.get_figheight()
    for entry in numbered:
        row, column, part = places[entry[0]]
        _draw_notebook(ax, 0.1 + column * SLOT, top - row * ROW, part, *entry)
    if deeper:
        _draw_list(ax, listed, lines)
    # How many are passed is the reader's, so the text that is compared leaves it out.
    _publish(
        fig,
        title,
        alt
        or _describe(
            "Map of the course",
            title,
            Notebooks="; ".join(map(_in_words, numbered)),
            Deeper="; ".join(map(_in_words, deeper)),
        ),
    )


def _in_words(entry):
    number, name, minutes, _, _, needs = entry
    said = [name if number is None else f"{number:02d} {name}"]
    said += [f"{minutes} minutes"] if minutes else []
    return ", ".join([*said, *_needs(needs)])


def _needs(needs):
    """Return in a list what is to be read before, or nothing."""
    return ["needs " + ", ".join(f"{number:02d}" for number in needs)] if needs else []


def _places(numbers):
    """Return for each notebook `(row, column, part)`, and the number of rows.

    `part` is the name of the part that begins there, or None.
    """
    places, row, column = {}, 0, 0
    for name, part in PARTS.items():
        members = [number for number in numbers if number in part]
        if column + len(members) > SLOTS:
            row, column = row + 1, 0
        for number in members:
            places[number] = (row, column, name if number == members[0] else None)
            column += 1
    return places, row + 1


def _draw_notebook(ax, x, top, part, number, name, minutes, passed, total, needs):
    """Draw one notebook, below its part's name or behind the arrow to it."""
    y, width = top - 1.6, SLOT - 0.14
    if part:
        ax.text(x, y + 1.38, part, color=GREY, fontsize=9)
    else:
        ax.add_patch(
            FancyArrowPatch(
                (x - 0.15, y + 0.68),
                (x + 0.01, y + 0.68),
                color=GREY,
                arrowstyle="-|>",
                mutation_scale=8,
                shrinkA=0,
                shrinkB=0,
            )
        )
    ax.add_patch(Rectangle((x, y), width, 1.32, facecolor="white", edgecolor=BLUE))
    ax.text(
        x + 0.06, y + 1.26, f"{number:02d}", va="top", fontweight="bold", color=BLUE
    )
    ax.text(
        x + width - 0.06,
        y + 1.25,
        f"{minutes} min",
        va="top",
        ha="right",
        fontsize=8,
        color=GREY,
    )
    words = textwrap.fill(name, int(width / 0.078))
    _write_lines(ax, x + 0.06, y + 0.93, words)
    for said in _needs(needs):
        ax.text(x + 0.06, y + 0.3, said, fontsize=7.5, color=GREY)
    if total:
        _draw_passed(ax, x, y, width, passed, total)


def _write_lines(ax, x, y, text):
    for i, line in enumerate(text.split("\n")):
        ax.text(x, y - 0.14 * i, line, fontsize=8.5)


def _draw_passed(ax, x, y, width, passed, total):
    """Draw how many exercises are passed as a bar along the lower edge."""
    for share, color in ((1, "#EEEEEE"), (passed / total, FILLS[2])):
        ax.add_patch(
            Rectangle(
                (x, y),
                width * share,
                0.22,
                facecolor=color,
                edgecolor=BLUE if share == 1 else "none",
            )
        )
    ax.text(
        x + width / 2,
        y + 0.105,
        f"{passed} / {total}",
        ha="center",
        va="center",
        fontsize=8.5,
    )


def _lines(entries):
    """Set the list on lines; return for each its height and its entries, wrapped."""
    wrapped = [(_wrap(entry[1], LIST_WIDTH, 8.5), *entry[2:]) for entry in entries]
    lines = [
        wrapped[i : i + LIST_COLUMNS] for i in range(0, len(wrapped), LIST_COLUMNS)
    ]
    return [
        (0.43 + 0.14 * max(name.count("\n") for name, *_ in line), line)
        for line in lines
    ]


def _draw_list(ax, top, lines):
    """List the notebooks for another evening."""
    ax.text(0.1, top + 0.06, "Deeper, for another evening", color=GREY, fontsize=9)
    for step, entries in lines:
        for i, (name, minutes, _, _, needs) in enumerate(entries):
            x = 0.1 + i * (LIST_WIDTH + 0.23)
            ax.add_patch(
                Rectangle(
                    (x, top - step + 0.06),
                    LIST_WIDTH + 0.1,
                    step - 0.06,
                    facecolor="white",
                    edgecolor=EDGE,
                    linewidth=0.8,
                )
            )
            _write_lines(ax, x + 0.06, top - 0.15, name)
            said = [f"{minutes} min"] * bool(minutes) + _needs(needs)
            ax.text(
                x + 0.06, top - step + 0.12, ", ".join(said), fontsize=7.5, color=GREY
            )
        top -= step
