"""Run and store notebooks, and write the course's address.

    python -m tests.notebooks execute [NOTEBOOK ...]
    python -m tests.notebooks address https://github.com/OWNER/REPOSITORY [VERSION]

`execute` runs notebooks from top to bottom and stores what they print; without
names it takes all of them. `address` writes where the course lives, and the branch or
tag that a notebook fetches, into pyproject.toml and the setup cells, and the links to
Colab and to the pages into the notebooks and the README. Before it has run there are
no such links.
"""

import argparse
import base64
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from PIL import Image

from tests.repository import ROOT
from tests.tolerance import agree, printed
from utils.checks.catalogue import COURSE, numbered_notebooks
from utils.files import write_atomically
from utils.pages import read_opening

START = ROOT / "notebooks/00_start_here.ipynb"
KEPT_METADATA = ("tags", "tolerance", "reason")
# What JupyterLab and Colab each need to show a cell folded: the setup cell, and each
# other whose first line is a title, `# @title ...`.
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
LONGEST = 57  # minutes of a page, which then states 55, because it rounds to five
WITH_MINUTES = "### Exercise", "## A test of your own", "## Two cases"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    # For `nbconvert --to script`. JupyterLab adds the version of its reader's Python.
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
# JupyterLab shows the first line of a folded output, so an answer needs a cover. Tests
# compare no HTML.
COVER = nbformat.v4.new_output(
    "display_data", {"text/html": "Make your prediction, then run this cell."}
)
COLAB = "[Open in Colab]("

# The same in every notebook. It looks for the course around the notebook, whose place
# VS Code and JupyterLab name, around the kernel's folder, and in it, as on Colab.
SETUP = """\
# @title Set-up: run this cell first
import os, sys, torch  # noqa: E401, I001
from pathlib import Path
opened = globals().get("__vsc_ipynb_file__") or os.getenv("JPY_SESSION_NAME")
here = Path.cwd(){unpack}
folders = [*(here / (opened or "")).parents, here, *here.parents, *here.glob("*")]
place = next((f for f in folders if os.path.isdir(f / "utils/checks")), None)
{fetch}sys.path.insert(0, str(place))
torch.set_num_threads(1)  # small matrices: more threads would mostly wait"""
# Without an address it says what to do there; on Colab it unpacks the course's ZIP.
UNPACK = """
advice = "move this notebook back into the course."
if not opened:
    advice = f"start the kernel in the folder of the course, not in {here}."
if "google.colab" in sys.modules:
    advice = "upload the ZIP file of the course (folder icon), and run this cell again."
    for file in here.glob("*.zip"):
        python = f'"{sys.executable}" -m'
        get = f'{python} zipfile -e "{file}" . && {python} pip install -qq tiktoken'
        os.system(get)"""
ADVISE = """\
if place is None:
    sys.exit(f"The next cells need `utils`: {advice}")
"""
# Git refuses a folder that isn't empty, so half a course is never used.
FETCH = """\
if place is None:
    place = here / "attention-course"
    get = f'"{{sys.executable}}" -m pip install -qq tiktoken && '
    get += f'git clone -q --depth=1 -b {version} "{address}" "{{place}}"'  # noqa: E501
    if os.system(get) != 0:
        sys.exit("The next cells need `utils`, which could not be fetched: see above.")
"""
GET = """\
**Get the course** with git, or choose *Code → Download ZIP* and unpack the file:

```
git clone --depth 1 {address} attention-course
cd attention-course
```

"""


