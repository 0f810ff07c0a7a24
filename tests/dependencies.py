"""Which files use which, and whether a file does something else than before.

A file uses another if its code has a name from there. That of `plots.chart.heat` is
`utils/plots/chart.py`, and not the whole folder.
"""

import ast
import functools
import inspect
import json
import re

from tests.notebooks import as_python, find_notebooks
from tests.repository import ROOT, imports
from utils.checks.catalogue import ASKED, HOUR


@functools.cache
def code_of(path, text=None):
    """Return the code of a module or notebook as it is, or with an earlier text."""
    text = path.read_text(encoding="utf-8") if text is None else text
    if path.suffix == ".py" or not text:
        return text
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    return "\n".join(as_python("".join(cell["source"])) for cell in cells)


def without_docstrings(code):
    """Return a syntax tree of some code, which has no comments either."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return ast.fix_missing_locations(tree)


def behaviour(code):
    """Return all of compiled code except its lines and names of local variables."""
    consts = [
        behaviour(c) if hasattr(c, "co_code") else repr(c) for c in code.co_consts
    ]
    names = code.co_name, code.co_names, code.co_freevars, code.co_cellvars
    steps = code.co_code, code.co_exceptiontable, code.co_flags
    return names, inspect.getargs(code), steps, consts


def differ(path, before):
    """Return whether a file does something else than with its earlier text."""
    try:
        trees = [without_docstrings(code_of(path, text)) for text in (before, None)]
    except SyntaxError:
        return True
    if {"checks", "answers"} & {*path.parts}:  # the checks read names of variables
        old, new = map(ast.unparse, trees)
    else:
        old, new = [behaviour(compile(tree, "", "exec")) for tree in trees]
    return old != new


@functools.cache
def file_of(name):
    """Return the file of the course that defines a full name, or None."""
    place = ROOT.joinpath(*name.split("."))
    for file in place.with_suffix(".py"), place / "__init__.py":
        if file.is_file():
            return file
    module, _, last = name.rpartition(".")
    file = file_of(module) if module else None
    if file and file.name == "__init__.py":
        file = file_of(dict(imports(code_of(file))).get(last, module))
    return file


@functools.cache
def used_by(path):
    """Return the files whose names a module or notebook uses, None for others' files.

    A call of `definitions` names a notebook, and one of `solution` an exercise.
    """
    files, code = set(), code_of(path)
    imported = imports(code)
    modules = {id: name for row in ASKED.values() for id, name in row.items()}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name() | ast.Attribute():
                first, dot, others = ast.unparse(node).partition(".")
                names = [full for name, full in imported if name == first]
                files |= {file_of(full + dot + others) for full in names}
            case ast.Call(args=[ast.Constant(str(text)), *_]):
                called = ast.unparse(node.func)
                if called.endswith("definitions"):
                    files.add(ROOT / f"notebooks/{text}.ipynb")
                elif called == "solution":
                    files.add(file_of(f"utils.{modules.get(HOUR.get(text, text))}"))
    return files


def users(path, apart=()):
    """Return what uses a file, also through others, and itself; nothing of `apart`."""
    folders = ROOT / "utils", ROOT / "tests"
    files = {file for folder in folders for file in folder.rglob("*.py")}
    files = files.union(find_notebooks()) - {*apart}
    found = new = {path} - {*apart}
    while new:
        new = {file for file in files - found if used_by(file) & new}
        found = found | new
    return found


def definitions_of(code):
    """Return all functions, classes and top-level values as pairs (name, node)."""
    tree = without_docstrings(code)
    values = [node for node in tree.body if isinstance(node, ast.Assign)]
    pairs = [(t.id, v) for v in values for t in v.targets if isinstance(t, ast.Name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            pairs.append((node.name, node))
        elif isinstance(node, ast.ClassDef):  # without its methods, except __init__
            own = [n for n in node.body if getattr(n, "name", "__").startswith("__")]
            body = [*own, *map(ast.Expr, node.bases)]
            pairs.append((node.name, ast.Module(body, [])))
    return pairs


def names_touched(path, before, modules):
    """Return the names in some modules whose code has changed, or has such a name."""
    old, new = (definitions_of(code_of(path, text)) for text in (before, None))
    kept = {(name, ast.dump(node)) for name, node in old}
    changed = {name for name, node in new if (name, ast.dump(node)) not in kept}
    found = changed or {name for name, _ in new}
    pairs = [pair for module in modules for pair in definitions_of(code_of(module))]
    words = [(name, {*re.findall(r"\w+", ast.unparse(node))}) for name, node in pairs]
    count = 0
    while count < len(found):
        count = len(found)
        found |= {name for name, used in words if used & found}
    return found
