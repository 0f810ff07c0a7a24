"""The score of the bank of answers ends each run of the tests."""

from bank.score import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
