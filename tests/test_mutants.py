"""Each test pins one sentence about `tests.mutants` and its list."""

import ast

import mutants
import pytest
from repository import ROOT

FUNCTIONS = ast.FunctionDef | ast.ClassDef


def sources(room):
    """Return for each function of a room its lines, joined, by its name in the list."""
    found = {}
    for file in mutants.files(room):
        text = (ROOT / file).read_text(encoding="utf-8")
        module = file.removeprefix("utils/").removesuffix(".py").replace("/", ".")
        for node in ast.parse(text).body:
            inner = node.body if isinstance(node, ast.ClassDef) else []
            for part in filter(lambda n: isinstance(n, FUNCTIONS), [node, *inner]):
                names = [module.removesuffix(".__init__"), node.name, part.name]
                name = ".".join(dict.fromkeys(names))
                lines = ast.get_source_segment(text, part).splitlines()
                found[name] = " ".join(line.strip() for line in lines)
    return found


@pytest.mark.parametrize("room", mutants.ROOMS)
def test_every_mutant_of_the_list_is_of_a_line_that_stands_there(room):
    known = sources(room)
    for name, change in mutants.equivalent():
        if name.startswith(f"{room}."):
            assert change.partition(" -> ")[0] in known[name], change


def test_the_list_is_of_rooms_that_are_tested():
    rooms = {name.partition(".")[0] for name, _ in mutants.equivalent()}
    assert rooms <= mutants.ROOMS.keys()
