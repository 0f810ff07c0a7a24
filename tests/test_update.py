"""Updating the course keeps what its reader wrote."""

import json
import subprocess
import sys

from tests.repository import make_repository

NAME = "notebooks/deeper/glossary.ipynb"
OPENED, WRITTEN_IN = "notebooks/01_tokens.ipynb", "notebooks/02_embeddings.ipynb"


def update(course):
    command = [sys.executable, "-m", "utils.update"]
    return subprocess.run(command, cwd=course, capture_output=True, text=True).stderr


def test_an_update_saves_what_was_written_or_changes_nothing(tmp_path):
    published, course = tmp_path / "published", tmp_path / "course"
    make_repository(published)
    subprocess.run(["git", "clone", "-q", published, course], check=True)
    (course / NAME).write_text("my answers")
    for name in (OPENED, WRITTEN_IN):  # what JupyterLab stores of an opened notebook
        notebook = json.loads((course / name).read_text("utf-8"))
        for cell in notebook["cells"]:
            cell["metadata"]["collapsed"] = False
        notebook["cells"][-1]["source"] += ["my notes"] * (name == WRITTEN_IN)
        (course / name).write_text(json.dumps(notebook))
    subprocess.run(["git", "add", "notebooks"], cwd=course, check=True)
    (published / NAME).write_text("a new version")
    (published / "README.md").write_text("a new version")
    author = "-c user.name=a -c user.email=a@example.org commit -qam"
    subprocess.run(["git", *author.split(), "new"], cwd=published, check=True)
    published.rename(tmp_path / "away")  # as without a network
    assert "does not appear to be a git repository" in update(course)
    assert (course / NAME).read_text() == "my answers"
    (tmp_path / "away").rename(published)
    subprocess.run(["git", *author.split(), "mine"], cwd=course, check=True)
    assert "your copy has commits of its own: run" in update(course)
    subprocess.run(["git", "reset", "-q", "--soft", "HEAD~"], cwd=course, check=True)
    (course / "README.md").write_text("mine")
    assert "changed or added README.md, as the new version has" in update(course)
    (course / "README.md").unlink()
    assert (course / NAME).read_text() == "my answers"
    assert not update(course)
    assert (course / NAME).read_text() == "a new version"
    saved = {p.name: p.read_text("utf-8") for p in course.glob("mine/*/**/*.ipynb")}
    assert saved.keys() == {"glossary.ipynb", "02_embeddings.ipynb"}
    assert saved["glossary.ipynb"] == "my answers"
    assert "my notes" in saved["02_embeddings.ipynb"]
    (course / ".git").rename(tmp_path / "history")
    assert "from a ZIP file: download a new one" in update(course)
