"""`.ci/notebooks.py` as a module, for the tests of the notebooks and of itself."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("course_tool", ROOT / ".ci/notebooks.py")
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
