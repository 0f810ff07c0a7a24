"""Keep the versions that the course is tested with.

    python .ci/pins.py lock     after a change of requirements.txt
    python .ci/pins.py raise    now and then: the newest of all, the lock, the full run

`requirements.txt` pins what the course imports, `site.txt` what builds its pages. The
lock pins all that the two bring along, on Linux, macOS and Windows, and `.ci/run`
installs nothing else. Colab's own
versions (`tests/colab.txt`) are copied from Colab by hand.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS, LOCK = ROOT / "requirements.txt", ROOT / ".ci" / "lock.txt"
SITE = ROOT / ".ci" / "site.txt"
TESTS = ROOT / "tests"
COLAB, GPT2 = TESTS / "colab.txt", TESTS / "gpt2.txt"
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def read_pins(path):
    """Return the version of each package that a file pins, by its name."""
    return dict(PIN.findall(path.read_text(encoding="utf-8")))


def resolve(wanted):
    """Return the lock of some requirements: one version of each package everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--quiet", "--target", folder, "uv"], check=True)
        command = [Path(folder, "bin", "uv"), "pip", "compile", "-", "--quiet"]
        command += ["--universal", "--python-version", "3.11"]  # the oldest
        command += ["--fork-strategy", "fewest", "--no-header", "--no-annotate"]
        given = {"input": "\n".join(wanted), "text": True}
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, **given)
    return done.stdout


def write_lock():
    """Write the lock of the pins as they are, of the course and of its pages."""
    pins = read_pins(PINS) | read_pins(SITE)
    lock = resolve([f"{name}=={version}" for name, version in pins.items()])
    LOCK.write_text(f"# python .ci/pins.py lock\n{lock}", encoding="utf-8")


def raised(text, old, new):
    """Return a file of pins with the new versions, where it had the old ones."""

    def replace(pin):
        name, version = pin.groups()
        follows = old.get(name) == version
        return f"{name}=={new[name] if follows else version}"

    return PIN.sub(replace, text)


def raise_pins():
    """Pin the newest versions that go together, in every file that has the old ones."""
    old = read_pins(PINS) | read_pins(SITE) | read_pins(GPT2)
    newest = dict(PIN.findall(resolve(old)))
    for path in (PINS, SITE, GPT2, COLAB):
        text = raised(path.read_text(encoding="utf-8"), old, newest)
        path.write_text(text, encoding="utf-8")
    for name, version in old.items():
        if newest[name] != version:
            print(f"{name} {version} -> {newest[name]}", flush=True)


def run(*words):
    """Run a command in the folder of the course; return its exit code."""
    return subprocess.run(words, cwd=ROOT).returncode


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Keep the versions of the course.")
    parser.add_argument("what", choices=["lock", "raise"])
    if parser.parse_args().what == "lock":
        return write_lock()
    if run("git", "diff", "--quiet", "HEAD"):
        parser.error("commit first what you changed: `raise` may have to be taken back")
    raise_pins()
    write_lock()
    course = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = course["tool"]["course"]["repository"]
    # The setup cell of every notebook names a pin: it is written with the address.
    failed = run(sys.executable, ".ci/notebooks.py", "address", address)
    failed = failed or run(".ci/run", "full")
    if failed:
        print("Some of it fails with these versions. `git checkout .` goes back.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
