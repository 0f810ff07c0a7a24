"""Does a test fail when `utils` does something else? mutmut changes it, to find out.

    python -m tests.mutants [attention cache.KeyValueCache.append ...]

mutmut makes mutants of every function: a `<` becomes `<=`, a number grows by one, an
argument is left out, a text is written in capitals. With each it runs the tests that
call the function. A mutant that no test notices is either named in `mutants.toml`,
with the reason why it does the same, or it is alive: it is printed, and wants a test.

The table goes to CONTRIBUTING.md. Ends with 1 where less than 95 % of the mutants that
are not equivalent are killed.
"""

import argparse
import ast
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from difflib import unified_diff
from pathlib import Path

from tests import full, guide, repository

# The rooms of `utils` and the tests of each; the examples in its docstrings join them.
ROOMS = {
    "files": ["test_files.py"],
    "tokenizer": ["test_tokenizer.py"],
    "data": ["test_data.py"],
    "embeddings": ["test_embeddings.py"],
    "cache": ["test_cache.py", "test_attention*.py"],
    "attention": ["test_attention*.py"],
    "gpt2": ["test_gpt2.py"],
    "model": ["test_model.py", "test_gpt2.py"],
    "parallel": ["test_parallel.py"],
    "training": ["test_training.py", "test_training_command.py", "test_threads.py"],
    "plots": ["test_plot*.py", "test_scheme.py", "test_exploring.py"],
    "clinic": ["test_clinic*.py"],
}
# Left out: every example but that of the function itself, once; a test that looks into
# the code, where mutmut's stands; and one that takes minutes.
CHOICE = "(orig or not mutmut) and not compiles and not killed_again"
GOAL = 95  # of a hundred
KILLED = 1, 3, 24, 36, 152, 255, -24  # a test fails, or the mutant never ends
SETTINGS = """\
[mutmut]
source_paths=utils
only_mutate=
    {files}
pytest_add_cli_args_test_selection=
    {tests}
also_copy=
    .ci
    conftest.py
    data
    notebooks
pytest_add_cli_args=
    -o
    addopts=--doctest-modules
    -p
    no:nbval
    -p
    no:xdist
    -k
    {choice}
timeout_constant=2
timeout_multiplier=5
use_git_change_detection=false
"""
HEAD = (
    "| room | mutants | killed | equivalent | alive | score | day |\n"
    "|---|---|---|---|---|---|---|\n"
)


def files(room):
    """Return the files of a room, as paths in the course."""
    path = repository.ROOT / "utils" / room
    found = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [file.relative_to(repository.ROOT).as_posix() for file in found]


def prepare(room, folder):
    """Copy the course into a folder and say there what mutmut is to do."""
    repository.make_course(folder)
    for file in files(room):
        source = (folder / file).read_text(encoding="utf-8")
        (folder / file).write_text(without_decorators(source), encoding="utf-8")
    tests = [path for name in ROOMS[room] for path in folder.glob(f"tests/{name}")]
    tests = files(room) + sorted(path.relative_to(folder).as_posix() for path in tests)
    parts = {"files": "\n    ".join(files(room)), "tests": "\n    ".join(tests)}
    settings = SETTINGS.format(**parts, choice=CHOICE)
    (folder / "setup.cfg").write_text(settings, encoding="utf-8")


def without_decorators(source):
    """Write `f = decorator(f)` behind a function for `@decorator` before it.

    It is the same, and mutmut passes over functions that are decorated, also inside of
    others. Methods stay as they are.

    >>> source = "@kept\\ndef f():\\n  @twice\\n  def g():\\n    pass\\n"
    >>> print(without_decorators(source), end="")
    def f():
      def g():
        pass
      g = twice(g)
    f = kept(f)
    """
    lines, nodes = source.splitlines(keepends=True), [*ast.walk(ast.parse(source))]
    methods = {f for node in nodes if isinstance(node, ast.ClassDef) for f in node.body}
    for node in reversed(nodes):  # what is inside of others comes first
        if not isinstance(node, ast.FunctionDef) or node in methods:
            continue
        for decorator in reversed(node.decorator_list):
            behind = f"{node.name} = {ast.unparse(decorator)}({node.name})\n"
            lines[node.end_lineno - 1] += " " * node.col_offset + behind
        for decorator in node.decorator_list:
            above = slice(decorator.lineno - 1, decorator.end_lineno)
            lines[above] = [""] * (decorator.end_lineno - decorator.lineno + 1)
    return "".join(lines)


