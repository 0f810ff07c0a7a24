"""What a reader sees of an exercise: its check, their own function, their progress."""

import ast
import datetime
import re
from types import SimpleNamespace

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook

from tests.every_exercise import EXERCISES
from tests.markdown_text import folded_solution
from tests.notebooks import find_notebooks, is_setup, run_cells, setup_cell
from tests.repository import ROOT, as_python
from utils.checks import check, progress, recall, records, solution
from utils.checks.catalogue import (
    COURSE,
    exercises,
    hour_tasks,
    numbered_notebooks,
    tasks,
)
from utils.checks.display import NOT_ATTEMPTED, NOT_YET, PASSED
from utils.pages import NOTEBOOKS, read_opening

LESSONS = [p for p in find_notebooks() if p.parent.name != "solutions"]
CHECK = re.compile(r'^check\("([\d.]+)", (\w+)\)$', re.MULTILINE)
SOLVED = re.compile(r'check\("([\d.]+)", (\w+), record=False\)')
NAMES = [task.name for task in tasks()]
TOTAL = sum(task.page in numbered_notebooks(COURSE) for task in tasks())
NEXT = "3.4" if "3.4" in EXERCISES else "3.1"


def softmax(scores, dim=-1):
    return torch.softmax(scores, dim)


def unwritten(x):
    raise NotImplementedError


def code_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


# ---- every exercise, in a kernel -----------------------------------------------


def statements(source, kinds, words=""):
    nodes = [n for n in ast.parse(as_python(source)).body if isinstance(n, kinds)]
    return [code for code in map(ast.unparse, nodes) if words in code]


def exercises_of(path):
    """Yield id, name, stub, solution, and the code that a reader ran before them.

    That code is what later cells need: the imports, and the lines that choose between
    the reader's function and the course's.
    """
    code, stub, card = [], "", None
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not is_setup(cell):
            code += statements(cell.source, ast.Import | ast.ImportFrom)
            code += statements(cell.source, ast.Assign, "solution(")
            if (match := CHECK.search(cell.source)) and "NotImplementedError" in stub:
                card = *match.groups(), stub
            stub = cell.source
        elif card and (answer := folded_solution(cell)):
            yield *card, answer, "\n".join(code)
            code, card = [], None


@pytest.fixture(scope="module")
def worked():
    """Work on every exercise in one kernel; return what each step shows."""
    cells, steps = [], {}

    def run(source):
        cells.append(new_code_cell(source, metadata={"tags": ["raises-exception"]}))
        return cells[-1]

    run(setup_cell(("", "main")))
    run("from utils.checks import check, records, solution")
    for path in LESSONS:
        for id, name, stub, answer, code in exercises_of(path):
            if (
                id in steps or id not in EXERCISES
            ):  # those are in other notebooks as well
                continue
            call = f'solution("{id}")'
            steps[id] = {}
            broken = stub.replace("raise NotImplementedError", "return (", 1)
            run(f"{code}\nglobals().pop({name!r}, None)")
            for step, source, handed_in in (
                ("nothing", "", name),
                ("unbuilt", f"class {name}(Absent):\n    pass", name),
                ("stub", stub, name),
                ("broken", broken, name),
                ("stub with its check", "", name),
                ("the course's", "", call),
                ("right", answer, name),
                ("used", f"print({call} is {name})", None),
            ):
                cell = run(source)
                if handed_in:
                    cell = run(
                        (f"{stub}\n" if step == "stub with its check" else "")
                        + f'result = check("{id}", {handed_in})\n'
                        f"print(result.passed, {name!r} in records.load())"
                    )
                steps[id][step] = cell
    run_cells(new_notebook(cells=cells), ROOT / "notebooks")
    return {id: {s: texts(c) for s, c in each.items()} for id, each in steps.items()}


def texts(cell):
    """Return what a cell shows, as text: what is printed, displayed or raised."""
    outputs = [
        o.get("text") or o.get("data", {}).get("text/plain") or o.get("ename")
        for o in cell.outputs
    ]
    return " ".join(" ".join(filter(None, outputs)).split())


UNRECORDED = "False False"  # neither passed nor recorded
FAILED = "not yet. The cell that defines {name} failed (SyntaxError: "
SHOWN = {  # step: the words that a check shows
    "nothing": ["not attempted yet. No cell has defined {name} yet. Run the cell"],
    "unbuilt": ["not yet. The cell that defines", "(NameError: name 'Absent' is not"],
    "stub": ["not attempted yet. Expected: ", UNRECORDED],
    "broken": [FAILED, UNRECORDED],
    "stub with its check": ["not attempted yet. Expected: ", UNRECORDED],
    "the course's": ["This is the course's own function", UNRECORDED],
    "right": ["passed.", "True True"],
}


