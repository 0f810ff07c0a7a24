"""The notebook: show a result in it, and notice that a cell of it has failed."""

import re
from html import escape

from IPython import get_ipython
from IPython.display import display

from utils.checks.engine.messages import wrap_lines
from utils.checks.engine.values import safe_text

# Sign, words and colour, whose contrast is enough to white text and to any paper.
PASSED = "✓", "passed", "#1a7f37"
NOT_ATTEMPTED = "○", "not attempted yet", "#656d76"
NOT_YET = "✗", "not yet", "#b45309"

DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)
CHECK = re.compile(r"\bcheck\(\s*[\"']([\d.]+)[\"'],\s*(\w+)")
RERUN = "Run the cell with your definition, then run this cell again."
CORRECT_CELL = "If a cell above it hasn't run yet, run that first. Else correct the cell. Then run it, and the check again."

failures = {}  # name: the error of the newest cell that should have defined it


def show_block(heading: str, state: tuple[str, str, str], body: str) -> str:
    """Show a heading, a state such as `PASSED` and some lines; return them as text."""
    sign, words, color = state
    text = wrap_lines(f"{heading}: {words}.\n{body}")
    html = f'<div style="border-left: 4px solid {color}; padding: 2px 12px"><div><b>{escape(heading)}</b> <span style="background: {color}; color: #fff; border-radius: 4px; padding: 1px 8px; white-space: nowrap">{sign} {words}</span></div><pre style="background: none; color: inherit; margin: 6px 0 0; padding: 0; white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; max-width: 88ch">{escape(body)}</pre></div>'
    show(text, html)
    return text


def show(text: str, rich: str, kind: str = "text/html"):
    """Show HTML or Markdown in a notebook, and a text that stands for it elsewhere."""
    if get_ipython() is None:
        print(text)
    else:
        display({"text/plain": text, kind: rich}, raw=True)


def describe_failure(name: str) -> str:
    """Return a sentence about the failed cell that should define `name`, or ""."""
    if not (error := failures.get(name)):
        return ""
    reason = safe_text(error, 160)
    if isinstance(error, SyntaxError):
        reason = f"{error.msg}, in `{(error.text or '').strip():.60}`"
    return f"The cell that defines {name} failed ({type(error).__name__}: {reason})."


def watch_cells():
    """Look at every cell that this kernel runs from now on."""
    if shell := get_ipython():
        shell.events.register("pre_run_cell", _forget_failures)
        shell.events.register("post_run_cell", _record_failures)


def _forget_failures(info):
    """Forget the failures of what a cell defines anew, and may check at once."""
    for name in DEFINITION.findall(info.raw_cell):
        failures.pop(name, None)


def _record_failures(result):
    """Note what a cell should have defined, and explain a check without a name."""
    names, error = get_ipython().user_ns, result.error_in_exec
    for name in DEFINITION.findall(result.info.raw_cell):
        if isinstance(result.error_before_exec, SyntaxError):
            failures[name] = result.error_before_exec
        elif error and name not in names:
            failures[name] = error
    if isinstance(error, NameError):
        for exercise, name in CHECK.findall(result.info.raw_cell):
            if name == error.name:
                state, text = NOT_ATTEMPTED, f"No cell has defined {name} yet. {RERUN}"
                if failure := describe_failure(name):
                    state, text = NOT_YET, f"{failure}\n{CORRECT_CELL}"
                show_block(f"{exercise} {name}", state, text)
