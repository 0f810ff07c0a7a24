"""`python -m utils.training TEXT ...`: train the course's GPT on any text."""

import sys

from utils.training.text import main

if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a sample may not fit into the terminal
    sys.exit(main())
