"""A notebook in JupyterLab, read and run as by its reader."""

import os
import re
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_server.serverapp import list_running_servers

from tests.browser import use_slider
from tests.repository import ROOT, make_course
from tests.step_pictures import draw_steps, steps_notebook

SOON, LONG = 60_000, 600_000  # milliseconds: for a page, for a notebook to run

# The alternative texts of the figures; null where no picture has been drawn.
PICTURES = """() => [...document.querySelectorAll(".jp-Notebook img")].map(
    img => img.complete && img.naturalWidth > 0 && img.width > 0 ? img.alt : null)"""
PROMPTS = """() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
    .map(prompt => prompt.textContent)"""
# The prose without formulas: no TeX may be left in it.
PROSE = """() => [...document.querySelectorAll(".jp-RenderedMarkdown")].map(text => {
    const prose = text.cloneNode(true);
    prose.querySelectorAll("code, pre, mjx-container").forEach(node => node.remove());
    return prose.textContent;
})"""
DRAWN = f"() => !({PICTURES})().includes(null) && !/[$\\\\]/.test(({PROSE})().join())"
# The status bar, because the notebook's own sign says idle while a kernel starts.
IDLE = ".jp-StatusBar-TextItem:has-text('| Idle')"
PROBLEMS = ":is([data-mime-type$='.stderr'], [data-mime-type$='.error'], mjx-merror, "
PROBLEMS += "mjx-container [mathcolor='red'])"


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """Start JupyterLab on a copy of the course, as on a machine where it is new."""
    folder = tmp_path_factory.mktemp("lab")
    course = folder / "Kurs über Attention"
    make_course(course)
    private = "COURSE_PROGRESS", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"
    env = os.environ | {name: str(folder / name) for name in private}
    env["JUPYTER_RUNTIME_DIR"] = str(folder / "runtime")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={course}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            give_up = time.monotonic() + 300
            while not (running := [*list_running_servers(folder / "runtime")]):
                is_starting = server.poll() is None and time.monotonic() < give_up
                assert is_starting, (folder / "log").read_text()
                time.sleep(0.1)
            yield SimpleNamespace(**running[0])
        finally:
            server.kill()
            server.wait()


def expected(notebook):
    """Return the alternative texts of all pictures, and of those that aren't folded."""
    texts, unfolded = [], []
    for cell in notebook.cells:
        markdown = cell.source if cell.cell_type == "markdown" else ""
        pictures = re.findall(r"!\[([^]]*)\]\(", markdown)
        for output in cell.get("outputs", []):
            html = output.get("data", {}).get("text/html", "")
            pictures += map(unescape, re.findall(r'<img alt="([^"]*)"', html))
        texts += pictures
        if not cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            unfolded += pictures
    return texts, unfolded


def open_notebook(page, lab, path, num_cells):
    """Open a notebook in a workspace of its own and wait until all of it is drawn."""
    name = path.relative_to(ROOT).as_posix()
    workspace = f"{lab.url}lab/workspaces/{path.parent.name}-{path.stem}"
    page.goto(f"{workspace}/tree/{name}?token={lab.token}")
    page.wait_for_function(
        "count => document.querySelectorAll('.jp-Notebook .jp-Cell').length === count",
        arg=num_cells,
    )
    page.wait_for_selector(IDLE)
    page.wait_for_function(DRAWN)


def run_all(page):
    """Choose Run All Cells and wait until all have run and all is drawn."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator("[data-command='runmenu:run-all']").click()
    # Cells wait for those before them, so a star is there long enough to be seen. (The
    # prompt of a folded cell isn't shown.)
    page.wait_for_function(f"() => ({PROMPTS})().includes('[*]:')")
    page.wait_for_function(f"() => !({PROMPTS})().includes('[*]:')", timeout=LONG)
    page.wait_for_selector(IDLE)
    page.wait_for_function(DRAWN)


@pytest.mark.sample("03_context_vectors.ipynb")
def test_a_notebook_can_be_read_and_run(lab, browser, path):
    notebook = nbformat.read(path, as_version=4)
    texts, unfolded = expected(notebook)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(SOON)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    open_notebook(page, lab, path, len(notebook.cells))
    assert page.evaluate(PICTURES) == unfolded, "before anything runs"
    run_all(page)
    assert page.locator(PROBLEMS).all_text_contents() == []
    assert page.locator(".jp-OutputPlaceholder").count() == 0, "a folded output"
    assert page.evaluate(PICTURES) == texts
    assert [r for r in requests if re.match(r"https?:(?!//127\.0\.0\.1)", r)] == []

    head = {"Authorization": f"token {lab.token}"}  # one kernel at a time
    for kernel in page.request.get(f"{lab.url}api/kernels", headers=head).json():
        page.request.delete(f"{lab.url}api/kernels/{kernel['id']}", headers=head)
    page.close()


def test_a_drawing_in_steps_has_a_list_and_once_run_a_slider(lab, browser, published):
    draw_steps("t")
    name = "steps.ipynb"
    nbformat.write(steps_notebook(published[0]), Path(lab.root_dir, name))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(SOON)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_notebook(page, lab, ROOT / name, 2)
    output = page.locator(".jp-OutputArea-output")  # of the only cell with code
    assert output.locator("li").count() == 4, "not trusted, so no script runs"
    assert output.get_by_role("slider").count() == 0
    run_all(page)
    page.locator(".jp-Cell").first.click()
    use_slider(output)
    is_active = "place => place.closest('.jp-Cell').matches('.jp-mod-active')"
    assert not output.evaluate(is_active), "Shift + Enter would run the figure again"
    # The file browser takes 290 pixels, which leaves the notebook as wide as a phone.
    page.set_viewport_size({"width": 650, "height": 900})
    assert output.evaluate("place => place.scrollWidth <= place.clientWidth")
    page.keyboard.press("Control+s")  # after a click on the slider, the notebook's
    page.wait_for_selector(".jp-mod-current:not(.jp-mod-dirty)")
    open_notebook(page, lab, ROOT / name, 2)
    use_slider(output)
    assert problems == []
    page.close()
