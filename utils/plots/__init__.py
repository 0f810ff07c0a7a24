"""Draw every picture of the course in one style.

`Picture` has the primitives of diagrams; `row`, `column` and `frames` compose them;
`chart` draws numbers; `scenes` has the diagrams that one notebook shows. Whatever draws
publishes one PNG with an alternative text and returns None. Arrays may be tensors,
NumPy arrays or nested lists. Tokens are shown with their spaces visible. Outside a
notebook the alternative text is printed.
"""

from utils.plots import chart, scenes
from utils.plots.picture import Box, Picture, column, frames, row

__all__ = ["Box", "Picture", "chart", "column", "frames", "row", "scenes"]
