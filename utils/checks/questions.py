"""Ask the Recall questions of finished notebooks again, three on each day."""

import datetime
import random
import re

from utils.checks import catalogue, records
from utils.checks.display import show
from utils.pages import read_cells

QUESTION = re.compile(
    r"^\*\*\d+\.\*\* (.+?)\n\n<details>.*?</summary>\n\n(.+?)\n\n</details>",
    re.MULTILINE | re.DOTALL,
)
FOLDED = "{}\n\n<details><summary>Answer</summary>\n\n{}\n\n</details>"
NOTHING = "Once all exercises of a notebook have passed, its questions are asked again "
NOTHING += "here, three on each day."


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
