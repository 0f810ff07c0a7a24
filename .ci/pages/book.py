"""Print the numbered notebooks, from the pages that site.py built, as one PDF.

What is folded on the pages stands in an appendix. The browser draws page numbers and
bookmarks; which page a thing comes to lie on is read off a first print.
"""

import posixpath
import re
import shutil

from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu"]  # containers have neither
SHEETS = ("pygments.css", "katex/katex.min.css")
FOOTER = """
<div style="width: 100%; text-align: center; font: 8pt sans-serif">
<span class="pageNumber"></span></div>"""
LAYOUT = {
    "display_header_footer": True,
    "header_template": "<i></i>",
    "footer_template": FOOTER,
    "prefer_css_page_size": True,
    "print_background": True,
}
STYLE = """
@page { size: A4; margin: 18mm 20mm; }
body { font: 10pt/1.4 sans-serif; margin: 0; }
h1 { break-before: page; font-size: 20pt; }
h2 { font-size: 14pt; }
h3 { font-size: 11.5pt; }
h1, h2, h3 { break-after: avoid; line-height: 1.2; }
a { color: inherit; text-decoration: none; }
a[href^="http"] { color: #0b4fb3; }
img { max-width: 100%; height: auto; break-inside: avoid; }
pre { font-size: 8pt; white-space: pre-wrap; margin: 0.4em 0; padding: 0.4em 0.6em; }
.cell_input pre { background: #f6f6f6; break-inside: avoid; }
.cell_output { margin-left: 1em; }
table { border-collapse: collapse; font-size: 9pt; }
th, td { border-bottom: 1px solid #ccc; padding: 0.2em 0.6em; text-align: left; }
tr, .fold, figure { break-inside: avoid; }
.together { white-space: nowrap; }
.katex { font-size: 1.05em; }
.fold { color: #555; font-size: 9pt; break-after: avoid; }
.title { font: bold 26pt sans-serif; margin: 0 0 1em; }
.contents p { display: flex; margin: 0 0 0 1.5em; }
.contents p:has(b) { margin: 0.5em 0 0; }
.contents .page { margin-left: auto; }
"""


def within(name, path):
    """Return a path that a page gives, as it is from the folder of the site."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def place(name, section=""):
    """Return what a page, or a section of it, is called in the book."""
    return "--".join(filter(None, [posixpath.basename(name), section]))


def at(target):
    """Return a link that shows on which page its target lies; see `numbered`."""
    return f'<a class="page" href="#{target}">000</a>'


def article_of(folder, name, names):
    """Return what the page of one notebook says, with its links led into the book."""
    page = (folder / f"{name}.html").read_text(encoding="utf-8")
    article = BeautifulSoup(page, "html.parser").select_one("article")
    for each in article.select(".headerlink, .buttons, button, script, .hide summary"):
        each.decompose()
    for output in article.select("details.hide"):  # on paper it follows its cell
        output.unwrap()
    for each in article.select("[id]"):
        each["id"] = place(name, each["id"])
    article.h1["id"] = place(name)
    for picture in article.select("img"):
        del picture["loading"]
        picture["src"] = within(name, picture["src"])
    for link in article.select("a[href]"):
        path, _, section = link["href"].partition("#")
        target = within(name, path).removesuffix(".html") if path else name
        if target in names:
            link["href"] = "#" + place(target, section)
        elif link.parent.name == "p" and link.parent.get_text() == link.get_text():
            link.parent.decompose()  # a line that says no more and leads elsewhere
        elif ":" not in path:
            link.unwrap()
    return article


def take_folds(article):
    """Move what is folded out of an article; return it, below the titles it had."""
    taken = [f"<h2>{article.h1.decode_contents()}</h2>"]
    for number, fold in enumerate(article.select("details"), 1):
        said = fold.summary.extract().get_text()
        back, to = (
            place(article.h1["id"], f"{way}-{number}") for way in ("at", "note")
        )
        title = f"<h3>{fold.find_previous(['h1', 'h2', 'h3']).decode_contents()}</h3>"
        if title not in taken:
            taken.append(title)
        inside = fold.decode_contents()
        note = f"Note {number}: {said.lower()}, to page {at(back)}"
        taken.append(f'<p class="fold" id="{to}">{note}</p>{inside}')
        here = f'<p class="fold" id="{back}">{said}: note {number}, page {at(to)}</p>'
        fold.replace_with(BeautifulSoup(here, "html.parser"))
    return taken if len(taken) > 1 else []


def contents(articles):
    """Return the list of all titles with the pages they lie on."""
    lines = []
    for article in articles:
        lines.append(f"<p><b>{article.h1.get_text()}</b> {at(article.h1['id'])}</p>")
        for title in article.select("h2"):
            said = title.get_text()
            lines.append(f"<p>{said} {at(title.parent['id'])}</p>")
    lines.append(f"<p><b>Hints and answers</b> {at('appendix')}</p>")
    return f"<nav class='contents'>{''.join(lines)}</nav>"


def numbered(text, pages):
    """Return the book with the number of the page in each link that shows it."""
    link = re.compile(at('([^"]+)'))
    return link.sub(lambda m: m[0].replace("000", str(pages[m[1]])), text)


def pages_of(pdf):
    """Return on which page everything lies that a link leads to, by its name."""
    reader = PdfReader(pdf)
    named = reader.named_destinations
    return {
        name.removeprefix("/"): 1 + reader.get_destination_page_number(to)
        for name, to in named.items()
    }


def write_book(folder, pdf, title, names):
    """Print the pages of some notebooks in `folder` as `pdf`."""
    articles = [article_of(folder, name, set(names)) for name in names]
    folds = [line for article in articles for line in take_folds(article)]
    appendix = "<h1 id='appendix'>Hints and answers</h1>" + "".join(folds)
    head = "".join(f'<link rel="stylesheet" href="_static/{name}">' for name in SHEETS)
    body = f"<p class='title'>{title}</p>{contents(articles)}"
    body += "".join(map(str, articles)) + appendix
    text = f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
    text += f"{head}<style>{STYLE}</style><body>{body}</body></html>"
    source = folder / "book.html"
    command = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=command, args=FLAGS)
        page = browser.new_page()
        for _ in range(2):  # the second time with the numbers of the pages
            source.write_text(text, encoding="utf-8")
            page.goto(source.as_uri())
            page.pdf(path=pdf, outline=True, tagged=True, **LAYOUT)
            text = numbered(text, pages_of(pdf))
        browser.close()
    source.unlink()
