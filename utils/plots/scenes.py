"""Scenes: the diagrams of one notebook each, in one call."""
