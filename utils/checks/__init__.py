"""Checks of the exercises: `check`, `solution`, `progress` and `recall`.

What `check("4.1", answer)` does:

1. `reader` finds the exercise, `guard` protects the reader's session, and `cells` says
   so if the newest cell with the definition is no valid Python.
2. `answers` makes the answer ready: a function as it is, a class as built modules.
3. `examine` runs it on every case of the exercise (`engine`) and compares each result
   with that of the right answer, an ordinary function.
4. If a result is wrong, the finders of `examine` look for the mistake, one after the
   other. A known mistake is a line of the right answer that is written wrong
   (`mistakes`). The mistake (or the pair) that gives the answer's results on every case
   is named, with its text (`search`). If none does, a wrong form or a single part of
   the results may still be named, or `repair` finds a small change to a reader's
   function that makes all results right.
5. Facts name what results don't show, such as a dropout that stays active. A right
   answer must also let gradients through where a notebook trains.
6. If nothing is found, `messages` shows the first difference. `display` shows the
   message, and `records` keeps the name of a passed exercise. `solution` finds the
   answer in a later session with `saved`, in the notebook where it stands.
"""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.questions import recall
from utils.checks.reader import check, progress, solution

watch_cells()

__all__ = ["Result", "check", "progress", "recall", "solution"]
