"""Each test pins one sentence about `.ci/run` and the workflows that call it."""

import os
import re
import shutil
import subprocess

import pytest
from repository import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links and a shell")
REAL = "bash dirname env mktemp rm sh mkdir touch".split()
# A command that writes down how it is called. For `python -m venv` it makes a folder.
STUB = """#!/bin/sh
echo "${CI:+CI }${0##*/} $*" >> "$LOG"
if [ "$2" = venv ]; then mkdir "$3/bin" && touch "$3/bin/activate"; fi
"""
INSTALL = "python -m pip install --quiet --disable-pip-version-check"
INSTALL += " -r requirements.txt -c .ci/lock.txt"


@pytest.fixture
def machine(tmp_path):
    """Return a machine with few commands; those that change something only note it."""

    def start(*words, system="Linux", user=1000, lacks=(), **env):
        for name in REAL:
            (tmp_path / name).symlink_to(shutil.which(name))
        says = {"uname": system, "id": user}
        for name in {"python", "python3", "npm", "chromium", "apt-get", "sudo", *says}:
            if name not in lacks:
                said = f"#!/bin/sh\necho {says[name]}\n" if name in says else STUB
                (tmp_path / name).write_text(said)
                (tmp_path / name).chmod(0o755)
        log = tmp_path / "log"
        env |= {"PATH": str(tmp_path), "LOG": str(log)}
        command = [ROOT / ".ci/run", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        return done, log.read_text().splitlines()

    return start


@pytest.mark.parametrize(
    "words, command",
    [
        ([], "CI python -m pytest"),
        (["full"], "python -m tests.full"),
        (["full", "colab"], "python -m tests.full colab"),
        (["notebooks"], "CI python -m pytest notebooks"),
    ],
)
def test_it_installs_what_is_pinned_and_locked_and_runs_what_the_guide_says(
    words, command, machine
):
    done, called = machine(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert INSTALL in called and called[-1] == command
    guide = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    assert "notebooks" in words or command.removeprefix("CI ") in guide


def test_it_changes_nobodys_machine_unasked(machine):
    done, called = machine(lacks=("chromium", "npm"))
    assert done.returncode == 1
    assert "needs chromium npm: install that, then run this again" in done.stderr
    assert not [call for call in called if re.search("sudo|apt-get|python -m", call)]
