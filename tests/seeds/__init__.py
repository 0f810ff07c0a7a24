"""What the notebooks claim about training and chance, tested with other seeds.

    python -m tests.seeds [embeddings causal_masks ...]

In each module here `main(seed)` returns numbers by name. README.md's table gives the
range that each sentence allows.
"""

import ast
import json
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def cells(notebook):
    """Return the cells of a notebook."""
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    return json.loads(text)["cells"]


def definitions(notebook):
    """Execute the imports, definitions and capital constants of a notebook."""
    namespace = {"__name__": "notebook"}
    for cell in cells(notebook):
        if cell["cell_type"] != "code" or "setup" in cell["metadata"].get("tags", []):
            continue
        for node in ast.parse("".join(cell["source"])).body:
            if isinstance(node, DEFINITIONS) or is_constant(node):
                exec(compile(ast.unparse(node), notebook, "exec"), namespace)
    return namespace


def is_constant(node):
    """Return whether a statement assigns to capital names only, or uses `solution`."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    is_solution = "solution(" in ast.unparse(node.value)
    return is_solution or bool(names) and all(map(str.isupper, names))
