"""Draw every picture of the course in one style.

Each function draws one matplotlib figure, publishes it as one PNG with an alternative
text, and returns None. Arrays may be tensors, NumPy arrays or nested
lists; they are never changed. Token strings are shown with their spaces visible.
Outside a notebook, where a picture has nowhere to go, the alternative text is printed.
"""

from utils.plots.blocks import block, chain
from utils.plots.charts import (
    bars,
    clocks,
    curves,
    heatmap,
    heatmaps,
    points,
    projections,
    turned,
)
from utils.plots.diagrams import (
    arrows,
    cells,
    embeddings,
    exchange,
    graph,
    inputs,
    merge_steps,
    room,
    tensors,
    tokens,
    windows,
)
from utils.plots.exploring import explore
from utils.plots.heads import apart, split
from utils.plots.machines import ring, shares
from utils.plots.memory import band, travel, true_scale
from utils.plots.overview import scheme
from utils.plots.pixels import patches, vision
from utils.plots.route import course_map
from utils.plots.translators import translator

__all__ = [
    "apart",
    "arrows",
    "band",
    "bars",
    "block",
    "cells",
    "chain",
    "clocks",
    "course_map",
    "curves",
    "embeddings",
    "exchange",
    "explore",
    "graph",
    "heatmap",
    "heatmaps",
    "inputs",
    "merge_steps",
    "patches",
    "points",
    "projections",
    "ring",
    "room",
    "scheme",
    "shares",
    "split",
    "tensors",
    "tokens",
    "translator",
    "travel",
    "true_scale",
    "turned",
    "vision",
    "windows",
]
