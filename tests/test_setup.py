"""The setup cell, run in a fresh Python or kernel."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from tests.notebooks import run_cells, setup_cell
from tests.repository import make_repository
from tests.tolerance import agree, printed

CELL = setup_cell(("", "main")) + "\n"
SAY_WHERE = "import utils; print(ascii(utils.__file__))\n"
# The tests need no network: pip finds everything in place, git copies a folder.
NO_NETWORK = {"PIP_NO_INDEX": "1", "GIT_CONFIG_GLOBAL": os.devnull}
ENV = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
NEED = "The next cells need `utils`"


def run(folder, source=CELL + SAY_WHERE, **env):
    """Run `source` in `folder` in a Python that knows nothing of the course."""
    folder.mkdir(exist_ok=True)
    env = ENV | NO_NETWORK | {"JPY_SESSION_NAME": ""} | env
    command = [sys.executable, "-c", source]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def course_used(run):
    """Return the folder of the course that a run used, after checking it was silent."""
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.strip().removesuffix("/utils/__init__.py'")


def expected(folder):
    return ascii(str(folder))[:-1]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a repository of the course in a folder with spaces and umlauts."""
    folder = tmp_path_factory.mktemp("setup") / "Kurs über Attention"
    make_repository(folder)
    return folder


def test_it_finds_the_course_around_notebook_and_kernel_and_in_it(course, tmp_path):
    for place in (".", "notebooks", "utils/checks", ".."):
        assert course_used(run(course / place)) == expected(course)
    opened = str(course / "notebooks/01_tokens.ipynb")
    assert course_used(run(tmp_path, JPY_SESSION_NAME=opened)) == expected(course)
    assert course_used(run(course, JPY_SESSION_NAME="a/b.ipynb")) == expected(course)
    in_vs_code = f"__vsc_ipynb_file__ = {opened!r}\n"
    assert course_used(run(tmp_path, in_vs_code + CELL + SAY_WHERE)) == expected(course)
    one_thread = CELL + "print(torch.get_num_threads())"
    assert course_used(run(course, one_thread, OMP_NUM_THREADS="4")) == "1"


def test_its_utils_come_before_those_of_another_package(course, tmp_path):
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils/__init__.py").touch()
    assert course_used(run(course, PYTHONPATH=str(tmp_path))) == expected(course)
    start = nbformat.read(course / "notebooks/00_start_here.ipynb", as_version=4)
    cell = next(c.source for c in start.cells if "\nprogress()" in c.source)
    process = run(course / "notebooks", cell, PYTHONPATH=str(tmp_path))
    assert (process.returncode, process.stderr) == (0, "")


def test_without_the_course_it_says_what_is_true_there(tmp_path):
    moved = run(tmp_path, CELL, JPY_SESSION_NAME=str(tmp_path / "a.ipynb"))
    assert moved.stderr == f"{NEED}: move this notebook back into the course.\n"
    start = f"{NEED}: start the kernel in the folder of the course, not in {tmp_path}."
    elsewhere = run(tmp_path, CELL)
    assert elsewhere.stderr == f"{start}\n"
    assert moved.returncode != 0 and elsewhere.returncode != 0


def test_on_colab_it_asks_for_the_zip_of_the_course_and_unpacks_it(course, tmp_path):
    on_colab = "import sys; sys.modules['google.colab'] = sys\n" + CELL + SAY_WHERE
    file = "/fileId=https%3A%2F%2Fexample.org"
    missing = run(tmp_path, on_colab, JPY_SESSION_NAME=file)
    assert missing.stderr.startswith(f"{NEED}: upload the ZIP file of the course ")
    shutil.make_archive(tmp_path / "course", "zip", course.parent, course.name)
    course_folder = course_used(run(tmp_path, on_colab, JPY_SESSION_NAME=file))
    assert course_folder == expected(tmp_path / course.name)


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
    notebook.cells[1].source = setup_cell((course.as_uri(), "main"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stored = [printed(cell) for cell in code]
    run_cells(notebook, folder, **NO_NETWORK)
    for cell, text in zip(code, stored):
        assert agree(printed(cell), text, cell.metadata.get("tolerance")), cell.source
    assert {entry.name for entry in folder.iterdir()} == {path.name, "attention-course"}
