"""The course as files: the tools of `.ci` as modules, and copies to test elsewhere."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def load(name):
    """Return a file of `.ci` as a module."""
    place = ROOT / f".ci/{name}.py"
    spec = importlib.util.spec_from_file_location(f"course_{name}", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool, pins = load("notebooks"), load("pins")


def files():
    """Return the files that git keeps or would keep; without git, all files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        paths = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0")]
    else:
        inside = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        left_out = {"__pycache__", ".venv", "venv"}
        paths = [ROOT / path for path in inside if not left_out & {*path.parts}]
    return [path for path in paths if path.is_file()]


def make_course(folder):
    """Copy the course as it stands now, not as last committed, into `folder`."""
    for path in files():
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def make_repository(folder, version="main"):
    """Copy the course into `folder` and commit there what git keeps of it."""
    make_course(folder)
    git(folder, "init", "-q", "-b", version)
    git(folder, "add", ".")
    commit(folder)


def commit(folder):
    """Commit what is added, in the name of a reader."""
    who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    git(folder, *who, "commit", "-q", "-m", "all")


def git(folder, *words):
    """Run git in `folder`, without the settings of this account."""
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *words], cwd=folder, env=env, check=True)
