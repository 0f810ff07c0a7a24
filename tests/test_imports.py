"""Each test pins one sentence about who imports whom, and how long a file is."""

import ast
import json
import sys

import pytest
from repository import ROOT, files

# From the ground up: a room may import what stands before it, and nothing behind it.
ROOMS = [
    "files", "launch", "tokenizer", "data", "embeddings", "cache", "attention",
    "latent", "delta", "gpt2", "model", "parallel", "training", "recall", "plots",
    "checks", "clinic",
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


# What is asked of a package index under another name than the one it is imported by.
PACKAGES = {"PIL": "pillow", "bs4": "beautifulsoup4", "sklearn": "scikit-learn"}
# What a reader may add: it is looked for, and nothing fails without it.
OPTIONAL = {"huggingface_hub", "transformers"}


def sources():
    """Yield the text of every Python file and of every cell of code."""
    for path in files():
        if path.suffix == ".py":
            yield path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "code":
                    yield "".join(cell["source"])


def third_parties():
    """Return every package that is imported anywhere, by the name an index knows."""
    own = {path.stem for name in ("tests", ".ci") for path in (ROOT / name).iterdir()}
    own |= {"tests", "utils"}
    found = set()
    for text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(node.module.partition(".")[0])
    found -= own | OPTIONAL | sys.stdlib_module_names
    return {PACKAGES.get(name, name.replace("_", "-")).lower() for name in found}


def test_whatever_is_imported_is_listed_in_the_requirements():
    paths = ROOT / "requirements.txt", ROOT / ".ci/site.txt"
    lines = [line for path in paths for line in path.read_text("utf-8").split()]
    assert third_parties() <= {line.partition("==")[0] for line in lines}
