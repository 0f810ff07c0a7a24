"""Find one small change to the reader's code that makes all its results right."""

import ast
import inspect
import io
import re
import textwrap
from contextlib import redirect_stdout, suppress
from copy import copy
from itertools import combinations, islice

from utils.checks.guard import supervised
from utils.checks.harmless import Small, only_computes
from utils.checks.pipeline import Diagnosis
from utils.checks.values import agrees

START = "One change makes all your results right:"
ATTEMPTS = 1500
OPERATORS = "Add Sub Mult Div FloorDiv Mod MatMult", "BitAnd BitOr"
OPERATORS = [*map(str.split, (*OPERATORS, "Lt LtE Gt GtE Eq NotEq"))]
WRAPPED = ["{}.float()", "{}.bool()", "{}.item()", "{}.mT", "{}[..., None]", "-{}"]
WRAPPED += ["1 - {}", "~{}", "{} + 1", "{} - 1", "{} * 2", "{} / 2", "{} ** 0.5"]
LINES = ast.Assign | ast.AugAssign | ast.Expr  # that may be left out


def find_repair(exercise, answer, runs):
    """Return a diagnosis that states the change, in a list, or [].

    What a decorator wraps, has side effects or a `while`, perhaps endless, has none.
    """
    function = answer.function
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):  # not a `def` of a cell
        return []
    has_while = ast.While in map(type, ast.walk(tree))
    is_plain = type(tree) is ast.FunctionDef and not has_while
    if not is_plain or not only_computes(answer.written):
        return []
    tree.decorator_list.clear()  # they return the function as it is
    for old, new in islice(_changes(tree), ATTEMPTS):
        with suppress(Exception), redirect_stdout(io.StringIO()), Small():
            module = ast.fix_missing_locations(ast.Module([tree], []))
            names = dict(function.__globals__)
            exec(compile(module, "<changed answer>", "exec"), names)
            changed = answer.with_function(names[function.__name__])
            for run in sorted(runs, key=lambda run: run.is_right):
                outcome = supervised()(run.outcome_of)(changed.bind(run.case)[0])
                if outcome.is_stopped:
                    return []
                if outcome.error or not agrees(outcome.value, run.expected):
                    break
            else:
                return [Diagnosis("one-change", _describe(old, new, source))]
    return []


def _describe(old, new, source):
    """Return what to do, such as "… write `dim` instead of `-1` in `x.sum(-1)`."."""
    line = source.splitlines()[old.lineno - 1]
    if isinstance(new, ast.Pass):
        return f"{START} leave out the line `{line.strip()}`."
    text, before = ast.unparse(new), ast.unparse(old)
    if isinstance(new, ast.BinOp) and not isinstance(old, ast.BinOp):
        text = f"({text})"
    places = re.finditer(rf"(?<!\w){re.escape(before)}(?!\w)", line)
    left = [place.start() <= old.col_offset for place in places]
    which = f" (number {sum(left)} from the left)" if len(left) > 1 else ""
    return f"{START} write `{text}` instead of `{before}`{which} in `{line.strip()}`."


def _changes(tree):
    """Change one thing at a time; yield the old and the new, while it is there."""
    places, nodes = [*_places(tree)], [*ast.walk(tree)]
    leaves = [node.arg for node in nodes if isinstance(node, ast.arg)]
    parts = [n for n, *_ in places if isinstance(n, ast.Attribute | ast.Subscript)]
    parts = [n for n in nodes if not _is_read(n)] + parts
    leaves += [text for text in map(ast.unparse, parts) if len(text) < 20]
    for rule in RULES:
        for node, holder, key in places:
            for new in rule(node, dict.fromkeys(leaves)):
                if ast.unparse(new) != ast.unparse(node):
                    holder[key] = new
                    yield node, new
            holder[key] = node


def _places(tree):
    """Yield what may be changed, what holds it, and under which key."""
    for parent in ast.walk(tree):
        kept = "func" if _is_read(parent) else "value"  # the `x` of `x[0] = 1`
        for name, value in [*ast.iter_fields(parent)]:
            holder = value if type(value) is list else vars(parent)
            for key in range(len(value)) if holder is value else [name]:
                node = holder[key]
                is_part = isinstance(node, ast.expr | LINES) and _is_read(node)
                is_part &= not isinstance(node, ast.Starred | ast.JoinedStr)
                if is_part and key != kept:
                    yield node, holder, key


def _is_read(node):
    return not isinstance(getattr(node, "ctx", None), ast.Store)


def _own_part(node, leaves):
    for child in ast.iter_child_nodes(node) if isinstance(node, ast.expr) else ():
        if child is getattr(node, "func", None):  # of `x.mean()`, x
            child = getattr(child, "value", None)
        if isinstance(child, ast.expr) and not isinstance(child, ast.Slice):
            if not isinstance(child, ast.Name) or child.id in leaves:
                yield child


def _other_operator(node, leaves):
    operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
    for group in OPERATORS:
        for name in group if type(operator).__name__ in group else ():
            changed, other = copy(node), getattr(ast, name)()
            vars(changed).update(op=other, ops=[other])
            yield changed


def _other_order(node, leaves):
    if isinstance(node, ast.BinOp):
        yield ast.BinOp(node.right, node.op, node.left)
    if isinstance(node, ast.Call | ast.Tuple | ast.List):
        items = getattr(node, "args", None) or getattr(node, "elts", ())
        for i, j in combinations(range(len(items)), 2):
            order, changed = [*items], copy(node)
            order[i], order[j] = order[j], order[i]
            vars(changed).update(args=order, elts=order)
            yield changed


def _other_text(node, leaves):
    text, others = ast.unparse(node), []
    if text in leaves or text.lstrip("-").isdigit():
        others = [*leaves, "-2", "-1", "0", "1", "2"]
    elif text in ("True", "False"):
        others = [f"not {text}"]
    is_fixed = isinstance(node, LINES | ast.Constant | ast.Tuple | ast.Slice)
    if text != "self" and not is_fixed:
        others += [pattern.format(f"({text})") for pattern in WRAPPED]
    return [ast.parse(other, mode="eval").body for other in others]


RULES = [lambda node, leaves: [ast.Pass()] if isinstance(node, LINES) else []]
RULES += [_own_part, _other_operator, _other_order, _other_text]
