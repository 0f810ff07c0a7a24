"""Each test pins one sentence about who imports whom."""

import ast

import pytest
from repository import ROOT

# From the ground up: a room may import what stands before it, and nothing behind it.
ROOMS = [
    "files", "launch", "tokenizer", "data", "embeddings", "cache", "attention",
    "latent", "delta", "checkpoints", "gpt2", "model", "llama", "parallel", "training",
    "recall", "plots", "checks", "clinic",
]  # fmt: skip
PATHS = sorted((ROOT / "utils").rglob("*.py"))


def imports(path):
    """Return the full names of all that a file imports, anywhere."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports from a dot"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_room_imports_only_from_those_below_it(path):
    room = path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")
    below = ROOMS[: ROOMS.index(room) + 1] if room != "__init__" else []
    for name in imports(path):
        package, _, inside = name.partition(".")
        assert package != "tests", name
        assert package != "utils" or inside.split(".")[0] in below, name
