"""Run what a change touches: `python -m tests.changed [BASE]`.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main`.

- After a change in `utils` or `tests` the docstring examples and the tests of that
  module run.
- A changed notebook is run and stored, and its minutes are copied into README and 00.
  Its solutions, and notebooks that import a changed name, are run and compared, or
  stored again if the change is in `utils/plots`.
- After a change in the checks of a notebook all answers to its exercises are judged,
  and 00, which has a map of all exercises, is stored again.
- Ruff, the tables of the README and the other tests of `test_repository.py` always run.

The quickest comes first. `--plan` only says what would be run.
"""

import argparse
import ast
import re
import subprocess
import sys
from typing import NamedTuple

import nbformat

from tests.repository import ROOT, imports, tool

TESTS = ROOT / "tests"
# The tests with one case for each notebook, or for each answer to an exercise.
BY_CASE = ("notebooks", "sections", "drift", "checks", "steps")
BY_CASE = [*(TESTS / f"test_{name}.py" for name in BY_CASE), TESTS / "answers"]
EXERCISES = ROOT / "utils/checks/exercises"
MAP = ROOT / "notebooks/00_start_here.ipynb"
TOUCH_EVERYTHING = ("conftest.py", "pyproject.toml", "requirements.txt")


class Plan(NamedTuple):
    """What to run: sets of notebooks, of test files and of words in names of cases."""

    execute: set
    compare: set
    tests: set
    cases: set


def git(*words):
    """Return what a git command prints, empty if it fails."""
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True).stdout.decode()


def changed_files(base):
    """Return the paths that differ from a commit, deleted and new files included."""
    listed = git("diff", "--name-only", "--no-renames", "-z", base)
    listed += git("ls-files", "--others", "--exclude-standard", "-z")
    return [ROOT / name for name in listed.split("\0") if name]


# ------------------------------------------------------------ from names to notebooks


def rename_locals(function):
    """Number the local names of a function, so that renaming one changes nothing."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    assigned = (name.id for name in names if isinstance(name.ctx, ast.Store))
    numbers = {name: f"_{i}" for i, name in enumerate(dict.fromkeys(assigned))}
    for name in names:
        name.id = numbers.get(name.id, name.id)


def definitions(source):
    """Return the code of each top-level name of a module, without docstrings."""
    code = {}
    for node in ast.parse(source).body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                if ast.get_docstring(inner) is not None:
                    inner.body[0] = ast.Pass()
            if isinstance(inner, ast.FunctionDef):
                rename_locals(inner)
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        names = [getattr(target, "name", ast.unparse(target)) for target in targets]
        code |= dict.fromkeys(names, ast.unparse(node))
    return code


def changed_names(path, base):
    """Return the top-level names of a module that changed or use a changed one."""
    old = git("show", f"{base}:{path.relative_to(ROOT).as_posix()}")
    new = path.read_text(encoding="utf-8") if path.exists() else ""
    before, after = definitions(old), definitions(new)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    words = {name: {*re.findall(r"\w+", code)} for name, code in after.items()}
    while more := {name for name in words.keys() - changed if words[name] & changed}:
        changed |= more
    return changed


def names_from_utils(path):
    """Return what a notebook imports from `utils`, and `x` where it calls `plots.x`."""
    cells, names = nbformat.read(path, as_version=4).cells, set()
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    for node in [node for source in code for node in ast.walk(ast.parse(source))]:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("utils"):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in names:
            names.add(node.attr)
    return names


# --------------------------------------------------------------- from files to a plan


def importers(paths, module):
    """Return which files import `module`, its full name split at the dots."""
    return {
        path
        for path in paths
        for name in imports(path.read_text(encoding="utf-8"))
        if name.split(".")[: len(module)] == module
    }


def importing_tests(module):
    """Return the tests that import a module, or else those of the modules that do."""
    if tests := importers(TESTS.rglob("test_*.py"), module):
        return tests
    users = importers((ROOT / "utils").glob("*.py"), module)
    return set().union(*(importing_tests(["utils", path.stem]) for path in users))


def subjects_of(path):
    """Return the subjects, such as `tokens`, of a file of checks or answers.

    Its name says which, or the exercises that import steps from it.
    """
    names, known = {path.stem, path.parent.name}, [*EXERCISES.glob("*.py")]
    if path.parent.name == "steps":
        module = ["utils", "checks", "steps", path.stem]
        return {user.stem for user in importers(known, module)}
    return names & {p.stem for p in known if p.stem != "__init__"}


def ids_of(subject):
    """Return how the names of the cases of a subject's exercises begin."""
    text = (EXERCISES / f"{subject}.py").read_text(encoding="utf-8")
    return {f"[{id}" for id in re.findall(r'id="([\d.]+)"', text)}


