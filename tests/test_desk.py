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
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED

LESSONS = [p for p in tool.find_notebooks() if p.parent.name != "solutions"]
CHECK = re.compile(r'^check\("([\d.]+)", (\w+)\)$', re.MULTILINE)


def softmax(scores, dim=-1):
    return torch.softmax(scores, dim)


def code_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


# ---- nothing passes that the reader didn't write ----------------------------------


def bound_names(source):
    """Return the names that a cell binds when it is run."""
    tree, names = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    definitions = ast.FunctionDef | ast.ClassDef
    return names | {n.name for n in tree.body if isinstance(n, definitions)}


def used_names(source):
    names = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    return {name.id for name in names}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)
def test_after_run_all_the_name_of_an_exercise_is_still_that_of_its_stub(path):
    code = code_of(path)
    for name in {name for source in code for _, name in CHECK.findall(source)}:
        binding = [source for source in code if name in bound_names(source)]
        assert len(binding) == 1, name
        assert "raise NotImplementedError" in binding[0] or "00_" in path.name
        asking = [source for source in code if f", {name})" in source]
        others = [source for source in code if source not in binding + asking]
        assert [source for source in others if name in used_names(source)] == []


def pieces_of(path):
    """Yield what a lesson has around each exercise: imports, stub, answer, binding.

    They are pairs: what it is, and code, or for an exercise its id, name, stub, answer.
    """
    waiting, stub = None, ""
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not tool.is_setup(cell):
            nodes = ast.parse(cell.source).body
            imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
            uses = [n for n in nodes if "solution(" in ast.unparse(n)]
            uses = [n for n in uses if isinstance(n, ast.Assign)]
            yield "code", "\n".join(map(ast.unparse, imports + uses))
            if (asked := CHECK.search(cell.source)) and "NotImplementedError" in stub:
                waiting = *asked.groups(), stub
            stub = cell.source
        elif waiting and (answer := folded_solution(cell)):
            yield "exercise", (*waiting, answer)
            waiting = None


@pytest.fixture(scope="module")
def worked():
    """Work on every exercise in one kernel, as a reader might; return what was said.

    A reader breaks the cell of the stub, repairs it, breaks it again, passes the
    course's function, solves the exercise, and breaks the cell once more.
    """
    cells, exercises, seen = [], [], set()

    def run(source):
        cells.append(new_code_cell(source, metadata={"tags": ["raises-exception"]}))
        return cells[-1]

    def ask(id, name, answer=None):
        recorded = f"print(result.passed, {name!r} in records.load())"
        return run(f'result = check("{id}", {answer or name})\n{recorded}')

    run(tool.setup_cell(("", "main")))
    run("from utils.checks import check, records, solution")
    for path in LESSONS:
        for kind, piece in pieces_of(path):
            if kind == "code":
                run(piece)
            elif piece[0] not in seen:
                id, name, stub, answer = piece
                broken = stub.replace("raise NotImplementedError", "return (", 1)
                told = SimpleNamespace(id=id, name=name)
                run(f"globals().pop({name!r}, None)")
                told.unknown = ask(id, name)
                run(broken)
                told.never_ran = ask(id, name)
                run(stub)
                told.stub = ask(id, name)
                run(broken)
                told.broken = ask(id, name)
                told.course = ask(id, name, f'solution("{id}")')
                run(answer)
                told.right = ask(id, name)
                told.used = run(f'print(solution("{id}") is {name})')
                run(broken)
                told.older = ask(id, name)
                seen.add(id)
                exercises.append(told)
    tool.run_cells(new_notebook(cells=cells), ROOT / "notebooks")
    return exercises


def texts(cell):
    """Return what a cell shows, as text: what is printed, and what is displayed."""
    outputs = [
        o.get("text") or o.get("data", {}).get("text/plain") for o in cell.outputs
    ]
    return " ".join(" ".join(filter(None, outputs)).split())


def test_every_exercise_was_worked_on(worked):
    assert sorted(told.id for told in worked) == sorted(EXERCISES)


