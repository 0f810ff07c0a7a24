"""Run everything: `python -m tests.full`, or single steps of it by name.

Each step writes its row into the table in tests/README.md when it ends.
"""

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import torch

from tests import result_tables

ROOT = Path(__file__).resolve().parents[1]
TABLE = "the last full run"
PACKAGES = "torch", "numpy", "matplotlib", "jupyterlab"
CACHE = Path.home() / ".cache/attention-course"
PYTEST = ["-m", "pytest", "--color=no", "--full"]
# Kernels and the browser talk over this machine's own network, `lo`.
OFFLINE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def works(*command):
    """Return whether this machine has a command and lets it run."""
    path = shutil.which(command[0])
    return path and subprocess.run(command, capture_output=True).returncode == 0


def steps():
    """Map the name of each step to what it runs, its command and its environment."""
    what, offline = "all tests, with every notebook", []
    if works(*OFFLINE, "true"):
        what, offline = f"{what}, offline", OFFLINE
    known = {"everything": (what, [*offline, sys.executable, *PYTEST], {})}
    for name, python, what, env in (
        ("default", sys.executable, "", {"ATEN_CPU_CAPABILITY": "default"}),
        ("avx2", sys.executable, "", {"ATEN_CPU_CAPABILITY": "avx2"}),
        ("threads", sys.executable, "", {"OMP_NUM_THREADS": "2"}),
        ("learner", CACHE / "requirements/bin/python", "`requirements.txt` alone", {}),
        ("colab", CACHE / "colab/bin/python", "Colab's versions", {}),
    ):
        settings = ", ".join(f"`{key}={value}`" for key, value in env.items())
        command = [python, *PYTEST, "notebooks"]
        known[name] = f"every notebook, with {what or settings}", command, env
    command = [CACHE / "colab/bin/python", *PYTEST, "-k", "on_colab"]
    what = "every notebook fetches the course as on Colab"
    known["colab-alone"] = what, [*command, "tests/test_setup.py"], {}
    return known


def prepare(name):
    """Install what a step needs besides this environment; return whether it can run."""
    requirements = {
        "learner": "requirements.txt",
        **dict.fromkeys(("colab", "colab-alone"), "tests/colab.txt"),
    }.get(name)
    if requirements is None:
        return True
    folder = CACHE / Path(requirements).stem
    python = "python3.13" if requirements == "tests/colab.txt" else sys.executable
    if not works(python, "--version"):
        return False
    install = ["-m", "pip", "install", "--quiet", "-r", requirements]
    commands = [python, "-m", "venv", folder], [folder / "bin/python", *install]
    return all(subprocess.run(each, cwd=ROOT).returncode == 0 for each in commands)


def run(name, what, command, env, log):
    """Run a step, its output into `log`; return its row of the table."""
    result, start = "not possible here", time.monotonic()
    if prepare(name):
        env = os.environ | {"OMP_NUM_THREADS": "1"} | env
        with log.open("w") as file:
            streams = {"stdout": file, "stderr": subprocess.STDOUT}
            code = subprocess.run(command, cwd=ROOT, env=env, **streams).returncode
        text = log.read_text(encoding="utf-8", errors="replace")
        counts = re.findall(r"^(\d+ .+) in [\d.]+s", text, re.MULTILINE)
        result = counts[-1] if counts else text.rstrip().rpartition("\n")[2]
        result = f"FAILED: {result}" if code else result
    minutes, day = (time.monotonic() - start) / 60, datetime.date.today()
    return f"| {name} | {what} | {result} | {minutes:.1f} | {day} |\n"


def heading():
    """Return machine and versions, and the head of the table."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    best = torch.backends.cpu.get_cpu_capability().lower()
    machine = f"{os.cpu_count()} processors ({platform.machine()}, {best})"
    return (
        f"{machine}, Python {platform.python_version()}, {versions}:\n\n"
        "| step | what runs | result | minutes | day |\n|---|---|---|---|---|\n"
    )


def main():
    """Run the steps and return whether one failed, in CI also if one is impossible."""
    known = steps()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="step", help=", ".join(known))
    names = parser.parse_args().steps or list(known)
    if set(names) - set(known):
        parser.error(f"expected steps of {', '.join(known)}")
    logs = Path(tempfile.mkdtemp(prefix="full-run-"))
    print(f"The log of each step is in {logs}.\n\n{heading()}", end="")
    failed = False
    for name in names:
        log = logs / f"{name}.log"
        row = run(name, *known[name], log)
        print(row, end="", flush=True)
        result_tables.store(TABLE, heading(), [row], list(known))
        if "| FAILED" in row:
            print(log.read_text(encoding="utf-8", errors="replace")[-5000:])
        failed |= "| FAILED" in row or ("CI" in os.environ and "| not poss" in row)
    return failed


if __name__ == "__main__":
    sys.exit(main())
