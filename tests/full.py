"""Run everything, under every setting this machine has: `python -m tests.full`.

It takes about three hours on two cores. Each step that ends writes its row into the
table in tests/README.md, in place of its last one; steps that are named run alone.
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
FAILED, IMPOSSIBLE = "FAILED", "not possible here"
REFERENCES = "gpt2", "llama", "layers"
PYTEST = ["-m", "pytest", "--color=no"]
HERE = [sys.executable, *PYTEST]
# Kernels and the browser are spoken to over this machine's own network, `lo`.
UNSHARED = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


class Step(NamedTuple):
    """One command of the full run, or None where this machine has no way to run it."""

    name: str
    what: str
    command: list | None
    env: dict = {}


def steps(colab, reference):
    """Return all steps.

    colab: the Python with Colab's versions, or None
    reference: the folder with the reference implementation, or None
    """
    there = colab and [colab, *PYTEST]
    # The code host's machine, if it is Linux, must be able to do without a network.
    must = "CI" in os.environ and sys.platform == "linux"
    offline = UNSHARED if must or works(*UNSHARED, "true") else []
    alone = ["--full", "--dist=load", "-k", "on_colab", "tests/test_setup.py"]
    settings = [(kind, threads) for kind in capabilities() for threads in (1, 2)]
    own = settings.pop(-2)  # the best instructions and one thread, as everything runs
    everything = f"`python -m pytest --full`, {described(*own)}"
    everything += ", without a network" * bool(offline)
    gpt2, llama, layers = (
        reference and [sys.executable, "-m", "tests.references", name]
        for name in REFERENCES
    )
    there_too = {"PYTHONPATH": str(reference)}
    return [
        Step("everything", everything, [*offline, *HERE, "--full"]),
        Step("gpt2", "the tiny GPT-2 made anew by `transformers`", gpt2, there_too),
        Step("llama", "the tiny Llama made anew by `transformers`", llama, there_too),
        Step("layers", "the layers of `tiny_layers` made anew", layers, there_too),
        *(on(kind, threads) for kind, threads in settings),
        Step("colab", "notebooks, Colab's versions", there and [*there, "notebooks"]),
        Step("colab-alone", "the same from nothing", there and [*there, *alone]),
    ]


def works(*command):
    """Return whether this machine has a command and lets it run."""
    found = shutil.which(command[0])
    return found and subprocess.run(command, capture_output=True).returncode == 0


def capabilities():
    """Return which sets of instructions PyTorch can use on this processor."""
    known = ["default", "avx2", "avx512"]
    best = torch.backends.cpu.get_cpu_capability().lower()
    return known[: known.index(best) + 1] if best in known else known[:1]


def described(kind, threads):
    """Return the words for a set of instructions and a number of threads."""
    return f"{kind} instructions, {threads} thread{'s' * (threads > 1)}"


def on(kind, threads):
    """Return the step of all notebooks with these instructions and threads."""
    # Two files side by side with two threads each would wait for each other.
    command = [*HERE, f"--numprocesses={2 // threads}", "notebooks"]
    env = {"ATEN_CPU_CAPABILITY": kind, "OMP_NUM_THREADS": str(threads)}
    name, what = f"{kind}-{threads}", f"notebooks, {described(kind, threads)}"
    return Step(name, what, command, env)


def kept(name):
    """Return a folder in the cache of this account."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "attention-course" / name


def install(python, name, *options):
    """Let a Python install what `tests/NAME.txt` lists; return whether it could."""
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    wanted = ROOT / "tests" / f"{name}.txt"
    return subprocess.run([*pip, *options, "-r", wanted]).returncode == 0


def references():
    """Return a folder with what makes the references, filled anew, or None."""
    folder = kept("gpt2")
    shutil.rmtree(folder, ignore_errors=True)
    return folder if install(sys.executable, "gpt2", "--target", folder) else None


def colab_python():
    """Return the Python of an environment with Colab's versions, made once and kept."""
    folder = kept("colab")
    python = folder / "bin" / "python"
    if not python.exists() and works("python3.13", "--version"):
        subprocess.run(["python3.13", "-m", "venv", folder], check=True)
    return str(python) if python.exists() and install(python, "colab") else None


def run(step, log):
    """Run a step, its output into `log`; return its row of the table."""
    result, start = IMPOSSIBLE, time.monotonic()
    if step.command:
        env = os.environ | {"OMP_NUM_THREADS": "1"} | step.env
        with log.open("w") as file:
            both = {"stdout": file, "stderr": subprocess.STDOUT}
            code = subprocess.run(step.command, cwd=ROOT, env=env, **both).returncode
        text = log.read_text(encoding="utf-8", errors="replace")
        counts = re.findall(r"^(\d+ .+) in [\d.]+s", text, re.MULTILINE)
        result = counts[-1] if counts else text.rstrip().rpartition("\n")[2]
        result = f"{FAILED}: {result}" if code else result
    minutes, day = (time.monotonic() - start) / 60, datetime.date.today()
    return f"| {step.name} | {step.what} | {result} | {minutes:.1f} | {day} |\n"


def heading():
    """Return machine and versions, and the head of the table."""
    names = ("torch", "numpy", "matplotlib", "jupyterlab")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    machine = f"{os.cpu_count()} processors ({platform.machine()})"
    return (
        f"{machine}, Python {platform.python_version()}, {versions}:\n\n"
        "| step | what runs | result | minutes | day |\n|---|---|---|---|---|\n"
    )


def main():
    """Run the steps, print the table and return whether one of them failed.

    On the code host a step that is not possible counts as failed.
    """
    names = [step.name for step in steps(None, None)]
    parser = argparse.ArgumentParser(description="Run everything.")
    parser.add_argument("steps", nargs="*", metavar="step", help=", ".join(names))
    parser.add_argument("--colab", metavar="PYTHON", help="has Colab's versions")
    given = parser.parse_args()
    wanted = given.steps or names
    if set(wanted) - set(names):
        parser.error(f"expected steps of {', '.join(names)}")
    colab = given.colab
    if colab is None and any(name.startswith("colab") for name in wanted):
        colab = colab_python()
    reference = references() if {*REFERENCES} & {*wanted} else None
    logs = Path(tempfile.mkdtemp(prefix="full-run-"))
    head, table = heading(), ""
    print(f"Each step writes its log into {logs}.\n\n{head}", end="", flush=True)
    for step in [s for s in steps(colab, reference) if s.name in wanted]:
        log = logs / f"{step.name}.log"
        row = run(step, log)
        print(row, end="", flush=True)
        table += row
        guide.store("the last full run", head, [row], names)
        if FAILED in row:
            print(log.read_text(encoding="utf-8", errors="replace")[-5000:])
    return FAILED in table or ("CI" in os.environ and IMPOSSIBLE in table)


if __name__ == "__main__":
    sys.exit(main())
