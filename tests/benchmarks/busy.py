"""Notebooks that train, on a quiet machine and beside a program that keeps a core busy.

Two threads, as on a laptop with two free cores or on a free cloud machine. The last
column is what the reader waits for the other program.
"""

import multiprocessing
import re
import time
from pathlib import Path

import nbformat

from tests.repository import tool

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def trains(path):
    """Say whether a notebook takes steps of an optimizer."""
    text = path.read_text(encoding="utf-8")
    return re.search(r"\btrain(_on_words)?\(|optimizer\.step\(\)", text) is not None


def seconds(path):
    """Return how long a notebook runs, with the start of its kernel."""
    notebook, start = nbformat.read(path, as_version=4), time.perf_counter()
    tool.run_cells(notebook, path.parent)
    return time.perf_counter() - start


def keep_busy():
    while True:
        pass


def main():
    deeper = sorted(NOTEBOOKS.glob("deeper/*.ipynb"))
    print(f"{'':36}quiet    busy  busy / quiet")
    for path in filter(trains, sorted(NOTEBOOKS.glob("*.ipynb")) + deeper):
        quiet = seconds(path)
        other = multiprocessing.Process(target=keep_busy, daemon=True)
        other.start()
        busy = seconds(path)
        other.kill()
        row = f"{path.stem:34}{quiet:5.0f} s {busy:5.0f} s {busy / quiet:13.2f}"
        print(row, flush=True)
