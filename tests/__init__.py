"""The tests, and the commands that measure and compare; see README.md."""

import sys
from importlib.util import find_spec

if find_spec("nbval") is None:
    sys.exit("Activate the environment first: source .venv/bin/activate")
