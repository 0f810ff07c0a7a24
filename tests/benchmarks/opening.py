"""How soon a notebook opens: its setup cell and its imports in a fresh process.

They are held against `import torch, matplotlib.pyplot` alone. The last row counts from
the start of a fresh kernel to the first picture of notebook 00.
"""

import statistics
import subprocess
import sys
import time

import nbformat

from tests.benchmarks import race, ratio
from tests.repository import ROOT, tool

ALONE = "import torch, matplotlib.pyplot"


def code_cells(path):
    """Return the code cells of a notebook."""
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def in_fresh_python(source):
    """Return a function that runs `source` in a new process."""
    command = [sys.executable, "-c", source]
    return lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def seconds_to_picture(path):
    """Return the seconds from a kernel's start to the first picture of a notebook."""
    cells = code_cells(path)
    shown = ["<img" in str(cell.outputs) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=cells[: shown.index(True) + 1])
    start = time.perf_counter()
    tool.run_cells(notebook, path.parent)
    return time.perf_counter() - start


def main():
    """Print a row for each notebook, and the seconds to the first picture."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))
    sources = {"torch and pyplot alone": ALONE}
    for path in paths:
        sources[path.stem] = "\n".join(cell.source for cell in code_cells(path)[:2])
    runs = {name: in_fresh_python(source) for name, source in sources.items()}
    seconds = race(runs, rounds=7)
    alone = seconds["torch and pyplot alone"]
    print(f"{'':34}seconds  ratio")
    for name, taken in seconds.items():
        middle, _ = ratio(taken, alone)
        print(f"{name:34}{statistics.median(taken):7.2f} {middle:6.2f}")
    taken = [seconds_to_picture(paths[0]) for _ in range(3)]
    print(f"{'first picture of ' + paths[0].stem:34}{statistics.median(taken):7.2f}")
