"""Test a change: `python -m tests.changed [BASE]`.

It finds what differs from the commit BASE, and what uses that, also through others.
Notebooks that differ, or use a drawing that does, are stored. Then tests run that take
seconds, and all tests, notebooks and examples in docstrings that use a difference. If
the users of a file can't be found, as of `pyproject.toml`, it is the quick run.
"""

import argparse
import ast
import json
import re
import subprocess
import sys

from tests.repository import LONG, ROOT, as_python, files, imports

START, PLOTS = "notebooks/00_start_here.ipynb", "utils.plots."
TEST = "tests/test_{}.py".format
# The tests of what notebooks and texts say, which take seconds.
TEXTS = [*map(TEST, "exercises drift notebooks repository sections seeds".split())]
# Names show who uses this code; exercises and answers to them are found by a number.
FOLLOWED = r"(utils/(?!checks/)|tests/(?!answers/)|notebooks/).*\.(py|ipynb)"
is_followed = re.compile(FOLLOWED).fullmatch
TESTED = re.compile(r"\.ipynb$|^utils/.*\.py$|/test_\w+\.py$")
TESTS_FOR = {  # of other folders
    "utils/update.py": "update",  # which runs it as a reader does
    "utils/checks/": "answers borders checks clinic contributing mistakes",
    "tests/answers/": "answers checks",
    ".ci/": "site",
}


