"""Each test pins one sentence about the setup cell, run in a fresh Python."""

import os
import shutil
import subprocess
import sys

import pytest
from notebook_tool import ROOT, tool
from test_repository import files

CELL = tool.setup_cell(tool.read_address()) + "\n"
SAY_WHERE = "import utils; print(ascii(utils.__file__))\n"
# The tests need no network: pip finds everything in place, git copies a folder.
ENV = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COURSE_REPO")}
ENV |= {"PIP_NO_INDEX": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def run(folder, source=CELL + SAY_WHERE, **env):
    """Run `source` in `folder` in a Python that knows nothing of the course."""
    folder.mkdir(exist_ok=True)
    env = ENV | {"COURSE_REPO": "/nowhere", "JPY_SESSION_NAME": ""} | env
    command = [sys.executable, "-c", source]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def says(run):
    """Return the folder of the course that a run used, after checking it was silent."""
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.strip().removesuffix("/utils/__init__.py'")


def expected(folder):
    return ascii(str(folder))[:-1]


def make_course(folder):
    """Copy the course as it stands now, not as last committed, into `folder`."""
    for path in files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def make_repository(folder):
    """Copy the course into `folder` and commit there what git keeps of it."""
    make_course(folder)
    who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *command], cwd=folder, env=ENV, check=True)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a repository of the course in a folder with spaces and umlauts."""
    folder = tmp_path_factory.mktemp("setup") / "Kurs über Attention"
    make_repository(folder)
    return folder


@pytest.mark.parametrize("place", [".", "notebooks", "utils/checks"])
def test_it_finds_the_course_from_any_folder_of_it(course, place):
    assert says(run(course / place)) == expected(course)


def test_it_finds_the_course_through_the_notebook_that_jupyterlab_names(
    course, tmp_path
):
    opened = str(course / "notebooks/01_tokens.ipynb")
    assert says(run(tmp_path, JPY_SESSION_NAME=opened)) == expected(course)


def test_it_finds_the_course_through_the_notebook_that_vs_code_names(course, tmp_path):
    opened = f"__vsc_ipynb_file__ = {str(course / 'notebooks/01_tokens.ipynb')!r}\n"
    assert says(run(tmp_path, opened + CELL + SAY_WHERE)) == expected(course)


def test_the_course_comes_first_on_the_path_however_often_the_cell_runs(course):
    source = CELL + CELL + "import sys; print(ascii(sys.path[0]) + '/utils')"
    assert run(course, source).stdout.startswith(expected(course))


def test_with_only_the_notebook_the_course_is_fetched_once(course, tmp_path):
    fetched = expected(tmp_path / "attention-course")
    assert says(run(tmp_path, COURSE_REPO=str(course))) == fetched
    assert says(run(tmp_path, COURSE_REPO="/nowhere")) == fetched


def test_a_fetch_that_fails_says_so_and_leaves_nothing(tmp_path):
    failed = run(tmp_path)
    assert failed.returncode != 0
    assert "repository '/nowhere' does not exist" in failed.stderr
    assert "CalledProcessError: Command '['git', 'clone'" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_fetch_left_half_full_is_named(course, tmp_path):
    (tmp_path / "attention-course/.git").mkdir(parents=True)
    (tmp_path / "attention-course/.git/config").write_text("[core]\n")
    failed = run(tmp_path, COURSE_REPO=str(course))
    assert failed.returncode != 0
    assert "'attention-course' already exists and is not an empty" in failed.stderr


def test_pip_is_asked_for_packages_only_with_a_fetch_and_never_for_torch(
    course, tmp_path
):
    fake = tmp_path / "fake/pip/__main__.py"
    fake.parent.mkdir(parents=True)
    fake.write_text("import sys; print(sys.argv[1:])")
    fake.with_name("__init__.py").touch()
    python = {"PYTHONPATH": str(tmp_path / "fake")}
    wanted = "['install', '-qq', 'tiktoken', 'ipywidgets', 'matplotlib']\n"
    assert run(course, CELL, **python).stdout == ""
    new = tmp_path / "new"
    assert run(new, CELL, COURSE_REPO=str(course), **python).stdout == wanted


def test_the_cell_has_at_most_ten_lines_for_any_address():
    long = "https://github.com/" + "a" * 39 + "/" + "b" * 60
    for address in (tool.read_address(), long):
        assert len(tool.setup_cell(address).splitlines()) <= 10
