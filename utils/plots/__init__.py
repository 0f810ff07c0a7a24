"""Draw every picture of the course in one style.

`Picture` has the primitives of diagrams; `row`, `column` and `frames` compose them;
`chart` draws numbers; `scenes` has the diagrams that one notebook shows; `explore`
redraws a picture when a control is moved. Whatever draws publishes one PNG with an
alternative text and returns None. Arrays may be tensors, NumPy arrays or nested lists;
they are never changed. Tokens are shown with their spaces visible. Outside a notebook
the alternative text is printed.
"""

from utils.plots import chart, scenes
from utils.plots.exploring import explore
from utils.plots.picture import Box, Picture, column, frames, row

__all__ = ["Box", "Picture", "chart", "column", "explore", "frames", "row", "scenes"]

# The functions of before, until the notebooks are drawn with the primitives.
from utils.plots.blocks import block, chain  # noqa: E402,F401,I001
from utils.plots.charts import (  # noqa: E402,F401
    bars, clocks, curves, heatmap, heatmaps, points, projections, turned,
)  # fmt: skip
from utils.plots.diagrams import (  # noqa: E402,F401
    arrows, cells, embeddings, exchange, graph, inputs, merge_steps, room, tensors,
    tokens, windows,
)  # fmt: skip
from utils.plots.heads import apart, split  # noqa: E402,F401
from utils.plots.machines import ring, shares  # noqa: E402,F401
from utils.plots.memory import band, travel, true_scale  # noqa: E402,F401
from utils.plots.overview import scheme  # noqa: E402,F401
from utils.plots.pixels import patches, vision  # noqa: E402,F401
from utils.plots.route import course_map  # noqa: E402,F401
from utils.plots.translators import translator  # noqa: E402,F401