def git(*words, may_fail=False):
    """Return what a git command prints; stop if it fails, unless it may."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    if done.returncode and not may_fail:
        sys.exit(f"git {' '.join(words)} failed: {done.stderr.decode().strip()}")
    return done.stdout.decode().strip()


def find_base(given):
    """Return the commit with this name, or where HEAD left main; empty if none is."""
    mains = "refs/heads/main", "refs/remotes/origin/main"
    mains = git("for-each-ref", "--format=%(refname)", *mains).split()
    if given is None and mains:
        given = git("merge-base", "HEAD", mains[0])
    is_commit = "rev-parse", "--verify", "--quiet", "--end-of-options"
    return git(*is_commit, f"{given}^{{commit}}", may_fail=True) if given else ""


def dotted(name):
    """Return the name of a file, or of a page of `definitions`, as in an import."""
    return name.removeprefix("notebooks/").replace("/", ".")


def read_code(name, text):
    """Return the code of a file, for a notebook that of all cells."""
    if not name.endswith(".ipynb"):
        return text
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    return "\n".join(as_python("".join(cell["source"])) for cell in cells)


def number_locals(function):
    """Number the local names of a function, so that a renamed one is no difference.

    Not those of comprehensions, which may hide a name that the function uses.
    """
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    loops = [n for n in ast.walk(function) if isinstance(n, ast.comprehension)]
    hidden = {n.id for loop in loops for n in ast.walk(loop.target) if n in names}
    stored = [
        n.id for n in names if isinstance(n.ctx, ast.Store) and n.id not in hidden
    ]
    for name in names:
        if name.id in stored:
            name.id = f"local_{stored.index(name.id)}"


def read_definitions(name, text):
    """Return what a file defines, by full name: its code, and the full names it uses.

    In notebook 08, "08_tiny_gpt.f" is a function, "08_tiny_gpt." are the statements
    that define nothing, and `definitions("08_tiny_gpt")` uses "08_tiny_gpt".
    """
    module = re.sub(r"(\.__init__)?\.\w+$", "", dotted(name))
    code = read_code(name, text)
    tree, imported = ast.parse(code), dict(imports(code))
    found = {f"{module}.{alias}": ("", {full}) for alias, full in imported.items()}
    for node in ast.walk(tree):  # docstrings don't count
        is_described = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if is_described and ast.get_docstring(node):
            del node.body[0]
        if isinstance(node, ast.FunctionDef):
            number_locals(node)
    for node in tree.body:
        used, assigned = set(), set()
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                used.add(dotted(part.value))
            elif isinstance(part, ast.Name | ast.Attribute):
                first, *rest = ast.unparse(part).split(".")
                used.add(".".join([imported.get(first, f"{module}.{first}"), *rest]))
                assigned |= {first} if isinstance(part.ctx, ast.Store) else set()
        for own in {node.name} if hasattr(node, "name") else assigned or {""}:
            before, others = found.get(f"{module}.{own}", ("", set()))
            found[f"{module}.{own}"] = before + ast.dump(node), others | used
    if name.endswith(".ipynb"):
        found[module] = "", found.keys() - {f"{module}."}
    return found


def read_course():
    """Return the definitions of all files, and what `solution("11.2")` stands for."""
    from utils.checks import catalogue  # not before Ruff has found a syntax error

    course = {"exercises": {}}
    for id, exercise in catalogue.exercises().items():
        if (own := exercise.course) and not exercise.same_as:
            course["exercises"][id] = "", {f"{own.__module__}.{own.__name__}"}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if is_followed(name):
            course[name] = read_definitions(name, path.read_text("utf-8"))
    return course


def find_changed(base, names, course):
    """Return for each of these files the definitions that differ from the base."""
    known, changed = git("ls-tree", "-r", "-z", "--name-only", base).split("\0"), {}
    for name in filter(is_followed, names):
        is_old, new = name in known, course.get(name, {})
        old = read_definitions(name, git("show", f"{base}:{name}")) if is_old else {}
        changed[name] = {d for d in {*old, *new} if old.get(d) != new.get(d)}
    return changed


def find_users(changed, course):
    """Return these definitions, and those that use one of them, also through others."""
    uses = {d: used for found in course.values() for d, (_, used) in found.items()}
    while more := {d for d in uses.keys() - changed if changed & uses[d]}:
        changed = changed | more
    return changed


def find_drawings(changed, course):
    """Return the definitions in `utils/plots` among these and those that use them."""
    return {d for d in find_users(changed, course) if d.startswith(PLOTS)}


def find_files(definitions, course):
    """Return the files that have one of these definitions."""
    return {name for name, found in course.items() if definitions & found.keys()}


def plan(names, changed, course):
    """Return the notebooks to be stored, and the words for two runs of pytest."""
    different = set().union(*changed.values())
    texts = {dotted(name) for name in names if not name.endswith(".ipynb")}
    users = find_files(find_users({*different, *texts}, course), course)
    drawings = find_users(find_drawings(different, course), course)
    there = {name for name in names if (ROOT / name).exists()}
    stored = {*there, *find_files(drawings, course)}
    stored = {name for name in stored if name.endswith(".ipynb")}
    rows = [row for row in TESTS_FOR if any(name.startswith(row) for name in names)]
    if "utils/checks/" in rows:
        stored.add(START)  # which lists all exercises
    words = " ".join(TESTS_FOR[row] for row in rows).split()
    others = {*map(TEST, words), *there, *users} - stored - {*TEXTS}
    others = {name for name in others if TESTED.search(name)}
    known = [n for n in names if is_followed(n) or n.endswith(".md")]
    if {*names} == {*known, *(n for n in names if n.startswith((*rows,)))}:
        return sorted(stored), TEXTS, sorted(others)
    others = {name for name in others if name.startswith((*LONG,))}
    return sorted(stored), [f"--ignore={n}" for n in sorted(stored)], sorted(others)


def main():
    """Read the command line, and test what differs from the base."""
    parser = argparse.ArgumentParser("python -m tests.changed")
    parser.add_argument("base", nargs="?", help="default: where HEAD left main")
    given = parser.parse_args().base
    if not (base := find_base(given)):
        reason = f"no commit is named {given}" if given else "no branch main is here"
        parser.error(f"{reason}: name one to compare with, for example HEAD")
    names = git("diff", "--name-only", "--no-renames", "-z", base)
    names += "\0" + git("ls-files", "--others", "--exclude-standard", "-z")
    names = sorted({*names.split("\0")} - {""})
    print("Compared with", git("log", "-1", "--format=%h (%s)", base))
    if not names:
        return "Nothing differs. To compare with an earlier commit, name it: HEAD~1."
    for words in "check -q", "format --check -q":
        if subprocess.call([sys.executable, "-m", "ruff", *words.split()], cwd=ROOT):
            return "Ruff found this; nothing else ran. `ruff format` corrects layout."
    course = read_course()
    changed = find_changed(base, names, course)
    stored, quick, others = plan(names, changed, course)
    first, minutes = (quick, 1) if TEXTS[0] in quick else (["the quick run"], 5)
    minutes += (len(stored) + sum("utils/" not in name for name in others)) / 5
    different = set().union(*changed.values())
    redraw = bool(find_drawings(different, course))
    shown = [d for d in sorted(different) if d.startswith("utils.") and d[-1] != "."]
    print("These files differ:", *names)
    print("Definitions that differ, outside the checks:", *shown or ["none"])
    print("Notebooks that are stored:", *stored or ["none"])
    print("Tests that run:", *first, *others)
    print(f"About {minutes:.0f} min on two quiet cores", flush=True)
    from tests.notebooks import execute

    if execute([ROOT / name for name in stored], redraw):
        return "A notebook failed: see above; no tests have run."
    runs = [quick, others] if others else [quick]
    if any([subprocess.call([sys.executable, "-m", "pytest", *run]) for run in runs]):
        return "Something failed: see above."
    print("All that ran holds. `.ci/run` also runs the other tests, and all notebooks.")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
