"""Checks of the exercises: `check(exercise, answer)` and `progress()`."""

from utils.checks.course import check, progress
from utils.checks.engine import Result

__all__ = ["Result", "check", "progress"]
