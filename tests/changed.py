"""Run what a change touches: `python -m tests.changed [BASE] [--all]`.

If the code of a file has changed, the tests and notebooks run that use it, directly or
through others; what imports don't show is in the table ROWS. See tests/README.md.
"""

import argparse
import ast
import fnmatch
import re
import subprocess
import sys

from tests.repository import ROOT

if __name__ == "__main__":  # now, because a syntax error stops the imports below
    for words in "check -q", "format --check -q":
        if subprocess.call([sys.executable, "-m", "ruff", *words.split()], cwd=ROOT):
            sys.exit("Ruff found this; nothing else ran. `ruff format` mends layout.")
from tests.dependencies import (
    code_of,
    definitions_of,
    differ,
    names_touched,
    used_by,
    users,
)
from tests.notebooks import START, execute, find_notebooks

EVERYTHING = "everything"
# The tests that a changed file concerns besides those that import it. The first row
# that fits counts. A file without a row, or a deleted one, concerns everything.
ROWS = {
    "notebooks/*.ipynb": "drift seeds",
    "utils/checks/*.py": "answers borders checks clinic drift mistakes",
    "utils/*.py": "borders drift",
    "tests/conftest.py": EVERYTHING,
    "tests/tolerance.py": EVERYTHING,  # `conftest.py` compares all notebooks with it
    "tests/notebooks.py": "lab notebooks site",
    "tests/browser.py": "lab plot_steps site",  # through a fixture
    "tests/answers/*.py": "answers checks",
    "tests/seeds/*": "seeds",
    "tests/*.py": "",
    "tests/README.md": "contributing",
    "CONTRIBUTING.md": "contributing",
    "README.md": "answers",
    "*.md": "",
    ".ci/site*": "site",
    ".ci/pages/*": "site",
}
TEST = "tests/test_{}.py".format
# What takes seconds runs after every change, before anything else.
QUICK = [*map(TEST, ("repository", "notebooks", "sections", "exercises"))]


class Plan:
    """What runs after a change of some files since a commit.

    store, compare, more: notebooks, to be stored, compared, or compared with --all
    redrawn: names whose figures may be new
    tests: files with tests or examples, besides QUICK
    unknown: changed files that concern everything
    """

    def __init__(self, files, base, every=False):
        self.store, self.compare, self.redrawn = set(), set(), set()
        self.tests, self.unknown = set(), []
        for name in files:
            rows = [row for row in ROWS if fnmatch.fnmatchcase(name, row)]
            tests = ROWS[rows[0]] if rows and (ROOT / name).exists() else EVERYTHING
            if tests == EVERYTHING:
                self.unknown.append(name)
            elif name.endswith(".py"):
                if not name.startswith(".ci/"):
                    self.tests.add(ROOT / name)  # its examples, also after a new text
                self.add_code(ROOT / name, tests, git("show", f"{base}:{name}"))
            elif name.endswith(".ipynb"):
                self.store.add(ROOT / name)
                self.add_tests(tests)
                self.add_code(ROOT / name, tests, git("show", f"{base}:{name}"))
            else:
                self.add_tests(tests)
        # Those first that use a changed file directly, and of these the shortest.
        changed = {ROOT / name for name in files}
        near = [(not used_by(p) & changed, len(code_of(p)), p) for p in self.compare]
        near = [path for *_, path in sorted(near) if path not in self.store]
        few = near if every else near[:3]
        self.compare, self.more = {*few}, {*near} - {*few}
        self.tests -= {ROOT / name for name in QUICK}

    def add_tests(self, names):
        """Add tests by what follows `test_` in their names."""
        self.tests |= {t for n in names.split() for t in ROOT.glob(TEST(n))}

    def add_code(self, path, tests, before):
        """Add what uses a module or notebook, and these tests, if its code differs."""
        if not differ(path, before):
            return
        self.add_tests(tests)
        self.tests |= {file for file in users(path) if file.name.startswith("test_")}
        # Not through the checks, because every notebook calls them.
        files = users(path, apart=ROOT.glob("utils/checks/**/*.py"))
        pages = files.intersection(find_notebooks())
        folder, part = path.relative_to(ROOT).parts[:2]
        if folder == "utils":
            self.add_tests(f"{part.removesuffix('.py')}*")
        if part == "plots":
            modules = [*path.parent.glob("*.py")]
            names = names_touched(path, before, modules)
            places = "|".join(["plots", *(module.stem for module in modules)])
            calls = re.compile(rf"\b({places})\.({'|'.join(names)})\(")
            callers = {file for file in files if calls.search(code_of(file))}
            pages &= set().union(*map(users, callers))
            self.store |= pages
            self.redrawn |= names
            for caller in callers:  # of a module all names, as one may draw by another
                draws = re.compile("") if caller.suffix == ".py" else calls
                pairs = definitions_of(code_of(caller))
                self.redrawn |= {n for n, x in pairs if draws.search(ast.unparse(x))}
        elif path.parent.name == "exercises":
            self.store.add(START)
            ids = re.findall(r'\bid="([\d.]+)"', code_of(path))
            calls = re.compile(rf'check\("({"|".join(ids)})"')
            pages = {page for page in find_notebooks() if calls.search(code_of(page))}
        self.compare |= pages

    def pytest_runs(self):
        """Return the words for each run of pytest; without words it runs everything."""
        runs = [QUICK] + [[]] * bool(self.unknown)
        for options, paths in ([], self.tests), (["--full"], self.compare):
            if paths:
                names = sorted(path.relative_to(ROOT).as_posix() for path in paths)
                runs.append(options + names)
        return runs


