"""Update the course: `python -m utils.update`.

The newest version is fetched with git. Notebooks that you changed are copied into a new
folder `mine/DATE/` before the new ones replace them. Without a network nothing changes.
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
    done = subprocess.run(["git", *words], cwd=COURSE, check=True, capture_output=True)
    return done.stdout.decode()


def main() -> None:
    """Fetch the newest version, copy each changed notebook, then replace them all."""
    if not (COURSE / ".git").exists():
        raise OSError("this copy of the course is from a ZIP file: download a new one")
    git("fetch")
    listed = git("diff", "--name-only", "--diff-filter=d", "-z", "HEAD", "notebooks")
    folder = COURSE / "mine" / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    for name in listed.split("\0")[:-1]:
        copy = folder / Path(name).relative_to("notebooks")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(COURSE / name, copy)
        print(f"Saved: {copy}")
    git("restore", "--staged", "--worktree", "notebooks")
    print(git("merge", "--ff-only", "FETCH_HEAD"), end="")
    print("Now run the installation of the README again.")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"The update stopped: {error.stderr.decode().strip()}")
    except OSError as error:
        sys.exit(f"The update stopped: {error}")
