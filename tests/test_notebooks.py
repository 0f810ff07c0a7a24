"""Each test pins one sentence about the form of every notebook; nbval runs them."""

import json
import re
from html import escape

import nbformat
import pytest
from notebook_tool import ROOT, tool

PATHS = [path.relative_to(ROOT).as_posix() for path in tool.find_notebooks()]
LESSONS = [path for path in PATHS if re.match(r"notebooks/(?!00)\d\d_", path)]
SKIPPING = {"nbval-skip", "nbval-check-output", "nbval-raises-exception"}
SKIPPING |= {"raises-exception"}


@pytest.fixture(params=PATHS)
def path(request):
    """Return the path of one notebook after the other."""
    return ROOT / request.param


@pytest.fixture
def cells(path):
    """Return the cells of one notebook after the other."""
    return nbformat.read(path, as_version=4).cells


@pytest.fixture
def code(cells):
    """Return its code cells."""
    return [cell for cell in cells if cell.cell_type == "code"]


@pytest.fixture
def outputs(code):
    """Return all outputs of its code cells."""
    return [output for cell in code for output in cell.outputs]


@pytest.fixture
def prose(cells):
    """Return its text without code and formulas, which may look like links."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"^(```+).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    return re.sub(r"\$[^$\n]*\$", "", text)


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
    tool.prepare(notebook, path.relative_to(ROOT).as_posix(), tool.read_address())
    tool.drop_widget_views(notebook)
    assert json.loads(nbformat.writes(notebook)) == json.loads(stored)


def test_the_setup_cell_follows_the_opening_and_is_the_same_everywhere(cells):
    assert [i for i, cell in enumerate(cells) if tool.is_setup(cell)] == [1]
    assert cells[1].source == tool.setup_cell(tool.read_address())
    assert cells[1].outputs == []


def test_no_cell_ends_in_an_error_or_writes_to_stderr(outputs):
    assert [o.output_type for o in outputs if o.output_type == "error"] == []
    assert [o.text for o in outputs if o.get("name") == "stderr"] == []


def test_at_most_three_outputs_are_ignored_each_for_a_reason(code):
    ignored = [cell for cell in code if "nbval-ignore-output" in tags(cell)]
    assert len(ignored) <= 3
    assert [cell.source for cell in ignored if not cell.metadata.get("reason")] == []


def test_every_cell_is_run_and_compared(code):
    assert [cell.source for cell in code if SKIPPING & set(tags(cell))] == []
    marker = "NBVAL" + "_"
    assert [cell.source for cell in code if marker in cell.source] == []


def test_a_notebook_stays_below_400_kib(path):
    assert path.stat().st_size < 400 * 1024


def test_a_code_cell_has_at_most_40_lines(code):
    long = [cell.source for cell in code if len(cell.source.splitlines()) > 40]
    assert long == []


def test_outputs_name_no_address_in_memory_and_no_folder_of_a_machine(outputs):
    machine = r"\bat 0x[0-9a-f]+|(?<![\w.])/(?:home|root|tmp|usr|content|Users)/"
    assert re.findall(machine, shown(outputs)) == []
    assert str(ROOT) not in shown(outputs)


def test_every_picture_is_a_png_that_says_in_words_what_it_shows(outputs):
    for data in [output.get("data", {}) for output in outputs]:
        assert [kind for kind in data if kind.startswith("image/")] == []
        if "text/html" in data:
            words = re.escape(escape(data["text/plain"]))
            picture = f'<img alt="{words}" style="[^"]*" src="data:image/png;[^"]*">'
            assert re.fullmatch(picture, data["text/html"]), data["text/plain"]


def test_pictures_in_the_text_lie_in_the_course_and_say_what_they_show(path, prose):
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)\s]*)", prose)
    for words, target in pictures:
        assert words.strip(), f"{target} has no text"
        assert (path.parent / target).is_file(), f"{target} is not in the course"
    assert "<img" not in prose and "<svg" not in prose


def test_every_link_inside_the_course_leads_somewhere(path, cells, prose):
    headings = re.findall(r"^#+ (.+)$", "\n".join(c.source for c in cells), re.M)
    anchors = {heading.strip().replace(" ", "-") for heading in headings}
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)", prose)
    for target in [t for t in targets if not re.match(r"https?:|mailto:", t)]:
        file, _, anchor = target.partition("#")
        assert (path.parent / file).exists(), f"{target} does not exist"
        assert file or anchor in anchors, f"no heading {target}"


def test_the_opening_says_how_long_it_takes_and_what_it_needs(cells):
    assert cells[0].source.startswith("# ")
    assert re.search(r"\d minutes", cells[0].source)
    assert re.search(r"\bneeds\b", cells[0].source, re.IGNORECASE)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_ends_with_five_recall_questions_and_folded_answers(lesson):
    cells = nbformat.read(ROOT / lesson, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    recall = re.search(r"^## Recall.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert recall, "no section ## Recall"
    fold = r"<details>\s*<summary>.+?</summary>.+?</details>"
    folded = re.findall(fold, recall[0], re.DOTALL)
    assert len(folded) >= 5


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_with_exercises_has_worked_solutions(lesson):
    text = (ROOT / lesson).read_text(encoding="utf-8")
    asked = set(re.findall(r'^ +"check\(\\"(\d+\.\d+)\\"', text, re.MULTILINE))
    solution = ROOT / "notebooks/solutions" / lesson.removeprefix("notebooks/")
    solved = solution.read_text(encoding="utf-8") if asked else ""
    assert asked <= set(re.findall(r'check\(\\"(\d+\.\d+)\\"', solved))
