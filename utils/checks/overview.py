"""What a reader has passed, and what is next: `progress` and `recall`."""

import datetime
import os
import random
import re
from html import escape

from utils.checks import catalogue, records
from utils.checks.display import show
from utils.pages import NOTEBOOKS, read_cells

QUESTION = re.compile(
    r"^\*\*\d+\.\*\* (.+?)\n\n<details>.*?</summary>\n\n(.+?)\n\n</details>",
    re.MULTILINE | re.DOTALL,
)
FOLDED = "{}\n\n<details><summary>Answer</summary>\n\n{}\n\n</details>"
NOTHING = "Once all exercises of a notebook have passed, its questions are asked again "
NOTHING += "here, three on each day."


def progress():
    """Show what has passed of each notebook, and the minutes that it takes."""
    tasks, passed = catalogue.tasks(), records.load()
    left = [task for task in tasks if task.name not in passed]
    start, *pages = [path.name for path in catalogue.numbered_notebooks()]
    states, all_minutes = {start: "✓"}, 0  # 00 counts as done: it shows this list
    deeper = [task.page for task in tasks if task.page not in pages]
    for page in dict.fromkeys([*pages, catalogue.HOUR_PAGE, *deeper]):
        asked = [task for task in tasks if task.page == page]
        if page == catalogue.HOUR_PAGE:  # its exercises are those of other notebooks
            asked = [task for task in tasks if task.label in catalogue.HOUR.values()]
        open_here = [task for task in asked if task in left]
        minutes = catalogue.read_opening(page)[1]
        time = f"{minutes} minutes"
        if asked:
            count = f"{len(asked) - len(open_here)} of {len(asked)} passed"
            time = f"{count}, {time}" if open_here else f"{count} ✓"
            minutes *= bool(open_here)
        all_minutes += minutes if page in pages else 0  # deeper ones are extra
        states[page] = time
    num_passed = len(tasks) - len(left)
    text, next_page = f"{num_passed} of {len(tasks)} exercises passed", None
    if left:
        hours = round(all_minutes / 60)
        time = f"{hours} hours" if hours > 1 else "an hour"
        text += f", about {time} left. Next: {left[0].label}"
        next_page = left[0].page
    bar = f'<progress value="{num_passed}" max="{len(tasks)}"></progress>'
    style = "list-style: none; padding: 0"
    rows = "".join(f"<li>{_link(page)}: {state}</li>" for page, state in states.items())
    link, title = (f" in {of(next_page)}" if left else "" for of in (_link, _title))
    html = f'{bar} <b>{text}</b>{link}<ul style="{style}">{rows}</ul>'
    lines = [f"{_title(page)}: {state}" for page, state in states.items()]
    show("\n".join([f"{text}{title}.", *lines]), html)


def _link(page):
    """Return a link to a notebook, with its title."""
    link = os.path.relpath(NOTEBOOKS / page).replace(os.sep, "/")
    return f'<a href="{link}">{escape(_title(page))}</a>'


def _title(page):
    return "Deeper: " * page.startswith("deeper/") + catalogue.read_opening(page)[0]


def say_what_is_next(name):
    """Return how many exercises have passed, this one included, and the next one.

    The next one is a later one of this notebook, or else the first that is left.
    """
    tasks, passed = catalogue.tasks(), records.load() | {name}
    left = [task for task in tasks if task.name not in passed]
    text = f"{len(tasks) - len(left)} of {len(tasks)} exercises"
    if not left:
        return f"{text}: all of them."
    place = [task.name for task in tasks].index(name)
    here = tasks[place].page
    later = [task for task in tasks[place:] if task in left and task.page == here]
    task = (later or left)[0]
    where = "" if task.page == here else f", in {_title(task.page)}"
    return f"{text}; next: {task.label}{where}."


def recall():
    """Show three questions of notebooks whose exercises have passed, answers folded."""
    passed = records.load()
    asked = {task.page for task in catalogue.tasks() if task.name not in passed}
    pages = {task.page for task in catalogue.tasks()} - asked
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
    cells = ("".join(cell["source"]) for cell in read_cells(page))
    text = "\n".join(cell for cell in cells if cell.startswith("## Recall"))
    pairs = QUESTION.findall(text)
    return [
        FOLDED.format(f"*{title}*: {question}", answer) for question, answer in pairs
    ]
