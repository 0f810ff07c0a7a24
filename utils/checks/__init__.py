"""Checks of the exercises: `check`, `solution` and `progress`."""

from utils.checks.cells import watch_cells
from utils.checks.examine import Result
from utils.checks.reader import check, progress, solution

watch_cells()

__all__ = ["Result", "check", "progress", "solution"]
