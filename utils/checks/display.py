"""Show a result in a notebook: as HTML with colour, sign and words, and as text."""

from html import escape

from IPython import get_ipython
from IPython.display import display

from utils.checks.engine.messages import wrap_lines

# Sign, words and colour, whose contrast is enough to white text and to any paper.
PASSED = "✓", "passed", "#1a7f37"
NOT_ATTEMPTED = "○", "not attempted yet", "#656d76"
NOT_YET = "✗", "not yet", "#b45309"


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
