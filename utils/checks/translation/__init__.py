"""Exercises of notebook 08: cross-attention."""

from utils.checks.translation.cross_attention import cross_attention

EXERCISES = [cross_attention]
