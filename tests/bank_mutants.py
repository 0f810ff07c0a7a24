"""Change one operator of a right answer: `python -m tests.bank_mutants [ids]`.

The checks have to refuse such a mutant of a right answer of the bank. One that passes
is a hole in the cases, unless it is right as well: `bank_mutants.toml` lists how the
lines of those begin, by reason. Ids are prefixes: `3.` takes all of notebook 03.
"""

import ast
import sys
import time
import tomllib
from pathlib import Path

from utils.checks import limit
from utils.checks.course import exercises, find
from utils.checks.engine import examine
from utils.checks.guard import untouched
from utils.checks.steps import Refused

sys.path.insert(0, str(Path(__file__).parent))  # where the bank finds itself
import bank  # noqa: E402

OTHERS = {  # an operator: what it is changed to
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}


def others(node):
    """Return what can stand in the place of a node of the syntax."""
    if isinstance(node, ast.UnaryOp):  # - and not
        return [node.operand]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return [ast.Constant(not node.value)]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [ast.Constant(node.value + 1), ast.Constant(node.value - 1)]
    return [other() for other in OTHERS.get(type(node), ())]


def mutants(tree):
    """Turn `tree` into one mutant after the other; yield the changed line each time."""
    before = ast.unparse(tree).splitlines()
    for node in [*ast.walk(tree)]:
        for name, value in [*ast.iter_fields(node)]:
            parts = value if isinstance(value, list) else [value]
            for i, part in enumerate(parts):
                for other in others(part):
                    changed = [*parts[:i], other, *parts[i + 1 :]]
                    setattr(node, name, changed if parts is value else other)
                    lines = zip(before, ast.unparse(tree).splitlines())
                    yield from (
                        f"{a.strip()} -> {b.strip()}" for a, b in lines if a != b
                    )
                    setattr(node, name, value)


def called_by(name, top):
    """Return a definition and, in turn, those that it uses, by name."""
    found = [name]
    for one in found:
        nodes = [node for node in ast.walk(top[one]) if isinstance(node, ast.Name)]
        own = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        names = {node.id for node in nodes} - own
        found += sorted(names & top.keys() - {*found})
    return found


def survivors(id):
    """Return how many mutants the right answers to an exercise have, and which pass.

    What several answers use is changed once: it is enough if one of them is refused.
    """
    answers = [a.answer for a in bank.answers() if a.right and a.exercise == id]
    module, exercise = sys.modules[answers[0].__module__], find(id)
    body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    top = {node.name: node for node in body if hasattr(node, "name")}
    parts = {a.__name__: called_by(a.__name__, top) for a in answers}
    used = [node for node in top.values() if node.name in sum(parts.values(), [])]
    for node in used:
        node.decorator_list = []
    whole, count, passed = ast.Module(used, []), 0, []
    for node in used:
        users = [name for name in parts if node.name in parts[name]]
        for line in mutants(node):
            code = compile(ast.fix_missing_locations(whole), module.__file__, "exec")
            names = dict(vars(module))
            with untouched(), limit.WATCH:
                exec(code, names)
                if all(passes(exercise, names[user]) for user in users):
                    passed.append(f"{id} {node.name}: {line}")
            count += 1
    return count, passed


def passes(exercise, answer):
    """Say whether an answer passes; the first case that refuses it is enough."""
    memory = {}
    try:
        trials = (exercise.observe(answer, case, memory) for case in exercise.cases)
        return all(t.right for t in trials) and examine(exercise, answer).passed
    except Refused:
        return False


def main(ids):
    """Try all mutants of these exercises; return those that are not as listed."""
    start, total, passed = time.monotonic(), 0, []
    limit.SECONDS = 0.3
    found = [exercise.id for exercise in exercises() if exercise.id.startswith(ids)]
    if not found:
        sys.exit(f"expected exercises such as 4.1, got {' '.join(ids)}")
    for id in found:
        count, some = survivors(id)
        total, passed = total + count, passed + some
    listed = tuple(line for line in known() if line.startswith(ids))
    holes = [line for line in passed if not line.startswith(listed)]
    gone = [line for line in listed if not any(p.startswith(line) for p in passed)]
    said = [f"passes: {line}" for line in holes]
    said += [f"listed, but refused: {line}" for line in gone]
    seconds = time.monotonic() - start
    print(*said, f"{total} mutants, {len(passed)} pass in {seconds:.1f}s", sep="\n")
    return holes + gone


def known():
    """Return how the lines begin of the mutants that are right as well."""
    reasons = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return sum(reasons.values(), [])


if __name__ == "__main__":
    sys.exit(bool(main(tuple(sys.argv[1:] or [""]))))
