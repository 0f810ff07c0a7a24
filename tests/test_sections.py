"""A reader may run single sections, after those that it needs.

A section begins with a second-level heading; the cells before the first one are the
opening. A line *Needs …* under a heading links to the sections whose names this one
uses, except those that the linked ones need themselves.
"""

import dis
import re
from types import CodeType
from typing import NamedTuple

import nbformat
import pytest

from tests.notebooks import find_notebooks
from tests.repository import ROOT

PATHS = [path.relative_to(ROOT).as_posix() for path in find_notebooks()]
LOADS = "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"
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


def global_names(code):
    """Return the names that a function, class or comprehension reads from outside."""
    steps = list(dis.get_instructions(code))
    assigned = {step.argval for step in steps if step.opname == "STORE_NAME"}
    read = {step.argval for step in steps if step.opname in LOADS}
    inner = [global_names(s.argval) for s in steps if isinstance(s.argval, CodeType)]
    return (read - assigned).union(*inner)


def used_sections(parts):
    """Return for each section the numbers of those that define what it uses."""
    maker, used = {}, [set() for _ in parts]
    for number, section in enumerate(parts):
        for cell in section.cells:
            for step in dis.get_instructions(compile(cell.source, "cell", "exec")):
                names = {step.argval} if step.opname in LOADS else set()
                if isinstance(step.argval, CodeType):
                    names = global_names(step.argval)
                used[number] |= {maker[name] for name in names if name in maker}
                if step.opname == "STORE_NAME":
                    maker[step.argval] = number
        used[number] -= {0, number}
    return used


@pytest.mark.parametrize("path", PATHS)
def test_the_line_needs_names_exactly_the_sections_that_are_used(path):
    parts = sections(ROOT / path)
    for section, used in zip(parts, used_sections(parts)):
        fewest = [i for i in sorted(used) if i not in closure(parts, used - {i})]
        titles = [parts[i].title for i in fewest]
        assert [parts[i].title for i in section.needs] == titles, section.title
