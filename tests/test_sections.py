"""A reader may run single sections, after those that it needs.

A section begins with a second-level heading; the cells before the first one are the
opening. A line *Needs …* under a heading links to the sections whose names this one
uses, except those that the linked ones need themselves.
"""

import re
import symtable
from typing import NamedTuple

import nbformat
import pytest

from tests.notebooks import find_notebooks
from tests.repository import ROOT, as_python

PATHS = [path.relative_to(ROOT).as_posix() for path in find_notebooks()]
NEEDS = re.compile(r"## .+\n\n\*Needs (.+)\.\*$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(#([^)]+)\)")


class Section(NamedTuple):
    """A title, the numbers of the sections that its *Needs* line names, its code."""

    title: str
    needs: list
    cells: list


def sections(path):
    """Return the opening and the sections of a notebook."""
    parts = [Section("the opening", [], [])]
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            parts[-1].cells.append(cell)
        elif cell.source.startswith("## "):
            line = NEEDS.match(cell.source)
            anchors = [section.title.replace(" ", "-") for section in parts]
            needs = [anchors.index(a) for a in LINK.findall(line[1] if line else "")]
            parts.append(Section(cell.source.splitlines()[0][3:], needs, []))
    return parts


def closure(parts, needs):
    """Return the numbers of sections and of all that they need, in reading order."""
    indirect = [number for i in needs for number in closure(parts, parts[i].needs)]
    return sorted({*needs, *indirect})


def names_read(table):
    """Return the names that some code, with its functions, reads from outside."""
    symbols = [s for s in table.get_symbols() if s.is_referenced() and s.is_global()]
    inner = set().union(*map(names_read, table.get_children()))
    return inner | {symbol.get_name() for symbol in symbols}


def used_sections(parts):
    """Return for each section the numbers of those that define what it uses."""
    maker, used = {}, [set() for _ in parts]
    for number, section in enumerate(parts):
        for cell in section.cells:
            table = symtable.symtable(as_python(cell.source), "cell", "exec")
            names = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
            used[number] |= {maker.get(name, 0) for name in names_read(table) - names}
            maker |= dict.fromkeys(names, number)
        used[number] -= {0, number}
    return used


@pytest.mark.parametrize("path", PATHS)
def test_the_line_needs_names_exactly_the_sections_that_are_used(path):
    parts = sections(ROOT / path)
    for section, used in zip(parts, used_sections(parts)):
        fewest = [i for i in sorted(used) if i not in closure(parts, used - {i})]
        titles = [parts[i].title for i in fewest]
        assert [parts[i].title for i in section.needs] == titles, section.title
