"""Each test pins one sentence about `tests.mutants` and its list."""

import ast
import json

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


def test_a_mutant_that_is_left_meets_all_tests_of_its_room(tmp_path, monkeypatch):
    codes = {
        "utils.files.x_f__mutmut_1": 0,  # survived
        "utils.files.x_f__mutmut_2": 1,  # killed
        "utils.files.x_f__mutmut_3": None,  # not tried
        "utils.files.x_g__mutmut_1": 33,  # no test calls it in its own process
    }
    folder = tmp_path / "mutants"
    (folder / "utils").mkdir(parents=True)
    meta = json.dumps({"exit_code_by_key": codes})
    (folder / "utils/files.py.meta").write_text(meta, encoding="utf-8")
    known = {"utils.files.x_f": ["first"], "utils.files.x_h": ["second"]}
    stats = {"tests_by_mangled_function_name": known}
    stats["duration_by_test"] = {"first": 1.0, "second": 2.0}
    (folder / "mutmut-stats.json").write_text(json.dumps(stats), encoding="utf-8")
    run = []
    monkeypatch.setattr(mutants, "run_mutmut", lambda *inputs: run.extend(inputs[-1]))
    mutants.run_again("files", tmp_path, None)
    assert run == ["utils.files.x_f__mutmut_1", "utils.files.x_g__mutmut_1"]
    stats = json.loads((folder / "mutmut-stats.json").read_text(encoding="utf-8"))
    tests = stats["tests_by_mangled_function_name"]
    both = ["first", "second"]
    assert tests == known | {"utils.files.x_f": both, "utils.files.x_g": both}