def run_mutmut(folder, installed, mutants):
    """Make and test mutants, or without names all."""
    program = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()", "run"]
    env = os.environ | {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    command = [*program, "--max-children", "1", *mutants]
    subprocess.run(command, cwd=folder, env=env, stdout=sys.stderr, check=True)


def run_again(room, folder, installed):
    """Test the mutants that are left, each with all tests of the room.

    A test may call a function in another process, or use what a fixture computed for
    the test before. mutmut sees neither.
    """
    left = []
    for file in files(room):
        codes = results(folder, file)
        left += [key for key, code in codes.items() if code not in (None, *KILLED)]
    path = folder / "mutants/mutmut-stats.json"
    stats = json.loads(path.read_text(encoding="utf-8"))
    functions = {key.partition("__mutmut_")[0] for key in left}
    tests = dict.fromkeys(functions, list(stats["duration_by_test"]))
    stats["tests_by_mangled_function_name"] |= tests
    path.write_text(json.dumps(stats), encoding="utf-8")
    if left:
        run_mutmut(folder, installed, left)


def results(folder, file):
    """Return the exit code of every mutant of a file."""
    kept = (folder / f"mutants/{file}.meta").read_text(encoding="utf-8")
    return json.loads(kept)["exit_code_by_key"]


def mangled(name):
    """Return what mutmut calls the mutants of a function or method.

    >>> mangled("cache.KeyValueCache.append"), mangled("data.load_text")
    ('utils.cache.xǁKeyValueCacheǁappend__mutmut_*', 'utils.data.x_load_text__mutmut_*')
    >>> mangled("training._Run.learn")
    'utils.training.xǁ_Runǁlearn__mutmut_*'
    """
    *modules, kind, function = name.split(".")
    if kind.lstrip("_")[0].isupper():
        return f"utils.{'.'.join(modules)}.xǁ{kind}ǁ{function}__mutmut_*"
    return f"utils.{'.'.join([*modules, kind])}.x_{function}__mutmut_*"


def mutants(room, folder):
    """Yield function, change and exit code of each mutant that was tested."""
    for file in files(room):
        mutated = folder / "mutants" / file
        lines = mutated.read_text(encoding="utf-8").splitlines()
        texts = {
            node.name: [
                line.strip().replace(node.name, "")
                for line in lines[node.lineno - 1 : node.end_lineno]
            ]
            for node in ast.walk(ast.parse("\n".join(lines)))
            if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
        }
        for key, code in results(folder, file).items():
            module, _, name = key.removeprefix("utils.").rpartition(".")
            function = name.partition("__mutmut_")[0]
            change = changed(texts[f"{function}__mutmut_orig"], texts[name])
            if code is not None:
                yield f"{module}.{function[2:].replace('ǁ', '.')}", change, code


def changed(before, after):
    """Return the lines that a mutant takes away, an arrow, and those it puts there.

    >>> changed(["if a:", "b = 1", "return b"], ["if a:", "b = 2", "return b"])
    'b = 1 -> b = 2'
    """
    diff = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    gone, come = (" ".join(s[1:] for s in diff if s[0] == sign) for sign in "-+")
    return f"{gone} -> {come}"


def equivalent():
    """Return the mutants that do the same, each as its function and its change."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)["same"]
    return [mutant for group in groups for mutant in group["mutants"]]


def counts(room, installed, names):
    """Test the mutants of a room or of some of its functions and print those alive.

    returns: how many were killed, are equivalent, are alive
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        prepare(room, folder)
        run_mutmut(folder, installed, [*map(mangled, names)])
        run_again(room, folder, installed)
        found = list(mutants(room, folder))
    left = [mutant for *mutant, code in found if code not in KILLED]
    same = [mutant for mutant in equivalent() if mutant[0].startswith(f"{room}.")]
    alive = [mutant for mutant in left if mutant not in same]
    for function, change in alive:
        print(f"alive in {function}: {change}", flush=True)
    for function, change in same:
        if not names and [function, change] not in left:
            print(f"to be taken from the list: {function}: {change}", flush=True)
    return len(found) - len(left), len(left) - len(alive), len(alive)


def row(room, killed, same, alive):
    """Return a row of the table.

    >>> row("files", 195, 10, 5).rpartition("|")[0].rpartition("|")[0]
    '| files | 210 | 195 | 10 | 5 | 97.5 % '
    """
    score = f"{100 * killed / (killed + alive):.1f} %"
    cells = room, killed + same + alive, killed, same, alive, score
    return f"| {' | '.join(map(str, cells))} | {datetime.date.today()} |\n"


def main():
    """Read the command line; test, print and store."""
    parser = argparse.ArgumentParser(description="Test the tests of utils by mutants.")
    about = f"{', '.join(ROOMS)}, or functions such as cache.KeyValueCache.append"
    parser.add_argument("names", nargs="*", help=about)
    names = parser.parse_args().names or list(ROOMS)
    if unknown := [name for name in names if name.split(".")[0] not in ROOMS]:
        parser.error(f"expected names from {about}, got {', '.join(unknown)}")
    installed = full.installed("mutants")
    if installed is None:
        sys.exit("mutmut could not be installed")
    start, sums = time.monotonic(), (0, 0, 0)
    for room in dict.fromkeys(name.split(".")[0] for name in names):
        some = [name for name in names if name.startswith(f"{room}.")]
        found = counts(room, installed, [] if room in names else some)
        sums = tuple(map(sum, zip(sums, found)))
        line = row(room, *found)
        print(line, end="", flush=True)
        if room in names:
            guide.store("the last mutants", HEAD, [line], list(ROOMS))
    killed, same, alive = sums
    seconds = time.monotonic() - start
    print(f"{killed} killed, {same} equivalent, {alive} alive in {seconds:.1f}s")
    return 100 * killed < GOAL * (killed + alive)


if __name__ == "__main__":
    sys.exit(main())