def with_solutions(notebook):
    """Return a notebook and the one that solves its exercises, which has its number."""
    return {notebook, *notebook.parent.glob(f"solutions/{notebook.name[:2]}_*.ipynb")}


def cases_of(notebook):
    """Return words that are in the names of a notebook's cases and of its answers."""
    text = notebook.read_text(encoding="utf-8")
    ids = re.findall(r'check\(\\"([\d.]+)', text)
    return {path.stem for path in with_solutions(notebook)} | {f"[{id}" for id in ids}


def make_plan(paths, base):
    """Return what changed files touch."""
    plan = Plan(set(), set(), set(), set())
    for path in paths:
        top, *inner = path.relative_to(ROOT).with_suffix("").parts
        subjects = subjects_of(path) if {"checks", "answers"} & {*inner} else set()
        if path.suffix == ".ipynb" and path.exists():
            plan.execute.add(path)
            plan.compare.update(with_solutions(path))
            plan.cases.update(cases_of(path))
        elif subjects:
            plan.tests.add(path)
            plan.cases.update(*map(ids_of, subjects))
            about = [n for n in tool.find_notebooks() if n.stem[3:] == path.stem]
            plan.compare.update(*map(with_solutions, about))
            plan.execute.update([MAP] if path.parent == EXERCISES else [])
        elif top == "utils" and path.suffix == ".py":
            plan.tests.update({path}, importing_tests([top, inner[0]]))
            names = changed_names(path, base)
            users = {p for p in tool.find_notebooks() if names_from_utils(p) & names}
            plan.compare.update(users)
            if inner[0] == "plots":
                plan.execute.update(users)
            if inner[0] not in ("plots", "checks", "clinic"):
                plan.tests.add(TESTS / "test_drift.py")
        elif top == "tests" and path.suffix == ".py":
            is_test = path.stem.startswith("test_")
            plan.tests.update([path] if is_test else importing_tests([top, inner[0]]))
        elif top == ".ci":
            names = "notebooks", "setup", "site"
            plan.tests.update(TESTS / f"test_{name}.py" for name in names)
    tests = {path for path in plan.tests if path.exists()}
    return plan._replace(tests=tests, compare=plan.compare - plan.execute)


def describe(paths):
    """Return the names of files in a line."""
    return ", ".join(sorted(p.relative_to(ROOT).as_posix() for p in paths)) or "nothing"


def run_pytest(*words):
    """Run pytest; return whether a test failed."""
    command = [sys.executable, "-m", "pytest", *map(str, words)]
    return subprocess.run(command, cwd=ROOT).returncode not in (0, 5)  # 5: no tests


def main():
    """Read the command line, say what the change touches, and run it."""
    parser = argparse.ArgumentParser(description="Run what a change touches.")
    start = git("merge-base", "main", "HEAD").strip() or "HEAD"
    parser.add_argument("base", nargs="?", default=start, help="a commit")
    parser.add_argument("--plan", action="store_true", help="only say what would run")
    given = parser.parse_args()
    if not git("rev-parse", "--verify", f"{given.base}^{{commit}}"):
        parser.error(f"expected a commit, got {given.base}")
    paths = changed_files(given.base)
    plan = make_plan(paths, given.base)
    cases = sorted(plan.cases)
    print(f"Changed since {given.base[:12]}: {describe(paths)}")
    print(f"Tests and examples: {describe(plan.tests)}")
    print(f"Notebooks to run and store: {describe(plan.execute)}")
    print(f"Cases of other tests: {', '.join(cases) or 'none'}")
    print(f"Notebooks to run and compare: {describe(plan.compare)}", flush=True)
    if given.plan:
        return False
    failed = run_pytest(*sorted(plan.tests)) if plan.tests else 0
    failed += tool.execute(sorted(plan.execute))
    failed += run_pytest(TESTS / "test_repository.py")
    if cases:
        failed += run_pytest(*BY_CASE, "-k", " or ".join(cases))
    if plan.compare:
        failed += run_pytest(*sorted(plan.compare))
    if any(path.name in TOUCH_EVERYTHING for path in paths):
        print("The change touches everything: run `python -m pytest`, too.")
    print("Something failed: see above." if failed else "All that it touches holds.")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
