"""Checks of the exercises: `check`, `solution`, `progress` and `recall`.

The nouns:

- Exercise: a right answer, which is an ordinary function, with cases and known mistakes.
- Answer: the function or class that a reader hands in. `submission` makes it ready to run.
- Case: inputs on which the answer and the right answer are run. A `Run` is what one gave.
- Mistake: a name, a text, and variants, each a line of the right answer written wrong.
- Diagnosis: what a reader is told: the name, and the text with its values filled in.
- Trial: an answer with all its runs. A finder is a function that yields its diagnoses.
- Probe: a function that finds what no result shows, such as a missing ValueError.
- Repair: one small change to the reader's code that makes all its results right.
- Result: what `check` returns: whether the answer passed, diagnoses and the message.

An example: a reader forgets the division in 4.1, so the weights are
`torch.softmax(query @ key.mT, dim=-1)`. Then `check("4.1", answer)` takes these steps:

1. `reader.check` finds the exercise with this id in the `catalogue`, and calls
   `examine.examine`, while `guard` protects the reader's session.
2. `Exercise.prepare` makes the answer ready, and `Exercise.run_case` runs it and the right
   answer, `scaled_dot_product_attention`, on each case. Here all results differ.
3. `_diagnose` calls the finders in ALWAYS, which yield nothing here, and then those in
   EXPLANATIONS, until one yields a diagnosis. The first is `find_single_mistake`.
4. It tries all variants of known mistakes. For "scale-missing", `apply_variants` builds the
   right answer with `scores = products` instead of `scores = products / width**0.5`, and
   `reproduces` finds that this function gives the reader's results in every case.
5. In the text of the mistake, `√{width}` becomes `√5`, a variable of the wrong function.
6. `_name_mistakes` puts above it what `describe_difference` returns, the first case that is
   wrong with both results, and `display` shows this as "4.1 …: not yet."

If no mistake fits, the other finders look for an error of Python, for two mistakes, and for
a repair. If they find nothing either, the reader sees only the difference of step 6.

Right answers are in `exercises/`. What several of them have is in `shared`, mistakes, and
in `layer_probes`. The modules of `engine/` import no exercise, and only some texts in
`reasons` speak of heads: `guard` runs answers, `values` compares results,
`messages` shows differences, and `mistakes`, `forms` (wrong forms of a result, such as a
list), `reasons` (errors of Python), `repair` and `probes` have the finders. `records` stores
what has passed, and `overview` says what is next.
"""

from utils.checks.display import watch_cells
from utils.checks.examine import Result
from utils.checks.overview import progress, recall
from utils.checks.reader import check, solution

watch_cells()

__all__ = ["Result", "check", "progress", "recall", "solution"]