def git(*args):
    """Return what a git command prints, empty if it fails."""
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True).stdout.decode()


def fails(*words):
    """Run a module of this Python; return whether it failed."""
    code = subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode
    return code not in (0, 5)  # 5: pytest found no examples in the changed files


def announce(base, files, plan):
    """Print how long it takes, what takes longest, and what the change touches."""
    seconds = {
        "the tests": 10 * len({*plan.tests, *QUICK}),
        "all tests": 300 * bool(plan.unknown),
        "the notebooks to be stored": 12 * len(plan.store),
        "the notebooks to be compared": 12 * len(plan.compare),
    }
    minutes, longest = sum(seconds.values()) / 60, max(seconds, key=seconds.get)
    more = f" ({minutes + len(plan.more) / 5:.0f} with --all)" * bool(plan.more)
    print(f"About {minutes:.0f} min{more} on two quiet cores, most for {longest}.")
    print(f"Changed since {base[:12]}: {', '.join(files) or 'nothing'}")
    if plan.unknown:
        print(f"All of pytest runs, for {', '.join(plan.unknown)}")
    if plan.more:
        print(f"{len(plan.more)} more notebooks use it: CI runs them, and --all here.")
    for verb, paths in ("stored", plan.store), ("compared", plan.compare):
        names = ", ".join(sorted(path.stem for path in paths))
        print(f"Notebooks to be {verb}: {names or 'none'}", flush=True)


def main():
    """Read the command line, and run what the change touches."""
    parser = argparse.ArgumentParser(description="Run what a change touches.")
    parser.add_argument("base", nargs="?", help="compare with this commit, not main")
    parser.add_argument("--all", action="store_true", help="compare all notebooks")
    given = parser.parse_args()
    base = given.base or git("merge-base", "main", "HEAD").strip() or "HEAD"
    if not git("rev-parse", "--verify", f"{base}^{{commit}}"):
        parser.error(f"expected a commit, got {base}")
    files = git("diff", "--name-only", "--no-renames", "-z", base).split("\0")
    files += git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
    files = [*filter(None, files)]
    plan = Plan(files, base, given.all)
    announce(base, files, plan)
    quick, *others = plan.pytest_runs()
    if execute(sorted(plan.store), plan.redrawn) or fails("pytest", *quick):
        print("Something failed: see above; nothing else has run.")
        return True
    failed = [words for words in others if fails("pytest", *words)]
    more = f"; {len(plan.more)} more notebooks use the change: --all" * bool(plan.more)
    print("Something failed: see above." if failed else f"All that ran holds{more}.")
    return bool(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
