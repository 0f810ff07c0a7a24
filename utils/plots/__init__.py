"""Draw every picture of the course in one style.

`Picture` has the primitives of diagrams; `row` and `column` lay out grids;
`chart` draws numbers; `scenes` has the diagrams that one notebook shows. Whatever draws
publishes one PNG with an alternative text and returns None. Arrays may be tensors,
NumPy arrays or nested lists. Tokens are shown with their spaces visible. Outside a
notebook the alternative text is printed.
"""

from utils.plots import chart, scenes
from utils.plots.picture import Box, Picture, column, row

__all__ = ["Box", "Picture", "chart", "column", "row", "scenes"]
