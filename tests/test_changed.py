"""Each test pins one claim about `python -m tests.changed`, in a copy of the course."""

import os
import re
import subprocess
import sys

import pytest
from nbformat import v4
from repository import ROOT, load_tool, make_repository, tool


@pytest.fixture
def course(tmp_path):
    make_repository(tmp_path)
    return tmp_path


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(course, *words):
    command = [sys.executable, "-m", "tests.changed", "HEAD", *words]
    env = os.environ | {"PYTEST_ADDOPTS": "-n 0 -k readme_of_the_data"}
    return subprocess.run(command, cwd=course, env=env, capture_output=True, text=True)


def plan(course):
    """Return tests, notebooks to store, cases and notebooks to compare."""
    planned = run(course, "--plan")
    assert planned.returncode == 0, planned.stderr
    return [line.partition(": ")[2] for line in planned.stdout.splitlines()[1:]]


def test_a_notebook_is_stored_and_compared_with_its_solutions_and_answers(course):
    replace(course / "notebooks/01_tokens.ipynb", "Question.", "The question.")
    [solutions] = (ROOT / "notebooks/solutions").glob("01_*.ipynb")
    store = "notebooks/01_tokens.ipynb"
    cases = ", ".join(sorted({"01_tokens", solutions.stem, "[1.1", "[1.2"}))
    both = f"{store}, notebooks/solutions/{solutions.name}"
    assert plan(course) == ["nothing", store, cases, both]


def test_a_step_of_the_checks_runs_the_answers_to_the_exercises_that_use_it(course):
    path = course / "utils/checks/steps/masks.py"
    path.write_text(path.read_text(encoding="utf-8") + "NEW = 1\n", encoding="utf-8")
    tests, store, cases, compare = plan(course)
    assert (store, compare) == ("nothing", "nothing")
    assert tests == "utils/checks/steps/masks.py"
    assert "[5.3" in cases and "[1.1" not in cases


def test_a_function_runs_its_examples_its_tests_and_the_notebooks_that_import_it(
    course,
):
    path = course / "utils/tokenizer.py"
    replace(path, "def decode_bpe(", "def decode_bpe(*unused, ")
    (course / "utils/new.py").touch()
    tests, store, cases, compare = plan(course)
    assert (store, cases) == ("nothing", "none")
    for name in tool.find_notebooks():
        name = name.relative_to(ROOT).as_posix()
        source = (course / name).read_text(encoding="utf-8")
        assert (name in compare) == ("decode_bpe" in source and "utils.tok" in source)
    for name in ("utils/tokenizer.py", "utils/new.py", "tests/test_tokenizer.py"):
        assert name in tests
    replace(path, "def decode_bpe(*unused, ", "def decode_bpe(")
    replace(path, "\nimport ", "\n# a comment\nimport ")
    assert plan(course)[3] == "nothing"


def test_it_fails_with_a_test_that_the_change_breaks(course):
    replace(course / "data/README.md", "| 817 |", "| 818 |")
    changed = run(course)
    assert changed.returncode == 1
    assert "Changed since " in changed.stdout and ": data/README.md\n" in changed.stdout
    assert "Something failed" in changed.stdout


def test_minutes_are_copied_into_readme_and_00(course):
    tool_there = load_tool(course)
    for page in ("README.md", "notebooks/00_start_here.ipynb"):
        path = course / page
        stored = path.read_text(encoding="utf-8")
        minutes = re.search(r"order\? \| (\d+) \|", stored)[1]
        replace(path, f"order? | {minutes} |", "order? | 20 |")
        assert tool_there.write_minutes()
        assert path.read_text(encoding="utf-8") == stored
    assert not tool_there.write_minutes()


def test_digits_stay_as_stored_within_their_tolerance():
    def notebook(*texts):
        cells = [v4.new_code_cell("train()") for _ in texts]
        for cell, text in zip(cells, texts):
            cell.outputs = [v4.new_output("stream", text=text)]
            cell.metadata = {"tolerance": 0.1} if "loss" in text else {}
        return v4.new_notebook(cells=cells)

    new = notebook("loss 1.52", "loss 1.71", "rate 1.52")
    tool.keep_stored_digits(new, notebook("loss 1.50", "loss 1.50", "rate 1.50"))
    texts = [cell.outputs[0].text for cell in new.cells]
    assert texts == ["loss 1.50", "loss 1.71", "rate 1.52"]
    picture = v4.new_output("display_data", {"image/png": "new"})
    new = notebook("loss 1.52")
    new.cells[0].outputs.append(picture)
    tool.keep_stored_digits(new, notebook("loss 1.50"))
    assert new.cells[0].outputs[0].text == "loss 1.52"
