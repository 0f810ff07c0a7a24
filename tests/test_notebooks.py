"""Each test pins one sentence about the form of every notebook; nbval runs them."""

import json
import re
import warnings
from html import escape

import nbformat
import pytest
from markdown_text import FORMULA, folded_solution, without_code
from repository import ROOT, tool
from tolerance import NUMBER, agree

PATHS = [path.relative_to(ROOT).as_posix() for path in tool.find_notebooks()]
LESSONS = [path for path in PATHS if re.match(r"notebooks/(?!00)\w+\.ipynb", path)]
DEEPER = [path for path in PATHS if path.startswith("notebooks/deeper/")]
EVENINGS = [path for path in PATHS if re.match(r"notebooks/\w+\.", path)] + DEEPER
SKIPPING = {"nbval-skip", "nbval-check-output", "nbval-raises-exception"}
SKIPPING |= {"raises-exception"}


@pytest.fixture(params=PATHS)
def path(request):
    return ROOT / request.param


@pytest.fixture
def cells(path):
    return nbformat.read(path, as_version=4).cells


@pytest.fixture
def code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


@pytest.fixture
def outputs(code):
    return [output for cell in code for output in cell.outputs]


@pytest.fixture
def prose(path):
    """Return its text without code and formulas, which may look like links."""
    return FORMULA.sub("", without_code(text_of(path)))


def text_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def tags(cell):
    return cell.metadata.get("tags", [])


def shown(outputs):
    """Return what the outputs say, without the pictures."""
    data = [dict(output.get("data", {})) for output in outputs]
    texts = [output.get("text", "") for output in outputs]
    texts += [d["text/plain"] for d in data if "text/plain" in d]
    return "\n".join(texts)


def test_a_notebook_is_stored_executed_from_top_to_bottom(code):
    counts = [cell.execution_count for cell in code]
    assert counts == list(range(1, len(code) + 1))


def test_a_notebook_is_stored_as_the_tool_stores_it(path):
    stored = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(stored, as_version=4)
    tool.prepare(notebook, path.relative_to(ROOT).as_posix(), tool.read_home())
    tool.drop_widget_views(notebook)
    assert json.loads(nbformat.writes(notebook)) == json.loads(stored)


def test_the_setup_cell_follows_the_opening_folded_in_jupyterlab_and_in_colab(cells):
    assert [i for i, cell in enumerate(cells) if tool.is_setup(cell)] == [1]
    assert cells[1].metadata["jupyter"]["source_hidden"] is True
    assert cells[1].metadata["cellView"] == "form"
    assert cells[1].source.startswith("# @title ")
    assert cells[1].outputs == []


def test_no_cell_ends_in_an_error_or_writes_to_stderr(outputs):
    assert [o.output_type for o in outputs if o.output_type == "error"] == []
    assert [o.text for o in outputs if o.get("name") == "stderr"] == []


def test_at_most_four_outputs_are_ignored_each_for_a_reason(code):
    ignored = [cell for cell in code if "nbval-ignore-output" in tags(cell)]
    assert len(ignored) <= 4
    assert [cell.source for cell in ignored if not cell.metadata.get("reason")] == []


def test_a_tolerance_has_a_reason_and_holds_for_a_cell_that_prints_numbers(code):
    for cell in [cell for cell in code if "tolerance" in cell.metadata]:
        assert cell.metadata.get("reason"), cell.source
        printed = "".join(output.get("text", "") for output in cell.outputs)
        assert NUMBER.search(printed), cell.source
        assert agree(printed, printed, cell.metadata["tolerance"])


def test_every_cell_is_run_and_compared(code):
    assert [cell.source for cell in code if SKIPPING & set(tags(cell))] == []
    marker = "NBVAL" + "_"
    assert [cell.source for cell in code if marker in cell.source] == []


def test_a_notebook_stays_below_400_kib(path):
    assert path.stat().st_size < 400 * 1024


@pytest.mark.parametrize("path", EVENINGS, indirect=True)
def test_a_notebook_is_read_in_one_evening(path):
    notebook = nbformat.read(path, as_version=4)
    deeper = path.parent.name == "deeper"
    minutes, said = tool.reading_minutes(notebook), tool.length(notebook, deeper)
    assert minutes <= (tool.DEEPER_LIMIT if deeper else tool.LIMIT), said
    if minutes > tool.WARN:
        warnings.warn(f"{path.stem}: {said}", stacklevel=2)
    assert len(notebook.cells) <= 70


@pytest.mark.parametrize("path", EVENINGS, indirect=True)
def test_code_comes_in_small_cells(path, code):
    lines = [sum(map(bool, map(str.strip, c.source.splitlines()))) for c in code]
    # The hour leads to one class, which it shows whole.
    assert max(lines) <= (25 if path.stem == "attention_in_an_hour" else 15)


