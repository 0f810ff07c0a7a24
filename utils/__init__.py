"""The finished version of what the notebooks build: read it after them.

An argument that a function can't use raises ValueError or TypeError, with what was
expected and what was received; docstrings mention only other errors.
"""
