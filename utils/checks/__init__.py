"""Checks of the exercises: `check`, `solution`, `progress` and `recall`.

How `check("4.1", answer)` comes to its message, in the order in which to read the files:

1. `reader`: `check` finds the exercise in `exercises/`. `guard` protects the reader's
   session. `cells` says so if the newest cell with the definition isn't valid Python.
2. `exercise`: an exercise has a right answer, an ordinary function, and cases. The
   reader's answer runs on each case, a function as it is, a class as built modules
   (`answers`). `values` compares each result with that of the right answer.
3. `examine`: if a result is wrong, the list FINDERS there is tried from top to bottom,
   and the first that finds something explains the results.
4. `mistakes`, for most answers: a known mistake is a line of the right answer that is
   written wrong. The mistake, or the pair, that gives the answer's results on every case
   is named. Others: `reasons` explains common errors of Python, and `repair` looks for
   one small change to a reader's function that makes all results right.
5. `facts`, of a right answer too: what results don't show, such as a dropout that stays
   active. Where a notebook trains, an answer must also let gradients through.
6. `messages` shows the first result that differs, and `display` the whole message.

`records` keeps what has passed, `catalogue` lists all, `overview` says what is next.
"""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.overview import progress, recall
from utils.checks.reader import check, solution

watch_cells()

__all__ = ["Result", "check", "progress", "recall", "solution"]
