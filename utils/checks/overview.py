"""What a reader has passed, and what is next: `progress` and `recall`."""

import datetime
import os
import random
import re
from html import escape

from utils.checks import catalogue, records
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED, show
from utils.pages import NOTEBOOKS, read_cells, read_opening

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
    open_tasks = [task for task in tasks if task.name not in passed]
    lines, html = [], []
    for name, pages in _groups().items():
        group = [task for task in tasks + hour if task.page in pages]
        todo = [task for task in group if task.name not in passed]
        heading = f"{name}: {_count(group, todo)} passed{'' if todo else ' ✓'}"
        if name == MAIN and todo:
            heading += f", about {_hours(pages, group, open_tasks)} left"
        lines, tiles = [*lines, "", heading], []
        for page, prefix in pages.items():
            on_page = [[t for t in ts if t.page == page] for ts in (group, todo)]
            state = _state(page, *on_page)
            lines.append(f"{prefix}{_title(page, '')}: {state}")
            tiles.append(_tile(page, prefix, state, *on_page))
        template = FOLDED_GROUP if name == DEEPER else GROUP
        html.append(template.format(heading, "".join(tiles)))
    total, left = map(len, map(_of_course, (tasks, open_tasks)))
    html.append(f'<progress value="{total - left}" max="{total}"></progress>')
    lines.append("")
    if open_tasks:
        latest = records.latest(_main_names(tasks))
        task = _choose_next(tasks, open_tasks, latest)
        lines.append(f"Next: {task.label} in {_title(task.page)}.")
        html.append(f" Next: {task.label} in {_link(task.page)}.")
    show("\n".join(lines[1:]).rstrip(), "".join(html))


def _of_course(tasks):
    """Return the tasks of the course, without its hour, excursions and deeper pages."""
    pages = catalogue.numbered_notebooks(catalogue.COURSE)
    return [task for task in tasks if task.page in pages]


def _groups():
    """Return for each group its notebooks, each with what is said before its title."""
    course = catalogue.numbered_notebooks(catalogue.COURSE)
    excursions = catalogue.numbered_notebooks(catalogue.EXCURSIONS)
    return {
        MAIN: dict.fromkeys(course, ""),
        "In one evening (not in the total)": {catalogue.HOUR_PAGE: ""},
        "Excursions": dict.fromkeys(excursions, ""),
        DEEPER: {n: f"after {k}, " for n, k in catalogue.deeper_notebooks().items()},
    }


def _tile(page, prefix, state, tasks, open_tasks):
    """Return a notebook of the map: green if all has passed, orange if it's begun."""
    is_begun, link = len(open_tasks) < len(tasks), prefix + _link(page, "")
    color = ((NOT_YET if open_tasks else PASSED) if is_begun else NOT_ATTEMPTED)[2]
    look = BADGE.format(color) if is_begun else ""
    return TILE.format(color=color, link=link, look=look, state=state)


def _state(page, tasks, open_tasks):
    """Say what has passed of a notebook, or how long it takes."""
    if tasks and not open_tasks:
        return f"{_count(tasks, open_tasks)} ✓"
    state = _count(tasks, open_tasks) if tasks else "no exercises"
    minutes = read_opening(page)[1]
    return f"{state}, {minutes} min" if minutes else state  # 0 if it has been moved


def _count(tasks, open_tasks):
    return f"{len(tasks) - len(open_tasks)} of {len(tasks)}"


def _hours(pages, tasks, open_tasks):
    """Say how long the notebooks take, each as far as its exercises haven't passed."""
    minutes = 0
    for page in pages:
        is_open = [task in open_tasks for task in tasks if task.page == page] or [True]
        minutes += read_opening(page)[1] * sum(is_open) / len(is_open)
    return f"{hours} hours" if (hours := round(minutes / 60)) > 1 else "an hour"


def _link(page, prefix="Deeper: "):
    """Return a link to a notebook, with its title; its title if it has been moved."""
    title, path = escape(_title(page, prefix)), NOTEBOOKS / page
    link = os.path.relpath(path).replace(os.sep, "/")
    return f'<a href="{link}">{title}</a>' if path.exists() else title


def _title(page, prefix="Deeper: "):
    """Return the title of a notebook, after `prefix` if it is a deeper one."""
    return prefix * page.startswith("deeper/") + read_opening(page)[0]


def say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next one."""
    tasks, passed = catalogue.tasks(), records.load() | {name}
    open_tasks = [task for task in tasks if task.name not in passed]
    text = (
        f"{_count(_of_course(tasks), _of_course(open_tasks))} exercises of the course"
    )
    if not open_tasks:
        return f"{text}: all of them."
    task = _choose_next(tasks, open_tasks, name)
    page = {task.name: task.page for task in tasks}[name]
    ending = "" if task.page == page else f", in {_title(task.page)}"
    return f"{text}; next: {task.label}{ending}."


def _choose_next(tasks, open_tasks, latest):
    """Return which of the tasks that are left comes after the one that has passed.

    It is a later one of the same notebook, then an earlier one there, then the first of
    a later notebook of the course, and without one of these the first of all.
    """
    names = [task.name for task in tasks]
    if latest not in names:
        return open_tasks[0]
    index = names.index(latest)
    _, _, page, number = tasks[index]
    choices = [task for task in tasks[index:] + tasks[:index] if task.page == page]
    course = catalogue.numbered_notebooks(catalogue.COURSE)
    choices += [t for t in tasks if t.number > number and t.page in course]
    return next((task for task in choices if task in open_tasks), open_tasks[0])


def _main_names(tasks):
    """Return the names of the tasks that *Attention in an hour* doesn't ask."""
    return {task.name for task in tasks} - {t.name for t in catalogue.hour_tasks()}


def recall():
    """Show three questions of notebooks before the last one where something has passed."""
    tasks, passed = catalogue.tasks(), records.load()
    pages = {task.page for task in tasks if task.name in passed & _main_names(tasks)}
    last = max((page for page in pages if "deeper" not in page), default="")
    pages = {page for page in pages if page < last or "deeper" in page}
    questions = [question for page in sorted(pages) for question in _questions(page)]
    random.Random(datetime.date.today().isoformat()).shuffle(questions)
    text = "\n\n".join(f"**{n}.** {q}" for n, q in enumerate(questions[:3], 1))
    show(*(text, text, "text/markdown") if text else (NOTHING, f"<p>{NOTHING}</p>"))


def _questions(page):
    """Return the questions of a notebook, each with its name and its folded answer."""
    title, _ = read_opening(page)
    try:
        cells = ["".join(cell["source"]) for cell in read_cells(page)]
    except (OSError, ValueError, LookupError, TypeError):  # moved, or damaged
        return []
    pairs = QUESTION.findall("\n".join(cells).partition("## Recall")[2])
    return [FOLDED.format(f"*{title}*: {text}", answer) for text, answer in pairs]
