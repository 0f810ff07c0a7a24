"""The form of every notebook; nbval runs them."""

import functools
import json
import re
from html import escape

import nbformat
import pytest
from nbformat import NotebookNode
from nbval.plugin import IPyNbFile

from tests.markdown_text import FORMULA, heading_anchor, without_code
from tests.notebooks import (
    COVER,
    LONGEST,
    find_notebooks,
    is_setup,
    prepare,
    read_home,
    reading_minutes,
)
from tests.repository import ROOT
from tests.tolerance import NUMBER, allowed, value

PATHS = [path.relative_to(ROOT).as_posix() for path in find_notebooks()]
LIMITED = [path for path in PATHS if not re.search("/00|/solutions/", path)]
TOLERANT = [p for p in PATHS if '"tolerance"' in (ROOT / p).read_text("utf-8")]
SKIPPING = {"nbval-skip", "nbval-check-output", "nbval-raises-exception"}
SKIPPING |= {"raises-exception"}


@pytest.fixture(params=PATHS)
def path(request):
    return ROOT / request.param


@functools.cache
def cells_of(path):
    return nbformat.read(path, as_version=4).cells


@pytest.fixture
def cells(path):
    return cells_of(path)


@pytest.fixture
def code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


@pytest.fixture
def outputs(code):
    return [output for cell in code for output in cell.outputs]


@functools.cache
def text_of(path):
    markdown = [c.source for c in cells_of(path) if c.cell_type == "markdown"]
    return "\n\n".join(markdown)


# ----------------------------------------------------------------------- as stored


def test_a_notebook_is_stored_executed_from_top_to_bottom(code):
    counts = [cell.execution_count for cell in code]
    assert counts == list(range(1, len(code) + 1))


def test_a_notebook_is_stored_as_execute_stores_it(path):
    stored = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(stored, as_version=4)
    prepare(notebook, path, read_home())
    assert json.loads(nbformat.writes(notebook)) == json.loads(stored)
    assert [i for i, cell in enumerate(notebook.cells) if is_setup(cell)] == [1]


def test_no_cell_ends_in_an_error_or_writes_to_stderr(outputs):
    assert [o.output_type for o in outputs if o.output_type == "error"] == []
    assert [o.text for o in outputs if o.get("name") == "stderr"] == []


def test_every_cell_is_run_and_each_output_that_may_differ_has_a_reason(code):
    tags = [set(cell.metadata.get("tags", [])) for cell in code]
    assert not SKIPPING & set().union(*tags)
    assert "NBVAL" + "_" not in "".join(cell.source for cell in code)
    ignored = [cell for cell, t in zip(code, tags) if "nbval-ignore-output" in t]
    assert len(ignored) <= 4
    differing = ignored + [cell for cell in code if "tolerance" in cell.metadata]
    assert [cell.source for cell in differing if not cell.metadata.get("reason")] == []


def with_a_number_moved(outputs, tolerance):
    """Yield outputs in which one number has moved, and whether it may move so far."""
    for index, output in enumerate(outputs):
        for match in NUMBER.finditer(output.get("text", "")):
            number = value(match[0])
            most = allowed(number, tolerance)
            for distance, may_move in (0.9 * most, True), (1.1 * most + 1e-6, False):
                before, after = output.text[: match.start()], output.text[match.end() :]
                text = f"{before} {number + distance:.8f}{after}"
                moved = NotebookNode(output, text=text)
                yield [*outputs[:index], moved, *outputs[index + 1 :]], may_move


@pytest.mark.parametrize("path", TOLERANT, indirect=True)
def test_a_number_that_moves_by_more_than_its_tolerance_is_reported(path, request):
    """Nothing runs: the stored outputs are compared with others, as in a run."""
    hook = request.config.hook
    notebook = IPyNbFile.from_parent(request.session, path=path)
    hook.pytest_collectstart(collector=notebook)
    for item in notebook.collect():
        hook.pytest_itemcollected(item=item)
        if tolerance := item.cell.metadata.get("tolerance"):
            stored = item.cell.outputs
            new = [output for output in stored if output != COVER]
            for outputs, may_move in with_a_number_moved(new, tolerance):
                is_same = item.compare_outputs(outputs, stored)
                assert is_same is may_move, item.comparison_traceback