def read_home():
    """Return address and version of the course from pyproject.toml, their one place."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    course = tomllib.loads(text)["tool"]["course"]
    return course["repository"], course["version"]


def find_notebooks():
    """Return every notebook of the course: the lessons, the deeper ones, solutions."""
    kinds = "*.ipynb", "deeper/*.ipynb", "solutions/*.ipynb"
    return [path for kind in kinds for path in sorted((ROOT / "notebooks").glob(kind))]


def setup_cell(home):
    """Return the source of the setup cell for a course at `home`, address and version.

    With an address, a notebook without the course fetches it, and the one package that
    Colab lacks. Without one, it takes both from a ZIP on Colab, or says what to do.
    """
    address, version = home
    if not address:
        return SETUP.format(unpack=UNPACK, fetch=ADVISE)
    fetch = FETCH.format(address=address, version=version)
    return SETUP.format(unpack="", fetch=fetch)


def links(home, path):
    """Return markdown links: a notebook in Colab, the pages; empty unless on GitHub."""
    github = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", home[0])
    if github is None:
        return "", ""
    owner, name = github.groups()
    base = f"https://colab.research.google.com/github/{owner}/{name}/blob/{home[1]}"
    pages = f"[Read it as pages](https://{owner}.github.io/{name}/)"
    return f"{COLAB}{base}/{path.relative_to(ROOT).as_posix()})", pages


def with_colab_link(text, link):
    """Return markdown `text` with `link` as the line under its title."""
    lines = [line for line in text.splitlines() if not line.startswith(COLAB)]
    parts = [lines[0], link, "\n".join(lines[1:]).strip("\n")]
    return "\n\n".join(part for part in parts if part)


def cell_minutes(cell):
    """Return a reader's minutes with a cell.

    Prose takes a minute per 130 words, an exercise what it states besides, a code cell
    one minute to run and read, unless it is folded, and each figure one more.
    """
    if cell.cell_type == "code":
        figures = ["image/png" in output.get("data", {}) for output in cell.outputs]
        return sum(figures) + (is_setup(cell) or not is_folded(cell))
    # A link counts without its target, and a formula as one word.
    text = re.sub(r"\$[^$]*\$", " M ", re.sub(r"\]\([^)]*\)", "]", cell.source))
    minutes = len(re.findall(r"\w+", text)) / 130
    if cell.source.startswith(WITH_MINUTES):
        stated = re.search(r"About (\d+) minutes?", cell.source)
        if not stated:
            title = cell.source.splitlines()[0]
            raise ValueError(f"expected 'About N minutes' under {title!r}")
        minutes += int(stated[1])
    return minutes


def reading_minutes(notebook):
    """Return a reader's minutes with a notebook."""
    return sum(map(cell_minutes, notebook.cells))


def is_setup(cell):
    """Return whether `cell` is the setup cell."""
    return "setup" in cell.metadata.get("tags", [])


def predicted_cells(cells):
    """Return the code cells whose outputs answer a *Predict*, stored folded.

    For each it is the next cell with an output that isn't a check's, unless a new
    section or exercise begins before it, and those that follow without a text between.
    """
    predicted, is_waiting, is_answered = [], False, False
    for cell in cells:
        if cell.cell_type == "markdown":
            is_waiting, is_answered = is_waiting and not is_answered, False
            is_waiting &= re.match("## |### Exercise", cell.source) is None
            is_waiting |= re.search(r"^\W*\*\*Predict", cell.source, re.M) is not None
        elif is_waiting and cell.outputs and not re.search("^check", cell.source, re.M):
            predicted.append(cell)
            is_answered = True
    return predicted


def is_folded(cell):
    """Return whether `cell` is code that is shown folded, under a title."""
    return cell.cell_type == "code" and cell.source.startswith("# @title ")


