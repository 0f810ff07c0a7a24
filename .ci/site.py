"""Build the course as pages, from the notebooks as they are stored.

    python -m pip install -r .ci/site.txt -c .ci/lock.txt
    npm install --prefix "$VIRTUAL_ENV" katex@0.19.1
    python .ci/site.py [FOLDER] [--pdf]

Nothing is executed and nothing fetched: FOLDER (default: build/site) holds all that its
pages need, and they work from a disk as well as from a server. `--pdf` also prints the
numbered notebooks as one file, which takes Chromium.
"""

import argparse
import base64
import hashlib
import re
import shutil
import struct
import sys
import tempfile
from html import escape
from pathlib import Path

import nbformat
from docutils.nodes import make_id
from pages.book import write_book
from pages.extension import KATEX
from sphinx.application import Sphinx

import notebooks as tool

ROOT = tool.ROOT
TITLE = "Attention, from tokens to transformers"
PDF = "attention.pdf"
SETTINGS = {
    "project": TITLE,
    "html_title": "Attention",
    "extensions": ["myst_nb", "sphinx_copybutton", "pages.extension"],
    "nb_execution_mode": "off",
    "nb_code_prompt_show": "Show the {type}",  # of a cell that answers a prediction
    "nb_code_prompt_hide": "Hide the {type}",
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 3,
    "myst_heading_slug_func": "docutils",
    "html_theme": "furo",
    "html_math_renderer": "katex",
    "html_css_files": ["katex/katex.min.css", "site.css"],
    "html_js_files": ["site.js"],
    "html_copy_source": False,
    "html_use_index": False,
    "html_show_copyright": False,
    "pygments_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
TO_SECTION = re.compile(r"\]\(([\w./]*)#([^)\s]+)\)")
IN_REPOSITORY = re.compile(r"\[([^]]+)\]\((?!https?:|notebooks/.+\.ipynb\))(.+?)\)")


def picture(png, text, page, extra):
    """Keep a picture in `extra`; return the HTML that shows it on `page`."""
    name = f"pictures/{hashlib.sha256(png).hexdigest()[:16]}.png"
    (extra / "pictures").mkdir(parents=True, exist_ok=True)
    (extra / name).write_bytes(png)
    # Twice as many pixels as the page has: sharp on every screen.
    width, height = (pixels // 2 for pixels in struct.unpack(">II", png[16:24]))
    shown = f'<img src="{"../" * page.count("/")}{name}" alt="{escape(text)}" '
    return shown + f'width="{width}" height="{height}" loading="lazy">'


def buttons(links, download=None):
    """Return the HTML of buttons: names with addresses, and a file to download."""
    shown = [f'<a href="{address}">{name}</a>' for name, address in links]
    if download:
        shown.append(f'<a href="{download}" download>Download</a>')
    return f'<p class="buttons">{" ".join(shown)}</p>'


def read_notebook(path, home, extra):
    """Return a notebook as its page shows it; write its files into `extra`."""
    page = path.relative_to(ROOT).as_posix()
    (extra / page).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, extra / page)
    notebook = nbformat.read(path, as_version=4)
    tool.uncover(notebook)
    notebook.cells = [cell for cell in notebook.cells if not tool.is_setup(cell)]
    colab = re.findall(r"\[(.+)\]\((.+)\)", tool.links(home, path)[0])
    bar = buttons(colab, path.name)
    opening = notebook.cells[0]
    opening.source = tool.with_colab_link(opening.source, bar)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            # A section has another name on its page.
            cell.source = TO_SECTION.sub(
                lambda link: f"]({link[1]}#{make_id(link[2])})", cell.source
            )
            cell.source = cell.source.replace("](../README.md)", "](../index.md)")
        if cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-output"]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                png = base64.b64decode(data.pop("image/png"))
                data["text/html"] = picture(png, data["text/plain"], page, extra)
    return notebook


def toctree(caption, names, titles):
    """Return a part of the list of pages that Sphinx shows at the side."""
    lines = ["```{toctree}", ":hidden:", f":caption: {caption}", ""]
    for name in names:
        title = re.sub("^Deeper: |: (worked )?solutions$", "", titles[name])
        lines.append(f"{title[0].upper()}{title[1:]} <{name}>")
    return "\n".join([*lines, "```"])


def index_page(titles, home, extra, pdf):
    """Return the first page: the README, then the list of all other pages."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = tool.with_colab_link(readme.partition("\n")[2], "")
    [(alt, scheme)] = re.findall(r"!\[(.+)\]\((.+)\)", text)
    shown = picture((ROOT / scheme).read_bytes(), alt, "", extra)
    text = text.replace(f"![{alt}]({scheme})", shown)
    link = rf"[\1]({home[0]}/blob/{home[1]}/\2)" if home[0] else r"\1"
    text = IN_REPOSITORY.sub(link, text)
    named = dict.fromkeys(re.findall(r"\]\((notebooks/.+?)\.ipynb\)", text))
    lessons = [name for name in named if "/deeper/" not in name]
    deeper = [name for name in named if "/deeper/" in name]
    solutions = [name for name in titles if "/solutions/" in name]
    ways_in = lessons[0], lessons[-1]  # the whole course, and the hour
    first = [(titles[name], f"{name}.html") for name in ways_in]
    if pdf:
        first.append(("All as a PDF", PDF))
    parts = [
        f"# {TITLE}",
        buttons(first),
        text,
        toctree("The course", lessons, titles),
        toctree("Deeper", deeper, titles),
        toctree("Worked solutions", solutions, titles),
    ]
    return "\n\n".join(parts)


def write_sources(source, extra, pdf):
    """Write what Sphinx reads into `source`, and what it only copies into `extra`."""
    home, titles = tool.read_home(), {}
    for path in tool.find_notebooks():
        page, notebook = path.relative_to(ROOT), read_notebook(path, home, extra)
        title = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
        titles[page.with_suffix("").as_posix()] = title
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, source / page)
    index = index_page(titles, home, extra, pdf)
    (source / "index.md").write_text(index, encoding="utf-8")
    settings = SETTINGS | {"html_extra_path": [str(extra)]}
    lines = [f"{name} = {value!r}\n" for name, value in settings.items()]
    (source / "conf.py").write_text("".join(lines), encoding="utf-8")
    static = extra / "_static"
    older = shutil.ignore_patterns("*.ttf", "*.woff")
    shutil.copytree(KATEX / "fonts", static / "katex/fonts", ignore=older)
    shutil.copy(KATEX / "katex.min.css", static / "katex")
    for name in ("site.css", "site.js"):
        shutil.copy(ROOT / ".ci/pages" / name, static)


def build(folder, pdf):
    """Build the pages, and if asked for the PDF, into `folder`; return what failed."""
    with tempfile.TemporaryDirectory() as temporary:
        source, extra, cache = (Path(temporary, name) for name in ("in", "extra", "c"))
        source.mkdir()
        write_sources(source, extra, pdf)
        options = {"status": None, "warningiserror": True}
        app = Sphinx(source, source, folder, cache, "html", **options)
        app.build()
    if pdf and not app.statuscode:
        numbered = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
        names = [f"notebooks/{path.stem}" for path in numbered]
        write_book(folder, folder / PDF, TITLE, names)
    return app.statuscode


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the course as pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build/site")
    parser.add_argument("--pdf", action="store_true", help="print the lessons, too")
    given = parser.parse_args()
    return build(given.folder.resolve(), given.pdf)


if __name__ == "__main__":
    sys.exit(main())
