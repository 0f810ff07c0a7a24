"""Print the tables that are named on the command line, or all."""

import importlib
import os
import sys
import tempfile

from tests.benchmarks import TABLES

names = sys.argv[1:] or TABLES
if unknown := set(names) - set(TABLES):
    sys.exit(f"expected tables from {', '.join(TABLES)}, got {', '.join(unknown)}")
os.environ["OMP_NUM_THREADS"] = "2"  # read once, when torch is imported
with tempfile.TemporaryDirectory() as folder:
    os.environ["COURSE_PROGRESS"] = folder  # nobody's progress is touched
    for name in names:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        print(f"\n{name}: {module.__doc__}", flush=True)
        module.main()
        if hasattr(os, "getloadavg"):
            print(f"load of the last minute: {os.getloadavg()[0]:.1f}", flush=True)
