"""The command `python -m utils.training TEXT ...`, see `utils.training.text`."""

import sys

from utils.training.text import main

if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # a terminal may lack some characters
    sys.exit(main())
