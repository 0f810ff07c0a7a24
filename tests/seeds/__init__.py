"""What the notebooks state of trainings and of chance, measured with other seeds.

    python -m tests.seeds [embeddings causal_masks ...]

Each module measures one notebook with the notebook's own definitions: `main(seed)`
returns statement -> number. What a number may be, and in how many seeds of ten, says
the table of README.md.
"""

import ast
import json
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
DEFINITIONS = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def definitions(notebook):
    """Execute the imports, definitions and capital constants of a notebook."""
    namespace = {"__name__": "notebook"}
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] != "code" or "setup" in cell["metadata"].get("tags", []):
            continue
        for node in ast.parse("".join(cell["source"])).body:
            if isinstance(node, DEFINITIONS) or is_constant(node):
                exec(compile(ast.unparse(node), notebook, "exec"), namespace)
    return namespace


def is_constant(node):
    """Say whether a statement assigns to capital names only, or uses `solution`."""
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    is_solution = "solution(" in ast.unparse(node.value)
    return is_solution or bool(names) and all(name.id.isupper() for name in names)
