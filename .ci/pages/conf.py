"""How Sphinx shows the course: its settings, KaTeX formulas, links to the glossary."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
KATEX = Path(sys.prefix, "node_modules/katex/dist")
GLOSSARY = "notebooks/deeper/glossary"


project = "Attention, from tokens to transformers"
extensions = ["myst_nb", "sphinx_copybutton"]
nb_execution_mode = "off"
nb_code_prompt_show = "Show the {type}"  # that answers a prediction
nb_code_prompt_hide = "Hide the {type}"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "tests.markdown_text.heading_anchor"
html_title = "Attention"
html_theme = "furo"
html_math_renderer = "katex"
html_static_path = ["static", str(KATEX)]
html_css_files = ["katex.min.css", "site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


@functools.cache
def katex():
    """Start the process that draws formulas."""
    command = ["node", Path(__file__).with_name("katex.js"), KATEX / "katex.js"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    return subprocess.Popen(command, **pipes)


def formula_visitor(element, display):
    """Return a visitor that writes a formula as KaTeX draws it, with MathML."""

    def visit(writer, node):
        print(json.dumps([node.astext(), display]), file=katex().stdin, flush=True)
        drawn = katex().stdout.readline()
        if not drawn:
            raise ValueError(f"KaTeX cannot read {node.astext()}")
        writer.body.append(f'<{element} class="math">{json.loads(drawn)}</{element}>')
        raise nodes.SkipNode

    return visit, None


def word_anchor(word):
    """Return the name of a word's line on the page of the glossary."""
    return nodes.make_id(f"word-{word}")


@functools.cache
def glossary_words():
    """Return a pattern of the words of the glossary, the longest first."""
    text = (ROOT / f"{GLOSSARY}.ipynb").read_text(encoding="utf-8")
    words = sorted(re.findall(r"\| \*([^*]+)\* \| ", text), key=len, reverse=True)
    either = "|".join(map(re.escape, words))
    return re.compile(rf"(?<![\w-])({either})(?![\w-])", re.IGNORECASE)


def link_words(app, doctree, page):
    """Link each word of the glossary to its line there, where a page first uses it."""
    if page == GLOSSARY:
        for term in doctree.findall(nodes.emphasis):
            term["ids"].append(word_anchor(term.astext()))
    elif GLOSSARY in app.env.all_docs:
        base, linked = app.builder.get_relative_uri(page, GLOSSARY), set()
        for text in list(doctree.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.paragraph):
                continue
            parts = [nodes.Text(part) for part in glossary_words().split(text)]
            for i in range(1, len(parts), 2):
                anchor = word_anchor(parts[i])
                if anchor not in linked:
                    linked.add(anchor)
                    uri = f"{base}#{anchor}"
                    parts[i] = nodes.reference(
                        "", parts[i], refuri=uri, internal=True, classes=["word"]
                    )
            text.parent.replace(text, parts)


def setup(app):
    """Register all of this with Sphinx."""
    inline, block = formula_visitor("span", False), formula_visitor("div", True)
    app.add_html_math_renderer("katex", inline, block)
    app.connect("doctree-resolved", link_words)
