"""What happens around a lesson: checks, the reader's own functions, progress, folds."""

import ast
import json
import multiprocessing as mp
import os
import re
from types import SimpleNamespace

import nbformat
import pytest
import torch
from exercises import EXERCISES
from markdown_text import folded_solution
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from repository import ROOT, tool
from tolerance import settled

from utils.checks import check, progress, records, solution
from utils.checks.course import CASES, DEEPER, chapters, course_version

LESSONS = [p for p in tool.find_notebooks() if p.parent.name != "solutions"]
CHECK = re.compile(r'^check\("([\d.]+)", (\w+)\)$', re.MULTILINE)
TOTAL = len(EXERCISES) + len(CASES)
NAMES = [name for chapter in chapters() for name, _ in chapter.asks]


def softmax(scores, dim=-1):
    return torch.softmax(scores, dim)


def code_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


# ---- every exercise ------------------------------------------------------------


def is_needed_later(node):
    if isinstance(node, ast.Assign):
        return "solution(" in ast.unparse(node)
    return isinstance(node, ast.Import | ast.ImportFrom)


def exercises_of(path):
    """Yield id, name, stub, solution, and the code that a reader ran before them.

    Of the lesson's other code that is what later cells need: imports, and the choices
    between the reader's function and the course's.
    """
    before, stub, asked = [], "", None
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not tool.is_setup(cell):
            before += filter(is_needed_later, ast.parse(cell.source).body)
            if (match := CHECK.search(cell.source)) and "NotImplementedError" in stub:
                asked = *match.groups(), stub
            stub = cell.source
        elif asked and (answer := folded_solution(cell)):
            yield *asked, answer, "\n".join(map(ast.unparse, before))
            before, asked = [], None


def test_no_stub_and_no_function_of_the_course_passes_and_each_solution_does(capsys):
    names, ids = {}, set()
    for id, name, stub, answer, before in (e for p in LESSONS for e in exercises_of(p)):
        exec(f"{before}\n{stub}", names)
        assert check(id, names[name]).diagnosis == "not-attempted"
        if ours := course_version(name):
            assert check(id, ours).diagnosis == "not-yours"
        assert id in ids or name not in records.load()
        exec(answer, names)
        result = check(id, names[name])
        assert result.passed and name in records.load(), result.message
        if ours:
            capsys.readouterr()
            assert solution(id) is names[name]
            assert capsys.readouterr().out == f"Using your own {name}.\n"
        else:
            with pytest.raises(ValueError, match="whose function utils has as well"):
                solution(id)
        ids.add(id)
    assert ids == EXERCISES.keys()


STUB = "def softmax(scores, dim=-1):\n    raise NotImplementedError"
BROKEN = STUB.replace("raise NotImplementedError", "return (")
RIGHT = "def softmax(scores, dim=-1):\n    return scores.softmax(dim)"
FAILED = "not yet. The cell that defines softmax failed (SyntaxError: "
AGAIN = "Correct that cell, run it, then run the check again."
OLDER = "So this is about the older definition: "
SHOWN = [  # what a reader runs, and words that the check shows then
    ("", ["not attempted yet. No cell has defined softmax yet. Run the cell"]),
    (BROKEN, [FAILED, AGAIN]),
    (STUB, ["not attempted yet. Expected: "]),
    (BROKEN, [FAILED, OLDER, AGAIN]),
    (RIGHT, ["passed."]),
    (BROKEN, [FAILED, OLDER, AGAIN]),
]


def texts(cell):
    """Return what a cell shows, as text: what is printed, displayed or raised."""
    outputs = [
        o.get("text") or o.get("data", {}).get("text/plain") or o.get("ename")
        for o in cell.outputs
    ]
    return " ".join(" ".join(filter(None, outputs)).split())


def test_a_check_says_if_the_cell_of_the_answer_failed_or_never_ran():
    setup = "from utils.checks import check"
    sources = [
        setup,
        *(s for code, _ in SHOWN for s in (code, 'check("3.3", softmax)')),
    ]
    allowed = {"tags": ["raises-exception"]}
    cells = [new_code_cell(source, metadata=allowed) for source in sources]
    tool.run_cells(new_notebook(cells=cells), ROOT)
    for cell, (_, shown) in zip(cells[2::2], SHOWN):
        for words in shown:
            assert words in texts(cell)


def names_in(source, context):
    names = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, context)}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)
def test_run_all_neither_solves_an_exercise_nor_needs_its_answer(path):
    code = code_of(path)
    for name in {name for source in code for _, name in CHECK.findall(source)}:
        [stub] = [s for s in code if re.search(rf"^(def|class) {name}\b", s, re.M)]
        assert "raise NotImplementedError" in stub or "00_" in path.name
        others = [s for s in code if s != stub and f", {name})" not in s]
        assert [s for s in others if name in names_in(s, ast.Store | ast.Load)] == []
        assert [s for s in others if re.search(rf"import .*\b{name}\b", s)] == []


def test_a_worked_solution_passes_without_credit(own_progress):
    result = check("3.3", softmax, record=False)
    assert result.passed and "next" not in result.message
    assert not own_progress.exists()
    for path in (ROOT / "notebooks/solutions").glob("*.ipynb"):
        checks = re.findall("^check.*", "\n".join(code_of(path)), re.MULTILINE)
        assert checks and all(line.endswith(", record=False)") for line in checks)