def test_a_check_says_that_the_name_is_not_defined_yet(worked):
    for told in worked:
        heading = f"{told.id} {told.name}: not attempted yet. "
        said = f"{heading}No cell has defined {told.name} yet. Run the cell"
        assert said in texts(told.unknown)


def test_after_a_syntax_error_without_an_older_definition_the_check_says_correct_it(
    worked,
):
    for told in worked:
        said = texts(told.never_ran)
        heading = f"{told.id} {told.name}: not yet. The cell that defines {told.name}"
        assert f"{heading} failed (SyntaxError: " in said
        assert "Correct that cell, run it, then run the check again." in said


def test_the_untouched_stub_is_not_attempted_yet(worked):
    for told in worked:
        said = texts(told.stub)
        assert f"{told.id} {told.name}: not attempted yet. Expected: " in said
        assert "False False" in said


def test_after_a_syntax_error_the_check_says_that_it_is_about_the_older_definition(
    worked,
):
    for told in worked:
        for cell in (told.broken, told.older):
            said = texts(cell)
            assert f"{told.id} {told.name}: not yet. The cell that defines" in said
            assert "failed (SyntaxError: " in said
            assert "So this is about the older definition: " in said
            assert "Correct that cell, run it, then run the check again." in said
        assert "False False" in texts(told.broken)
        assert "False True" in texts(told.older)


def test_the_course_s_own_function_does_not_count(worked):
    for told in worked:
        said = texts(told.course)
        if course_version(told.name):
            assert "This is the course's own function, so it doesn't count." in said
            assert "False False" in said
        else:
            assert "ValueError" == told.course.outputs[0].ename


def test_a_right_answer_passes_is_recorded_and_is_used_from_then_on(worked):
    for told in worked:
        said = texts(told.right)
        assert f"{told.id} {told.name}: passed." in said, said
        assert "True True" in said
        if course_version(told.name):
            assert texts(told.used) == f"Using your own {told.name}. True"


def test_pytorch_s_own_function_does_not_count(own_progress):
    result = check("2.1", torch.nn.functional.embedding)
    assert not result.passed
    assert "This is PyTorch's own function, so it doesn't count." in result.message
    assert not own_progress.exists()


def test_solution_says_what_it_expects():
    for exercise in ("99", None, "8.1"):
        with pytest.raises(ValueError, match="expected the id of an exercise"):
            solution(exercise)


def test_a_worked_solution_passes_without_credit(own_progress):
    result = check("3.3", softmax, record=False)
    assert result.passed and "next" not in result.message
    assert not own_progress.exists()
    for path in (ROOT / "notebooks/solutions").glob("*.ipynb"):
        checks = [
            s for source in code_of(path) for s in re.findall("^check.*", source, re.M)
        ]
        assert checks and all(line.endswith(", record=False)") for line in checks)


def test_a_warning_of_pytorch_is_not_shown_below_the_message(recwarn):
    def attention(query, key, value):
        weights = torch.softmax(query @ key.T, dim=-1)  # warns about .T of a batch
        return weights @ value, weights

    assert not check("4.1", attention).passed
    assert len(recwarn) == 0


def test_the_colours_of_a_result_stand_out_in_a_light_and_in_a_dark_theme():
    def contrast(first, second):
        darker, lighter = sorted(map(luminance, (first, second)))
        return (lighter + 0.05) / (darker + 0.05)

    for sign, words, color in (PASSED, NOT_ATTEMPTED, NOT_YET):
        assert sign and words
        assert contrast(color, "#ffffff") >= 4.5
        assert contrast(color, "#111111") >= 3


