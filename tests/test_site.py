"""Each test pins one claim about the course as pages, as a browser shows them."""

import copy
import importlib.util
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from browser import needed
from bs4 import BeautifulSoup
from markdown_text import FORMULA, without_code
from repository import ROOT, tool

MODULES = Path(sys.prefix, "node_modules")
SIZE = 2_000_000  # bytes of a page with all that it brings along
FOLD = re.compile(r"<details>(.*?)</details>", re.DOTALL)
SILENT = re.compile(r"</?summary>|\]\([^)]*\)|^```\w+|^\d+\. ", re.MULTILINE)
MARKUP = re.compile(r"`|\*\*|__|\||\]\(|\$|\\|^#+ |^[*-] |</?\w+>", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the pages, built once with the command of the guide."""
    needed(importlib.util.find_spec("furo"), "what .ci/site.txt pins")
    needed((MODULES / "katex").is_dir() and shutil.which("node"), "katex")
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
    """Open pages of the folder in tabs, without a network; fail if anything is missing.

    Requests outside the folder, failed requests and messages on the console count.
    """
    problems, contexts = [], []

    def open_tab(page, **settings):
        context = browser.new_context(**settings)
        tab, home = context.new_page(), site.as_uri()
        tab.num_bytes = 0

        def answer(route):
            if not route.request.url.startswith(home):
                problems.append(route.request.url)
                return route.abort()
            path = Path(unquote(urlsplit(route.request.url).path))
            tab.num_bytes += path.stat().st_size if path.is_file() else 0
            return route.continue_()

        context.route("**", answer)
        tab.on("requestfailed", lambda request: problems.append(request.url))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text))
        tab.goto(f"{home}/{page}", wait_until="load")
        contexts.append(context)
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


sample = pytest.mark.sample(
    "00_start_here.ipynb",
    "04_scaled_dot_product_attention.ipynb",
    "deeper/glossary.ipynb",
)


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


def test_next_goes_through_the_lessons_in_the_order_of_the_readme(texts):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    order = dict.fromkeys(re.findall(r"\]\((notebooks/\w+)\.ipynb\)", readme))
    page, way = "index.html", []
    for _ in order:
        [to] = re.findall(r'class="next-page" href="([^"]+)"', texts[page])
        page = target(page, to)
        way.append(page.removesuffix(".html"))
    assert way == list(order)


def test_every_word_that_a_notebook_explains_leads_to_its_line(texts):
    rows = r"^\| \*(.+)\* \| .+ \| \[.+\]\((.+)\.ipynb#"
    page = "notebooks/deeper/glossary.html"
    cells = cells_of(ROOT / page.replace(".html", ".ipynb"))
    table = "\n".join(cell.source for cell in cells)
    for word, file in re.findall(rows, table, re.MULTILINE):
        link = rf'<a class="word[^>]*glossary.html#[^>]*>{re.escape(word)}s?</a>'
        text = texts[target(page, f"{file}.html")]
        assert re.search(link, text, re.IGNORECASE), (word, file)


def test_the_setup_cell_is_not_shown_and_colab_and_the_file_are_offered(texts):
    home = tool.read_home()
    for path in tool.find_notebooks():
        text = texts[page_of(path)]
        assert "Set-up: run this cell first" not in text
        assert f'<a href="{path.name}" download>Download</a>' in text
        if link := tool.colab_link(home, path.relative_to(ROOT).as_posix()):
            address = link.removeprefix(tool.COLAB).removesuffix(")")
            assert f'<a href="{address}">Open in Colab</a>' in text


# ------------------------------------------------- every notebook, as its page shows it


@pytest.fixture(scope="module", params=tool.find_notebooks(), ids=page_of)
def lesson(request, texts):
    """Return what one notebook after the other says, and the text of its page."""
    page = BeautifulSoup(texts[page_of(request.param)], "html.parser")
    for link in page.select("a.headerlink"):
        link.decompose()
    cells = cells_of(request.param)
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    data = [o.get("data", {"text/plain": o.get("text")}) for o in outputs]
    data = [d for d in data if "text/plain" in d]
    return SimpleNamespace(
        sources=[cell.source for cell in cells if cell.cell_type == "markdown"],
        pictures=[d["text/plain"] for d in data if "image/png" in d],
        texts=[d["text/plain"] for d in data if "image/png" not in d],
        page=page.article,
    )


def words(text):
    return re.findall(r"\w+", text)


def test_a_page_has_all_that_its_notebook_has(lesson):
    alts = [img.get("alt") for img in lesson.page.select("img")]
    assert all(alts) and len(set(alts)) == len(alts)
    assert [a for a in alts if a in lesson.pictures] == lesson.pictures

    printed = lesson.page.select(".cell_output .output:not(:has(img))")
    texts = [words(output.get_text(" ")) for output in printed]
    assert len(texts) == len(lesson.texts)
    for shown, stored in zip(texts, map(words, lesson.texts)):
        assert shown[: len(stored)] == stored  # a page may show more than the text

    written = sum(len(FORMULA.findall(without_code(s))) for s in lesson.sources)
    assert len(lesson.page.select(".math .katex-html")) == written
    assert lesson.page.select(".katex-error") == []

    folds = [fold for source in lesson.sources for fold in FOLD.findall(source)]
    shown = lesson.page.select("details:not(.hide)")
    assert len(shown) == len(folds)
    for fold, source in zip(map(copy.copy, shown), folds):
        for math in fold.select(".math"):
            math.replace_with(" ")
        assert words(fold.get_text()) == words(FORMULA.sub(" ", SILENT.sub("", source)))


def test_no_markup_is_left_in_the_text(lesson):
    page = copy.copy(lesson.page)
    for unread in page.select("code, pre, .math"):
        unread.clear()
    assert MARKUP.findall(page.get_text()) == []


# ---------------------------------------------------------------- pages in a browser


@sample
def test_a_page_comes_whole_from_the_folder_without_an_error(path, look):
    tab = look(page_of(path))
    unfold(tab)
    shown = tab.evaluate(
        """Promise.all([...document.images].map(async img => {
            img.loading = "eager";
            await img.decode();
            return +img.getAttribute("width") === Math.floor(img.naturalWidth / 2)
                   && +img.getAttribute("height") === Math.floor(img.naturalHeight / 2);
        }).concat([...document.querySelectorAll(".math")].map(math =>
            math.querySelector(".katex-html").getBoundingClientRect().width > 0)))"""
    )
    assert all(shown)
    assert tab.title().startswith(tab.inner_text("h1").rstrip("¶# \n"))
    assert 0 < tab.num_bytes < SIZE


@pytest.mark.sample("04_scaled_dot_product_attention.ipynb")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible_in_both_schemes_with_its_folds_open(path, scheme, look):
    needed((MODULES / "axe-core").is_dir(), "axe-core")
    axe = (MODULES / "axe-core/axe.min.js").read_text(encoding="utf-8")
    tab = look(page_of(path), color_scheme=scheme)
    unfold(tab)
    tab.evaluate(axe)
    options = {"preload": False}
    if scheme == "dark":  # only colours differ from the light scheme
        options["runOnly"] = ["color-contrast"]
    report = tab.evaluate("o => axe.run({ exclude: ['.katex'] }, o)", options)
    assert "color-contrast" in {rule["id"] for rule in report["passes"]}
    violations = [
        (rule["id"], node["html"][:200], node["failureSummary"])
        for rule in report["violations"]
        if rule["impact"] in ("serious", "critical") or rule["id"] == "heading-order"
        for node in rule["nodes"]
    ]
    assert violations == []


@sample
def test_on_a_phone_only_code_and_tables_are_wider_than_the_screen(path, look):
    tab = look(page_of(path), viewport={"width": 360, "height": 740})
    unfold(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") == 360
    wide = tab.evaluate(
        """[...document.querySelectorAll("article *")].filter((each) =>
            each.getBoundingClientRect().right > 360
            && !each.closest("pre, .table-wrapper, .math-wrapper, .katex"))
        .map((each) => each.outerHTML.slice(0, 200))"""
    )
    assert wide == []


def test_search_finds_words_from_a_disk(look):
    tab = look("index.html")
    tab.fill("input[name=q]", "softmax")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".search-summary:has-text('found')")
    assert "03 Context vectors" in tab.locator("ul.search li a").all_inner_texts()


# ---------------------------------------------------------------------- on paper

PRINT = """
import sys
from pathlib import Path
sys.path.insert(0, ".ci")
from pages.book import write_book
folder, pdf, *names = sys.argv[1:]
write_book(Path(folder), pdf, "Attention", names)
"""


@pytest.fixture(scope="module")
def book(site, browser, tmp_path_factory, pytestconfig):
    """Return the numbered notebooks, in the quick run two, their PDF and its texts."""
    lessons = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    if not pytestconfig.getoption("--full"):
        lessons = [lessons[0], lessons[4]]
    names = [page_of(path).removesuffix(".html") for path in lessons]
    pdf = tmp_path_factory.mktemp("book") / "book.pdf"
    command = [sys.executable, "-c", PRINT, site, pdf, *names]
    subprocess.run(command, cwd=ROOT, check=True)
    import pypdf

    printed = pypdf.PdfReader(pdf)
    return lessons, printed, [page.extract_text() for page in printed.pages]


def test_the_book_has_bookmarks_page_numbers_and_its_pages_in_the_contents(book):
    lessons, pdf, texts = book
    titles = [cells_of(path)[0].source.partition("\n")[0][2:] for path in lessons]
    top = [mark for mark in pdf.outline if not isinstance(mark, list)]
    assert [mark.title for mark in top] == [*titles, "Hints and answers"]
    assert [int(text.split()[-1]) for text in texts] == [*range(1, len(texts) + 1)]
    for mark in top:
        page = pdf.get_destination_page_number(mark)
        assert mark.title in texts[page]
        assert f"{mark.title} {page + 1}\n" in "\n".join(texts[:4])


def test_the_book_has_every_picture_and_all_that_was_folded_behind_the_text(book):
    lessons, pdf, texts = book
    cells = [cell for path in lessons for cell in cells_of(path)]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    stored = sum("image/png" in output.get("data", {}) for output in outputs)
    drawn = [page["/Resources"].get("/XObject", {}) for page in pdf.pages]
    kinds = [each["/Subtype"] for objects in drawn for each in objects.values()]
    assert kinds.count("/Image") == stored
    appendix = pdf.get_destination_page_number(pdf.outline[-2])
    assert "Hints and answers" in texts[appendix]
    folded = sum(cell.source.count("<details>") for cell in cells)
    notes = len(re.findall(r"^Note \d+: ", "\n".join(texts[appendix:]), re.MULTILINE))
    assert notes == folded