# ---- progress ------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing, ending",
    [
        (NAMES, f"1 of {TOTAL}; next: 4.1, in 04 Scaled dot-product attention."),
        (["context_vectors"], "next: 3.2."),
        (["merge", "dropout"], "next: 1.1, in 01 Tokens."),
        (["dropout"], "next: 5.5, in Dropout, measured."),
    ],
)
def test_a_pass_is_recorded_by_name_and_the_next_exercise_named(
    own_progress, missing, ending
):
    passed = [name for name in NAMES if name not in missing]
    own_progress.write_text(json.dumps({"passed": passed}))
    assert check("3.3", softmax).message.endswith(ending)
    assert records.load() == {*passed, "softmax"}


def test_the_file_of_an_earlier_version_is_read_by_names(own_progress):
    own_progress.write_text('{"passed": ["1.1", "5.5", "10.2", "patient 10"]}')
    assert records.load() == {"merge", "CausalAttention", "repeat_kv", "patient 10"}


@pytest.mark.parametrize("text", ["", "[]", '{"passed": [1]}', "\x00\xff"])
def test_a_damaged_file_is_reported_once_and_kept(own_progress, capsys, text):
    own_progress.write_bytes(text.encode("latin-1"))
    assert records.load() == records.load() == set()
    check("3.3", softmax)
    assert records.load() == {"softmax"}
    copy = own_progress.with_name("progress.damaged1")
    assert copy.read_bytes() == text.encode("latin-1")
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("progress.json is damaged, so nothing counts as passed.") == 1


def test_a_file_that_cannot_be_read_is_kept_and_reported_once(own_progress, capsys):
    own_progress.mkdir()  # a folder in its place is refused even to root
    for _ in range(2):
        assert check("3.3", softmax).passed
    assert capsys.readouterr().out.count("Your progress isn't saved:") == 1
    assert own_progress.is_dir()


def pass_one(folder, name):
    os.environ["COURSE_PROGRESS"] = str(folder)
    records.add(name)


@pytest.mark.parametrize("before", ['{"passed": []}', "damaged"])
def test_several_kernels_at_once_lose_nothing(own_progress, before):
    own_progress.write_text(before)
    names = [f"exercise {number}" for number in range(12)]
    arguments = [(own_progress.parent, name) for name in names]
    kernels = [mp.Process(target=pass_one, args=each) for each in arguments]
    for kernel in kernels:
        kernel.start()
    for kernel in kernels:
        kernel.join(60)
    assert records.load() == set(names)


def test_progress_lists_the_notebooks_with_links_passed_exercises_and_minutes(
    own_progress, monkeypatch
):
    bundles = []
    monkeypatch.setattr("utils.checks.display.get_ipython", SimpleNamespace)
    show = "utils.checks.display.display"
    monkeypatch.setattr(show, lambda bundle, raw: bundles.append(bundle))
    monkeypatch.chdir(ROOT / "notebooks/deeper")
    passed = ["softmax", "attention_weights", "unknown", "patient 10", "embed"]
    for names in (passed, NAMES):
        own_progress.write_text(json.dumps({"passed": names}))
        progress()
    texts, pages = ([b[kind] for b in bundles] for kind in ("text/plain", "text/html"))
    assert texts[0].startswith(f"4 of {TOTAL} exercises passed, about ")
    assert texts[1] == f"{TOTAL} of {TOTAL} exercises passed."
    link = r'<a href="../03_context_vectors.ipynb">03 .+?</a>'
    assert re.search(link + r": 2 of 3 passed, \d+ minutes", pages[0])
    assert '(5.3 and 5.4 in <a href="padding_and_empty_rows.ipynb">' in pages[0]


def test_the_list_knows_which_exercises_are_asked_in_deeper_notebooks():
    asked = {}
    for path in (ROOT / "notebooks/deeper").glob("*.ipynb"):
        code = "\n".join(code_of(path))
        asked |= {id: path.stem for id, _ in CHECK.findall(code)}
    assert asked == DEEPER


@pytest.mark.parametrize("name", ["README.md", "notebooks/00_start_here.ipynb"])
def test_the_hours_that_a_page_states_are_those_of_the_numbered_notebooks(name):
    hours = round(sum(chapter.minutes for chapter in chapters()) / 60)
    text = (ROOT / name).read_text(encoding="utf-8")
    assert f"the numbered ones take about {hours} hours together" in text


# ---- predictions ---------------------------------------------------------------


def test_what_answers_a_prediction_is_folded_and_compared_within_its_tolerance():
    outputs = [new_output("stream", text="loss 1.08")]
    cells = [
        new_markdown_cell("# A\n\n**Predict.** It?\n\nAbout 5 minutes"),
        new_code_cell("definition"),
        new_code_cell("loss", outputs=outputs),
        new_code_cell("later", outputs=outputs),
        new_markdown_cell("**Predict.** And now?\n"),
        new_markdown_cell("## A new section"),
        new_code_cell("not this", outputs=outputs),
    ]
    for _ in range(2):
        tool.prepare(new_notebook(cells=cells), LESSONS[0], ("", "main"))
    folded = [c for c in cells if c.metadata.get("jupyter", {}).get("outputs_hidden")]
    assert folded == [cells[2]]
    assert [o.output_type for o in cells[2].outputs] == ["display_data", "stream"]
    new = [new_output("stream", text="loss 1.12")]
    assert settled(new, cells[2].outputs, 0.05) == [cells[2].outputs[1]]
