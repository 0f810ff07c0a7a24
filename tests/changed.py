"""Run what a change touches: `python -m tests.changed [BASE]`; see tests/README.md.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main`. What a function or class uses are
the names in its code that its module defines or imports.
"""

import argparse
import ast
import fnmatch
import functools
import itertools
import json
import re
import subprocess
import sys
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType

from tests import conftest
from tests.notebooks import START, execute, find_notebooks
from tests.repository import ROOT
from utils.checks.catalogue import ASKED, course_version, exercises

EXERCISES = "utils/checks/exercises/"
EVERYTHING = None
# What a changed file concerns: the first row that fits it names the tests that can't be
# found by names. A file without a row concerns everything, and so does a deleted one.
ROWS = {
    "notebooks/*.ipynb": ["seeds", "exercises"],
    "utils/checks/*.py": ["answers", "exercises", "mistakes", "borders", "drift"],
    "utils/*.py": ["borders", "drift"],
    "tests/conftest.py": EVERYTHING,
    "tests/tolerance.py": EVERYTHING,  # `conftest.py` compares all notebooks with it
    "tests/notebooks.py": ["lab", "notebooks", "site"],
    "tests/answers/*.py": ["answers"],
    "tests/seeds/*": ["seeds"],
    "tests/*.py": [],
    "tests/README.md": ["contributing"],
    "CONTRIBUTING.md": ["contributing", "notebooks"],
    "README.md": ["answers", "notebooks"],
    "*.md": [],
    ".ci/site*": ["site"],
    ".ci/pages/*": ["site"],
}
TEST = "tests/test_{}.py".format
# What takes seconds runs first. Most have cases for each notebook or exercise: of those
# only the changed ones run, unless the whole file is concerned.
QUICK = [*map(TEST, ("repository", "exercises", "notebooks", "sections"))]
BY_CASE = [*map(TEST, ("drift", "mistakes", "checks"))]


# ------------------------------------------------------------------- names


def code_by_name(source):
    """Return what defines each top-level name of a module; "" is what has no name.

    Comments and docstrings are left out.
    """
    tree, found = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    for node in tree.body:
        named = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        names = [n.id for n in named if isinstance(n.ctx, ast.Store)]
        names += [alias.asname or alias.name for alias in getattr(node, "names", ())]
        for name in [node.name] if hasattr(node, "name") else names or [""]:
            found[name] = found.get(name, "") + ast.unparse(node) + "\n"
    return found


def bytecode(code):
    """Return some code compiled, without its lines and the names of local variables."""
    if isinstance(code, str):
        code = compile(code, "", "exec")
    num_parameters = code.co_argcount + code.co_kwonlyargcount
    num_parameters += (code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)).bit_count()
    names = [
        str(i) if i >= num_parameters else n for i, n in enumerate(code.co_varnames)
    ]
    consts = [bytecode(c) if isinstance(c, CodeType) else c for c in code.co_consts]
    hidden = {"co_firstlineno": 1, "co_linetable": b"", "co_varnames": (*names,)}
    return code.replace(**hidden, co_consts=(*consts,))


def changed_names(path, before):
    """Return the full names of what differs in a module from its earlier source."""
    after = path.read_text(encoding="utf-8")
    old, new = code_by_name(before), code_by_name(after)
    # The checks read the names of local variables.
    form = str if {"checks", "answers"} & {*path.parts} else bytecode
    changed = {n for n in old | new if form(old.get(n, "")) != form(new.get(n, ""))}
    if "" in changed:
        changed = old.keys() | new.keys()
    return {f"{module_of(path)}.{name}".removesuffix(".") for name in changed}


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
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]  # `import a.b` defines `a`
                found[alias.asname or first] = alias.name if alias.asname else first
    return found


def code_of(source):
    """Return the code of a notebook that is given as JSON, "" if there is none."""
    cells = json.loads(source)["cells"] if source else []
    code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(map("".join, code))


