"""A notebook that stands alone, as on Colab, fetches the course and runs as stored."""

import os
import shutil

import nbformat
import pytest
from repository import make_repository, tool
from reruns import said


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a repository of the course."""
    folder = tmp_path_factory.mktemp("places")
    make_repository(folder)
    return folder


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
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stored = [said(cell) for cell in code]
    # Neither pip nor git has a network.
    env = {"PIP_NO_INDEX": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    tool.run_cells(notebook, folder, COURSE_REPO=str(course), **env)
    assert [said(cell) for cell in code] == stored
    assert {each.name for each in folder.iterdir()} == {path.name, "attention-course"}
