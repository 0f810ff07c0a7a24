"""Helpers that read the markdown of pages and notebooks."""

import re

FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
SOLUTION = re.compile(
    r"<details><summary>(?:Solution|The loop|In code)</summary>\s+"
    r"```python\n(.*?)^```$.*?</details>",
    re.DOTALL | re.MULTILINE,
)
FENCE = re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE)


def heading_anchor(title):
    """Return the name of a heading in links, as JupyterLab makes it."""
    return title.replace(" ", "-")


def without_code(source):
    """Return markdown without its code, in which nothing is markup."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", source))


def folded_solution(cell):
    """Return the code of a solution or loop that is folded in a cell, or None."""
    match = SOLUTION.match(cell.source) if cell.cell_type == "markdown" else None
    return match and match[1]
