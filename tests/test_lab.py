"""Each test pins one sentence about a notebook in JupyterLab, as its reader works it.

A notebook is opened, run and worked by keyboard once; the tests ask what was seen.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from html import unescape
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_server.serverapp import list_running_servers
from markdown_text import FORMULA, without_code
from repository import ROOT, make_course, tool

# The quick run: a notebook that has controls.
pytestmark = pytest.mark.sample("04_scaled_dot_product_attention.ipynb")
INTERACTIVE = re.compile(r" \(interactive: (.*)\)$")
SOON, LONG = 60_000, 600_000  # milliseconds: what a page, what a notebook may take
MANY = 100  # more stops of the Tab key than a cell has

# The texts of the pictures, "Image" where there is none, and null where none is drawn.
PICTURES = """() => [...document.querySelectorAll(".jp-Notebook img")].map(
    img => img.complete && img.naturalWidth > 0 && img.width > 0 ? img.alt : null)"""
PROMPTS = """() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
    .map(prompt => prompt.textContent)"""
# What a formula that MathJax did not take leaves in the text, or took as a mistake.
PROSE = """() => [...document.querySelectorAll(".jp-RenderedMarkdown")].map(text => {
    const prose = text.cloneNode(true);
    prose.querySelectorAll("code, pre, mjx-container").forEach(node => node.remove());
    return prose.textContent;
})"""
# The status bar knows; the notebook's own sign says idle while a kernel starts.
IDLE = ".jp-StatusBar-TextItem:has-text('| Idle')"
COMPLAINTS = ":is([data-mime-type$='.stderr'], [data-mime-type$='.error'])"
MISTAKES = 'mjx-merror, mjx-container [mathcolor="red"]'
# Where the keyboard is, by cell and by control of its panel, and what moves it there.
FOCUS = """() => {
    const focus = document.activeElement, at = name => +focus.getAttribute(name);
    const cells = [...document.querySelectorAll(".jp-Notebook .jp-Cell")];
    const panel = focus.closest(".jp-OutputArea .widget-vbox");
    const most = at("aria-valuenow") === at("aria-valuemax");
    return {
        cell: cells.indexOf(focus.closest(".jp-Cell")),
        key: focus.role === "slider" ? most ? "ArrowLeft" : "ArrowRight" : null,
        control: panel ? [...panel.children].findIndex(c => c.contains(focus)) : -1,
    };
}"""


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """Start JupyterLab on a copy of the course, as on a machine where it is new."""
    folder = tmp_path_factory.mktemp("lab")
    course = folder / "Kurs über Attention"
    make_course(course)
    own = ("COURSE_PROGRESS", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    env = os.environ | {name: str(folder / name) for name in own}
    env["JUPYTER_RUNTIME_DIR"] = str(folder / "runtime")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={course}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            yield address(server, folder)
        finally:
            server.terminate()
            server.wait(60)


def address(server, folder):
    """Return where the server answers and its token, once it does."""
    give_up = time.monotonic() + 60
    while not (running := [*list_running_servers(folder / "runtime")]):
        alive = server.poll() is None and time.monotonic() < give_up
        assert alive, (folder / "log").read_text()
        time.sleep(0.1)
    return SimpleNamespace(**running[0])


@pytest.fixture(scope="module")
def seen(lab, browser, path):
    """Open a notebook, run it, and move its controls; return what was seen."""
    notebook = nbformat.read(path, as_version=4)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(SOON)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_notebook(page, lab, path, len(notebook.cells))
    seen = expected(notebook)
    seen.stored = page.evaluate(PICTURES)
    seen.covers = page.locator(".jp-OutputPlaceholder").all_text_contents()
    run_all(page)
    seen.prompts, seen.pictures = page.evaluate(PROMPTS), page.evaluate(PICTURES)
    seen.complaints = page.locator(COMPLAINTS).all_text_contents()
    seen.folded = page.locator(".jp-OutputPlaceholder").count()
    seen.formulas = page.locator("mjx-container").count()
    seen.mistakes = page.locator(MISTAKES).all_text_contents()
    seen.prose = page.evaluate(PROSE)
    cells = reversed(seen.controls)  # from the end of the notebook, where we are
    seen.moved = {cell: move_controls(page, cell) for cell in cells}
    seen.asked = [url for url in asked if re.match(r"https?:(?!//127\.0\.0\.1)", url)]
    # Shut the kernel down, so that one runs at a time.
    head = {"Authorization": f"token {lab.token}"}
    for kernel in page.request.get(f"{lab.url}api/kernels", headers=head).json():
        page.request.delete(f"{lab.url}api/kernels/{kernel['id']}", headers=head)
    page.close()
    return seen


def expected(notebook):
    """Return what the file says that a reader should find."""
    texts, formulas, controls, predicted = [], 0, {}, []
    for i, cell in enumerate(notebook.cells):
        if cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            predicted += cell.outputs
        for output in cell.get("outputs", []):
            data = {"text/html": "", "text/plain": ""} | output.get("data", {})
            texts += map(unescape, re.findall(r'<img alt="([^"]*)"', data["text/html"]))
            if named := INTERACTIVE.search(data["text/plain"]):
                controls[i] = [*range(named[1].count(",") + 1)]
        if cell.cell_type == "markdown":
            texts += re.findall(r"!\[([^]]*)\]\(", cell.source)
            formulas += len(FORMULA.findall(without_code(cell.source)))
    html = "".join(output.get("data", {}).get("text/html", "") for output in predicted)
    return SimpleNamespace(
        texts=texts,
        written=formulas,
        controls=controls,
        hidden=[*map(unescape, re.findall(r'<img alt="([^"]*)"', html))],
        num_predicted=predicted.count(tool.COVER),
    )


def open_notebook(page, lab, path, num_cells):
    """Open a notebook in a workspace of its own and wait until all of it is there.

    The windowing mode stays as it is installed, "contentVisibility", the reader's: it
    leaves cells out of sight undrawn, but puts every one on the page in the end.
    """
    name = path.relative_to(ROOT).as_posix()
    own = f"{lab.url}lab/workspaces/{path.parent.name}-{path.stem}"
    page.goto(f"{own}/tree/{name}?token={lab.token}")
    page.wait_for_function(
        "count => document.querySelectorAll('.jp-Notebook .jp-Cell').length === count",
        arg=num_cells,
    )
    page.wait_for_selector(IDLE)
    wait_until_drawn(page)


def wait_until_drawn(page):
    """Wait for pictures and formulas; what never comes is for the tests to say."""
    from playwright.sync_api import TimeoutError

    with contextlib.suppress(TimeoutError):
        page.wait_for_function(
            f"() => !({PICTURES})().includes(null)"
            f" && ({PROSE})().every(prose => !/[$\\\\]/.test(prose))",
            timeout=5_000,
        )


def run_all(page):
    """Choose Run All Cells and wait until no cell is left to run."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator("[data-command='runmenu:run-all']").click()
    # The last cell waits for all others, so its star is there long enough to be seen.
    page.wait_for_function(f"() => ({PROMPTS})().at(-1) === '[*]:'")
    page.wait_for_function(f"() => !({PROMPTS})().includes('[*]:')", timeout=LONG)
    page.wait_for_selector(IDLE)
    wait_until_drawn(page)


