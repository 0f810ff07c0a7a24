"""What a reader has passed, and what is next: `progress` and `recall`."""

import datetime
import os
import random
import re
from html import escape

from utils.checks import catalogue, records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show
from utils.pages import NOTEBOOKS, read_cells

QUESTION = re.compile(
    r"^\*\*\d+\.\*\* (.+?)\n\n<details>.*?</summary>\n\n(.+?)\n\n</details>",
    re.MULTILINE | re.DOTALL,
)
FOLDED = "{}\n\n<details><summary>Answer</summary>\n\n{}\n\n</details>"
MAIN, DEEPER = "The course", "Deeper, each after its notebook and none of them needed"
LIST = '<ul style="list-style: none; padding: 0; margin: 4px 0 8px; display: grid; gap: 6px; grid-template-columns: repeat(auto-fill, minmax(17em, 1fr))">{}</ul>'
GROUP = f"<div><b>{{}}</b></div>{LIST}"
FOLDED_GROUP = f"<details><summary><b>{{}}</b></summary>{LIST}</details>"
TILE = '<li style="padding: 1px 8px; border: 2px solid {color}; border-radius: 4px">{link}<br><span style="{look}">{state}</span></li>'
BADGE = "background: {}; color: #fff; border-radius: 4px; padding: 0 6px"
NOTHING = "Three questions a day come here, from the notebooks in which you have passed an exercise, except the last of them."


def progress():
    """Show what has passed of each notebook, and the minutes that it takes."""
    tasks, passed = catalogue.tasks(), records.load()
    hour = catalogue.hour_tasks()
    left = [task for task in tasks if task.name not in passed]
    count = len(tasks) - len(left)
    text, where, link = f"{count} of {len(tasks)} exercises passed", "", ""
    if left:
        task = _choose_next(tasks, left, records.latest({*_own(tasks)}))
        text += f". Next: {task.label} in "
        where, link = _title(task.page), _link(task.page)
    bar = f'<progress value="{count}" max="{len(tasks)}"></progress>'
    lines, html = [f"{text}{where}."], [f"{bar} {text}{link}."]
    for name, pages in _groups().items():
        asked = [task for task in tasks + hour if task.page in pages]
        still = [task for task in asked if task.name not in passed]
        heading = f"{name}: {_count(asked, still)}{'' if still else ' ✓'}"
        if name == MAIN and still:
            heading += f", about {_hours(pages, asked, left)} left"
        lines, tiles = [*lines, "", heading], []
        for page, before in pages.items():
            both = [[t for t in each if t.page == page] for each in (asked, still)]
            state = _state(page, *both)
            lines.append(f"{before}{_title(page, '')}: {state}")
            tiles.append(_tile(page, before, state, *both))
        template = FOLDED_GROUP if name == DEEPER else GROUP
        html.append(template.format(heading, "".join(tiles)))
    show("\n".join(lines), "".join(html))


def _groups():
    """Return for each group its notebooks, each with what is said before its title."""
    numbered = catalogue.NUMBERED
    is_extra = [name.startswith(catalogue.EXCURSIONS) for name in numbered]
    return {
        "The core in one evening (counts in 03 and 05, too)": {catalogue.HOUR_PAGE: ""},
        MAIN: {n: "" for n, extra in zip(numbered, is_extra) if not extra},
        "Excursions": {n: "" for n, extra in zip(numbered, is_extra) if extra},
        DEEPER: {n: f"after {k}, " for n, k in catalogue.deeper_notebooks().items()},
    }


def _tile(page, before, state, asked, still):
    """Return a notebook of the map: green if all has passed, orange if it's begun."""
    color, look = NOT_ATTEMPTED[2], ""
    if len(still) < len(asked):
        color = NOT_YET[2] if still else PASSED[2]
        look = BADGE.format(color)
    link = before + _link(page, "")
    return TILE.format(color=color, link=link, look=look, state=state)


