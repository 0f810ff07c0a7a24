"""Draw every picture of the course in one style.

`Picture` has the primitives of diagrams, and rows and columns to put them in; `row` and
`column` lay out grids. `chart` draws numbers; `scenes` has the diagrams that one
notebook shows. `steps` shows one drawing in several states with a slider, and
`step_scenes` has those that a notebook shows. Whatever draws publishes one output with
an alternative text and returns None. Arrays may be tensors, NumPy arrays or nested
lists. Tokens are shown with their spaces visible. Outside a notebook the alternative
text is printed.
"""

from utils.plots import chart, scenes, step_scenes
from utils.plots.picture import Picture, column, row
from utils.plots.steps import steps

__all__ = ["Picture", "chart", "column", "row", "scenes", "step_scenes", "steps"]
