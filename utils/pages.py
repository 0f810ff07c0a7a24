"""Use in one place what a notebook of the course defines, without a second copy."""

import ast
import io
import json
import re
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
ANSWER_CALLS = re.compile(r"\b(solution|definitions)\(")
NEEDS = re.compile(r"Needs \[[^]]+\]\(([^)]+\.ipynb)\)")
DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


class Page(SimpleNamespace):
    """What a notebook defines, by name: `page.NAME` or `page["NAME"]`.

    Another value for a name changes what the notebook's code sees.
    """

    def __getitem__(self, name):
        return getattr(self, name)

    def __setitem__(self, name, value):
        setattr(self, name, value)

    def __getattr__(self, name):
        lines = vars(self).get("__failed__", {}).items()
        errors = [e for line, e in lines if re.search(rf"\b{re.escape(name)}\b", line)]
        reason = f" ({errors[0]})" if errors else ""
        raise AttributeError(
            f"{self.__file__} doesn't define {name!r}{reason}. If you have changed it, "
            "bring the original back, as the README says under *Update the course, "
            "get a fresh copy of a notebook, print one*"
        )


def definitions(name: str) -> Page:
    """Return the functions, classes and capital constants of a notebook.

    Only these and the imports run, so nothing is trained, drawn or printed. A line that
    needs what the notebook computes is left out.

    name: as in "04_scaled_dot_product_attention" or "deeper/why_the_root"

    >>> definitions("01_tokens").most_frequent_pair
    Traceback (most recent call last):
    AttributeError: notebooks/01_tokens.ipynb doesn't define 'most_frequent_pair'. ...
    """
    page = Page(__name__="page", __file__=f"notebooks/{name}.ipynb")
    run_definitions(read_cells(f"{name}.ipynb"), vars(page))
    return page


def read_cells(page: str) -> list[dict]:
    """Return the cells of a notebook; raise OSError or ValueError if it is damaged."""
    return json.loads((NOTEBOOKS / page).read_text(encoding="utf-8"))["cells"]


def read_opening(page: str) -> tuple[str, int]:
    """Return title and minutes of a notebook; if it is damaged, its name and 0."""
    try:
        opening = "".join(read_cells(page)[0]["source"])
        title = re.search(r"^# (?:Deeper: )?(.+)$", opening, re.MULTILINE)[1]
        title = title[:1].upper() + title[1:]
        return title, int(re.search(r"About (\d+) minutes", opening)[1])
    except (OSError, ValueError, LookupError, TypeError):
        return page, 0


def number_before(page: str) -> str:
    """Return the number of the notebook that a deeper one needs, "" if damaged."""
    try:
        link = NEEDS.search("".join(read_cells(page)[0]["source"]))[1]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    name = link.removeprefix("../")
    return number_before(f"deeper/{name}") if name == link else name[:2]


def run_definitions(cells: list[dict], names: dict, constants: bool = True):
    """Execute the imports, definitions and, if wanted, the constants of cells."""
    for cell in cells:
        if cell["cell_type"] == "code":
            with suppress(SyntaxError):  # a magic, or a cell that isn't finished
                for node in ast.parse("".join(cell["source"])).body:
                    is_wanted = isinstance(node, DEFINITIONS) or takes_answer(node)
                    if is_wanted or constants and is_constant(node):
                        _execute(ast.unparse(node), names)


def _execute(line, names):
    """Execute a statement without its output; if it fails, `__failed__` has why."""
    try:
        with redirect_stdout(io.StringIO()):
            exec(line, names)
    except Exception as error:  # such as a NameError, if it needs a training run
        reason = f"{type(error).__name__}: {error}"
        names.setdefault("__failed__", {})[line] = reason


def takes_answer(node: ast.stmt) -> bool:
    """Return whether a line takes a reader's answer, or another page's definitions."""
    is_assignment = isinstance(node, ast.Assign)
    return is_assignment and bool(ANSWER_CALLS.search(ast.unparse(node.value)))


def is_constant(node: ast.stmt) -> bool:
    """Return whether a statement assigns to names in capitals only."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return bool(names) and all(map(str.isupper, names))
