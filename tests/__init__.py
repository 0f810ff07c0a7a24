"""The tests, and the commands that measure and compare; see README.md."""
