"""Run what a change touches: `python -m tests.changed [BASE]`.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main` or, if the last call failed,
everything since that call, after what failed in it.

1. Ruff runs. If it finds something, nothing else runs.
2. Changed notebooks are run and stored, and their minutes copied into README and 00.
   So are notebooks that use a changed name of `utils/plots`, and 00 after a change in
   an exercise, because it has a map of all exercises.
3. The tests run that use a changed name, and the docstring examples of changed files.
4. Notebooks that use another changed name of `utils`, and the solutions of a changed
   exercise, are run and compared.

Functions are compared as bytecode, in which comments and the names of locals don't
appear. Its global names and attributes are what a function uses.
"""

import argparse
import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from types import CodeType

from tests.notebooks import START, execute, find_notebooks, names_in
from tests.repository import ROOT
from utils import checks

CACHE = ROOT / ".pytest_cache/changed"  # what failed in the last call
RECORD = CACHE / "record.json"
EXERCISES = "utils/checks/exercises/"
# Tests that a change concerns although they don't use its names.
OTHERS = {
    "notebooks/": ("seeds", "exercises"),
    "README.md": ("answers",),
    "CONTRIBUTING.md": ("contributing",),
    EXERCISES: ("answers", "exercises"),
    "utils/experiments/": ("drift",),
    "tests/answers/": ("answers",),
    "tests/seeds/": ("seeds",),
    "tests/notebooks.py": ("lab", "site"),
    "tests/browser.py": ("lab", "site"),
    ".ci/": ("site",),
}
# These have cases for each notebook or exercise, of which those of changed ones run.
BY_CASE = ("notebooks", "sections", "drift", "steps", "checks")
BY_CASE = [f"tests/test_{name}.py" for name in BY_CASE]
EVERYTHING = ("conftest.py", "pyproject.toml", "requirements.txt")


# ------------------------------------------------------------------- names


def content(code):
    """Return what some code does, whatever its locals are called."""
    consts = [content(c) if type(c) is CodeType else repr(c) for c in code.co_consts]
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_code, code.co_exceptiontable, code.co_names, arguments, consts


def definitions(source):
    """Return the code of each top-level name of a module; "" is what has no name.

    The methods of a class without a base are separate, because only code that names
    them calls them; the `forward` of an `nn.Module` is called without its name.
    """
    code, nodes = {}, ast.parse(source).body
    for node in nodes:  # methods are added while it runs
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                if ast.get_docstring(inner) is not None:
                    inner.body[0] = ast.parse("pass").body[0]
        if isinstance(node, ast.ClassDef) and not node.bases:
            methods = [n for n in node.body if re.match("[^_]|_[^_]", n_name(n))]
            nodes += methods
            node.body = [n for n in node.body if n not in methods] or [ast.Pass()]
        aliases = [alias.asname or alias.name for alias in getattr(node, "names", ())]
        stored = [
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        names = [node.name] if hasattr(node, "name") else aliases or stored or [""]
        module = ast.fix_missing_locations(ast.Module([node], []))
        for name in names:
            code.setdefault(name, []).append(compile(module, name, "exec"))
    return code


def n_name(node):
    return node.name if isinstance(node, ast.FunctionDef) else ""
