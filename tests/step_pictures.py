"""A picture in steps, for the tests of several files."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from utils import plots

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