def test_every_picture_is_a_png_that_says_in_words_what_it_shows(outputs):
    for data in [output.get("data", {}) for output in outputs]:
        kinds = {kind for kind in data if kind.startswith("image/")}
        assert kinds <= {"image/png"}
        if kinds:
            alt, *states = data["text/plain"].splitlines()
            assert f'<img alt="{escape(alt)}" ' in data["text/html"], alt
            for state in states:  # "1. text"
                item = f"<li>{escape(state.partition('. ')[2])}</li>"
                assert item in data["text/html"], state
            assert len(data["image/png"]) < 200_000, alt
            assert len(data["text/html"]) < 250_000, alt


# ------------------------------------------------------------------- for its reader


@pytest.mark.parametrize("path", LIMITED, indirect=True)
def test_a_notebook_can_be_read_in_one_evening(path):
    assert round(reading_minutes(nbformat.read(path, as_version=4))) <= LONGEST


def test_the_opening_says_how_long_it_takes_and_what_it_needs(cells):
    assert re.match(r"# .*\d minutes.*\bneeds\b", cells[0].source, re.DOTALL | re.I)


def test_what_an_opening_quotes_is_printed_on_the_page(cells, outputs):
    printed = " ".join("".join(o.get("text", "") for o in outputs).split())
    for line in re.findall(r"^> (.+)$", cells[0].source, re.MULTILINE):
        assert line in printed, line


@functools.cache
def anchors(path):
    headings = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    return {heading_anchor(heading.strip()) for heading in headings}


def test_every_link_inside_the_course_leads_somewhere(path):
    prose = FORMULA.sub("", without_code(text_of(path)))  # either may look like a link
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)", prose)
    for target in [t for t in targets if not re.match(r"https?:|mailto:", t)]:
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(there), f"no heading {target}"


def test_every_word_of_the_glossary_is_explained_where_its_link_leads():
    path = ROOT / "notebooks/deeper/glossary.ipynb"
    row = re.compile(r"^\| \*(.+)\* \| .+ \| \[.+\]\((.+)#(.+)\) \|$", re.MULTILINE)
    for term, file, anchor in row.findall(text_of(path)):
        title = re.escape(anchor).replace(r"\-", "[- ]")
        section = rf"^#+ {title}$.*?(?=^## |\Z)"
        text = text_of((path.parent / file).resolve())
        match = re.search(section, text, re.DOTALL | re.MULTILINE)
        assert match and f"*{term}*" in match[0].casefold() + match[0], term


def test_a_letter_in_a_shape_is_one_of_the_glossary_s_symbols(path, code):
    table = text_of(ROOT / "notebooks/deeper/glossary.ipynb").split("## Symbols")[1]
    symbols = re.findall(r"^\| `(\w+)` \|", table.split("\n## ")[0], re.MULTILINE)
    assert len(symbols) == len(set(symbols)) > 10
    comments = re.findall("#.*", "\n".join(cell.source for cell in code))
    quoted = re.findall("`[^`\n]*`", text_of(path))
    for shape in re.findall(r"\(([A-Z]\w*,[^()]*)\)", "\n".join(comments + quoted)):
        letters = re.findall(r"\b[A-Z](?:_[a-z]+)?\b", shape)
        assert set(letters) <= set(symbols), shape


def test_what_08_cites_of_norms_and_depth_is_printed_there():
    row = r"^\| ([a-z -]+?)(?:, \$.+\$)? \| ([\d.]+) \| ([\d.]*) ?\| ([\d.]*) ?\|$"
    cited = re.findall(row, text_of(ROOT / "notebooks/08_tiny_gpt.ipynb"), re.MULTILINE)
    cells = cells_of(ROOT / "notebooks/deeper/norms_and_depth.ipynb")
    outputs = [out for cell in cells for out in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") for output in outputs)
    assert len(cited) == 5
    for name, loss, before, after in cited:
        lines = [rf"^{name}( alone)? +{loss}$"]
        lines += [rf"^{name} +{before} +{after}\b"] if before else []
        for line in lines:
            assert re.search(line, printed, re.MULTILINE), line
