"""Each test pins one sentence about the repository as a whole."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from repository import ROOT, files, tool


def read(name, root=ROOT):
    return (root / name).read_text(encoding="utf-8")


def texts():
    """Return the text of every file that is one, by its path in the repository."""
    kinds = {".py", ".md", ".toml", ".txt", ".yml", ".ipynb", ""}
    chosen = [path for path in files() if path.suffix in kinds]
    named = [(path.relative_to(ROOT).as_posix(), path) for path in chosen]
    return {name: path.read_text(encoding="utf-8") for name, path in named}


@pytest.fixture
def copy(tmp_path):
    """Return a copy of what the address stands in."""
    hidden = shutil.ignore_patterns(".*")  # a reader's JupyterLab leaves checkpoints
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=hidden)
    (tmp_path / ".ci").mkdir()
    (tmp_path / "utils").mkdir()
    tool = (".ci/notebooks.py", "utils/files.py")
    for name in ("pyproject.toml", "README.md", "requirements.txt", *tool):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def move(root, *home):
    """Run the address command in `root`; return every file there."""
    command = [sys.executable, "-B", ".ci/notebooks.py", "address", *home]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return contents(root)


def contents(root):
    return {p: p.read_bytes() for p in root.rglob("*.*") if p.is_file()}


@pytest.mark.parametrize("words", ["check", "format --check --diff"])
def test_ruff_finds_nothing_in_code_and_notebooks(words):
    command = [sys.executable, "-m", "ruff", *words.split(), "--no-cache", str(ROOT)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_readme_of_the_data_gives_size_and_hash_of_every_file():
    rows = [line for line in read("data/README.md").splitlines() if line[:1] == "|"]
    for path in files():
        name = path.relative_to(ROOT).as_posix().removeprefix("data/")
        if path.is_relative_to(ROOT / "data") and name != "README.md":
            row = next((r for r in rows if f"`{name}`" in r), "no row")
            assert f"{path.stat().st_size:,}" in row, name
            assert hashlib.sha256(path.read_bytes()).hexdigest() in row, name


def test_the_readme_shows_the_scheme_as_the_glossary_draws_it():
    glossary = nbformat.read(ROOT / "notebooks/deeper/glossary.ipynb", as_version=4)
    [drawing] = [cell for cell in glossary.cells if "plots.scheme(" in cell.source]
    stored = base64.b64decode(drawing.outputs[0].data["image/png"])
    assert (ROOT / ".github/scheme.png").read_bytes() == stored


def test_no_file_names_a_folder_of_a_machine():
    # In quoted pictures (base64) the lookbehind keeps chance matches out.
    folder = re.compile(r"(?<![\w.+/=-])/(?:work|tmp|root|home)/")
    found = {name: folder.findall(text) for name, text in texts().items()}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_the_address_stands_in_pyproject_and_in_the_copies_that_the_tool_writes():
    address, _ = tool.read_home()
    copies = {"pyproject.toml", "README.md"}
    copies |= {path.relative_to(ROOT).as_posix() for path in tool.find_notebooks()}
    assert {name for name, text in texts().items() if address in text} <= copies


def test_the_readme_opens_the_first_notebook_in_colab_and_leads_to_the_pages():
    line = tool.readme_links(tool.read_home())
    assert read("README.md") == tool.with_colab_link(read("README.md"), line) + "\n"
    assert "00_start_here.ipynb" in line and ".github.io/" in line


def test_a_fork_writes_its_address_and_version_everywhere_with_one_command(copy):
    old, _ = tool.read_home()
    new = "https://github.com/somebody/attention-too"
    move(copy, new + ".git/", "v2.1")
    assert tool.read_home(copy) == (new, "v2.1")
    base = "https://colab.research.google.com/github/somebody/attention-too/blob/v2.1"
    for path in tool.find_notebooks(copy):
        cells = nbformat.read(path, as_version=4).cells
        assert cells[1].source == tool.setup_cell((new, "v2.1"))
        link = f"{base}/{path.relative_to(copy).as_posix()})"
        assert cells[0].source.splitlines()[2] == tool.COLAB + link
    assert "(https://somebody.github.io/attention-too/)" in read("README.md", copy)
    owner = old.removeprefix("https://github.com/").partition("/")[0].encode()
    assert [p for p, data in contents(copy).items() if owner in data] == []


def openings(pattern):
    """Yield path, title and minutes of notebooks, as their openings state them."""
    for path in sorted((ROOT / "notebooks").glob(pattern)):
        opening = nbformat.read(path, as_version=4).cells[0].source
        title = opening.splitlines()[0].removeprefix("# ").removeprefix("Deeper: ")
        yield path, title, re.search(r"About (\d+) minutes", opening)[1]


in_both_tables = pytest.mark.parametrize(
    "table", ["README.md", "notebooks/00_start_here.ipynb"]
)


@in_both_tables
def test_the_table_of_notebooks_gives_their_names_and_minutes(table):
    text = read(table)
    for path, title, minutes in openings("*.ipynb"):
        row = rf"\| \[{title}\]\((notebooks/)?{path.name}\) \|.*\| {minutes} \|"
        if path.name not in table:
            assert re.search(row, text), f"{title}, {minutes} minutes"


@in_both_tables
def test_what_is_for_another_evening_has_its_name_and_minutes_too(table):
    text = read(table)
    for path, title, minutes in openings("deeper/*.ipynb"):
        link = re.escape(f"[{title[:1].upper()}{title[1:]}](")
        link += rf"(notebooks/)?deeper/{path.name}\)"
        said = rf"{link}( \({minutes} minutes\)| \|.*\| {minutes} \|)"
        assert re.search(said, text), f"{title}, {minutes} minutes"
