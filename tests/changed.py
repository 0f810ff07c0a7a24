"""Run what a change touches: `python -m tests.changed [BASE]`.

The change is everything that differs from the commit BASE, new files included. Without
BASE it is everything since this branch left `main`.

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
import re
import subprocess
import sys
from types import CodeType

from tests.notebooks import START, execute, find_notebooks, names_in
from tests.repository import ROOT
from utils import checks

EXERCISES = "utils/checks/exercises/"
# Tests that a change concerns although they don't use its names.
OTHERS = {
    "notebooks/": ("seeds", "exercises"),
    "README.md": ("answers",),
    "CONTRIBUTING.md": ("contributing",),
    EXERCISES: ("answers", "exercises"),
    "utils/": ("drift",),
    "tests/answers/": ("answers",),
    "tests/seeds/": ("seeds",),
    "tests/notebooks.py": ("lab", "site"),
    ".ci/": ("site",),
}
# These have cases for each notebook or exercise, of which those of changed ones run.
BY_CASE = ("notebooks", "sections", "drift", "steps", "checks")
BY_CASE = [f"tests/test_{name}.py" for name in BY_CASE]


# ------------------------------------------------------------------- names


def content(code):
    """Return what some code does, whatever its locals are called."""
    consts = [content(c) if type(c) is CodeType else repr(c) for c in code.co_consts]
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_code, code.co_exceptiontable, code.co_names, arguments, consts


def definitions(source):
    """Return the codes of each top-level name of a module; "" is what has no name.

    The methods of a class without a base have names of their own, because only code
    that names them calls them; the `forward` of an `nn.Module` is called without it.
    """
    codes, nodes = {}, ast.parse(source).body
    for node in nodes:  # and the methods, which are added below
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef):
                if ast.get_docstring(inner) is not None:
                    inner.body[0] = ast.Pass()
        if isinstance(node, ast.ClassDef) and not node.bases:
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            methods = [n for n in methods if not n.name.startswith("__")]
            node.body = [n for n in node.body if n not in methods] or [ast.Pass()]
            nodes += methods
            for method in methods:
                method.name = f".{method.name}"
        named = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        stored = [n.id for n in named if isinstance(n.ctx, ast.Store)]
        imported = [alias.asname or alias.name for alias in getattr(node, "names", ())]
        names = [node.name] if hasattr(node, "name") else imported or stored or [""]
        module = ast.fix_missing_locations(ast.Module([node], []))
        for name in names:
            codes.setdefault(name, []).append(compile(module, "a module", "exec"))
    return codes


def changed_names(path, before):
    """Return (module, name) of what differs in a file from an earlier source of it."""
    after = path.read_text(encoding="utf-8") if path.exists() else ""
    old, new = definitions(before), definitions(after)
    changed = {
        name
        for name in old | new
        if [*map(content, old.get(name, []))] != [*map(content, new.get(name, []))]
    }
    if "" in changed:
        changed |= old.keys() | new.keys()
    return {qualified(path, name) for name in changed - {""}}


def qualified(path, name):
    """Return a name with the last part of its module's name.

    A method has the module "", because it is called without any module's name.
    """
    module = path.parent.name if path.stem == "__init__" else path.stem
    return ("", name[1:]) if name.startswith(".") else (module, name)


@functools.cache
def names_of_file(path):
    """Return what a file uses: names, modules and, in a test, fixtures."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    code = compile(text, path.name, "exec")
    names = names_in(code)
    for const in code.co_consts:
        if type(const) is CodeType:
            names.update(const.co_varnames[: const.co_argcount])
    return names.union(*(name.split(".") for name in names), [""])


def mentions(names, modules, changed):
    """Return whether one of the changed names and its module are mentioned.

    Who calls `solution` gets functions of the course without naming their modules.
    """
    return any(
        name in names and (module in modules or "solution" in modules)
        for module, name in changed
    )


@functools.cache
def uses(for_tests):
    """Return (a definition, the names it uses, its file's) for all of `utils`.

    Without the checks, which every notebook uses, each for its exercises; for tests
    with them and with what tests share.
    """
    found = []
    for path in [*ROOT.glob("utils/**/*.py"), *ROOT.glob("tests/*.py")]:
        is_left_out = not for_tests and {"checks", "tests"} & {*path.parts}
        if not (is_left_out or path.match("test_*.py")):
            modules = names_of_file(path) | {qualified(path, "")[0]}
            for name, codes in definitions(path.read_text(encoding="utf-8")).items():
                names = set().union(*map(names_in, codes))
                found.append((qualified(path, name), names, modules))
    return [each for each in found if each[0][1]]


def users(changed, for_tests):
    """Return what changed and what uses it, directly or through others."""
    found, new = {*changed}, {*changed}
    while new:
        new = {d for d, *used in uses(for_tests) if mentions(*used, new)} - found
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
        self.cases |= {f"[{id}" for id in re.findall(r'\bid="([\d.]+)"', source)}
        for page in [page for page in find_notebooks() if page.stem[3:] == path.stem]:
            solutions = f"solutions/{page.stem[:2]}_solutions.ipynb"
            self.compare |= {page, page.parent / solutions}
            self.cases.add(page.stem)

    def add_names(self, path, changed):
        """Add the notebooks and tests that use a changed name of a module."""
        in_tests = users(changed, for_tests=True)
        for test in [path, *ROOT.glob("tests/test_*.py")]:
            names = names_of_file(test) if test.exists() else ()
            if test == path or mentions(names, names, in_tests):
                self.tests.add(test.relative_to(ROOT).as_posix())
        if changed and ROOT / "utils" in path.parents:
            part = path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")
            self.tests.add(f"tests/test_{part}*.py")
            library = users(changed, for_tests=False)
            if "checks" in path.parts:  # other names are in notebooks by chance
                library = {pair for pair in changed if pair[1] in checks.__all__}
            pages = {p: names_of_file(p) for p in find_notebooks()}
            pages = {p for p, names in pages.items() if mentions(names, names, library)}
            self.compare |= pages
            if "plots" in path.parts:
                self.store |= pages
                self.redrawn |= {name for _, name in library}

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
        print("Ruff found something; nothing else has run.")
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