@pytest.mark.parametrize("step", SHOWN)
def test_a_check_says_what_it_found_and_only_a_right_answer_is_recorded(worked, step):
    assert worked.keys() == EXERCISES.keys()
    for id, shown in worked.items():
        name = EXERCISES[id].name
        if step == "the course's" and not EXERCISES[id].course:
            assert "ValueError" in shown[step]
            continue
        for words in SHOWN[step]:
            assert words.format(name=name) in shown[step], (id, shown[step])


def test_a_right_answer_is_used_by_later_cells(worked):
    for id, shown in worked.items():
        if EXERCISES[id].course:
            assert shown["used"] == f"Using your own {EXERCISES[id].name}. True"


def names_in(source, context):
    nodes = ast.walk(ast.parse(as_python(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, context)}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)
def test_run_all_neither_solves_an_exercise_nor_needs_its_answer(path):
    code = code_of(path)
    page = path.relative_to(NOTEBOOKS).with_suffix("").as_posix()
    ids = {id for id, *_ in exercises_of(path)}
    assert ids == {id for id, e in exercises().items() if e.page == page} - {"0.1"}
    for name in {name for source in code for _, name in CHECK.findall(source)}:
        [stub] = [s for s in code if re.search(rf"^(def|class) {name}\b", s, re.M)]
        assert "raise NotImplementedError" in stub or "00_" in path.name
        others = [s for s in code if s != stub and f", {name})" not in s]
        assert [s for s in others if name in names_in(s, ast.Store | ast.Load)] == []
        assert [s for s in others if re.search(rf"import .*\b{name}\b", s)] == []


def test_the_solutions_solve_every_exercise_in_two_ways_without_credit():
    ways = {id: set() for id in EXERCISES}
    for path in (ROOT / "notebooks/solutions").glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for line in re.findall("^check.*", cell.source, re.MULTILINE):
                id, name = SOLVED.fullmatch(line).groups()
                assert f"{id} {EXERCISES[id].name}: passed." in texts(cell)
                ways[id].add(name)
    assert [id for id, names in ways.items() if len(names) < 2] == []


# ---- progress ------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing, ending",
    [
        (NAMES, f"1 of {TOTAL} exercises of the course; next: {NEXT}."),
        (["context_vectors"], "next: 3.2."),
        (["merge", "split_heads"], "next: 6.1, in 06 Multi-head attention."),
        (["merge", "padding_mask"], "next: 1.1, in 01 Tokens."),
        (["padding_mask"], "next: 5.4, in Deeper: Padding and empty rows."),
        ([], f"{TOTAL} of {TOTAL} exercises of the course: all of them."),
    ],
)
def test_a_pass_is_recorded_and_the_next_named(own_progress, missing, ending):
    passed = [name for name in NAMES if name not in missing]
    own_progress.write_text("\n".join([*passed, ""]))
    assert check("3.3", softmax).message.endswith(ending)
    assert records.load() == {*passed, "softmax"}


def test_a_notebook_may_be_moved(own_progress, capsys, tmp_path, monkeypatch):
    for module in ("pages", "checks.catalogue", "checks.overview"):
        monkeypatch.setattr(f"utils.{module}.NOTEBOOKS", tmp_path)
    message = check("3.3", softmax).message
    assert message.endswith(f"1 of {TOTAL} exercises of the course; next: {NEXT}.")
    assert solution("3.3") is softmax
    progress()
    recall()
    shown = capsys.readouterr().out
    assert "04_scaled_dot_product_attention.ipynb: 0 of " in shown
    assert "\nafter 09, deeper/shared_heads.ipynb: 0 of " in shown


def test_an_exercise_of_the_hour_is_one_of_a_numbered_notebook(own_progress):
    page = ROOT / "notebooks/attention_in_an_hour.ipynb"
    names = {id: name for id, name, _, _, _ in exercises_of(page)}
    assert names == {t.label: exercises()[t.label].name for t in hour_tasks()}
    message = check("1", lambda x: torch.softmax(x @ x.T, dim=-1)).message
    assert message.startswith("Exercise 1 attention_weights: passed.")
    ending = "1 of 3 in the hour. It has passed as 3.1 of the course as well."
    assert message.endswith(ending)
    assert records.load() == {"attention_weights"}
    message = check("3.1", unwritten).message
    assert message.splitlines()[0] == "3.1 attention_weights: passed before."


def test_the_answer_that_00_corrects_counts_there_alone(own_progress):
    message = check("0.1", softmax).message
    assert message.endswith(
        f"1 of {TOTAL} exercises of the course; next: 1.1, in 01 Tokens."
    )
    assert records.load() == {"softmax in 00"}


