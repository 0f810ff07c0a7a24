"""Updating the course keeps what its reader wrote."""

import subprocess
import sys

from tests.repository import make_repository

NAME = "notebooks/deeper/glossary.ipynb"


def update(course):
    command = [sys.executable, "-m", "utils.update"]
    return subprocess.run(command, cwd=course, capture_output=True, text=True).stderr


def test_an_update_saves_changed_notebooks_and_fetches_the_new_ones(tmp_path):
    published, course = tmp_path / "published", tmp_path / "course"
    make_repository(published)
    subprocess.run(["git", "clone", "-q", published, course], check=True)
    (course / NAME).write_text("my answers")
    subprocess.run(["git", "add", "notebooks"], cwd=course, check=True)
    (published / NAME).write_text("a new version")
    author = "-c user.name=a -c user.email=a@example.org commit -qam new"
    subprocess.run(["git", *author.split()], cwd=published, check=True)
    published.rename(tmp_path / "away")  # as without a network
    assert "does not appear to be a git repository" in update(course)
    assert (course / NAME).read_text() == "my answers"
    (tmp_path / "away").rename(published)
    assert not update(course)
    assert (course / NAME).read_text() == "a new version"
    [saved] = (course / "mine").glob("*/deeper/glossary.ipynb")
    assert saved.read_text() == "my answers"
    (course / ".git").rename(tmp_path / "history")
    assert "from a ZIP file: download a new one" in update(course)
