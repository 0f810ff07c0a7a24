"""Each test pins one sentence about who imports whom, and how long a file is."""

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
NAMES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PATHS]
FILES = {name.removesuffix(".__init__"): path for name, path in zip(NAMES, PATHS)}


def imports(path):
    """Return the names of all modules of the course that a file imports, anywhere."""
    return [name for name in imported(path) if name.split(".")[0] in ("utils", "tests")]


def imported(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports from a dot"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            files = [name for name in inside if name in FILES]
            found += files or [node.module]
    return found


def room(path):
    return path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_room_imports_only_from_those_below_it(path):
    if room(path) == "__init__":
        assert imports(path) == []
        return
    below = ROOMS[: ROOMS.index(room(path)) + 1]
    for name in imports(path):
        assert name.startswith("utils.") and name.split(".")[1] in below, name
