"""Each test pins one sentence about where a notebook is opened, and runs it whole."""

import os
import shutil

import nbformat
import pytest
from repository import make_repository, tool

FIRST = "notebooks/00_start_here.ipynb"  # it reads data, draws, and shows progress
WHERE = "import utils; print(ascii(utils.__path__[0]))"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a repository of the course in a folder with spaces and umlauts."""
    folder = tmp_path_factory.mktemp("places") / "Kurs über Attention"
    make_repository(folder)
    return folder


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Give the kernels nothing of the course, and neither pip nor git a network."""
    for name in ("PYTHONPATH", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COURSE_REPO", "/nowhere")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


def text(output):
    """Return what nbval compares of an output; a picture counts by its text."""
    said = output.get("text") or output.data["text/plain"]
    return f"({output.get('name', 'shown')}) {said}"


def texts(notebook):
    """Return what each code cell says, as far as nbval compares it."""
    cells = tool.without_ignored(notebook).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    return ["\n".join(map(text, cell.outputs)) for cell in code]


def run(path, folder, before="", **env):
    """Run a notebook in `folder`; return what it stores, what it says, and its course.

    `before` is executed in the kernel before the first cell.
    """
    notebook = nbformat.read(path, as_version=4)
    stored = texts(notebook)
    around = [nbformat.v4.new_code_cell(source) for source in (before, WHERE)]
    notebook.cells = [around[0], *notebook.cells, around[1]]
    tool.run_cells(notebook, folder, **env)
    said = texts(notebook)
    return stored, said[1:-1], said[-1]


def runs_as_stored(course, path, folder, **how):
    """Check that a notebook says what it stores, and uses this course and no other."""
    stored, said, used = run(path, folder, **how)
    assert said == stored
    assert used == f"(stdout) {ascii(str(course / 'utils'))}\n"


@pytest.mark.sample("03_context_vectors.ipynb")
def test_on_colab_a_notebook_fetches_the_course_and_says_what_is_stored(
    course, path, tmp_path
):
    folder = tmp_path / "Colab Notebooks"
    folder.mkdir()
    only = folder / path.name
    shutil.copyfile(path, only)
    fetched = folder / "attention-course"
    runs_as_stored(fetched, only, folder, COURSE_REPO=str(course))
    assert set(folder.iterdir()) == {only, fetched}


@pytest.mark.parametrize("place", [".", "notebooks"])
def test_a_notebook_runs_in_any_folder_of_a_course_whose_path_has_spaces_and_umlauts(
    course, place
):
    runs_as_stored(course, course / FIRST, course / place)


def test_a_notebook_that_jupyterlab_opens_runs_in_an_unrelated_folder(course, tmp_path):
    opened = str(course / FIRST)
    runs_as_stored(course, opened, tmp_path, JPY_SESSION_NAME=opened)
    assert [*tmp_path.iterdir()] == []