def test_a_part_that_passes_in_the_hour_does_not_count_as_the_whole(
    own_progress, capsys
):
    assert "doesn't count" in check("3", solution("3")).message  # the course's own
    theirs = EXERCISES["6.3"].course

    class MultiHeadAttention(theirs):
        def __init__(self, d_in, d_out, num_heads):
            super().__init__(d_in, d_out, 64, 0.0, num_heads)

    assert check("3", MultiHeadAttention).passed
    assert records.load() == {"MultiHeadAttention in an hour"}
    assert solution("3") is MultiHeadAttention
    assert solution("6.3") is not MultiHeadAttention
    progress()
    shown = capsys.readouterr().out
    assert "Attention in an hour: 1 of 3, " in shown
    assert f"The course: 0 of {TOTAL} passed" in shown


def test_a_mask_of_another_size_is_named_in_the_hour(own_progress):
    def masked_attention(query, key, value):
        mask = torch.ones(3, 3, dtype=torch.bool).tril()
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ value

    assert check("2", masked_attention).diagnosis == "mask-of-another-size"


def test_what_is_no_exercise_stays_in_the_file_and_counts_as_nothing(own_progress):
    damage = b"\x00\xff\n"
    own_progress.write_bytes(damage)
    assert f"1 of {TOTAL} exercises" in check("3.3", softmax).message
    assert own_progress.read_bytes() == damage + b"\nsoftmax\n"


def test_a_file_that_cannot_be_written_is_reported(own_progress, capsys):
    own_progress.mkdir()  # a folder in its place is refused even to root
    assert check("3.3", softmax).passed
    assert "Your progress isn't saved:" in capsys.readouterr().out


def test_progress_lists_each_notebook_and_ticks_what_has_passed(own_progress, capsys):
    progress()
    output_text = capsys.readouterr().out
    titles = [read_opening(p.relative_to(NOTEBOOKS).as_posix())[0] for p in LESSONS]
    rows = re.findall(r"^(?:after \d\d, )?(.+): .*\d+ min$", output_text, re.MULTILINE)
    assert sorted(rows) == sorted(titles) and "✓" not in output_text
    passed = ["03_context_vectors.ipynb", "04_scaled_dot_product_attention.ipynb"]
    names = [task.name for task in tasks() if task.page in passed]
    own_progress.write_text("\n".join(names))
    progress()
    output_text = capsys.readouterr().out
    course = numbered_notebooks(COURSE)
    minutes = sum(read_opening(name)[1] for name in {*course} - {*passed})
    assert f"about {minutes / 60:.0f} hours left" in output_text
    ticked = re.findall(r"^(.+): (\d+) of \2 ✓$", output_text, re.MULTILINE)
    assert [title for title, _ in ticked] == [read_opening(p)[0] for p in passed]


def test_the_map_colours_what_has_passed_and_what_is_begun(own_progress, monkeypatch):
    embeddings = [task.name for task in tasks() if task.page == "02_embeddings.ipynb"]
    own_progress.write_text("\n".join([*embeddings, "softmax"]))
    blocks = []
    monkeypatch.setattr("utils.checks.overview.show", lambda *args: blocks.extend(args))
    progress()
    tile = r"2px solid (#\w+);.*?<a [^>]*>([^<]+)</a></span> <span [^>]*>([^<]*)<"
    tiles = {title: (color, text) for color, title, text in re.findall(tile, blocks[1])}
    assert len(tiles) == len(LESSONS)
    assert tiles["02 Embeddings"][0] == PASSED[2] and "✓" in tiles["02 Embeddings"][1]
    color, text = tiles["03 Context vectors"]
    assert color == NOT_YET[2] and re.match(r"1 of \d+, ", text)
    begun = {"02 Embeddings", "03 Context vectors"}
    left = {color for title, (color, _) in tiles.items() if title not in begun}
    assert left == {NOT_ATTEMPTED[2]}


def test_recall_asks_other_questions_each_day(own_progress, capsys, monkeypatch):
    recall()
    assert "Nothing to repeat yet" in capsys.readouterr().out
    hour = "scaled_dot_product_attention\nMultiHeadAttention in an hour\n"
    own_progress.write_text(f"{hour}softmax\nSelfAttention")
    questions_shown = set()
    for day in (1, 2, 3, 4):
        today = SimpleNamespace(today=lambda day=day: datetime.date(2026, 1, day))
        date = SimpleNamespace(date=today)
        monkeypatch.setattr("utils.checks.overview.datetime", date)
        recall()
        out = capsys.readouterr().out
        assert out.count("*03 Context vectors*") == out.count("<details>") == 3
        questions_shown.add(out)
    assert len(questions_shown) > 1
    own_progress.write_text(f"attention_weights\n{hour}")
    recall()
    assert "Nothing to repeat yet" in capsys.readouterr().out


def test_progress_goes_on_where_something_has_passed_last(own_progress, capsys):
    names = [task.name for task in tasks()]
    index = names.index("merge_heads")
    own_progress.write_text("merge_heads\nattention_weights")  # in the hour
    progress()
    out = capsys.readouterr().out
    assert f"\nNext: {tasks()[index + 1].label} in 06 Multi" in out
