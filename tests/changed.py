"""Run what a change touches: `python -m tests.changed [BASE]`.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main`.

1. Changed notebooks are run and stored, and their minutes copied into README and 00.
   So are notebooks that use a changed name of `utils/plots`, and 00 after a change in
   an exercise, because it has a map of all exercises.
2. Ruff runs, and the docstring examples of what changed, and its tests and those of all
   that imports it.
3. Notebooks that use another changed name of `utils`, and the solutions of a changed
   exercise, are run and compared.
"""

import argparse
import ast
import functools
import re
import subprocess
import sys

import nbformat

from tests.notebooks import START, execute, find_notebooks
from tests.repository import ROOT, imports
from utils import checks

# Tests that a change concerns without an import.
OTHERS = {
    "notebooks/": ("seeds", "exercises"),
    "utils/": ("drift", "exercises"),
    "tests/seeds/": ("seeds",),
    "tests/answers/": ("answers",),
    "tests/notebooks.py": ("lab",),
    "tests/browser.py": ("lab",),
    ".ci/": ("site",),
}
EXERCISES = "utils/checks/exercises/"
# These have cases for each notebook or exercise, of which those of changed ones run.
BY_CASE = ("notebooks", "sections", "drift", "steps", "checks", "answers")
BY_CASE = [f"tests/test_{name}.py" for name in BY_CASE]
EVERYTHING = ("conftest.py", "pyproject.toml", "requirements.txt")


def git(*words):
    """Return what a git command prints, empty if it fails."""
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True).stdout.decode()


def changed_files(base):
    """Return the names of files that differ from a commit, deleted and new ones too."""
    listed = git("diff", "--name-only", "--no-renames", "-z", base)
    listed += git("ls-files", "--others", "--exclude-standard", "-z")
    return listed.split("\0")[:-1]


def definitions(source):
    """Return the code of each top-level name of a module, without docstrings."""
    code = {}
    for node in ast.parse(source).body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                if ast.get_docstring(inner) is not None:
                    inner.body[0] = ast.Pass()
        targets = getattr(node, "targets", [node])  # not names inside a comprehension
        inner = [part for target in targets for part in ast.walk(target)]
        stored = [
            n.id for n in inner if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
        ]
        names = [node.name] if hasattr(node, "name") else stored
        code |= dict.fromkeys(names, ast.unparse(node))
    return code


def changed_names(name, base):
    """Return the names of a module that changed, and those of `utils` that use one."""
    path, code = ROOT / name, {}
    before = definitions(git("show", f"{base}:{name}"))
    after = definitions(path.read_text(encoding="utf-8") if path.exists() else "")
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    checks = ROOT / "utils/checks"  # which every notebook uses, each for its exercises
    for user in users(path):
        is_library = user.is_relative_to(ROOT / "utils") and checks not in user.parents
        if user.exists() and (is_library or user == path):
            code |= definitions(user.read_text(encoding="utf-8"))
    words = {name: {*re.findall(r"\w+", text)} for name, text in code.items()}
    while more := {name for name in words.keys() - changed if words[name] & changed}:
        changed |= more
    return changed


