"""Run what a change touches: `python -m tests.changed [BASE]`; see tests/README.md.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main`. What a function or class uses are
the names in its code that its module defines or imports.
"""

import argparse
import ast
import functools
import itertools
import json
import re
import subprocess
import sys

from tests import conftest
from tests.notebooks import START, execute, find_notebooks
from tests.repository import ROOT
from utils.checks.catalogue import ASKED, course_version, exercises

EXERCISES = "utils/checks/exercises/"
# Tests that a change concerns although they don't use its names.
OTHERS = {
    "notebooks/": ("seeds", "exercises"),
    "README.md": ("answers",),
    "CONTRIBUTING.md": ("contributing",),
    "utils/checks/": ("answers", "exercises"),
    "utils/": ("borders", "drift"),
    "tests/answers/": ("answers",),
    "tests/seeds/": ("seeds",),
    "tests/notebooks.py": ("lab", "site"),
    ".ci/": ("site",),
}
# These have cases for each notebook or exercise, of which those of changed ones run.
BY_CASE = ("notebooks", "sections", "drift", "mistakes", "checks")
BY_CASE = [f"tests/test_{name}.py" for name in BY_CASE]


# ------------------------------------------------------------------- names


def code_by_name(source):
    """Return what defines each top-level name of a module; "" is what has no name.

    Comments and docstrings are left out, and local variables have numbers for names.
    """
    tree, found = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body[0] = ast.Pass()
        for part in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(part, ast.FunctionDef):
                _number_locals(part)
    for node in tree.body:
        named = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        names = [n.id for n in named if isinstance(n.ctx, ast.Store)]
        names += [alias.asname or alias.name for alias in getattr(node, "names", ())]
        for name in [node.name] if hasattr(node, "name") else names or [""]:
            found[name] = found.get(name, "") + ast.unparse(node) + "\n"
    return found


def _number_locals(function):
    """Rename the variables that a function assigns, in their order: 0, 1, …"""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    stored = dict.fromkeys(n.id for n in nodes if isinstance(n.ctx, ast.Store))
    parameters = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    own = [name for name in stored if name not in parameters]
    numbers = {name: str(number) for number, name in enumerate(own)}
    for node in nodes:
        node.id = numbers.get(node.id, node.id)


def changed_names(path, before):
    """Return the full names of what differs in a module from its earlier source."""
    after = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = code_by_name(before), code_by_name(after)
    changed = {name for name in old | new if old.get(name) != new.get(name)}
    if "" in changed:
        changed = old.keys() | new.keys()
    return {f"{module_of(path)}.{name}" for name in changed - {""}}


