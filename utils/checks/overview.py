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
LIST = '<ul style="list-style: none; padding: 0; margin: 2px 0 6px; display: grid; gap: 4px; grid-template-columns: repeat(auto-fill, minmax(min(23em, 100%), 1fr)); font-size: 0.93em">{}</ul>'
GROUP = f"<div><b>{{}}</b></div>{LIST}"
FOLDED_GROUP = f"<details><summary><b>{{}}</b></summary>{LIST}</details>"
TILE = '<li style="display: flex; justify-content: space-between; flex-wrap: wrap; padding: 0 6px; border: 2px solid {color}; border-radius: 4px"><span>{link}</span> <span style="{look}">{state}</span></li>'
BADGE = "background: {}; color: #fff; border-radius: 4px; padding: 0 6px"
NOTHING = "Nothing to repeat yet: once you have passed exercises in two numbered notebooks, three questions a day come here."


def progress():
    """Show what has passed of each notebook, its minutes, and at the end what is next."""
    tasks, hour, passed = catalogue.tasks(), catalogue.hour_tasks(), records.load()
    left = [task for task in tasks if task.name not in passed]
    lines, html = [], []
    for name, pages in _groups().items():
        asked = [task for task in tasks + hour if task.page in pages]
        still = [task for task in asked if task.name not in passed]
        heading = f"{name}: {_count(asked, still)} passed{'' if still else ' ✓'}"
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
    count = len(tasks) - len(left)
    text = rich = f"{count} of {len(tasks)} exercises passed."
    for words, task in _goals(tasks, left):
        text += f" {words}: {task.label} in {_title(task.page)}."
        rich += f" {words}: {task.label} in {_link(task.page)}."
    html.append(f'<progress value="{count}" max="{len(tasks)}"></progress> {rich}')
    show("\n".join([*lines[1:], "", text]), "".join(html))


def _goals(tasks, left):
    """Return the next task, and the first one of the course that was left out before it."""
    if not left:
        return []
    task = _choose_next(tasks, left, records.latest(_own(tasks)))
    is_before = left[0] != task and left[0].page[:2] <= _number(task.page)
    return [("Next", task)] + [("Still open before it", left[0])] * is_before


def _groups():
    """Return for each group its notebooks, each with what is said before its title."""
    numbered = catalogue.NUMBERED
    is_extra = [name.startswith(catalogue.EXCURSIONS) for name in numbered]
    return {
        "The core in one evening (counts in 03 and 04, too)": {catalogue.HOUR_PAGE: ""},
        MAIN: {n: "" for n, extra in zip(numbered, is_extra) if not extra},
        "Excursions": {n: "" for n, extra in zip(numbered, is_extra) if extra},
        DEEPER: {n: f"after {k}, " for n, k in catalogue.deeper_notebooks().items()},
    }


def _tile(page, before, state, asked, still):
    """Return a notebook of the map: green if all has passed, orange if it's begun."""
    is_begun, link = len(still) < len(asked), before + _link(page, "")
    color = ((NOT_YET if still else PASSED) if is_begun else NOT_ATTEMPTED)[2]
    look = BADGE.format(color) if is_begun else ""
    return TILE.format(color=color, link=link, look=look, state=state)


def _state(page, asked, still):
    """Say what has passed of a notebook, or how long it takes."""
    if asked and not still:
        return f"{_count(asked, still)} ✓"
    state = _count(asked, still) if asked else "no exercises"
    minutes = catalogue.read_opening(page)[1]
    return f"{state}, {minutes} min" if minutes else state  # 0 if it has been moved


def _count(asked, left):
    return f"{len(asked) - len(left)} of {len(asked)}"


def _hours(pages, asked, left):
    """Say how long the notebooks take, each as far as its exercises haven't passed."""
    minutes = 0
    for page in pages:
        is_left = [task in left for task in asked if task.page == page] or [True]
        minutes += catalogue.read_opening(page)[1] * sum(is_left) / len(is_left)
    return f"{hours} hours" if (hours := round(minutes / 60)) > 1 else "an hour"


def _link(page, prefix="Deeper: "):
    """Return a link to a notebook, with its title; its title if it has been moved."""
    title, path = escape(_title(page, prefix)), NOTEBOOKS / page
    link = os.path.relpath(path).replace(os.sep, "/")
    return f'<a href="{link}">{title}</a>' if path.exists() else title


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
    here, number = tasks[place].page, _number(tasks[place].page)
    chosen = [task for task in tasks[place:] + tasks[:place] if task.page == here]
    chosen += [task for task in tasks if number < task.page < catalogue.EXCURSIONS[0]]
    return next((task for task in chosen if task in left), left[0])


def _number(page):
    """Return the number of a notebook, for a deeper one that of the one before it."""
    return catalogue.deeper_notebooks()[page] if "deeper" in page else page[:2]


def _own(tasks):
    """Return the names of the tasks that *Attention in an hour* doesn't ask."""
    return {task.name for task in tasks} - {t.name for t in catalogue.hour_tasks()}


def recall():
    """Show three questions of notebooks before the last one where something has passed."""
    tasks, passed = catalogue.tasks(), records.load()
    pages = {task.page for task in tasks if task.name in passed & _own(tasks)}
    last = max((page for page in pages if "deeper" not in page), default="")
    pages = {page for page in pages if page < last or "deeper" in page}
    questions = [question for page in sorted(pages) for question in _questions(page)]
    random.Random(datetime.date.today().isoformat()).shuffle(questions)
    text = "\n\n".join(f"**{n}.** {q}" for n, q in enumerate(questions[:3], 1))
    show(*(text, text, "text/markdown") if text else (NOTHING, f"<p>{NOTHING}</p>"))


def _questions(page):
    """Return the questions of a notebook, each with its name and its folded answer."""
    title, _ = catalogue.read_opening(page)
    try:
        cells = ["".join(cell["source"]) for cell in read_cells(page)]
    except (OSError, ValueError, LookupError, TypeError):  # moved, or damaged
        return []
    pairs = QUESTION.findall("\n".join(cells).partition("## Recall")[2])
    return [FOLDED.format(f"*{title}*: {asked}", answer) for asked, answer in pairs]
