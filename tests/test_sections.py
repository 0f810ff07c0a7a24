"""A reader runs cells again, and sections alone; each test pins a sentence about it.

A section begins with a heading of the second order; what stands before the first one
is the opening. A line *Needs …* under a heading links to the sections that make what
this one uses, without those that they need themselves.
"""

import dis
import re
from types import CodeType
from typing import NamedTuple

import nbformat
import pytest
from repository import ROOT, tool
from reruns import CHEAP, compare

PATHS = [path.relative_to(ROOT).as_posix() for path in tool.find_notebooks()]
LOADS = "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"
NEEDS = re.compile(r"## .+\n\n\*Needs (.+)\.\*$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(#([^)]+)\)")


class Section(NamedTuple):
    """A heading, the numbers of the sections it says it needs, and its code cells."""

    title: str
    needs: list
    cells: list


def sections(path):
    """Return the opening and the sections of a notebook."""
    found = [Section("the opening", [], [])]
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            found[-1].cells.append(cell)
        elif cell.source.startswith("## "):
            line = NEEDS.match(cell.source)
            anchors = [section.title.replace(" ", "-") for section in found]
            needs = [anchors.index(a) for a in LINK.findall(line[1] if line else "")]
            found.append(Section(cell.source.splitlines()[0][3:], needs, []))
    return found


def closure(parts, needs):
    """Return the numbers of sections with all that they need, in reading order."""
    below = [number for i in needs for number in closure(parts, parts[i].needs)]
    return sorted({*needs, *below})


# ---------------------------------------------------------- run again, run alone


@pytest.mark.sample(*CHEAP)
def test_every_cell_may_be_run_twice_in_a_row_and_the_whole_notebook_once_more(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    twice = [cell for cell in code for _ in range(2)]
    compare(twice + code, path)


@pytest.mark.sample(*CHEAP)
def test_a_section_runs_after_the_opening_and_the_sections_it_says_it_needs(path):
    parts = sections(path)
    done = {number for number, section in enumerate(parts) if not section.cells}
    for number in reversed(range(1, len(parts))):
        if number not in done:
            chain = [*closure(parts, parts[number].needs), number]
            compare([cell for i in [0, *chain] for cell in parts[i].cells], path)
            # Those that had nothing but their own needs before them are done as well.
            for place, i in enumerate(chain):
                if chain[:place] == closure(parts, parts[i].needs):
                    done.add(i)


# ------------------------------------------------------------- what they need


def looked_up(code):
    """Return the names that a function, class or comprehension reads from outside."""
    steps = list(dis.get_instructions(code))
    own = {step.argval for step in steps if step.opname == "STORE_NAME"}
    read = {step.argval for step in steps if step.opname in LOADS}
    inner = [looked_up(s.argval) for s in steps if isinstance(s.argval, CodeType)]
    return (read - own).union(*inner)


def used_sections(parts):
    """Return for each section the numbers of those that made what it uses."""
    maker, used = {}, [set() for _ in parts]
    for number, section in enumerate(parts):
        for cell in section.cells:
            for step in dis.get_instructions(compile(cell.source, "cell", "exec")):
                names = {step.argval} if step.opname in LOADS else set()
                if isinstance(step.argval, CodeType):
                    names = looked_up(step.argval)
                used[number] |= {maker[name] for name in names if name in maker}
                if step.opname == "STORE_NAME":
                    maker[step.argval] = number
        used[number] -= {0, number}
    return used


@pytest.mark.parametrize("path", PATHS)
def test_a_heading_begins_a_cell(path):
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert re.findall(r"^##.*", cell.source.partition("\n")[2], re.M) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_section_says_what_it_needs_and_nothing_else(path):
    parts = sections(ROOT / path)
    for section, used in zip(parts, used_sections(parts)):
        fewest = [i for i in sorted(used) if i not in closure(parts, used - {i})]
        titles = [parts[i].title for i in fewest]
        assert [parts[i].title for i in section.needs] == titles, section.title
