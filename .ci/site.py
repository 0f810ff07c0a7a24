"""Build the course as pages, from the notebooks as they are stored.

    python -m pip install -r .ci/site.txt -c .ci/lock.txt
    npm install --prefix "$VIRTUAL_ENV" katex@0.19.1
    python .ci/site.py [FOLDER] [--pdf]

Nothing is executed and nothing fetched: FOLDER (default: build/site) holds all that its
pages need, and they work from a disk as well as from a server. `--pdf` also prints the
numbered notebooks as one file, which takes Chromium.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
KINDS = "*.ipynb", "deeper/*.ipynb", "solutions/*.ipynb"
NOTEBOOKS = [path for kind in KINDS for path in ROOT.glob(f"notebooks/{kind}")]
# The list of pages at the side. `deeper` comes from the table in the README.
CONTENTS = """
```{{toctree}}
:hidden:
:glob:
:caption: The course

notebooks/00_start_here
notebooks/attention_in_an_hour
notebooks/*
```

```{{toctree}}
:hidden:
:caption: Deeper

{deeper}
```

```{{toctree}}
:hidden:
:glob:
:caption: Worked solutions

notebooks/solutions/*
```
"""
DEEPER = re.compile(r"\[([^]]+)\]\((notebooks/deeper/\w+)\.ipynb\)")
BOOK = """# Attention, from tokens to transformers

```{toctree}
:hidden:
:glob:

notebooks/[0-9]*
```
"""
# Links out of the book lead nowhere.
BOOK_SETTINGS = (
    "root_doc=book",
    "include_patterns=book.md,notebooks/[0-9]*",
    "suppress_warnings=myst.xref_missing",
)
PDF = "attention.pdf"
LINK = '\n\n<a href="{file}" download>{text}</a>\n'
# What JupyterLab folds, and the tags that MyST-NB reads instead.
FOLDS = {"source_hidden": "hide-input", "outputs_hidden": "hide-output"}
NO_PAGE = re.compile(r"(?<!!)\[([^]]+)\]\((?!https?:|#|notebooks/.+\.ipynb\)).+?\)")
# In a container Chromium has no sandbox; the pages need no network.
PRINT = "--headless --no-sandbox --disable-gpu --disable-background-networking "
PRINT += "--no-pdf-header-footer --generate-pdf-document-outline"


def fold(cell):
    """Tag a cell: its page folds what JupyterLab folds, code under its title."""
    hidden = cell.metadata.get("jupyter", {})
    folds = [tag for name, tag in FOLDS.items() if hidden.get(name)]
    cell.metadata.tags = cell.metadata.get("tags", []) + folds
    if "hide-input" in folds:
        title = cell.source.splitlines()[0].removeprefix("# @title ")
        cell.metadata.mystnb = {"code_prompt_show": title, "code_prompt_hide": title}
    if "hide-output" in folds:
        del cell.outputs[0]  # the cover, which JupyterLab shows


def contents(readme):
    """Return the list of pages, the deeper ones under their notebooks' numbers."""
    rows = re.findall(r"^\| (\d\d) \| (.+) \|$", readme, re.MULTILINE)
    pages = [(number, *page) for number, row in rows for page in DEEPER.findall(row)]
    lines = [f"{number} {title} <{page}>" for number, title, page in sorted(pages)]
    return CONTENTS.format(deeper="\n".join(lines))


def write_notebook(path, source):
    """Write a notebook as its page shows it: no set-up cell, but a link to its file."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [
        c for c in notebook.cells if "setup" not in c.metadata.get("tags", [])
    ]
    for cell in notebook.cells:
        fold(cell)
        cell.source = cell.source.replace("](../README.md)", "](../index.md)")
    opening = notebook.cells[0]
    link = LINK.format(file=path.name, text="Download the notebook")
    opening.source = opening.source.replace("\n", link, 1)
    page = source / path.relative_to(ROOT)
    page.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, page)


def run_sphinx(source, folder, builder, *settings):
    """Build what is in `source` into `folder`; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", builder]
    command += [word for setting in settings for word in ("-D", setting)]
    command += ["-c", ROOT / ".ci/pages", "-d", source / f".{builder}", source, folder]
    subprocess.run(command, cwd=ROOT, check=True)


def print_book(source, pdf):
    """Print the numbered notebooks as one PDF; what folds on a page is open."""
    (source / "book.md").write_text(BOOK)
    run_sphinx(source, source / "book", "singlehtml", *BOOK_SETTINGS)
    page = source / "book/book.html"
    opened = page.read_text(encoding="utf-8").replace("<details", "<details open")
    page.write_text(opened, encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    command = [browser, *PRINT.split(), f"--print-to-pdf={pdf}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


def build(folder, pdf):
    """Build the pages, and if asked for the PDF, into `folder`."""
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary)
        scheme = "utils/plots/scheme.png"
        (source / scheme).parent.mkdir(parents=True)
        shutil.copy(ROOT / scheme, source / scheme)
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        pages = contents(readme)
        readme = NO_PAGE.sub(r"\1", readme)  # files that are no pages need no link
        if pdf:
            link = LINK.format(file=PDF, text="All numbered notebooks as a PDF")
            readme = readme.replace("\n", link, 1)
        (source / "index.md").write_text(readme + pages, encoding="utf-8")
        for path in NOTEBOOKS:
            write_notebook(path, source)
        run_sphinx(source, folder, "html")
        for path in NOTEBOOKS:
            shutil.copy(path, folder / path.relative_to(ROOT))
        if pdf:
            print_book(source, folder / PDF)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the course as pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build/site")
    parser.add_argument("--pdf", action="store_true", help="print the lessons, too")
    given = parser.parse_args()
    build(given.folder.resolve(), given.pdf)


if __name__ == "__main__":
    main()
