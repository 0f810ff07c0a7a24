"""A reader runs cells again, and single sections; each test pins a claim about that.

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

from tests.notebooks import find_notebooks, run_cells
from tests.repository import ROOT
from tests.tolerance import assert_prints, printed

PATHS = [path.relative_to(ROOT).as_posix() for path in find_notebooks()]
LOADS = "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"
NEEDS = re.compile(r"## .+\n\n\*Needs (.+)\.\*$", re.MULTILINE)
CHEAP = "deeper/my_numbers_differ.ipynb"
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


# ---------------------------------------------------------- run again, run alone


def compare(cells, path):
    """Run cells in one fresh kernel; assert that each prints what is stored."""
    new = nbformat.v4.new_code_cell
    copies = [new(cell.source, metadata=cell.metadata) for cell in cells]
    run_cells(nbformat.v4.new_notebook(cells=copies), path.parent)
    for stored, cell in zip(cells, copies):
        assert_prints(cell, printed(stored))
        assert [o.text for o in cell.outputs if o.get("name") == "stderr"] == []


@pytest.mark.sample(CHEAP)
def test_every_cell_may_be_run_twice_in_a_row_and_the_whole_notebook_once_more(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    twice = [cell for cell in code for _ in range(2)]
    compare(twice + code, path)


@pytest.mark.sample(CHEAP)
def test_a_section_runs_after_the_opening_and_the_sections_that_it_needs(path):
    parts = sections(path)
    done = {number for number, section in enumerate(parts) if not section.cells}
    for number in reversed(range(1, len(parts))):
        if number not in done:
            chain = [*closure(parts, parts[number].needs), number]
            compare([cell for i in [0, *chain] for cell in parts[i].cells], path)
            # Sections that only had their own needs before them ran alone as well.
            for place, i in enumerate(chain):
                if chain[:place] == closure(parts, parts[i].needs):
                    done.add(i)


# ------------------------------------------------------------- what they need


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
