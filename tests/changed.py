"""Test a change: `python -m tests.changed [BASE]`.

Notebooks that differ from the commit BASE are run and stored, and those that call a
function of `utils/plots` that differs. If only notebooks and texts differ, then tests
run that take seconds, and otherwise the quick run, `python -m pytest`. With both run
the long tests that the table LONG_FOR has for changed files, and the tests and
notebooks that use code of a changed notebook.
"""

import argparse
import ast
import re
import subprocess
import sys
from fnmatch import fnmatchcase

from tests.repository import LONG, ROOT

START = "notebooks/00_start_here.ipynb"
TEST = "tests/test_{}.py".format
# The tests of what notebooks and texts say, which take seconds.
TEXTS = [*map(TEST, "exercises drift notebooks repository sections seeds".split())]
LONG_FOR = {
    "utils/*.py": "experiments parallel",  # also of its folders: both take seconds
    "utils/checks/*": "answers checks mistakes",
    "utils/plots/publishing.py": "lab plot_steps",
    "utils/plots/step*.py": "lab plot_steps",
    "utils/launch.py": "launch",
    "utils/parallel.py": "launch",
    "utils/training/*": "launch",
    "tests/answers/*": "answers checks",
    "tests/notebooks.py": "lab setup site",
    ".ci/*": "site",
    "CONTRIBUTING.md": "contributing",
    "tests/README.md": "contributing",
}


def git(*words):
    """Return what a git command prints, empty if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    return done.stdout.decode().strip()


def find_base(given):
    """Return the commit with this name, or where HEAD left main; empty if none is."""
    is_commit = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    mains = [name for name in ("main", "origin/main") if git(*is_commit, name)]
    if given is None and mains:
        given = git("merge-base", "HEAD", mains[0])
    return git(*is_commit, f"{given}^{{commit}}") if given else ""


def find_users(notebook):
    """Return the tests that name a notebook, and the notebooks that use its code."""
    page = notebook.removeprefix("notebooks/").removesuffix(".ipynb")
    tests = git("grep", "-lwF", page, "--", "tests/test_*.py")
    pages = git("grep", "-lF", f'definitions(\\"{page}\\"', "--", "notebooks")
    return {*tests.split(), *pages.split()}


def find_drawings(base):
    """Return the notebooks that call a changed function of `utils/plots`.

    Also return what has changed there and no notebook calls: classes, constants, and
    functions that only others call.
    """
    notebooks, helpers = set(), set()
    for path in (ROOT / "utils/plots").glob("*.py"):
        changes = git("diff", "-U0", base, "--", str(path))
        spans = re.findall(r"^@@ .*\+(\d+)(?:,(\d+))? @@", changes, re.MULTILINE)
        spans = [(int(start), int(start) + int(size or 1)) for start, size in spans]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if any(
                node.lineno < end and start <= node.end_lineno for start, end in spans
            ):
                name = getattr(node, "name", ast.unparse(node).split("=")[0].strip())
                found = git("grep", "-lF", f".{name}(", "--", "notebooks").split()
                notebooks |= {*found}
                helpers |= set() if found else {name}
    return notebooks, sorted(helpers)


def plan(files, drawings=()):
    """Return the notebooks to be stored, and the words of each run of pytest."""

    def differs(*rows):
        return any(fnmatchcase(name, row) for name in files for row in rows)

    there = {name for name in files if (ROOT / name).exists()}
    notebooks = {name for name in there if name.endswith(".ipynb")}
    users = set().union(*map(find_users, notebooks))
    if differs("utils/checks/exercises/*", "utils/checks/catalogue.py"):
        notebooks.add(START)  # which lists the exercises
    words = " ".join(LONG_FOR[row] for row in LONG_FOR if differs(row)).split()
    long = sorted({*map(TEST, words)} | there.intersection(LONG) | users - {*TEXTS})
    is_form = all(name.endswith((".ipynb", ".md")) for name in files)
    runs = [TEXTS if is_form else [], long]
    return sorted(notebooks | {*drawings}), runs[: 1 + bool(long)]


def main():
    """Read the command line, and test what differs from the base."""
    parser = argparse.ArgumentParser("python -m tests.changed")
    about = "commit to compare with (default: where this branch left main)"
    parser.add_argument("base", nargs="?", metavar="BASE", help=about)
    given = parser.parse_args().base
    if not (base := find_base(given)):
        reason = f"no commit is named {given}" if given else "no branch main is here"
        parser.error(f"{reason}: name one to compare with, for example HEAD")
    names = git("diff", "--name-only", "--no-renames", "-z", base)
    names += "\0" + git("ls-files", "--others", "--exclude-standard", "-z")
    files = sorted({*names.split("\0")} - {""})
    print("Compared with", git("log", "-1", "--format=%h (%s)", base))
    if not files:
        return "Nothing differs. To compare with an earlier commit, name it: HEAD~1."
    for words in "check -q", "format --check -q":
        if subprocess.call([sys.executable, "-m", "ruff", *words.split()], cwd=ROOT):
            return "Ruff found this; nothing else ran. `ruff format` corrects layout."
    drawings, helpers = find_drawings(base)
    notebooks, runs = plan(files, drawings)
    halves = (2 if TEXTS in runs else 10) + len(sum(runs[1:], [])) + len(notebooks) / 2
    print("These files differ:", *files)
    print("Notebooks that are stored:", *notebooks or ["none"])
    if helpers:
        print("Not the figures of what calls these, see CONTRIBUTING:", *helpers)
    print("Tests that run:", *runs[0] or ["the quick run"], *sum(runs[1:], []))
    print(f"About {halves / 2:.0f} min on two quiet cores", flush=True)
    from tests.notebooks import execute  # not before Ruff has found a syntax error

    redraw = any(name.startswith("utils/plots/") for name in files)
    if execute([ROOT / name for name in notebooks], redraw):
        return "A notebook failed: see above; no tests have run."
    pytest = [sys.executable, "-m", "pytest"]
    if any([subprocess.call([*pytest, *words], cwd=ROOT) for words in runs]):
        return "Something failed: see above."
    print("All that ran holds. `.ci/run` also runs the other tests, and all notebooks.")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")