def module_of(path):
    """Return the full name of a module, such as utils.plots.chart."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def uses(code, scope):
    """Return the full names in some code, `utils.plots.chart.heat` for `chart.heat`.

    scope: dict from what the code can name to full names
    """
    used = set()
    for word in re.findall(r"[\w.]+", code):
        first, *others = word.split(".")
        if first in scope:
            used |= {*itertools.accumulate([scope[first], *others], "{}.{}".format)}
    return used


def imported(source):
    """Return a dict from each name that some code imports to its full name."""
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)]
    pairs = [(node.module, alias) for node in nodes for alias in node.names]
    return {alias.asname or alias.name: f"{m}.{alias.name}" for m, alias in pairs}


@functools.cache
def uses_of_file(path):
    """Return the full names that a test or a notebook uses.

    A test uses fixtures, and a notebook `solution("4.1")`, without importing them.
    """
    source = path.read_text(encoding="utf-8")
    scope = {name: f"tests.conftest.{name}" for name in dir(conftest)}
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(source)["cells"] if c["cell_type"] == "code"]
        source, scope = "\n".join("".join(cell["source"]) for cell in cells), {}
        for each in exercises() if "solution(" in source else ():
            if finished := course_version(each):
                scope[each.name] = f"{finished.__module__}.{each.name}"
    return uses(source, scope | imported(source))


@functools.cache
def graph():
    """Return the full names that each definition of `utils` and the tests uses."""
    found = {}
    for path in [*ROOT.glob("utils/**/*.py"), *ROOT.glob("tests/*.py")]:
        source, module = path.read_text(encoding="utf-8"), module_of(path)
        codes = code_by_name(source)
        scope = {name: f"{module}.{name}" for name in codes} | imported(source)
        found |= {f"{module}.{name}": uses(codes[name], scope) for name in codes}
    return found


def users(changed):
    """Return what changed and what uses it, directly or through others."""
    found, new = {*changed}, {*changed}
    while new:
        new = {name for name, used in graph().items() if used & new} - found
        found |= new
    return found


# ------------------------------------------------------------------- what to run


class Touched:
    """What a change of some files since a commit touches.

    store, compare: notebooks to run and store, and to run and compare
    redrawn: names whose figures may have changed
    tests, cases: files with tests and examples, and words in the names of BY_CASE
    """

    def __init__(self, files, base):
        self.store, self.compare, self.redrawn = set(), set(), set()
        self.tests, self.cases = {"tests/test_repository.py"}, set()
        for name in files:
            for start, others in OTHERS.items():
                if name.startswith(start):
                    self.tests |= {f"tests/test_{other}.py" for other in others}
            path = ROOT / name
            if path in find_notebooks():
                self.store.add(path)
            elif name.startswith(EXERCISES):
                self.add_exercises(path)
            elif path.suffix == ".py" and name.startswith(("utils/", "tests/")):
                before = git("show", f"{base}:{name}")
                self.add_names(path, changed_names(path, before))
        self.compare -= self.store
        self.cases |= {path.stem for path in self.store}

    def add_exercises(self, path):
        """Add 00 and what concerns the exercises of a notebook."""
        self.store.add(START)
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        ids = {*re.findall(r'\bid="([\d.]+)"', source)}
        self.cases |= {f"[{id}" for id in ids}
        for name in [page for page, asked in ASKED.items() if ids & {*asked}]:
            self.compare.add(ROOT / f"notebooks/{name}.ipynb")
            if "deeper" not in name:
                solutions = f"notebooks/solutions/{name[:2]}_solutions.ipynb"
                self.compare.add(ROOT / solutions)
                self.cases.add(name)

    def add_names(self, path, changed):
        """Add the notebooks and tests that use a changed name of a module."""
        concerned = users(changed)
        for test in ROOT.glob("tests/test_*.py"):
            if test == path or uses_of_file(test) & concerned:
                self.tests.add(test.relative_to(ROOT).as_posix())
        if changed and ROOT / "utils" in path.parents:
            part = path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")
            self.tests |= {f"tests/test_{part}*.py", path.relative_to(ROOT).as_posix()}
            self.tests |= {"tests/test_mistakes.py"} if part == "checks" else set()
            # Not through the checks, because every notebook calls them.
            library = {n for n in concerned if not n.startswith("utils.checks")}
            pages = {page for page in find_notebooks() if uses_of_file(page) & library}
            self.compare |= pages
            if part == "plots":
                self.store |= pages
                self.redrawn |= {name.rpartition(".")[2] for name in library}

    def pytest_runs(self):
        """Return the words for each run of pytest."""
        paths = {path for test in self.tests for path in ROOT.glob(str(test))}
        runs = [sorted(path for path in paths if path.suffix == ".py")]
        if self.cases:
            runs.append([*BY_CASE, "-k", " or ".join(sorted(self.cases))])
        if self.compare:
            runs.append(["--full", *sorted(self.compare)])
        return [[*map(str, words)] for words in runs]


# ------------------------------------------------------------------- run


def git(*words):
    """Return what a git command prints, empty if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    return done.stdout.decode()


def run(*words):
    """Run a module of this Python; return whether it failed."""
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode != 0


def announce(base, files, touched, runs):
    """Print how many steps there are, how long they take, and what they are."""
    words = [word for words in runs for word in words]
    notebooks = len(touched.store) + sum(".ipynb" in word for word in words)
    tests = sum(".py" in word for word in words)
    minutes = max(1, round((12 * notebooks + 10 * tests) / 60))
    print(
        f"{1 + bool(touched.store) + len(runs)} steps, {minutes} min or so on two "
        "quiet cores; Ctrl-C leaves the rest to `.ci/run`.\n"
        f"Changed since {base[:12]}: {', '.join(files) or 'nothing'}"
    )
    for verb, paths in ("stored", touched.store), ("compared", touched.compare):
        names = ", ".join(sorted(path.stem for path in paths))
        print(f"Notebooks to be {verb}: {names or 'none'}", flush=True)


def main():
    """Read the command line, and run what the change touches."""
    parser = argparse.ArgumentParser(description="Run what a change touches.")
    parser.add_argument("base", nargs="?", help="a commit")
    given = parser.parse_args().base
    base = given or git("merge-base", "main", "HEAD").strip() or "HEAD"
    if not git("rev-parse", "--verify", f"{base}^{{commit}}"):
        parser.error(f"expected a commit, got {base}")
    files = git("diff", "--name-only", "--no-renames", "-z", base).split("\0")
    files += git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
    files = [*filter(None, files)]
    touched = Touched(files, base)
    runs = touched.pytest_runs()
    announce(base, files, touched, runs)
    if run("ruff", "check", "--quiet") or run("ruff", "format", "--check", "--quiet"):
        print("Ruff found something; nothing else has run. `ruff format` mends layout.")
        return True
    failed = execute(sorted(touched.store), touched.redrawn)
    failed += [words for words in runs if run("pytest", *words)]
    print("Something failed: see above." if failed else "All that it touches holds.")
    return bool(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