def luminance(color):
    """Return the relative luminance of a colour such as #57606a (WCAG)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


# ---- progress ---------------------------------------------------------------------


def test_a_pass_is_recorded_by_name_with_a_line_on_what_is_next(own_progress):
    total = len(EXERCISES) + len(CASES)
    result = check("3.3", softmax)
    assert result.message.endswith(f"\n1 of {total}; next: 4.1.")
    check("4.1", None)
    assert json.loads(own_progress.read_text()) == {"passed": ["softmax"]}


def test_after_the_last_exercise_the_next_is_the_first_that_is_open(own_progress):
    names = [name for chapter in chapters() for name, _ in chapter.asks]
    for missing, ending in (("merge", "; next: 1.1."), (None, ": all of them.")):
        passed = [name for name in names if name != missing]
        own_progress.write_text(json.dumps({"passed": passed}))
        assert check("3.3", softmax).message.endswith(ending)


def test_the_file_of_an_earlier_version_is_read_by_names(own_progress):
    ids = ["1.1", "5.5", "10.2", "patient 10"]
    own_progress.write_text(json.dumps({"passed": ids}))
    names = {"merge", "CausalAttention", "repeat_kv", "patient 10"}
    assert records.load() == names
    check("3.3", softmax)
    stored = json.loads(own_progress.read_text())["passed"]
    assert stored == sorted(names | {"softmax"})


def test_every_name_of_an_earlier_version_is_still_that_of_an_exercise():
    names = {exercise.name for exercise in EXERCISES.values()}
    assert {*records.EARLIER_IDS.values()} == names


@pytest.mark.parametrize(
    "text", ["", "[]", '{"passed": 3}', '{"passed": [1]}', "\x00\xff"]
)
def test_a_damaged_file_is_reported_once_and_kept(own_progress, capsys, text):
    for number in (1, 2):
        own_progress.write_bytes(text.encode("latin-1"))
        assert records.load() == records.load() == set()
        check("3.3", softmax)
        assert records.load() == {"softmax"}
        kept = own_progress.with_name(f"progress.damaged{number}")
        assert kept.read_bytes() == text.encode("latin-1")
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("progress.json is damaged, so nothing counts as passed.") == 1


def test_a_file_that_cannot_be_read_is_kept_and_reported_once(own_progress, capsys):
    own_progress.mkdir()  # a folder in its place is refused even to root
    kept = own_progress / "kept"
    kept.touch()
    for _ in range(2):
        assert check("3.3", softmax).passed
    said = capsys.readouterr().out
    assert said.count("Your progress isn't saved:") == 1
    assert "can't be read or written (Is a directory)" in " ".join(said.split())
    assert kept.exists()


def pass_one(folder, name):
    os.environ["COURSE_PROGRESS"] = str(folder)
    records.add(name)


@pytest.mark.parametrize("before", ['{"passed": []}', "damaged"])
def test_several_kernels_at_once_lose_nothing(own_progress, before):
    own_progress.write_text(before)
    names = [f"exercise {number}" for number in range(12)]
    folder = own_progress.parent
    kernels = [mp.Process(target=pass_one, args=(folder, name)) for name in names]
    for kernel in kernels:
        kernel.start()
    for kernel in kernels:
        kernel.join(60)
    assert records.load() == set(names)
    kept = [path.read_text() for path in folder.glob("*.damaged*")]
    assert kept == [before] * (before == "damaged")


def test_a_folder_that_is_unknown_or_closed_is_no_error(monkeypatch, tmp_path):
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    for folder in ("~nobody at all/here", str(blocked)):
        monkeypatch.setenv("COURSE_PROGRESS", folder)
        monkeypatch.chdir(tmp_path)
        assert check("3.3", softmax).passed


def test_progress_lists_the_notebooks_with_links_passed_exercises_and_minutes(
    own_progress, monkeypatch
):
    bundles = []
    monkeypatch.setattr("utils.checks.display.get_ipython", SimpleNamespace)
    monkeypatch.setattr(
        "utils.checks.display.display", lambda bundle, raw: bundles.append(bundle)
    )
    monkeypatch.chdir(ROOT / "notebooks/deeper")
    passed = ["softmax", "attention_weights", "unknown", "patient 10", "embed"]
    own_progress.write_text(json.dumps({"passed": passed}))
    progress()
    [bundle] = bundles
    total = len(EXERCISES) + len(CASES)
    assert bundle["text/plain"].startswith(f"4 of {total} exercises passed, about ")
    assert bundle["text/plain"].endswith("Next: 1.1.")
    row = (
        r'<a href="../03_context_vectors.ipynb">03 .+?</a>: 2 of 3 passed, \d+ minutes'
    )
    assert re.search(row, bundle["text/html"])
    first = '<li><a href="../attention_in_an_hour.ipynb">Attention in an hour</a>: '
    assert first in bundle["text/html"].partition("00 Start here")[0]
    place = '(5.2 and 5.3 in <a href="padding_and_empty_rows.ipynb">Padding and empty '
    assert place in bundle["text/html"]
    names = {name for chapter in chapters() for name, _ in chapter.asks}
    own_progress.write_text(json.dumps({"passed": [*names]}))
    progress()
    assert bundles[1]["text/plain"] == f"{total} of {total} exercises passed."
    assert bundles[1]["text/html"].count("✓") == 15


def test_the_cell_of_the_list_runs_alone_after_a_restart():
    [source] = [s for s in code_of(LESSONS[0]) if s.endswith("\nprogress()")]
    alone = new_notebook(cells=[new_code_cell(source)])
    tool.run_cells(alone, ROOT / "notebooks", PYTHONPATH="")
    assert " exercises passed" in texts(alone.cells[0])


def test_the_list_reads_title_and_minutes_of_every_notebook():
    for chapter in chapters():
        assert chapter.title[:3] == f"{chapter.path.name[:2]} " and chapter.minutes > 0
    assert sum(len(c.asks) for c in chapters()) == len(EXERCISES) + len(CASES)


def test_the_list_knows_which_exercises_are_asked_in_deeper_notebooks():
    asked = {}
    for path in (ROOT / "notebooks/deeper").glob("*.ipynb"):
        for source in code_of(path):
            asked |= {id: path.stem for id, _ in CHECK.findall(source)}
    assert asked == DEEPER


@pytest.mark.parametrize("name", ["README.md", "notebooks/00_start_here.ipynb"])
def test_the_hours_that_a_page_states_are_those_of_the_numbered_notebooks(name):
    hours = round(sum(chapter.minutes for chapter in chapters()) / 60)
    text = (ROOT / name).read_text(encoding="utf-8")
    assert f"the numbered ones take about {hours} hours together" in text


# ---- predictions ------------------------------------------------------------------


def test_what_answers_a_prediction_is_the_next_output_of_its_section():
    def code(source, text="7"):
        outputs = [new_output("stream", text=text)] if text else []
        return new_code_cell(source, outputs=outputs)

    cells = [
        code("0"),
        new_markdown_cell("One.\n\n**Predict.** What is it?"),
        code("definition", ""),
        new_markdown_cell("More."),
        code("answer"),
        code("later"),
        new_markdown_cell("(**Predict** how many.)"),
        new_markdown_cell("### Exercise 1.1: merge"),
        code("not this"),
        new_markdown_cell("**Predict.** And now?"),
        code('check("1.1", merge)'),
        code("another answer"),
        new_markdown_cell("- **Predict** asks for your guess."),
        new_markdown_cell("## A new section"),
        code("nor this"),
    ]
    predicted = [cell.source for cell in tool.predicted_cells(cells)]
    assert predicted == ["answer", "another answer"]


def test_a_folded_output_is_covered_once_and_compared_within_its_tolerance():
    cell = new_code_cell("loss", outputs=[new_output("stream", text="loss 1.08")])
    cells = [new_markdown_cell("# A\n\n**Predict.** It?\n\nAbout 5 minutes"), cell]
    notebook = new_notebook(cells=cells)
    for _ in range(2):
        tool.prepare(notebook, "notebooks/a.ipynb", ("", "main"))
    assert cell.metadata.jupyter.outputs_hidden
    assert [output.output_type for output in cell.outputs] == ["display_data", "stream"]
    new = [new_output("stream", text="loss 1.12")]
    assert settled(new, cell.outputs, 0.05) == [cell.outputs[1]]
    tool.uncover(notebook)
    assert [output.text for output in cell.outputs] == ["loss 1.08"]
