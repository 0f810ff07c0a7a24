"""Exercises of notebook 06: splitting and merging heads, multi-head attention."""

EXERCISES = []
