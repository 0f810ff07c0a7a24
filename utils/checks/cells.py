"""Notice that a cell which should define an answer has failed.

Then the name is missing, or it still means what an earlier cell defined, and the
check must say so.
"""

import re

from IPython import get_ipython

from utils.checks.display import NOT_ATTEMPTED, NOT_YET, show_block
from utils.checks.values import safe_text

DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)
CHECK = re.compile(r"\bcheck\(\s*[\"']([\d.]+)[\"'],\s*(\w+)")
AGAIN = "Run the cell with your definition, then run this cell again."
CORRECT = "Correct that cell, run it, then run the check again."

failures = {}  # name: the error of the newest cell that should have defined it
_values_before = {}  # name: what it meant before the cell that is running


def describe_failure(name: str) -> str:
    """Return a sentence about the failed cell that should define `name`, or ""."""
    if name not in failures:
        return ""
    error = failures[name]
    reason = safe_text(error, 120)
    if isinstance(error, SyntaxError):
        reason = f"{error.msg}, in `{safe_text((error.text or '').strip(), 60)}`"
    return f"The cell that defines {name} failed ({type(error).__name__}: {reason})."


def watch_cells():
    """Look at every cell that this kernel runs from now on."""
    if shell := get_ipython():
        variables = shell.user_ns
        shell.events.register("pre_run_cell", lambda info: _before(variables, info))
        shell.events.register("post_run_cell", lambda done: _after(variables, done))


def _before(variables, info):
    _values_before.clear()
    for name in DEFINITION.findall(info.raw_cell):
        _values_before[name] = variables.get(name)


def _after(variables, result):
    """Note which names a cell failed to define, and explain a check without a name."""
    error = result.error_before_exec or result.error_in_exec
    for name, value in _values_before.items():
        failures.pop(name, None)
        if error is not None and variables.get(name) is value:
            failures[name] = error
    if isinstance(error, NameError):
        for exercise, name in CHECK.findall(result.info.raw_cell):
            if name == error.name:
                failure = describe_failure(name)
                text = f"{failure}\n{CORRECT}"
                if not failure:
                    text = f"No cell has defined {name} yet. {AGAIN}"
                state = NOT_YET if failure else NOT_ATTEMPTED
                show_block(f"{exercise} {name}", state, text)
