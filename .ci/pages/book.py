"""Print the numbered notebooks, from the pages that site.py built, as one PDF.

Hints and answers, which are folded on the pages, become an appendix, with links there
and back. The browser draws page numbers and bookmarks.
"""

import posixpath
import shutil
from pathlib import Path

from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu"]  # containers have neither
STYLE = Path(__file__).with_name("book.css")
HEAD = """<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>
<link rel="stylesheet" href="_static/pygments.css">
<link rel="stylesheet" href="_static/katex/katex.min.css"><style>{style}</style>
<p class='title'>{title}</p>"""
FOOTER = """<div style="width: 100%; text-align: center; font: 8pt sans-serif">
<span class="pageNumber"></span></div>"""
LAYOUT = {
    "display_header_footer": True,
    "header_template": "<i></i>",
    "footer_template": FOOTER,
    "prefer_css_page_size": True,
    "print_background": True,
    "outline": True,
    "tagged": True,
}


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
    command = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=command, args=FLAGS)
        page = browser.new_page()
        source.write_text(html, encoding="utf-8")
        page.goto(source.as_uri())
        page.pdf(path=pdf, **LAYOUT)
        browser.close()
    source.unlink()