def prepare(notebook, path, home):
    """Write the setup cell, Colab link, minutes and plain metadata into `notebook`."""
    notebook.metadata = nbformat.from_dict(METADATA)
    opening = notebook.cells[0]
    opening.source = with_colab_link(opening.source, links(home, path)[0])
    about = f"About {5 * max(1, round(reading_minutes(notebook) / 5))} minutes"
    opening.source = re.sub(r"About \d+ minutes", about, opening.source)
    for cell in notebook.cells:
        keys = [key for key in KEPT_METADATA if key in cell.metadata]
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in keys})
        if is_setup(cell):
            cell.source = setup_cell(home)
        if is_folded(cell):
            cell.metadata |= nbformat.from_dict(FOLDED)
        if cell.source.startswith("## Solution"):  # with all cells of its section
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output != COVER]
    for cell in predicted_cells(notebook.cells):
        # Not its code as well: JupyterLab shows nothing of a cell without both.
        cell.metadata.jupyter = nbformat.NotebookNode(outputs_hidden=True)
        cell.outputs.insert(0, COVER)


def store(notebook, path):
    """Write a notebook to `path`."""
    write_atomically(path, f"{nbformat.writes(notebook)}\n".encode())


def with_minutes(text):
    """Return the README with each notebook's minutes, and the hours of 00 to 14."""
    folder = ROOT / "notebooks"
    names = [path.relative_to(folder).as_posix() for path in find_notebooks()]
    minutes = {name: read_opening(name)[1] for name in names}
    for name, number in minutes.items():
        row = rf"(\]\(notebooks/{re.escape(name)}\)(?: \(| \|[^|]*\| ))\d+"
        text = re.sub(row, rf"\g<1>{number}", text)
    course = numbered_notebooks(COURSE)
    hours = sum(minutes[name] for name in course) / 60
    return re.sub(r"\d+ hours together", f"{hours:.0f} hours together", text)


def write_minutes():
    """Renew the minutes that the README states; return whether some changed."""
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    if (text := with_minutes(before)) != before:
        write_atomically(readme, text.encode())
    return text != before


# ------------------------------------------------------------------- execute


def pixels(encoded):
    """Return a hash of the pixels of an image, which base64 stands for."""
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


def figures(cell):
    """Return the HTML of each figure of a cell, with hashes of the pixels."""
    bundles = [output.get("data", {}) for output in cell.get("outputs", [])]
    pages = [data["text/html"] for data in bundles if "image/png" in data]
    image = r"data:image/\w+;base64,([\w+/=]+)"  # of a slider one for each state
    return [re.sub(image, lambda match: pixels(match[1]), page) for page in pages]


def keep_stored(notebook, stored, redraw=False):
    """Put back stored outputs; return the unchanged cells that have a new one.

    A cell keeps its outputs if its text agrees with the new one. Its figures may differ
    then, because processors differ in the last digits. But with `redraw`, and after a
    cell whose code is new, figures have to look the same.
    """
    old = {cell.source: cell for cell in stored.cells if cell.cell_type == "code"}
    renewed = []
    for cell in [cell for cell in notebook.cells if cell.cell_type == "code"]:
        before = old.get(cell.source)
        if before is None:
            redraw = True
            continue
        agrees = agree(printed(cell), printed(before), cell.metadata.get("tolerance"))
        is_ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
        if is_ignored or agrees and not (redraw and figures(cell) != figures(before)):
            cell.outputs = before.outputs
        else:
            renewed.append(cell)
    return renewed


