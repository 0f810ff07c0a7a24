"""Does a test fail when `utils` does something else?

    python -m tests.mutants attention [model ...] [--number 50]

In a copy of the course one thing of a file is changed at a time: a comparison, an
operator, a number, or an argument that is left out. Then the tests of that file run,
and the changes that no test notices are printed. Such a change either does the same as
before, or a test is missing, or the line does nothing. `plots` is left out: there,
nearly every number is a place on the page, and the kept pictures notice.
"""

import argparse
import ast
import copy
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.repository import ROOT, make_course

SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def change(node, part):
    """Change one part of a node in place; return whether there was something to do."""
    if part == "operator" and isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS.get(type(node.op), type(node.op))()
    elif part == "comparison" and isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif part == "number" and isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            node.value = not node.value
        elif isinstance(node.value, int | float):
            node.value += 1
        else:
            return False
    elif part == "argument" and isinstance(node, ast.Call) and node.keywords:
        node.keywords.pop()
    else:
        return False
    return True


def mutants(source):
    """Yield the number of a line, what it says after a change, and the whole text."""
    tree = ast.parse(source)
    for place, node in enumerate(ast.walk(tree)):
        for part in ("operator", "comparison", "number", "argument"):
            other = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(other)) if i == place)
            if change(twin, part) and (text := ast.unparse(other)) != ast.unparse(tree):
                yield node.lineno, ast.unparse(twin), text


def tests_of(room, folder):
    """Return the files with the tests of a room of `utils`."""
    return sorted(map(str, (folder / "tests").glob(f"test_{room}*.py")))


def survivors(room, folder, number):
    """Yield the changes in the files of a room that its tests do not notice."""
    paths = [folder / f"utils/{room}.py", *(folder / f"utils/{room}").rglob("*.py")]
    found = [
        (p, m) for p in paths if p.is_file() for m in mutants(p.read_text("utf-8"))
    ]
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        *tests_of(room, folder),
    ]
    for path, (line, said, text) in random.Random(0).sample(
        found, min(number, len(found))
    ):
        before = path.read_text("utf-8")
        path.write_text(text, "utf-8")
        try:
            done = subprocess.run(tests, cwd=folder, capture_output=True, timeout=600)
            noticed = done.returncode != 0
        except subprocess.TimeoutExpired:
            noticed = True
        path.write_text(before, "utf-8")
        if not noticed:
            yield f"{path.relative_to(folder)}:{line}: {said}"


def main():
    """Print what no test notices; end with 1 if there is something."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    rooms = {p.stem for p in (ROOT / "utils").iterdir()} - {"__init__", "plots"}
    parser.add_argument("rooms", nargs="+", choices=sorted(rooms), metavar="ROOM")
    parser.add_argument("--number", type=int, default=50, help="changes in each room")
    options, alive = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as name:
        make_course(Path(name))
        for room in options.rooms:
            for said in survivors(room, Path(name), options.number):
                print(said, flush=True)
                alive += 1
    print(f"{alive} changes are noticed by no test")
    return alive > 0


if __name__ == "__main__":
    sys.exit(main())
