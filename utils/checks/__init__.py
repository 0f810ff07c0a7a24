"""Checks of the exercises: `check`, `solution` and `progress`.

`check("4.1", answer)` in `reader` finds the exercise and has the answer examined by
`examine`, while `guard` and `limit` protect the reader's session. The answer runs on
every case of the exercise (`engine`; `modules` if the answer is a class). If a result
isn't what the exercise's oracle gives, `search` looks for the mistake. An exercise has
the right steps to the result, and for each known mistake a variant, which is one step
done wrong (`pipeline`). The variant (or the pair) that gives the answer's results on
every case is named, with its text. Facts name what results don't show, such as a dropout
that stays active. If nothing fits, `messages` shows the first difference.

To name a new mistake, add its text and its wrong step to `variants(…)` in `steps/` or
in the exercise; to add an exercise, write a file in `exercises/`.
"""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.reader import check, progress, solution

watch_cells()

__all__ = ["Result", "check", "progress", "solution"]
