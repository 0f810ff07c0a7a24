"""A notebook that stands alone, as on Colab, fetches the course and runs as stored."""

import os
import shutil

import nbformat
import pytest
from repository import make_repository, tool


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a repository of the course."""
    folder = tmp_path_factory.mktemp("places")
    make_repository(folder)
    return folder


def said(notebook):
    """Return what each code cell says, as far as nbval compares it: no pictures."""
    cells = tool.without_ignored(notebook).cells
    outputs = [cell.outputs for cell in cells if cell.cell_type == "code"]
    return [[o.get("text") or o.data["text/plain"] for o in each] for each in outputs]


@pytest.mark.sample("03_context_vectors.ipynb")
def test_on_colab_a_notebook_fetches_the_course_and_says_what_is_stored(
    course, path, tmp_path, monkeypatch
):
    for name in ("PYTHONPATH", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "Colab Notebooks"
    folder.mkdir()
    shutil.copyfile(path, folder / path.name)
    notebook = nbformat.read(path, as_version=4)
    stored = said(notebook)
    # Neither pip nor git has a network.
    env = {"PIP_NO_INDEX": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    tool.run_cells(notebook, folder, COURSE_REPO=str(course), **env)
    assert said(notebook) == stored
    assert {each.name for each in folder.iterdir()} == {path.name, "attention-course"}
