"""Updating the course keeps what its reader wrote."""

import subprocess
import sys

import pytest

from tests.repository import make_repository

NAME = "notebooks/deeper/glossary.ipynb"


def update(course):
    command = [sys.executable, "-m", "utils.update"]
    return subprocess.run(command, cwd=course, capture_output=True, text=True).stderr


def commit(folder):
    author = "-c user.name=a -c user.email=a@example.org commit -qam new"
    subprocess.run(["git", *author.split()], cwd=folder, check=True)


@pytest.fixture
def copies(tmp_path):
    """A published course, and a reader's older copy with answers in a notebook."""
    published, course = tmp_path / "published", tmp_path / "course"
    make_repository(published)
    subprocess.run(["git", "clone", "-q", published, course], check=True)
    (course / NAME).write_text("my answers")
    (published / NAME).write_text("a new version")
    (published / "README.md").write_text("a new version")
    commit(published)
    return published, course


def test_an_update_that_cannot_be_made_leaves_the_notebooks_alone(copies):
    _, course = copies
    readme = course / "README.md"
    readme.write_text("mine")
    assert "changed or added README.md, as the new version has" in update(course)
    commit(course)
    assert "your copy has commits of its own, 1: run" in update(course)
    assert (course / NAME).read_text() == "my answers"
    assert not (course / "mine").exists()


def test_an_update_saves_changed_notebooks_and_fetches_the_new_ones(tmp_path, copies):
    published, course = copies
    subprocess.run(["git", "add", "notebooks"], cwd=course, check=True)
    (course / "README.md").unlink()
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
