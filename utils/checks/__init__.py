"""Checks of the exercises: `check`, `solution`, `progress` and `recall`.

How `check("4.1", answer)` comes to its message, in the order in which to read the files:

1. `reader` finds the exercise in `catalogue`, the table of all exercises and their
   notebooks. `cells` says so if the newest cell with the definition isn't valid Python.
2. `definition`: an exercise is a right answer, an ordinary function, with cases and known
   mistakes. All of them are in `exercises/`, and what several share in `shared/`.
3. `submission` is what the reader hands in: a function as it is, a class as built modules.
4. `examine` runs it on each case and collects diagnoses. Its two lists, EXPLANATIONS and
   ALWAYS, name all functions that are asked for one, in their order.
5. `display` shows the message.

They use the modules of `engine/`, which know no notebook and no single exercise:

- `guard` protects the reader's session, and `values` compares results.
- `mistakes` explains most answers: a line of the right answer is written wrong, and the
  function with this line gives the answer's results. `forms` does it with wrong forms.
- `reasons` explains common errors of Python, and `repair` looks for one small change to a
  reader's function that makes all results right.
- `facts` looks for what results don't show, such as a lost gradient.
- `messages` shows the first result that differs.

`records` stores what has passed, and `overview` says what is next.
"""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.overview import progress, recall
from utils.checks.reader import check, solution

watch_cells()

__all__ = ["Result", "check", "progress", "recall", "solution"]
