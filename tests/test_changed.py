"""What `tests.changed` runs after a change, and which stored outputs stay."""

import base64
import io
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from tests import changed
from tests.notebooks import keep_stored
from tests.repository import make_course, make_repository

COURSE = {
    "utils/a.py": "def one():\n    'Text.'\n    return 1\ndef two(): one()\nSIZE = 2",
    "utils/b.py": "from utils.a import SIZE\ndef one(): pass",
    "utils/latent.py": "def absorbed_scores(): a = 1; pass",
    "utils/plots/c.py": "from utils import a\ndef draw(): a.two()",
    "notebooks/01.ipynb": "%time 1\nfrom utils.plots import c\ndef show(): c.draw()",
    "notebooks/02.ipynb": "from utils.b import one\ntwo = one()",
    "notebooks/03.ipynb": "from utils import b\nprint(b.SIZE)",
    "notebooks/04.ipynb": "mine = solution('11.2')",
    "notebooks/deeper/d.ipynb": "definitions('01').show()",
}
# A file, a text in it, another one, what differs then, the files that use that, and the
# notebooks that are stored, because they differ or use a drawing that does.
CHANGES = """
utils/a.py | return 1 | return 1  # one | | |
utils/a.py | Text. | Another text. | | |
utils/a.py | return 1 | return 3 | utils.a.one | 01 a c d | 01 d
utils/a.py | SIZE = 2 | | utils.a.SIZE | 03 b |
utils/latent.py | a = 1 | other = 1 | | |
utils/latent.py | pass | return | utils.latent.absorbed_scores | 04 exercises latent |
utils/plots/c.py | a.two | a.one | utils.plots.c.draw | 01 c d | 01 d
notebooks/01.ipynb | c.draw() | pass | 01.show | 01 d | 01
"""


def write_small_course(folder):
    for name, code in COURSE.items():
        page = json.dumps({"cells": [{"cell_type": "code", "source": code}]})
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(page if name.endswith("ipynb") else code)


@pytest.mark.parametrize("row", CHANGES.strip().splitlines())
def test_what_uses_a_definition_that_differs_is_found(row, tmp_path, monkeypatch):
    name, old, new, different, users, drawn = (x.strip() for x in row.split("|"))
    make_repository(tmp_path, write_small_course)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    monkeypatch.setattr("tests.repository.ROOT", tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    course = changed.read_course()
    found = changed.find_changed("HEAD", [name], course)
    assert found == {name: {*different.split()}}
    files = changed.find_files(changed.find_users(found[name], course), course)
    assert sorted(Path(file).stem for file in files) == users.split()
    stored, first, others = changed.plan([name], found, course)
    assert [Path(file).stem for file in stored] == drawn.split()
    tested = {file for file in {name, *files} if "exercises" not in file}
    assert {*others} == tested - {*stored} and first == changed.TEXTS


def test_a_change_of_the_checks_runs_their_tests_and_stores_00():
    notebooks, first, others = changed.plan(["utils/checks/catalogue.py"], {}, {})
    assert notebooks == [changed.START] and first == changed.TEXTS
    assert {*map(changed.TEST, "answers checks mistakes".split())} <= {*others}


def test_a_change_of_the_update_runs_its_test():
    assert changed.TEST("update") in changed.plan(["utils/update.py"], {}, {})[2]


def test_what_any_test_may_use_needs_the_quick_run():
    _, first, others = changed.plan(["conftest.py", "notebooks/01.ipynb"], {}, {})
    assert first == others == []


def run(folder, *words):
    command = [sys.executable, "-m", "tests.changed", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_without_a_base_or_with_a_wrong_one_it_says_what_to_name(tmp_path):
    make_course(tmp_path)
    code, text = run(tmp_path)
    assert code == 1 and text.startswith("git for-each-ref") and "failed: " in text
    subprocess.run(["git", "init", "-q", "-b", "other"], cwd=tmp_path, check=True)
    reasons = {"": "no branch main is here", "x": "no commit is named x"}
    for name, reason in reasons.items():
        code, text = run(tmp_path, *name.split())
        assert code == 2 and "for example HEAD" in text and reason in text


def test_nothing_changed_is_not_taken_for_a_change_that_holds(tmp_path):
    make_repository(tmp_path)
    code, text = run(tmp_path)
    assert code == 1 and "Nothing differs" in text and "(all)" in text


def test_a_syntax_error_is_reported_by_ruff_in_a_line_and_nothing_else_runs(tmp_path):
    make_repository(tmp_path)
    (tmp_path / "utils/files.py").write_text("def f(:\n")
    code, text = run(tmp_path)
    assert code == 1 and "utils/files.py:1:7" in text and "Traceback" not in text
    assert text.endswith("nothing else ran. `ruff format` corrects layout.\n")


def encoded(color):
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), color).save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def notebook(text, color, *before):
    """Return a notebook with a cell that prints and draws, after cells with a code."""
    images = [f"data:image/png;base64,{encoded(state)}" for state in (color, "white")]
    html = f'<img src="{images[1]}"><script>"{images[0]}"</script>'  # as of a slider
    bundle = {"text/plain": "a", "image/png": encoded("white"), "text/html": html}
    cell = nbformat.v4.new_code_cell("draw()", metadata={"tolerance": 0.05})
    cell.outputs = [
        nbformat.v4.new_output("stream", text=text),
        nbformat.v4.new_output("display_data", bundle),
    ]
    cells = [*map(nbformat.v4.new_code_cell, before), cell]
    return nbformat.v4.new_notebook(cells=cells)


# The cell printed 1.00 before, and drew in red. Are its stored outputs kept?
@pytest.mark.parametrize(
    "text, color, before, redraw, is_kept",
    [
        ("1.02", "blue", [], False, True),
        ("1.02", "blue", [], True, False),
        ("1.02", "red", [], True, True),
        ("1.02", "blue", ["new code"], False, False),
        ("1.02", "red", ["new code"], False, True),
        ("1.20", "red", [], False, False),
    ],
)
def test_an_output_stays_if_it_agrees(text, color, before, redraw, is_kept):
    new, stored = notebook(text, color, *before), notebook("1.00", "red")
    renewed = keep_stored(new, stored, redraw)
    assert (new.cells[-1].outputs == stored.cells[0].outputs) is is_kept
    assert renewed == ([] if is_kept else new.cells[-1:])
