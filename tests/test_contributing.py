"""The examples of CONTRIBUTING.md work as they are written there, in a copy."""

import re
import subprocess
import sys

import pytest

from tests.repository import ROOT, make_course

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:python)?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
MODULE = "utils/checks/exercises/embeddings.py"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a copy of the course in which the example's mistake has been added."""
    folder = tmp_path_factory.mktemp("contributing")
    make_course(folder)
    right, mistake, _ = BLOCKS
    source = (folder / MODULE).read_text(encoding="utf-8")
    assert right in source, "the right answer to 2.1 is another"
    before, end, after = source.partition("\n    ],\n    smallest_inputs=")
    text = f"{before}\n        {mistake}{end[1:]}{after}"
    (folder / MODULE).write_text(text, "utf-8")
    return folder


def run(course, *words):
    command = [sys.executable, *words]
    process = subprocess.run(command, cwd=course, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_commands_for_single_tests_pass_with_the_added_mistake(course):
    pages = PAGE + (ROOT / "tests/README.md").read_text(encoding="utf-8")
    commands = re.findall(r"`python -m (pytest tests/test_mistakes.py -k \S+)`", pages)
    assert len(commands) == 2
    for words in commands:
        assert "1 passed" in run(course, "-m", *words.split())


def test_the_reader_with_this_mistake_gets_the_message(course):
    [answer] = re.findall(r"a reader's `(.+?)` gets", PAGE)
    lines = "from torch.nn import functional as F", "from utils.checks import check"
    call = f'check("2.1", lambda ids, table: {answer}, record=False)'
    assert BLOCKS[2] in run(course, "-c", "\n".join([*lines, call]))
