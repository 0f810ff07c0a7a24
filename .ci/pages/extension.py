"""What Sphinx is told to do for the course: draw its formulas and link its words."""

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
SIGN = re.compile(r"[.,;:?!)’]+")  # what must not begin a line
SHORT = 20  # letters of TeX
# One process for all formulas, a line of JSON in and a line out. A mistake ends it.
RENDER = """
const katex = require(process.argv[1]);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [tex, displayMode] = JSON.parse(line);
  const drawn = katex.renderToString(tex, { displayMode, strict: false });
  console.log(JSON.stringify(drawn));
});
"""


@functools.cache
def katex():
    """Start the process that draws formulas."""
    command = ["node", "-e", RENDER, KATEX / "katex.js"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    return subprocess.Popen(command, **pipes)


def formula(element, display):
    """Return how Sphinx writes a formula: as KaTeX draws it, with MathML beside it."""

    def visit(writer, node):
        print(json.dumps([node.astext(), display]), file=katex().stdin, flush=True)
        drawn = katex().stdout.readline()
        if not drawn:
            raise ValueError(f"KaTeX refuses {node.astext()}")
        writer.body.append(f'<{element} class="math">{json.loads(drawn)}</{element}>')
        raise nodes.SkipNode

    return visit, None


def keep_signs(app, doctree, page):
    """Keep a short formula and the sign behind it, such as a full stop, in one line."""
    for drawn in list(doctree.findall(nodes.math)):
        if len(drawn.astext()) > SHORT:  # this one may have to go over two lines
            continue
        after = drawn.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (sign := SIGN.match(after)):
            after.parent.replace(after, nodes.Text(after[sign.end() :]))
            together = nodes.inline("", "", classes=["together"])
            drawn.replace_self(together)
            together += [drawn, nodes.Text(sign[0])]


@functools.cache
def words():
    """Return the words of the glossary, and the pattern of any, the longest first."""
    text = (ROOT / f"{GLOSSARY}.ipynb").read_text(encoding="utf-8")
    found = re.findall(r"\| \*([^*]+)\* \| ", text)
    longest = sorted(map(re.escape, found), key=len, reverse=True)
    any_word = rf"(?<![\w-])({'|'.join(longest)})(?:e?s)?(?![\w-])"
    return found, re.compile(any_word, re.IGNORECASE)


def line_of(word):
    """Return the name of a word's line on the page of the glossary."""
    return nodes.make_id(f"word-{word}")


def link_words(app, doctree, page):
    """Lead from the words of the field to their lines in the glossary.

    A notebook does so where it explains a word, in italics, and where it first says it.
    """
    known, pattern = words()
    if not page.startswith("notebooks/"):
        return
    if page == GLOSSARY:
        for said in doctree.findall(nodes.emphasis):
            said["ids"] += [line_of(said.astext())] * (said.astext() in known)
        return
    base, seen = app.builder.get_relative_uri(page, GLOSSARY), set()
    for text in list(doctree.findall(nodes.Text)):
        inside, parts, done = text.parent, [], 0
        italic = isinstance(inside, nodes.emphasis)
        if not isinstance(inside.parent if italic else inside, nodes.paragraph):
            continue
        for found in pattern.finditer(text):
            word = found[1].casefold()
            if found[0] == text if italic else word not in seen:
                place = {"refuri": f"{base}#{line_of(word)}", "internal": True}
                link = nodes.reference("", found[0], classes=["word"], **place)
                parts += [nodes.Text(text[done : found.start()]), link]
                done = found.end()
                seen.add(word)
        if parts:
            inside.replace(text, [*parts, nodes.Text(text[done:])])


def setup(app):
    """Register all of this with Sphinx."""
    inline, block = formula("span", False), formula("div", True)
    app.add_html_math_renderer("katex", inline, block)
    app.connect("doctree-resolved", keep_signs)
    app.connect("doctree-resolved", link_words)
