"""The map of the course: its notebooks, and what the reader has done in them."""

import textwrap

from matplotlib.patches import FancyArrowPatch, Rectangle

from utils.plots.publishing import (
    BLUE,
    FILLS,
    GREY,
    WIDE,
    _canvas,
    _describe,
    _publish,
    _styled,
)


@_styled
def course_map(status, *, title, alt=None):
    """Draw the notebooks in reading order, with how many exercises are passed.

    Args:
        status: tuples `(number, name, minutes, passed, total, needs)`; `needs` lists
            the numbers of notebooks to read before. Numbers up to 6 are part one.

    >>> course_map([(0, "Start here", 15, 0, 0, [])], title="One notebook")
    Map of the course: One notebook. Notebooks: 00 Start here, 15 minutes.
    """
    parts = [[s for s in status if int(s[0]) <= 6],
             [s for s in status if int(s[0]) > 6]]
    parts = [part for part in parts if part]
    fig, ax = _canvas(WIDE, 1.75 * len(parts))
    slot = (WIDE - 0.1) / max(max(len(part) for part in parts), 5)
    for i, part in enumerate(parts):
        y = 1.75 * (len(parts) - i) - 1.65
        label = "Part one" if int(part[0][0]) <= 6 else "Part two"
        ax.text(0.1, y + 1.38, label, color=GREY, fontsize=9)
        for j, entry in enumerate(part):
            _station(ax, 0.1 + j * slot, y, slot - 0.14, *entry)
            if j:
                ax.add_patch(FancyArrowPatch(
                    (j * slot - 0.05, y + 0.68), (j * slot + 0.11, y + 0.68),
                    arrowstyle="-|>", color=GREY, mutation_scale=8, shrinkA=0,
                    shrinkB=0))
    listed = [f"{int(number):02d} {name}, {minutes} minutes"
              + (f", needs {_needs(needs)}" if _needs(needs) else "")
              for number, name, minutes, _, _, needs in status]
    # How many are passed is the reader's, so the text that is compared leaves it out.
    _publish(fig, title, alt or _describe("Map of the course", title,
                                          Notebooks="; ".join(listed)))


def _needs(needs):
    return ", ".join(f"{int(number):02d}" for number in needs)


def _station(ax, x, y, width, number, name, minutes, passed, total, needs):
    ax.add_patch(Rectangle((x, y), width, 1.32, facecolor="white", edgecolor=BLUE))
    ax.text(x + 0.06, y + 1.26, f"{int(number):02d}", va="top", fontweight="bold",
            color=BLUE)
    ax.text(x + width - 0.06, y + 1.25, f"{minutes} min", va="top", ha="right",
            fontsize=8, color=GREY)
    words = textwrap.fill(name, max(9, int(width / 0.078)), break_on_hyphens=True)
    ax.text(x + 0.06, y + 1.03, words, va="top", fontsize=8.5, linespacing=1.1)
    if _needs(needs):
        ax.text(x + 0.06, y + 0.3, f"needs {_needs(needs)}", fontsize=7.5, color=GREY)
    if total:
        ax.add_patch(Rectangle((x, y), width, 0.22, facecolor="#eeeeee"))
        ax.add_patch(Rectangle((x, y), width * passed / total, 0.22,
                               facecolor=FILLS[2]))
        ax.add_patch(Rectangle((x, y), width, 1.32, fill=False, edgecolor=BLUE))
        ax.text(x + width / 2, y + 0.105, f"{passed} / {total}", ha="center",
                va="center", fontsize=8.5)
