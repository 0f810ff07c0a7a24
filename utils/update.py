"""Update the course: `python -m utils.update`.

Notebooks that you changed are copied into a new folder `mine/DATE/` before they are
brought back to their original state and the newest version is fetched with git.
"""

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


def main() -> None:
    """Copy each notebook that differs from the fetched one, then update."""
    listed = git("diff", "--name-only", "--diff-filter=d", "-z", "HEAD", "notebooks")
    folder = COURSE / "mine" / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    for name in listed.split("\0")[:-1]:
        copy = folder / Path(name).relative_to("notebooks")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(COURSE / name, copy)
        print(f"Saved: {copy}")
    git("restore", "notebooks")
    print(git("pull", "--ff-only"), end="")
    print("Now run the installation of the README again.")


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"The update stopped: {error}")
