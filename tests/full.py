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
from typing import NamedTuple

import torch

from tests import guide

ROOT = Path(__file__).resolve().parents[1]
TABLE = "the last full run"
FAILED, IMPOSSIBLE = "FAILED", "not possible here"
PYTEST = ["-m", "pytest", "--color=no"]
HERE = [sys.executable, *PYTEST]
# Kernels and the browser talk over this machine's own network, `lo`.
OFFLINE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


class Step(NamedTuple):
    """One command of the full run, and what it needs."""

    what: str
    command: list
    env: dict = {}


def works(*command):
    """Return whether this machine has a command and lets it run."""
    path = shutil.which(command[0])
    return path and subprocess.run(command, capture_output=True).returncode == 0


def capabilities():
    """Return which instruction sets PyTorch can use on this processor."""
    known = ["default", "avx2", "avx512"]
    best = torch.backends.cpu.get_cpu_capability().lower()
    return known[: known.index(best) + 1] if best in known else known[:1]


def environment(name):
    """Return a folder in this account's cache for the packages of a step."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "attention-course" / name


def steps():
    """Return all steps by their names."""
    *others, best = capabilities()
    # A code host's Linux machine must be able to do without a network.
    must = "CI" in os.environ and sys.platform == "linux"
    offline = OFFLINE if must or works(*OFFLINE, "true") else []
    everything = f"all tests, with every notebook, {best} instructions"
    everything += ", without a network" * bool(offline)
    named = {"everything": Step(everything, [*offline, *HERE, "--full"])}
    references = {"PYTHONPATH": str(environment("gpt2"))}
    for name in ("gpt2", "llama", "layers"):
        command = [sys.executable, "-m", "tests.references", name]
        what = f"`data/tiny_{name}` made again by `transformers`"
        named[name] = Step(what, command, references)
    for kind in others:
        env = {"ATEN_CPU_CAPABILITY": kind}
        what = f"every notebook, {kind} instructions"
        named[kind] = Step(what, [*HERE, "--full", "notebooks"], env)
    env = {"OMP_NUM_THREADS": "2"}
    named["threads"] = Step(
        "every notebook, two threads", [*HERE, "--full", "notebooks"], env
    )
    learner, colab = (environment(name) / "bin/python" for name in ("learner", "colab"))
    what = "every notebook, with `requirements.txt` installed and nothing else"
    named["learner"] = Step(what, [learner, *PYTEST, "--full", "notebooks"])
    what = "every notebook, with Colab's versions"
    named["colab"] = Step(what, [colab, *PYTEST, "--full", "notebooks"])
    alone = ["--full", "--dist=load", "-k", "on_colab", "tests/test_setup.py"]
    what = "every notebook fetches the course as on Colab, with Colab's versions"
    named["colab-alone"] = Step(what, [colab, *PYTEST, *alone])
    return named


def install(python, requirements, *options):
    """Install a list of packages; return whether that worked."""
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    return subprocess.run([*pip, *options, "-r", ROOT / requirements]).returncode == 0


def prepare(name):
    """Install what a step needs besides this environment; return whether it can run."""
    if name in ("gpt2", "llama", "layers"):
        folder = environment("gpt2")
        shutil.rmtree(folder, ignore_errors=True)
        return install(sys.executable, "tests/gpt2.txt", "--target", folder)
    if name == "learner":
        command = [sys.executable, "-m", "venv", "--clear", environment(name)]
        subprocess.run(command, check=True)
        return install(environment(name) / "bin/python", "requirements.txt")
    if name.startswith("colab"):
        python = environment("colab") / "bin/python"
        if not python.exists() and works("python3.13", "--version"):
            subprocess.run(["python3.13", "-m", "venv", python.parents[1]], check=True)
        return python.exists() and install(python, "tests/colab.txt")
    return True


def run(name, step, log):
    """Run a step, its output into `log`; return its row of the table."""
    result, start = IMPOSSIBLE, time.monotonic()
    if prepare(name):
        env = os.environ | {"OMP_NUM_THREADS": "1"} | step.env
        with log.open("w") as file:
            streams = {"stdout": file, "stderr": subprocess.STDOUT}
            code = subprocess.run(step.command, cwd=ROOT, env=env, **streams).returncode
        text = log.read_text(encoding="utf-8", errors="replace")
        counts = re.findall(r"^(\d+ .+) in [\d.]+s", text, re.MULTILINE)
        result = counts[-1] if counts else text.rstrip().rpartition("\n")[2]
        result = f"{FAILED}: {result}" if code else result
    minutes, day = (time.monotonic() - start) / 60, datetime.date.today()
    return f"| {name} | {step.what} | {result} | {minutes:.1f} | {day} |\n"


def heading():
    """Return machine and versions, and the head of the table."""
    packages = "torch", "numpy", "matplotlib", "jupyterlab"
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    machine = f"{os.cpu_count()} processors ({platform.machine()})"
    return (
        f"{machine}, Python {platform.python_version()}, {versions}:\n\n"
        "| step | what runs | result | minutes | day |\n|---|---|---|---|---|\n"
    )


def main():
    """Run the steps and return whether one failed, in CI also if one is impossible."""
    known = steps()
    parser = argparse.ArgumentParser(description="Run everything.")
    parser.add_argument("steps", nargs="*", metavar="step", help=", ".join(known))
    names = parser.parse_args().steps or list(known)
    if set(names) - set(known):
        parser.error(f"expected steps of {', '.join(known)}")
    logs = Path(tempfile.mkdtemp(prefix="full-run-"))
    print(
        f"{len(names)} steps run, each with a log in {logs} and a row in the table of"
    )
    print(f"tests/README.md. All steps take about three hours.\n\n{heading()}", end="")
    failed = False
    for name in names:
        log = logs / f"{name}.log"
        row = run(name, known[name], log)
        print(row, end="", flush=True)
        guide.store(TABLE, heading(), [row], list(known))
        if FAILED in row:
            print(log.read_text(encoding="utf-8", errors="replace")[-5000:])
        failed |= FAILED in row or ("CI" in os.environ and IMPOSSIBLE in row)
    return failed


if __name__ == "__main__":
    sys.exit(main())