def words_of(notebook):
    """Return all words in the code of a notebook."""
    cells = nbformat.read(notebook, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    return {*re.findall(r"\w+", "\n".join(code))}


def affected_notebooks(files, base):
    """Return the notebooks to run and store, and those to run and compare."""
    store, compare, known = set(), set(), find_notebooks()
    for name in files:
        path = ROOT / name
        if path in known:
            store.add(path)
        if name.startswith("utils/") and path.suffix == ".py":
            names = changed_names(name, base)
            if name.startswith("utils/checks/"):  # other words are there by chance
                names &= {*checks.__all__}
            users = {notebook for notebook in known if words_of(notebook) & names}
            (store if name.startswith("utils/plots/") else compare).update(users)
        if name.startswith(EXERCISES):
            store.add(START)
            for notebook in known:
                if notebook.stem[3:] == path.stem:
                    solutions = f"solutions/{notebook.stem[:2]}_solutions.ipynb"
                    compare |= {notebook, notebook.parent / solutions}
    return sorted(store), sorted(compare - store)


def module_name(path):
    """Return the name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@functools.cache
def imported_names():
    """Map each file of `utils` and `tests` to what it imports, modules and names."""
    found = {}
    for path in [*(ROOT / "utils").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        names = imports(path.read_text(encoding="utf-8"))
        found[path] = {*names, *(name.rpartition(".")[0] for name in names)}
    # The catalogue imports the exercises by the names of the notebooks.
    exercises = {module_name(path) for path in (ROOT / EXERCISES).glob("*.py")}
    found[ROOT / "utils/checks/catalogue.py"] |= exercises
    return found


def users(path):
    """Return the files that import a module, directly or through others, and itself."""
    found, imported = {path}, imported_names()
    while True:
        modules = {module_name(user) for user in found}
        more = {user for user, names in imported.items() if names & modules} - found
        if not more:
            return found
        found |= more


def affected_tests(files):
    """Return the files with tests and examples to run."""
    tests = {"tests/test_repository.py"}
    for name in files:
        if name.startswith(EXERCISES):
            tests.add("tests/test_exercises.py")
            continue
        if name.startswith(("utils/", "tests/")):
            paths = [path.relative_to(ROOT) for path in users(ROOT / name)]
            tests |= {name, *(str(path) for path in paths if path.match("test_*.py"))}
        if name.startswith("utils/"):
            part = name.split("/")[1].removesuffix(".py")
            tests.add(f"tests/test_{part}*.py")
        for start, others in OTHERS.items():
            if name.startswith(start):
                tests |= {f"tests/test_{other}.py" for other in others}
    paths = {path for test in tests for path in ROOT.glob(test)}
    return sorted(path for path in paths if path.suffix == ".py")


def affected_cases(files):
    """Return words in the names of the cases of changed notebooks and exercises."""
    paths = [ROOT / name for name in files if (ROOT / name).exists()]
    cases = [path.stem for path in paths if path.suffix == ".ipynb"]
    for path in paths:
        if path.is_relative_to(ROOT / EXERCISES):
            ids = re.findall(r'\bid="([\d.]+)"', path.read_text(encoding="utf-8"))
            cases += [f"[{id}" for id in ids]
    return cases


def run_pytest(*words):
    """Run pytest; return whether a test failed."""
    command = [sys.executable, "-m", "pytest", *map(str, words)]
    return subprocess.run(command, cwd=ROOT).returncode != 0


def main():
    """Read the command line, and run what the change touches."""
    parser = argparse.ArgumentParser(description="Run what a change touches.")
    start = git("merge-base", "main", "HEAD").strip() or "HEAD"
    parser.add_argument("base", nargs="?", default=start, help="a commit")
    base = parser.parse_args().base
    if not git("rev-parse", "--verify", f"{base}^{{commit}}"):
        parser.error(f"expected a commit, got {base}")
    files = changed_files(base)
    print(f"Changed since {base[:12]}: {', '.join(files) or 'nothing'}", flush=True)
    store, compare = affected_notebooks(files, base)
    for verb, notebooks in ("stored", store), ("compared", compare):
        names = ", ".join(notebook.stem for notebook in notebooks)
        print(f"Notebooks to be {verb}: {names or 'none'}", flush=True)
    failed = execute(store)
    failed += run_pytest(*affected_tests(files))
    if cases := affected_cases(files):
        failed += run_pytest(*BY_CASE, "-k", " or ".join(cases))
    if compare:
        failed += run_pytest("--full", *compare)
    if any(name.endswith(EVERYTHING) or name.startswith("data/") for name in files):
        print("The change touches everything: run `python -m pytest`, too.")
    print("Something failed: see above." if failed else "All that it touches holds.")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