@pytest.mark.parametrize("path", LESSONS, indirect=True)
def test_a_solution_stands_folded_under_each_check(cells):
    for cell, after in zip(cells, cells[1:]):
        if cell.cell_type == "code" and cell.source.startswith("check("):
            assert folded_solution(after), cell.source


@pytest.mark.parametrize("path", EVENINGS, indirect=True)
def test_few_sentences_are_long(prose):
    paragraphs = re.split(r"\n\n|\n(?=[-|]|\d\. )", re.sub(r"<[^>]*>", "\n\n", prose))
    said = [text for text in paragraphs if not text.startswith("|")]
    sentences = [s for text in said for s in re.split(r"(?<=[.!?:])\s+", text)]
    assert len([s for s in sentences if len(s.split()) > 28]) <= 12


@pytest.mark.parametrize("path", EVENINGS, indirect=True)
def test_results_are_figures_and_not_verdicts(outputs):
    printed = "".join(o.get("text", "") for o in outputs)
    assert len(re.findall(r"\b(?:True|False)\b", printed)) <= 10


def test_outputs_name_no_address_in_memory_and_no_folder_of_a_machine(outputs):
    machine = r"\bat 0x[0-9a-f]+|(?<![\w.])/(?:home|root|tmp|usr|content|Users)/"
    assert re.findall(machine, shown(outputs)) == []
    assert str(ROOT) not in shown(outputs)


def test_every_picture_is_a_png_that_says_in_words_what_it_shows(outputs):
    for data in [output.get("data", {}) for output in outputs]:
        kinds = {kind for kind in data if kind.startswith("image/")}
        html = data.get("text/html", "")
        assert kinds == ({"image/png"} if "<img" in html else set())
        words = f'<img alt="{escape(data["text/plain"])}" style="' if kinds else ""
        assert html.startswith(words), data["text/plain"]


def anchors(path):
    headings = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    return {heading.strip().replace(" ", "-") for heading in headings}


def test_every_link_inside_the_course_leads_somewhere(path, prose):
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)", prose)
    for target in [t for t in targets if not re.match(r"https?:|mailto:", t)]:
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(there), f"no heading {target}"


def test_every_word_of_the_glossary_is_explained_where_its_link_leads():
    path = ROOT / "notebooks/deeper/glossary.ipynb"
    row = re.compile(r"^\| \*(.+)\* \| .+ \| \[.+\]\((.+)#(.+)\) \|$", re.MULTILINE)
    rows = row.findall(text_of(path))
    terms = [term for term, _, _ in rows]
    assert len(terms) >= 60 and terms == sorted(terms, key=str.casefold)
    for term, file, anchor in rows:
        title = re.escape(anchor).replace(r"\-", "[- ]")
        section = rf"^#+ {title}$.*?(?=^## |\Z)"
        said = re.search(section, text_of(path.parent / file), re.DOTALL | re.MULTILINE)
        assert said and f"*{term}*" in said[0].casefold() + said[0], term


def test_the_opening_says_how_long_it_takes_and_what_it_needs(cells):
    assert cells[0].source.startswith("# ")
    assert re.search(r"\d minutes", cells[0].source)
    assert re.search(r"\bneeds\b", cells[0].source, re.IGNORECASE)


@pytest.mark.parametrize("path", LESSONS, indirect=True)
def test_at_most_two_code_cells_are_longer_than_ten_lines(code):
    long = [c.source for c in code if len(c.source.splitlines()) > 10]
    assert len(long) <= 3, "the setup cell and two"


@pytest.mark.parametrize("path", LESSONS, indirect=True)
def test_a_lesson_ends_with_five_recall_questions_and_folded_answers(path):
    section = r"^## Recall.*?(?=^## |\Z)"
    recall = re.search(section, text_of(path), re.DOTALL | re.MULTILINE)
    assert recall, "no section ## Recall"
    fold = r"<details>\s*<summary>.+?</summary>.+?</details>"
    folded = re.findall(fold, recall[0], re.DOTALL)
    assert len(folded) >= 5


@pytest.mark.parametrize("path", LESSONS + DEEPER, indirect=True)
def test_every_exercise_has_a_worked_solution_behind_its_link(path):
    cells = nbformat.read(path, as_version=4).cells
    cards = [c.source for c in cells if c.source.startswith("### Exercise ")]
    ids = [re.match(r"### Exercise ([\d.]+)", card)[1] for card in cards]
    asked = [re.findall(r'^check\("(.+?)"', c.source, re.MULTILINE) for c in cells]
    assert ids == sum(asked, [])
    for id, card in zip(ids, cards):
        link = re.search(r"\[Worked solution\]\((.+?)\)", card)[1]
        assert f'check(\\"{id}\\"' in (path.parent / link).read_text(encoding="utf-8")
