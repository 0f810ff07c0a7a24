"""Update the course: `python -m utils.update`.

The newest version is fetched with git. The notebooks that you wrote in are copied into
a new folder `mine/DATE/` before new ones replace them, and stay there if that fails.
"""

import json
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
    run = subprocess.run(["git", *words], cwd=COURSE, check=True, capture_output=True)
    return run.stdout.decode()


def is_edited(name: str) -> bool:
    """Return whether the cells of a notebook aren't those of the course.

    Outputs and metadata don't count: JupyterLab changes them when a notebook is opened.
    """
    try:
        text = (COURSE / name).read_text(encoding="utf-8")
        return sources(text) != sources(git("show", f"HEAD:{name}"))
    except (KeyError, TypeError, ValueError, subprocess.CalledProcessError):
        return True  # damaged, or a notebook that the course doesn't have


def sources(text: str) -> list:
    """Return the kind and the source of each cell of a notebook."""
    cells = json.loads(text)["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def main() -> None:
    """Fetch the newest version, copy each edited notebook, then replace them all."""
    if not (COURSE / ".git").exists():
        raise OSError("this copy of the course is from a ZIP file: download a new one")
    git("fetch")
    if git("rev-list", "FETCH_HEAD..HEAD"):
        raise OSError("your copy has commits of its own: run `git merge FETCH_HEAD`")
    changed = git("diff", "--name-only", "--diff-filter=d", "-z", "HEAD").split("\0")
    notebooks = [name for name in changed if name.startswith("notebooks/")]
    untracked = git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
    new_files = git("diff", "--name-only", "--no-renames", "-z", "HEAD", "FETCH_HEAD")
    other_files = {*changed, *untracked} - {*notebooks, ""}
    if conflicts := sorted(other_files.intersection(new_files.split("\0"))):
        text = f"you have changed or added {', '.join(conflicts)}, as the new version "
        raise OSError(text + "has: move your files to a folder outside the course")
    folder = COURSE / "mine" / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    for name in filter(is_edited, notebooks):
        copy = folder / Path(name).relative_to("notebooks")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(COURSE / name, copy)
        print(f"Saved: {copy}")
    git("restore", "--staged", "--worktree", "notebooks")
    git("restore", "--staged", ".")
    print(git("merge", "--ff-only", "FETCH_HEAD"), end="")
    print("Now run the installation of the README again.")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"The update stopped: {error.stderr.decode().strip()}")
    except OSError as error:
        sys.exit(f"The update stopped: {error}")