def run_cells(notebook, folder, **env):
    """Run every cell of `notebook` in a fresh kernel of this Python, in `folder`.

    `env` is added to the environment of this process.
    """
    from jupyter_client.manager import KernelManager
    from nbclient import NotebookClient
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

    manager = KernelManager(
        kernel_name=CURRENT_ENV_KERNEL_NAME,
        kernel_spec_manager=NbvalKernelspecManager(),
    )
    options = {"record_timing": False, "coalesce_streams": True}
    options["timeout"] = 600
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, km=manager, resources=resources, **options)
    with tempfile.TemporaryDirectory() as private:
        # The reader's progress, IPython settings and downloads stay out of it.
        settings = {"COURSE_PROGRESS": private, "IPYTHONDIR": private}
        settings |= {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": private}
        env = os.environ | settings | env
        try:
            # What a cell writes to stderr is an output; this is the kernel's own.
            client.execute(env=env, stderr=subprocess.DEVNULL)
        finally:
            manager.shutdown_kernel(now=True)


def read_committed(path):
    """Return a notebook as the last commit has it, or if there is none, as it is."""
    command = ["git", "show", f"HEAD:./{path.name}"]
    process = subprocess.run(command, cwd=path.parent, capture_output=True)
    content = path.read_bytes() if process.returncode else process.stdout
    return nbformat.reads(content.decode(), as_version=4)


def execute_one(path, redraw=False):
    """Run and store one notebook, and say so; return whether a cell failed.

    Nothing is stored if a cell fails. For `redraw` see `keep_stored`.
    """
    notebook, stored = nbformat.read(path, as_version=4), read_committed(path)
    home = read_home()
    prepare(notebook, path, home)
    try:
        run_cells(notebook, path.parent)
    except Exception as error:  # a failing cell, a dead kernel or a timeout
        print(f"FAILED, left as it was: {path}\n{type(error).__name__}: {error}")
        return True
    renewed = keep_stored(notebook, stored, redraw)
    before = {figure for cell in stored.cells for figure in figures(cell)}
    num_new = sum(f not in before for cell in notebook.cells for f in figures(cell))
    prepare(notebook, path, home)  # once more: now there are figures to count
    store(notebook, path)
    minutes = round(reading_minutes(notebook))
    limit = f" of {LONGEST}" * (path.parent.name != "solutions")
    lines = [f"{path.stem}: {minutes}{limit} minutes, new figures: {num_new}"]
    for cell in sorted(notebook.cells, key=cell_minutes)[:-6:-1]:
        if limit and minutes > LONGEST:
            lines.append(f"  {cell_minutes(cell):.1f} of them: {cell.source[:60]!r}")
    for cell in renewed:
        lines.append(f"  [{cell.execution_count}] has a new output and its old code")
    print("\n".join(lines), flush=True)
    return False


def execute(paths, redraw=False):
    """Run and store notebooks, two at a time, and their minutes; return how many fail.

    00 comes last, because it lists the minutes of all, and again if its own are new.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    others = [path for path in paths if path != START]
    with ThreadPoolExecutor(2) as pool:
        failed = sum(pool.map(lambda path: execute_one(path, redraw), others))
    if write_minutes() or START in paths:
        failed += execute_one(START, redraw)
        if write_minutes():
            execute_one(START, redraw)
    return failed


# ------------------------------------------------------------------- address


def write_home(address, version):
    """Write address and version into pyproject.toml, all notebooks and the README."""
    home = address.rstrip("/").removesuffix(".git"), version
    lines, project = 'repository = "{}"\nversion = "{}"', ROOT / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    text = text.replace(lines.format(*read_home()), lines.format(*home))
    write_atomically(project, text.encode())
    for path in find_notebooks():
        notebook = nbformat.read(path, as_version=4)
        prepare(notebook, path, home)
        store(notebook, path)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    get = GET.format(address=home[0]) if home[0] else ""
    text = re.sub(r"(?s)(## Start\n\n).*?(\*\*The first day)", rf"\1{get}\2", text)
    first = " · ".join(filter(None, links(home, START)))
    write_atomically(readme, f"{with_colab_link(text, first)}\n".encode())


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("execute", help="run and store notebooks")
    run.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    about = "also store figures that look different below an unchanged cell"
    run.add_argument("--redraw", action="store_true", help=about)
    move = commands.add_parser("address", help="write where the course lives")
    move.add_argument("url")
    branch = "branch or tag that the notebooks belong to (default: as it is)"
    move.add_argument("version", nargs="?", default=read_home()[1], help=branch)
    options = parser.parse_args()
    if options.command == "address":
        return write_home(options.url, options.version)
    paths = [path.resolve() for path in options.notebooks] or find_notebooks()
    return execute(paths, options.redraw)


if __name__ == "__main__":
    sys.exit(main())
