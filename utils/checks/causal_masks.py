"""Exercises of notebook 05: masks, masked softmax, dropout, causal attention."""

EXERCISES = []
