"""Pictures in steps, for the tests of several files."""

from functools import partial

import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from utils import plots

WORDS = ["Your", " journey", "starts"]
X = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])
MERGES = {(108, 111): 256, (256, 119): 257, (32, 257): 258}
STEP_ARRAYS = {
    "merges": (("low low", MERGES), {}),
    "compare_share_mix": ((WORDS, 2, X[2], X, X), {"divisor": ("√3", 3**0.5)}),
    "rotate_query": ((X[0, :2], X[:, :2], X[:, 1:], WORDS), {}),
    "causal_rows": ((torch.arange(16.0).view(4, 4), "abcd"), {}),
    "split_and_merge": ((torch.arange(12).view(3, 4), 2), {}),
    "rotate_together": ((X[0, :2], X[1, :2], 0.5, 3), {}),
    "draw_token": (
        (torch.arange(6.0), "abcdef", 5),
        {"temperature": 0.7, "top_k": 4, "top_p": 0.8},
    ),
    "turns": (("le chat", "the cat sleeps", torch.eye(4, 3)), {}),
    "read_per_step": (("abc", X.expand(2, 3, 3), X.expand(2, 3, 3), X), {}),
    "write_state": (("ab", torch.eye(2), X[:2, :2], X[2, :2]), {}),
    "ring_all_reduce": ((torch.arange(16).view(4, 4),), {}),
    "ring_attention": (([1, 2, 4], [6, 12, 3]), {}),
    "softmax_in_blocks": ((X.flatten()[:8], X.flatten()[1:], 2), {}),
}


PYTHON = {"name": "python", "pygments_lexer": "ipython3"}


def draw_steps(title):
    """Show a row that grows in four states."""
    frames = []
    for number in (1, 2, 3, 4):
        picture = plots.Picture()
        picture.grid((0.3, 0.3), range(number), "weight", columns=range(number))
        frames.append((picture, f"State {number} & <more>."))
    plots.steps(frames, title=title)


def steps_notebook(bundle):
    """Return a notebook with one cell, which shows what `draw_steps` published."""
    source = "from tests.step_pictures import draw_steps\ndraw_steps('t')"
    outputs = [new_output("display_data", bundle)]
    cells = [new_markdown_cell("# Steps"), new_code_cell(source, outputs=outputs)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return new_notebook(cells=cells, metadata=metadata | {"language_info": PYTHON})


STEP_SCENES = {
    name: partial(getattr(plots.step_scenes, name), *args, **kwargs)
    for name, (args, kwargs) in STEP_ARRAYS.items()
}
