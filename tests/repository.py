"""The course as files, and copies of it to test elsewhere."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parents[1]
as_python = TransformerManager().transform_cell  # `%time f()` becomes a call
# What takes long and tests a single part, left out of the quick run: CI runs it, and
# `tests.changed` does if a change concerns that part.
LONG = [
    "notebooks/deeper",
    "notebooks/solutions",
    "tests/test_answers.py",
    "tests/test_checks.py",
    "tests/test_contributing.py",
    "tests/test_experiments.py",
    "tests/test_lab.py",
    "tests/test_launch.py",
    "tests/test_mistakes.py",
    "tests/test_parallel.py",
    "tests/test_setup.py",
    "tests/test_plot_steps.py",
    "tests/test_site.py",
]


def files():
    """Return the files that git tracks or would track; without git, all files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        paths = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0")]
    else:
        inside = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        ignored = {"__pycache__", ".venv", "venv"}
        paths = [ROOT / path for path in inside if not ignored & {*path.parts}]
    return [path for path in paths if path.is_file()]


def imports(source):
    """Return pairs of a name that some code imports and what it stands for.

    `from utils.plots import chart as c` gives ("c", "utils.plots.chart").
    """
    pairs = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            pairs += [(a.asname or a.name, start + a.name) for a in node.names]
    return pairs


def make_course(folder):
    """Copy the course as it is now, not as last committed, into `folder`."""
    for path in files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def make_repository(folder, write=make_course):
    """Write the course into `folder` and commit it there, in the name of a reader."""
    write(folder)
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    author = "-c user.name=reader -c user.email=reader@example.org"
    for words in ("init -q -b main", "add .", f"{author} commit -q -m all"):
        subprocess.run(["git", *words.split()], cwd=folder, env=env, check=True)
