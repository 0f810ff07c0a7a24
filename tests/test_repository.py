"""The repository as a whole."""

import hashlib
import re
import subprocess
import sys

import nbformat
import pytest
import torch

from tests.notebooks import COLAB, find_notebooks, setup_cell, with_minutes
from tests.repository import ROOT, files, imports, make_course
from utils.checks import check


def read(name, root=ROOT):
    return (root / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("words", ["check", "format --check --diff"])
def test_ruff_finds_nothing_in_code_and_notebooks(words):
    command = [sys.executable, "-m", "ruff", *words.split(), "--no-cache", str(ROOT)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_readme_of_the_data_gives_size_and_hash_of_every_file():
    rows = [line for line in read("data/README.md").splitlines() if line[:1] == "|"]
    for path in files():
        name = path.relative_to(ROOT).as_posix().removeprefix("data/")
        if path.is_relative_to(ROOT / "data") and path.suffix not in (".md", ".py"):
            row = next((r for r in rows if f"`{name}`" in r), "no row")
            assert f"{path.stat().st_size:,}" in row, name
            assert hashlib.sha256(path.read_bytes()).hexdigest() in row, name


def test_no_file_names_a_folder_of_a_machine():
    # In quoted pictures (base64) the lookbehind keeps chance matches out.
    folder = re.compile(r"(?<![\w.+/=-])/(?:work|tmp|root|home)/")
    kinds = {".py", ".md", ".toml", ".txt", ".yml", ".ipynb", ""}
    texts = [path for path in files() if path.suffix in kinds]
    assert [path for path in texts if folder.search(read(path))] == []


def test_address_writes_address_and_version_everywhere_with_one_command(tmp_path):
    make_course(tmp_path)
    new = "https://github.com/some-reader/attention-too"
    command = [sys.executable, "-B", "-m", "tests.notebooks", "address", new + ".git/"]
    moved = subprocess.run([*command, "v2.1"], cwd=tmp_path, capture_output=True)
    assert (moved.returncode, moved.stdout, moved.stderr) == (0, b"", b"")
    lines = f'repository = "{new}"\nversion = "v2.1"\n'
    assert lines in read("pyproject.toml", tmp_path)
    base = new.replace("github.com", "colab.research.google.com/github") + "/blob/v2.1"
    pages = "https://some-reader.github.io/attention-too/"
    for path in find_notebooks():
        name = path.relative_to(ROOT).as_posix()
        cells = nbformat.read(tmp_path / name, as_version=4).cells
        assert cells[1].source == setup_cell((new, "v2.1"))
        assert cells[0].source.splitlines()[2] == f"{COLAB}{base}/{name})"
    start = f"{base}/notebooks/00_start_here.ipynb"
    line = f"[Open in Colab]({start}) · [Read it as pages]({pages})"
    readme = read("README.md", tmp_path)
    assert readme.splitlines()[2] == line and f"\ngit clone --depth 1 {new} " in readme


def test_the_readme_links_to_every_notebook_by_its_title():
    text, folder = read("README.md"), ROOT / "notebooks"
    for path in folder.glob("**/*.ipynb"):
        if path.parent.name == "solutions":
            continue
        title = nbformat.read(path, as_version=4).cells[0].source.splitlines()[0]
        title = title.removeprefix("# ").removeprefix("Deeper: ")
        name = path.relative_to(folder).as_posix()
        link = re.escape(f"[{title[:1].upper()}{title[1:]}](")
        row = rf"{link}notebooks/{name}\)( \(| \|.*\| )\d+"
        assert re.search(row, text), title


def test_the_readme_states_the_minutes_of_each_notebook_and_the_hours_of_them():
    text = read("README.md")
    assert with_minutes(text) == text


def test_the_readme_shows_what_a_check_prints():
    def attention(query, key, value):
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return weights @ value, weights

    message = check("4.1", attention).message
    assert message in read("README.md"), message


# `utils` has four levels: the library is 0. A module imports from its own level and
# from those below, and the engine of the checks from itself.
LEVELS = {"training": 1, "parallel": 1, "experiments": 2}
LEVELS |= dict.fromkeys(("plots", "checks", "clinic"), 3)
MODULES = sorted((ROOT / "utils").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_module_imports_only_from_its_level_and_those_below(path):
    part = path.relative_to(ROOT / "utils").parts[0].removesuffix(".py")
    for _, name in imports(read(path)):
        package, inside = [*name.split("."), ""][:2]
        assert package != "tests", name
        if package == "utils":
            assert LEVELS.get(inside, 0) <= LEVELS.get(part, 0), name
            assert "engine" not in path.parts or name.startswith("utils.checks.engine")


def pins(name):
    """Return the versions that a file pins, by the names of the packages."""
    lines = read(name).splitlines()
    return dict(line.split(" ;")[0].split("==") for line in lines if line[:1] != "#")


def test_the_lock_has_the_version_of_every_requirement():
    for name in ("requirements.txt", "tests/requirements.txt", ".ci/site.txt"):
        assert pins(name).items() <= pins(".ci/lock.txt").items(), name