@functools.cache
def uses_of_file(path):
    """Return the full names that a test or a notebook uses.

    A test uses fixtures, and a notebook `solution("4.1")`, without importing them. A
    notebook is used by what names it, as in `definitions("01_tokens")`.
    """
    source = path.read_text(encoding="utf-8")
    scope = {name: f"tests.conftest.{name}" for name in dir(conftest)}
    if path.suffix == ".ipynb":
        source, scope = code_of(source), {}
        for exercise in exercises() if "solution(" in source else ():
            if finished := course_version(exercise):
                scope[exercise.name] = f"{finished.__module__}.{exercise.name}"
    named = {f"{name}.ipynb" for name in re.findall(r'"([\w/]+)"', source)}
    return named | uses(source, scope | imported(source))


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
    unknown: files that concern everything
    """

    def __init__(self, files, base):
        self.store, self.compare, self.redrawn = set(), set(), set()
        self.tests, self.cases = {"tests/test_repository.py"}, set()
        self.unknown = []
        for name in files:
            path = ROOT / name
            fitting = [row for row in ROWS if fnmatch.fnmatchcase(name, row)]
            others = ROWS[fitting[0]] if fitting and path.exists() else EVERYTHING
            if others is EVERYTHING:
                self.unknown.append(name)
                continue
            others = {*map(TEST, others)}
            before = git("show", f"{base}:{name}")
            if path in find_notebooks():
                self.store.add(path)
                if code_of(path.read_text(encoding="utf-8")) != code_of(before):
                    self.add_users({path.relative_to(ROOT / "notebooks").as_posix()})
            elif name.startswith(EXERCISES) and path.stem != "__init__":
                self.add_exercises(path)
            elif "utils/*.py" in fitting or "tests/*.py" in fitting:
                changed = changed_names(path, before)
                self.add_names(path, changed)
                others = others if changed else set()
            self.tests |= others
        self.compare -= self.store
        self.cases |= {path.stem for path in self.store}

    def add_users(self, names):
        """Add the tests and notebooks that use one of these names; return these."""
        tests, pages = ROOT.glob("tests/test_*.py"), find_notebooks()
        used = [test for test in tests if uses_of_file(test) & names]
        self.tests |= {test.relative_to(ROOT).as_posix() for test in used}
        # Not through the checks, because every notebook calls them.
        library = {name for name in names if not name.startswith("utils.checks")}
        pages = {page for page in pages if uses_of_file(page) & library}
        self.compare |= pages
        return pages

    def add_exercises(self, path):
        """Add 00 and what concerns the exercises of a notebook."""
        self.store.add(START)
        source = path.read_text(encoding="utf-8")
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
        self.tests.add(path.relative_to(ROOT).as_posix())
        concerned = users(changed)
        pages = self.add_users(concerned)
        if changed and ROOT / "utils" in path.parents:
            part = path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")
            self.tests.add(f"tests/test_{part}*.py")
            if part == "plots":
                self.store |= pages
                drawn = {n for n in concerned if not n.startswith("utils.checks")}
                self.redrawn |= {name.rpartition(".")[2] for name in drawn}

    def pytest_runs(self):
        """Return the words for each run of pytest; without words it runs everything."""
        paths = {path for test in self.tests for path in ROOT.glob(test)}
        names = {path.relative_to(ROOT).as_posix() for path in paths}
        whole = {name.removeprefix("tests/") for name in names & {*QUICK}}
        runs = [[*QUICK, "-k", " or ".join(sorted(whole | self.cases))]]
        if self.unknown:
            runs.append([])
        if others := sorted(names - {*QUICK}):
            runs.append(others)
        if self.cases:
            runs.append([*BY_CASE, "-k", " or ".join(sorted(self.cases))])
        if self.compare:
            runs.append(["--full", *map(str, sorted(self.compare))])
        return runs


# ------------------------------------------------------------------- run


def git(*words):
    """Return what a git command prints, empty if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    return done.stdout.decode()


def run(*words):
    """Run a module of this Python; return whether it failed."""
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode != 0


def announce(base, files, touched, runs):
    """Print how long it takes, what takes longest, and what the change touches."""
    tests = sum(word.endswith(".py") for words in runs for word in words)
    lines = [f"Changed since {base[:12]}: {', '.join(files) or 'nothing'}"]
    if touched.unknown:
        lines.append(f"All of pytest runs, for {', '.join(touched.unknown)}")
    seconds = {"the tests": 10 * tests, "all tests": 300 * bool(touched.unknown)}
    for verb, paths in ("stored", touched.store), ("compared", touched.compare):
        seconds[f"the notebooks to be {verb}"] = 12 * len(paths)
        names = ", ".join(sorted(path.stem for path in paths))
        lines.append(f"Notebooks to be {verb}: {names or 'none'}")
    minutes, longest = sum(seconds.values()) / 60, max(seconds, key=seconds.get)
    about = f"About {minutes:.0f} min on two quiet cores, most of it for {longest}."
    print(about, *lines, sep="\n", flush=True)


def main():
    """Read the command line, and run what the change touches."""
    parser = argparse.ArgumentParser(description="Run what a change touches.")
    parser.add_argument("base", nargs="?", help="a commit")
    base = parser.parse_args().base
    base = base or git("merge-base", "main", "HEAD").strip() or "HEAD"
    if not git("rev-parse", "--verify", f"{base}^{{commit}}"):
        parser.error(f"expected a commit, got {base}")
    files = git("diff", "--name-only", "--no-renames", "-z", base).split("\0")
    files += git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
    files = [*filter(None, files)]
    touched = Touched(files, base)
    quick, *others = runs = touched.pytest_runs()
    announce(base, files, touched, runs)
    if run("ruff", "check", "--quiet") or run("ruff", "format", "--check", "--quiet"):
        print("Ruff found something; nothing else has run. `ruff format` mends layout.")
        return True
    if execute(sorted(touched.store), touched.redrawn) or run("pytest", *quick):
        print("Something failed: see above; nothing else has run.")
        return True
    failed = [words for words in others if run("pytest", *words)]
    print("Something failed: see above." if failed else "All that it touches holds.")
    return bool(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
