"""Checks of the exercises: `check`, `solution` and `progress`.

What `check("4.1", answer)` does:

1. `reader` finds the exercise, and `guard` protects the reader's session.
2. `examine` runs the answer on every case of the exercise (`engine`; `modules` if the
   answer is a class) and compares each result with the one of the exercise's oracle.
3. If a result is wrong, `search` looks for the mistake. An exercise has the right steps
   to the result, and for each known mistake a variant, which is one step done wrong
   (`pipeline`). The variant (or the pair) that gives the answer's results on every case
   is named, with its text.
4. Facts name what results don't show, such as a dropout that stays active.
5. If no variant fits, `repair` looks for a small change to the reader's code that makes
   every result right. If there is none, `messages` shows the first difference.
6. `display` shows the message, and `records` keeps the name of a passed exercise.

`cells` notices that the newest cell with a definition has failed, and says so.

CONTRIBUTING.md says how to name a new mistake and how to add an exercise.
"""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.reader import check, progress, solution

watch_cells()

__all__ = ["Result", "check", "progress", "solution"]
