"""Updating the course keeps what its reader wrote."""

import subprocess
import sys

from tests.repository import ROOT, make_repository

NAME = "notebooks/deeper/glossary.ipynb"


def test_an_update_saves_changed_notebooks_and_fetches_the_new_ones(tmp_path):
    published, course = tmp_path / "published", tmp_path / "course"
    make_repository(published)
    subprocess.run(["git", "clone", "-q", published, course], check=True)
    (course / NAME).write_text("my answers")
    (published / NAME).write_text("a new version")
    author = "-c user.name=a -c user.email=a@example.org commit -qam new"
    subprocess.run(["git", *author.split()], cwd=published, check=True)
    command = [sys.executable, "-m", "utils.update"]
    subprocess.run(command, cwd=course, check=True)
    assert (course / NAME).read_text() == "a new version"
    [saved] = (course / "mine").glob("*/deeper/glossary.ipynb")
    assert saved.read_text() == "my answers"


def test_the_readme_names_the_command():
    assert "python -m utils.update" in (ROOT / "README.md").read_text(encoding="utf-8")
