"""What Sphinx does for the course besides: draw formulas and link glossary words."""

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


@functools.cache
def glossary_words():
    """Return the words of the glossary and a pattern of them, the longest first."""
    text = (ROOT / f"{GLOSSARY}.ipynb").read_text(encoding="utf-8")
    words = re.findall(r"\| \*([^*]+)\* \| ", text)
    longest_first = sorted(map(re.escape, words), key=len, reverse=True)
    pattern = rf"(?<![\w-])({'|'.join(longest_first)})(?:e?s)?(?![\w-])"
    return words, re.compile(pattern, re.IGNORECASE)


def glossary_anchor(word):
    """Return the name of a word's line on the page of the glossary."""
    return nodes.make_id(f"word-{word}")


def link_words(app, doctree, page):
    """Link words to their lines in the glossary.

    A page links each word where it first occurs and where it is in italics.
    """
    words, pattern = glossary_words()
    if page == GLOSSARY:
        for term in doctree.findall(nodes.emphasis):
            if term.astext() in words:
                term["ids"].append(glossary_anchor(term.astext()))
    if page == GLOSSARY or not page.startswith("notebooks/"):
        return
    base, linked = app.builder.get_relative_uri(page, GLOSSARY), set()
    for text in list(doctree.findall(nodes.Text)):
        parent, parts, end = text.parent, [], 0
        is_italic = isinstance(parent, nodes.emphasis)
        if not isinstance(parent.parent if is_italic else parent, nodes.paragraph):
            continue
        for match in pattern.finditer(text):
            word = match[1].casefold()
            if match[0] == text if is_italic else word not in linked:
                target = {"refuri": f"{base}#{glossary_anchor(word)}", "internal": True}
                link = nodes.reference("", match[0], classes=["word"], **target)
                parts += [nodes.Text(text[end : match.start()]), link]
                end = match.end()
                linked.add(word)
        if parts:
            parent.replace(text, [*parts, nodes.Text(text[end:])])


def setup(app):
    """Register all of this with Sphinx."""
    inline, block = formula_visitor("span", False), formula_visitor("div", True)
    app.add_html_math_renderer("katex", inline, block)
    app.connect("doctree-resolved", link_words)
