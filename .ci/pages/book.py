"""Print the numbered notebooks, from the pages that site.py built, as one PDF.

Hints and answers, which are folded on the pages, become an appendix, with links there
and back. The browser draws page numbers and bookmarks.
"""

import posixpath
import shutil
import subprocess
from pathlib import Path

from bs4 import BeautifulSoup

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Containers lack the kernel's sandbox and a GPU; nothing is asked of the network.
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
FLAGS += "--disable-background-networking --disable-component-update"
PRINT = "--headless --no-pdf-header-footer --generate-pdf-document-outline"
STYLE = Path(__file__).with_name("book.css")
HEAD = """<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>
<link rel="stylesheet" href="_static/pygments.css">
<link rel="stylesheet" href="_static/katex/katex.min.css"><style>{style}</style>
<p class='title'>{title}</p>"""


def find_browser():
    """Return the path of Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def relative_to_site(page, path):
    """Return a path that a page names relative to the folder of the site."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def anchor(page, section=""):
    """Return the name in the book of a page, or of a section of it."""
    return "--".join(filter(None, [posixpath.basename(page), section]))


def load_article(folder, name, names):
    """Return the article of one page, with its links leading into the book."""
    page = (folder / f"{name}.html").read_text(encoding="utf-8")
    article = BeautifulSoup(page, "html.parser").select_one("article")
    unprinted = ".headerlink, .buttons, button, script, .hide summary"
    for element in article.select(unprinted):
        element.decompose()
    for output in article.select("details.hide"):  # on paper it follows its cell
        output.unwrap()
    for element in article.select("[id]"):
        element["id"] = anchor(name, element["id"])
    article.h1["id"] = anchor(name)
    for picture in article.select("img"):
        del picture["loading"]
        picture["src"] = relative_to_site(name, picture["src"])
    for link in article.select("a[href]"):
        path, _, section = link["href"].partition("#")
        target = relative_to_site(name, path).removesuffix(".html") if path else name
        if target in names:
            link["href"] = "#" + anchor(target, section)
        elif link.parent.name == "p" and link.parent.get_text() == link.get_text():
            link.parent.decompose()  # a line that is only a link out of the book
        elif ":" not in path:
            link.unwrap()
    return article


def take_folds(article):
    """Move folded text out of an article; return it as HTML, below its headings."""
    appendix = [f"<h2>{article.h1.decode_contents()}</h2>"]
    for number, fold in enumerate(article.select("details"), 1):
        summary = fold.summary.extract().get_text()
        place = anchor(article.h1["id"], f"at-{number}")
        note = anchor(article.h1["id"], f"note-{number}")
        heading = fold.find_previous(["h1", "h2", "h3"]).get_text()
        back = f'<a href="#{place}">Note {number}: {summary.lower()}</a>, {heading}'
        appendix.append(f'<p class="fold" id="{note}">{back}</p>')
        appendix.append(fold.decode_contents())
        line = f'<a href="#{note}">{summary}: note {number}</a>'
        line = f'<p class="fold" id="{place}">{line}</p>'
        fold.replace_with(BeautifulSoup(line, "html.parser"))
    return appendix if len(appendix) > 1 else []


def write_book(folder, pdf, title, names):
    """Print the pages of some notebooks in `folder` as `pdf`."""
    articles = [load_article(folder, name, set(names)) for name in names]
    appendix = [line for article in articles for line in take_folds(article)]
    html = HEAD.format(title=title, style=STYLE.read_text(encoding="utf-8"))
    html += "".join(map(str, articles))
    html += "<h1 id='appendix'>Hints and answers</h1>" + "".join(appendix)
    source = folder / "book.html"
    source.write_text(html, encoding="utf-8")
    options = [*FLAGS.split(), *PRINT.split(), f"--print-to-pdf={pdf}"]
    command = [find_browser(), *options, source.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    source.unlink()
