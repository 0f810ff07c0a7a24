"""Exercises of notebook 08: cross-attention and the decoding loop."""

from utils.checks.translation.cross_attention import cross_attention
from utils.checks.translation.greedy_translate import greedy_translate

EXERCISES = [cross_attention, greedy_translate]