def move_controls(page, cell):
    """Move every control of a cell, without a mouse; return which changed the picture.

    Escape leaves the editor or a control, arrows lead to the cell, Tab through it.
    """
    page.keyboard.press("Escape")
    for _ in range(page.evaluate(FOCUS)["cell"] - cell):
        page.keyboard.press("ArrowUp")
    moved = set()
    for _ in range(MANY):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus["cell"] != cell:
            break
        if focus["control"] >= 0 and focus["key"] and redraws(page, cell, focus["key"]):
            moved.add(focus["control"])
    return sorted(moved)


def redraws(page, cell, key):
    """Press the key; return whether the picture of the cell changes."""
    from playwright.sync_api import TimeoutError

    source = f".jp-Notebook .jp-Cell >> nth={cell} >> .jp-OutputArea img"
    before = page.get_attribute(source, "src")
    page.keyboard.press(key)
    with contextlib.suppress(TimeoutError):
        page.wait_for_function(
            "([old, cell]) => document.querySelectorAll('.jp-Notebook .jp-Cell')[cell]"
            ".querySelector('.jp-OutputArea img').src !== old",
            arg=[before, cell],
        )
        return True
    return False


def test_pictures_are_there_before_anything_runs_except_those_that_are_folded(seen):
    assert seen.stored == [text for text in seen.texts if text not in seen.hidden]


def test_an_output_that_answers_a_prediction_is_folded_until_its_cell_is_run(seen):
    assert len(seen.covers) == seen.num_predicted
    assert {cover.strip() for cover in seen.covers} <= {tool.COVER.data["text/html"]}
    assert seen.folded == 0


def test_run_all_cells_runs_every_cell_and_leaves_the_setup_cell_folded(seen):
    setup, *others = seen.prompts
    assert setup == ""
    assert others == [f"[{i}]:" for i in range(2, len(others) + 2)]


def test_no_cell_fails_or_writes_to_stderr(seen):
    assert seen.complaints == []


def test_every_picture_is_drawn_again_and_has_its_text(seen):
    alone = [INTERACTIVE.sub("", text) for text in seen.texts]  # now with controls
    assert seen.pictures == alone


def test_every_formula_is_rendered(seen):
    assert [prose for prose in seen.prose if re.search(r"[$\\]", prose)] == []
    assert seen.mistakes == []
    assert seen.formulas == seen.written


def test_every_control_is_reached_and_moves_its_picture_by_keyboard_alone(seen):
    assert seen.moved == seen.controls


def test_nothing_is_asked_of_another_machine(seen):
    assert seen.asked == []
