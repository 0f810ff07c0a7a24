"""Each test pins one sentence about a notebook as a page, for readers who only look."""

import functools
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import nbformat
import pytest
from browser import chromium, needed
from bs4 import BeautifulSoup
from markdown_text import FORMULA, without_code
from nbconvert import HTMLExporter
from repository import ROOT, tool

NOTEBOOKS = ROOT / "notebooks"
NAMES = [path.relative_to(NOTEBOOKS).as_posix() for path in tool.find_notebooks()]
AXE = Path(sys.prefix, "node_modules/axe-core/axe.min.js")
OUTPUT = ".jp-OutputArea-output"
STAND_IN = "No description has been provided"  # nbconvert's words for want of a text
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
FOLD = re.compile(r"<details>(.*?)</details>", re.DOTALL)
SILENT = re.compile(r"</?summary>|\]\([^)]*\)|^```\w+|^\d+\. ", re.MULTILINE)
MARKUP = re.compile(r"`|\*\*|__|\||\]\(|\$|\\|^#+ |^[*-] |</?\w+>", re.MULTILINE)


@functools.cache
def render(path):
    """Return the page that nbconvert makes of a notebook as it is stored."""
    return HTMLExporter().from_filename(path)[0]


@pytest.fixture(scope="module", params=NAMES)
def notebook(request):
    """Return one notebook after the other: its cells, its page, its text on the page.

    `texts` are pairs: the source of a markdown cell, and the element it became.
    """
    path = NOTEBOOKS / request.param
    cells = nbformat.read(path, as_version=4).cells
    page = BeautifulSoup(render(path), "html.parser")
    sources = [cell.source for cell in cells if cell.cell_type == "markdown"]
    rendered = page.select(".jp-MarkdownOutput")
    assert len(rendered) == len(sources)
    return SimpleNamespace(cells=cells, page=page, texts=list(zip(sources, rendered)))


def outputs_of(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in code for output in cell.outputs]


def words(text):
    return re.findall(r"\w+", text)


def prose_of(element):
    """Return the text of an element without its code."""
    return "".join(
        text for text in element.strings if not text.find_parent(("code", "pre"))
    )


def test_every_stored_picture_is_on_the_page_with_a_text_of_its_own(notebook):
    data = [output.get("data", {}) for output in outputs_of(notebook)]
    stored = [each["text/plain"] for each in data if "text/html" in each]
    shown = [picture.get("alt") for picture in notebook.page.select(f"{OUTPUT} img")]
    assert shown == stored
    everywhere = [picture.get("alt", "") for picture in notebook.page.select("img")]
    assert len(set(everywhere)) == len(everywhere) and all(everywhere)
    assert [alt for alt in everywhere if STAND_IN in alt] == []


def test_every_text_that_a_cell_printed_is_on_the_page(notebook):
    data = [
        output.get("data", {"text/plain": output.get("text")})
        for output in outputs_of(notebook)
    ]
    printed = [each["text/plain"] for each in data if "text/html" not in each]
    said = [element.get_text() for element in notebook.page.select(".jp-RenderedText")]
    assert [text.strip() for text in said] == [text.strip() for text in printed]


def test_every_formula_stands_on_the_page_as_it_was_written(notebook):
    for source, rendered in notebook.texts:
        written = FORMULA.findall(without_code(source))
        assert FORMULA.findall(prose_of(rendered)) == written


def test_every_table_keeps_its_rows_and_columns(notebook):
    for source, rendered in notebook.texts:
        tables = [table.strip().splitlines() for table in TABLE.findall(source)]
        columns = [re.sub(r"`[^`]*`", "", lines[1]).count("|") - 1 for lines in tables]
        written = [[n] * (len(rows) - 1) for n, rows in zip(columns, tables)]
        shown = [
            [len(row.select("th, td")) for row in table.select("tr")]
            for table in rendered.select("table")
        ]
        assert shown == written


def test_hints_and_answers_are_folded_with_all_they_say(notebook):
    for source, rendered in notebook.texts:
        written = [words(SILENT.sub("", fold)) for fold in FOLD.findall(source)]
        folds = rendered.select("details")
        assert [words(fold.get_text()) for fold in folds] == written
        assert all(fold.select("summary ~ *") for fold in folds)


def test_no_markup_is_left_in_the_text(notebook):
    for _, rendered in notebook.texts:
        prose = FORMULA.sub("", prose_of(rendered))
        assert MARKUP.findall(prose) == [], prose


def test_every_link_within_the_page_leads_somewhere(notebook):
    links = [link["href"] for link in notebook.page.select('a[href^="#"]')]
    places = {element["id"] for element in notebook.page.select("[id]")}
    # A browser looks for the name as it is written, and then for the decoded one.
    dead = [link for link in links if not {link[1:], unquote(link[1:])} & places]
    assert dead == []


# ------------------------------------------------------------- accessibility

# What nbconvert's template brings, and no notebook can change: the pale grey of the
# numbers beside the cells, and the colours of the code.
TEMPLATE = [".jp-InputPrompt", ".jp-OutputPrompt", ".highlight"]
# The template marks links in the text by their colour alone.
RULES = {"link-in-text-block": {"enabled": False}}


@pytest.fixture(scope="module")
def tab():
    """Open a page in a browser that reaches nothing but itself."""
    with chromium() as browser:
        page = browser.new_page()
        page.route(re.compile("^(?!data:|about:)"), lambda route: route.abort())
        yield page


@pytest.mark.sample(
    "00_start_here.ipynb",
    "04_scaled_dot_product_attention.ipynb",
    "08_translation.ipynb",
    "solutions/05_causal_masks.ipynb",
)
def test_a_page_is_accessible_with_its_folds_open(path, tab):
    axe = needed(AXE.is_file() and AXE, "axe-core").read_text(encoding="utf-8")
    tab.set_content(render(path), wait_until="domcontentloaded")
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    tab.evaluate(axe)
    found = tab.evaluate(
        "([exclude, rules]) => axe.run({exclude}, {rules})", [TEMPLATE, RULES]
    )
    assert found["passes"]
    said = [
        (each["id"], node["html"], node["failureSummary"])
        for each in found["violations"]
        for node in each["nodes"]
    ]
    assert said == []
