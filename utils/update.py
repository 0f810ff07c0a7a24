"""Update the course: `python -m utils.update`, or only save with `--save`.

Notebooks that you changed are copied into a new folder `mine/DATE/` before they are
brought back to their original state and the newest version is fetched with git.
"""

import argparse
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent


def git(*words: str) -> str:
    """Return what a git command prints, run in the folder of the course.

    Raises subprocess.CalledProcessError if it fails, OSError if there is no git.
    """
    command = ["git", *words]
    done = subprocess.run(command, cwd=COURSE, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def save_changed_notebooks() -> list[Path]:
    """Copy each notebook that differs from the fetched one into `mine/DATE/`.

    Returns the copies, in folders as in `notebooks/`; earlier ones are never replaced.
    """
    listed = git("diff", "--name-only", "--diff-filter=d", "-z", "HEAD", "notebooks")
    folder = COURSE / "mine" / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    copies = []
    for name in listed.split("\0")[:-1]:
        copies.append(folder / Path(name).relative_to("notebooks"))
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(COURSE / name, copies[-1])
    return copies


def main() -> None:
    """Read the command line, save and update."""
    parser = argparse.ArgumentParser(prog="python -m utils.update")
    parser.add_argument("--save", action="store_true", help="save, and change nothing")
    only_save = parser.parse_args().save
    try:
        if copies := save_changed_notebooks():
            print(f"Changed notebooks are saved: {', '.join(map(str, copies))}")
        if not only_save:
            git("restore", "notebooks")
            print(git("pull", "--ff-only"), end="")
            print("Now run the installation of the README again.")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"The update stopped: {error}")


if __name__ == "__main__":
    main()
