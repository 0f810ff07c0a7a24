"""The course as pages, as a browser shows them."""

import importlib.util
import posixpath
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup

from tests.browser import find_browser, require_resource
from tests.markdown_text import FORMULA, without_code
from tests.notebooks import find_notebooks
from tests.repository import ROOT

MODULES = Path(sys.prefix, "node_modules")
MARKUP = re.compile(r"`|\*\*|__|\||\]\(|\$|\\|^#+ |^[*-] |</?\w+>", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the pages, built once with the command of CONTRIBUTING."""
    require_resource(importlib.util.find_spec("furo"), "what .ci/site.txt pins")
    require_resource((MODULES / "katex").is_dir() and shutil.which("node"), "katex")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, ".ci/site.py", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def texts(site):
    """Return the HTML of all pages by their names in the folder."""
    pages = sorted(site.rglob("*.html"))
    return {p.relative_to(site).as_posix(): p.read_text("utf-8") for p in pages}


@pytest.fixture
def look(site, browser):
    """Open pages of the folder in tabs; fail if anything is missing or not in it."""
    problems, contexts = [], []

    def open_tab(page, **settings):
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        tab = context.new_page()
        tab.on("requestfailed", lambda request: problems.append(request.url))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text))
        tab.goto(f"{site.as_uri()}/{page}", wait_until="load")
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    assert problems == []


def page_of(path):
    return path.relative_to(ROOT).with_suffix(".html").as_posix()


def cells_of(path):
    return nbformat.read(path, as_version=4).cells


def unfold(tab):
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


# -------------------------------------------------------------- all pages, as files


def target(page, link):
    """Return the name in the folder of what a link on a page leads to."""
    path = posixpath.join(posixpath.dirname(page), link.partition("#")[0])
    return posixpath.normpath(path) if link[0] != "#" else page


def test_every_link_within_the_site_leads_somewhere(texts, site):
    for page, text in texts.items():
        for link in set(re.findall(r'<a [^>]*?href="([^":]+)"', text)):
            to, name = target(page, link), unquote(link.partition("#")[2])
            assert (site / to).is_file(), (page, link)
            assert not name or f' id="{name}"' in texts[to], (page, link)


def test_the_setup_cell_is_not_shown_and_the_file_is_offered(texts, site):
    for path in find_notebooks():
        page = page_of(path)
        assert "Set-up: run this cell first" not in texts[page]
        assert f'<a href="{path.name}" download>' in texts[page]
        assert (site / page).with_suffix(".ipynb").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", find_notebooks(), ids=page_of)
def test_a_page_has_all_that_its_notebook_has(texts, path):
    page = BeautifulSoup(texts[page_of(path)], "html.parser").article
    cells = cells_of(path)
    sources = [cell.source for cell in cells if cell.cell_type == "markdown"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    data = [o.get("data", {"text/plain": o.get("text")}) for o in outputs]
    pictures = [d["text/plain"] for d in data if "image/png" in d]
    pictures = [text.splitlines()[0] for text in pictures]  # lists follow some of them
    printed = [d.get("text/plain") for d in data if "image/png" not in d]

    alts = [img.get("alt") for img in page.select("img")]
    assert all(alts) and [alt for alt in alts if alt in pictures] == pictures

    shown = page.select(".cell_output .output:not(:has(img))")
    stored = [text for text in printed if text is not None]
    for text, expected in zip(shown, stored, strict=True):
        expected = re.findall(r"\w+", expected)
        words = re.findall(r"\w+", text.get_text(" "))
        assert words[: len(expected)] == expected

    written = sum(len(FORMULA.findall(without_code(source))) for source in sources)
    assert len(page.select(".math .katex-html")) == written
    assert page.select(".katex-error") == []
    folds = sum(source.count("<details>") for source in sources)
    assert len(page.select("details:not(.hide, .cell_output details)")) == folds

    for unread in page.select("a.headerlink, code, pre, .math, [class^=steps] li"):
        unread.decompose()
    assert MARKUP.findall(page.get_text()) == []


@pytest.mark.parametrize("path", find_notebooks(), ids=page_of)
def test_a_page_folds_what_jupyterlab_folds_and_nothing_else(texts, path):
    page = BeautifulSoup(texts[page_of(path)], "html.parser").article
    code = [cell for cell in cells_of(path)[2:] if cell.cell_type == "code"]
    for cell, box in zip(code, page.select("div.cell"), strict=True):
        hidden = cell.metadata.get("jupyter", {})
        parts = {".cell_input": "source_hidden", ".cell_output": "outputs_hidden"}
        for part, name in parts.items():
            for shown in box.select(part):
                folds = shown.find_parents("details")
                assert len(folds) == bool(hidden.get(name)), cell.source
                assert not any(fold.has_attr("open") for fold in folds)
        titles = [title.get_text() for title in box.select(".above-input > summary p")]
        assert all(title in cell.source.splitlines()[0] for title in titles)


# ---------------------------------------------------------------- pages in a browser


@pytest.mark.sample("deeper/shared_heads.ipynb")  # short, and has every kind of cell
def test_a_page_is_accessible_in_both_schemes_with_its_folds_open(path, look):
    require_resource((MODULES / "axe-core").is_dir(), "axe-core")
    tab = look(page_of(path))
    unfold(tab)
    tab.evaluate((MODULES / "axe-core/axe.min.js").read_text(encoding="utf-8"))
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.evaluate("document.getAnimations().forEach(fold => fold.finish())")
        report = tab.evaluate("axe.run({exclude: ['.katex']}, {preload: false})")
        assert "color-contrast" in {rule["id"] for rule in report["passes"]}
        assert [
            (scheme, rule["id"], node["html"][:200], node["failureSummary"])
            for rule in report["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ] == []


def test_a_tap_on_a_phone_enlarges_a_picture_and_not_the_page(look):
    tab = look(
        "notebooks/03_context_vectors.html", viewport={"width": 360, "height": 640}
    )
    picture = tab.locator("article img:visible").first
    small = picture.bounding_box()["width"]
    picture.click()
    assert picture.bounding_box()["width"] > 2 * small
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    picture.click()
    assert picture.bounding_box()["width"] == small


def test_search_finds_words_from_a_disk_and_lessons_before_solutions(look):
    tab = look("index.html")
    tab.fill("input[name=q]", "softmax")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".search-summary:has-text('found')")
    hits = tab.locator("ul.search li a").all_inner_texts()
    assert "03 Context vectors" in hits and "solutions" in hits[-1]
    assert hits == sorted(hits, key=lambda title: "solutions" in title)


# ---------------------------------------------------------------------- on paper


def test_the_book_has_bookmarks_every_picture_and_what_was_folded(tmp_path):
    require_resource(importlib.util.find_spec("furo"), "what .ci/site.txt pins")
    require_resource(find_browser(), "Chromium")
    import pypdf

    site = runpy.run_path(ROOT / ".ci/site.py")
    path = ROOT / "notebooks/04_scaled_dot_product_attention.ipynb"
    site["write_notebook"](path, tmp_path)
    site["print_book"](tmp_path, tmp_path / "book.pdf")
    pdf = pypdf.PdfReader(tmp_path / "book.pdf")
    lesson = pdf.outline[1][0].title
    assert cells_of(path)[0].source.startswith(f"# {lesson}\n")
    text = "\n".join(page.extract_text() for page in pdf.pages)
    outputs = [out for cell in cells_of(path) for out in cell.get("outputs", [])]
    pictures = sum("image/png" in out.get("data", {}) for out in outputs)
    assert sum(len(page.images) for page in pdf.pages) == pictures
    assert "weights = torch.softmax(scores, dim=-1)" in text  # in a folded solution