def _state(page, asked, still):
    """Say what has passed of a notebook, or how long it takes."""
    if asked and not still:
        return f"{_count(asked, still)} ✓"
    state = _count(asked, still) if asked else "no exercises"
    minutes = catalogue.read_opening(page)[1]
    return f"{state}, {minutes} minutes" if minutes else state  # 0 if it has been moved


def _count(asked, left):
    return f"{len(asked) - len(left)} of {len(asked)} passed"


def _hours(pages, asked, left):
    """Say how long the notebooks take, each as far as its exercises haven't passed."""
    minutes = 0
    for page in pages:
        is_left = [task in left for task in asked if task.page == page] or [True]
        minutes += catalogue.read_opening(page)[1] * sum(is_left) / len(is_left)
    hours = round(minutes / 60)
    return f"{hours} hours" if hours > 1 else "an hour"


def _link(page, prefix="Deeper: "):
    """Return a link to a notebook, with its title; its title if it has been moved."""
    if not (NOTEBOOKS / page).exists():
        return escape(_title(page, prefix))
    link = os.path.relpath(NOTEBOOKS / page).replace(os.sep, "/")
    return f'<a href="{link}">{escape(_title(page, prefix))}</a>'


def _title(page, prefix="Deeper: "):
    """Return the title of a notebook, after `prefix` if it is a deeper one."""
    return prefix * page.startswith("deeper/") + catalogue.read_opening(page)[0]


def say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next one."""
    tasks, passed = catalogue.tasks(), records.load() | {name}
    left = [task for task in tasks if task.name not in passed]
    text = f"{len(tasks) - len(left)} of {len(tasks)} exercises"
    if not left:
        return f"{text}: all of them."
    task = _choose_next(tasks, left, name)
    here = {task.name: task.page for task in tasks}[name]
    where = "" if task.page == here else f", in {_title(task.page)}"
    return f"{text}; next: {task.label}{where}."


def _choose_next(tasks, left, latest):
    """Return which of the tasks that are left comes after the one that has passed.

    It is a later one of the same notebook, then an earlier one there, then the first of
    a later notebook of the course, and without one of these the first of all.
    """
    names = [task.name for task in tasks]
    if latest not in names:
        return left[0]
    place = names.index(latest)
    here = tasks[place].page
    is_deeper = here.startswith("deeper/")
    number = catalogue.deeper_notebooks()[here] if is_deeper else here[:2]
    chosen = [task for task in tasks[place:] + tasks[:place] if task.page == here]
    chosen += [task for task in tasks if number < task.page < catalogue.EXCURSIONS[0]]
    return next((task for task in chosen if task in left), left[0])


def _own(tasks):
    """Return the names of the tasks that *Attention in an hour* doesn't ask."""
    others = {task.name for task in catalogue.hour_tasks()}
    return [task.name for task in tasks if task.name not in others]


def recall():
    """Show three questions of notebooks before the last one where something has passed."""
    tasks, passed = catalogue.tasks(), records.load()
    pages = {task.page for task in tasks if task.name in passed & {*_own(tasks)}}
    last = max((page for page in pages if "deeper" not in page), default="")
    pages = {page for page in pages if page < last or "deeper" in page}
    questions = [question for page in sorted(pages) for question in _questions(page)]
    random.Random(datetime.date.today().isoformat()).shuffle(questions)
    parts = [f"**{n}.** {text}" for n, text in enumerate(questions[:3], 1)]
    if parts:
        show("\n\n".join(parts), "\n\n".join(parts), "text/markdown")
    else:
        show(NOTHING, f"<p>{NOTHING}</p>")


def _questions(page):
    """Return the questions of a notebook, each with its name and its folded answer."""
    title, _ = catalogue.read_opening(page)
    try:
        cells = ["".join(cell["source"]) for cell in read_cells(page)]
    except (OSError, ValueError, LookupError, TypeError):  # moved, or damaged
        return []
    text = "\n".join(cell for cell in cells if cell.startswith("## Recall"))
    pairs = QUESTION.findall(text)
    return [FOLDED.format(f"*{title}*: {asked}", answer) for asked, answer in pairs]
