"""Find one small change to the reader's code that mends a mistake without a variant.

The function, or a class's `forward`, is run with one expression after another replaced.
"""

import ast
import inspect
import math
import re
import sys
import textwrap
from contextlib import suppress
from copy import copy
from itertools import combinations, count, islice

import torch
from IPython.utils.capture import capture_output
from torch.overrides import TorchFunctionMode

from utils.checks.guard import LIBRARIES, NeverEnds, time_limit
from utils.checks.pipeline import Diagnosis
from utils.checks.values import LARGEST, agrees, close, same_form

COMPLETE = "One change makes all your results right: "
ATTEMPTS = 1500
ROUNDS = 10_000  # of all loops in one attempt: a change can make a loop endless
OPERATORS = [
    (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult),
    (ast.BitAnd, ast.BitOr),
    (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
]
NUMBERS = ["-2", "-1", "0", "1", "2"]
# Names of mistakes in which something is left out: a change may only make such a one.
LEFT_OUT = re.compile(r"missing|unused|nothing|\bnot?\b")
LAYOUT = "permute transpose movedim swapaxes reshape view flatten mT T einsum".split()
WRAPPED = ["{}.float()", "{}.bool()", "{}.item()", "{}.mT", "{}[..., None]", "-{}"]
WRAPPED += ["1 - {}", "~{}", "{} + 1", "{} - 1", "{} * 2", "{} / 2", "{} ** 0.5"]


def find_repair(exercise, answer, runs):
    """Return a diagnosis that states the change, in a list, or [].

    If no change makes every result right, one that leaves something out, but no input
    and no change of the layout, may leave a mistake that has a variant: two diagnoses.
    """
    function = answer.function
    try:
        if inspect.getfile(function).startswith(LIBRARIES):
            return []
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source).body[0]
        tree.decorator_list.clear()
    except (OSError, TypeError, SyntaxError, AttributeError):  # not a `def` of a cell
        return []
    runs = sorted(runs, key=lambda run: run.is_right)  # the wrong ones rule out most
    right, pairs = {None: [run.expected for run in runs]}, {}
    results = right | _variant_results(exercise.pipeline, runs)
    if answer.mistakes or any(run.error for run in runs):  # else a change may hide more
        results = right
    inputs = _names(tree) & {arg.arg for arg in tree.args.args}
    for old, new in islice(_changes(tree), ATTEMPTS):
        is_part = _leaves_out(old, new) and inputs <= _names(tree)
        found = []
        try:
            with suppress(Exception), capture_output(), Small():
                changed = answer.with_function(_compile(tree, function))
                found = _matches(changed, runs, results if is_part else right)
        except NeverEnds:  # in a function that the answer calls
            break
        for variant in found:
            text = _describe(old, new, source)
            if variant is None:
                return [Diagnosis("one-change", COMPLETE + text)]
            [other] = exercise.pipeline.explain(runs[0].args, variant)
            change = Diagnosis("one-change", f"First, {text}")
            pairs.setdefault(variant.name, [change, Diagnosis(variant.name, other)])
    return pairs.popitem()[1] if len(pairs) == 1 else []


class Small(TorchFunctionMode):
    """Refuses huge tensors: with a change, `zeros(shape)` may be `zeros(9 * shape)`."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        parts = [arg if isinstance(arg, tuple | list) else [arg] for arg in args]
        sizes = [size for part in parts for size in part if type(size) is int]
        if abs(math.prod(filter(None, sizes))) > LARGEST:
            raise RuntimeError
        return function(*args, **(kwargs or {}))


def _describe(old, new, source):
    """Return what to do, such as "write `dim` instead of `-1` in `x.sum(-1)`."."""
    line = source.splitlines()[old.lineno - 1]
    if isinstance(new, ast.Pass):
        return f"leave out the line `{line.strip()}`."
    text = ast.unparse(new)
    if isinstance(new, ast.BinOp) and not isinstance(old, ast.BinOp):
        text = f"({text})"
    return f"write `{text}` instead of {_quote(old, line)} in `{line.strip()}`."


def _leaves_out(old, new):
    is_part = any(node is new for node in ast.walk(old))
    moves_axes = getattr(getattr(old, "func", old), "attr", "") in LAYOUT
    return is_part and not moves_axes and not isinstance(old, ast.Subscript)


def _names(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _quote(node, line):
    """Return an expression, and if the line has it several times, which one."""
    text = ast.unparse(node)
    places = re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", line)
    before = [place.start() <= node.col_offset for place in places]
    which = f" (number {sum(before)} from the left)" if len(before) > 1 else ""
    return f"`{text}`{which}"


def _variant_results(pipeline, runs):
    """Return what each variant gives, unless the answer has more numbers right.

    Then a change towards the variant would leave out something that is needed.
    """
    results, expected = {}, [run.expected for run in runs]
    least = sum(map(_count_right, [run.got for run in runs], expected))
    for variant in pipeline.variants:
        if LEFT_OUT.search(variant.name):
            continue

        def call(*args, variant=variant):
            return pipeline.run(args, variant)

        values = [run.outcome_of(call).value for run in runs]
        is_near = sum(map(_count_right, values, expected)) >= least
        if is_near and all(map(same_form, values, expected)):
            results[variant] = values
    return results


def _count_right(value, expected):
    """Return how many numbers of a result are right."""
    if type(value) is type(expected) is tuple:
        return sum(map(_count_right, value, expected))
    if type(value) is type(expected) is list:
        return sum(one == other for one, other in zip(value, expected))
    is_comparable = torch.is_tensor(expected) and same_form(value, expected)
    return int(close(value, expected).sum()) if is_comparable else 0


def _matches(changed, runs, results):
    """Return the variants whose results a changed answer has; None: the right ones."""
    variants = [*results]
    for i, run in enumerate(runs):
        call, _ = changed.bind(run.case)
        outcome = time_limit()(run.outcome_of)(call)
        if isinstance(outcome.error, NeverEnds):
            raise outcome.error
        variants = [v for v in variants if agrees(outcome.value, results[v][i])]
        if outcome.error or not variants:
            return []
    return variants


def _compile(tree, function):
    """Return the function of a tree, which raises an error in an endless loop."""
    rounds = count()

    def begin_round():
        sizes = map(_size, sys._getframe(1).f_locals.values())
        if next(rounds) == ROUNDS or max(sizes) > LARGEST:
            raise RuntimeError

    names = function.__globals__ | {"begin_round": begin_round}
    module = ast.fix_missing_locations(ast.Module([tree], []))
    exec(compile(module, "<changed answer>", "exec"), names)
    return names[function.__name__]


def _size(value):
    """Return what may grow in each round until the memory is full."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    return {list: len, int: abs}.get(type(value), lambda value: 0)(value)


def _changes(tree):
    """Change one thing at a time; yield the old and the new, while it is there."""
    places = [*_places(tree)]
    names = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    names += [getattr(n, "id", "") for n in ast.walk(tree) if not _is_read(n)]
    parts = [n for n, *_ in places if isinstance(n, ast.Attribute | ast.Subscript)]
    leaves = [text for text in map(ast.unparse, parts) if len(text) < 20]
    leaves = [leaf for leaf in dict.fromkeys(names + leaves) if leaf]
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For | ast.While):
            loop.body[:0] = ast.parse("begin_round()").body
    for parent in ast.walk(tree):
        lines = getattr(parent, "body", [])
        for i, line in enumerate(lines if type(lines) is list else []):
            if isinstance(line, ast.Assign | ast.AugAssign | ast.Expr):
                lines[i] = ast.Pass()
                yield line, lines[i]
                lines[i] = line
    for rule in RULES:
        for node, holder, key in places:
            for new in rule(node, leaves):
                holder[key] = new
                yield node, new
            holder[key] = node


def _places(tree):
    """Yield each expression that is read, what holds it, and under which key."""
    for parent in ast.walk(tree):
        fields = vars(parent)
        lists = [value for value in fields.values() if type(value) is list]
        kept = "func" if _is_read(parent) else "value"  # the `x` of `x[0] = 1`
        for holder in [fields, *lists]:
            for key in [*fields] if holder is fields else range(len(holder)):
                node = holder[key]
                is_value = isinstance(node, ast.expr) and key != kept
                if is_value and _is_read(node) and not isinstance(node, ast.Starred):
                    yield node, holder, key


def _is_read(node):
    return not isinstance(getattr(node, "ctx", None), ast.Store)


def _parse(*texts):
    for text in texts:
        with suppress(SyntaxError):  # of a part of an f-string
            yield ast.parse(text, mode="eval").body


def _other_operator(node, leaves):
    operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
    for group in OPERATORS:
        for other in group if type(operator) in group else ():
            changed = copy(node)
            vars(changed).update(op=other(), ops=[other()])
            yield changed


def _own_part(node, leaves):
    for child in ast.iter_child_nodes(node):
        if child is getattr(node, "func", None):  # of `x.mean()`, x
            child = getattr(child, "value", None)
        if isinstance(child, ast.expr) and not isinstance(child, ast.Slice):
            if not isinstance(child, ast.Name) or child.id in leaves:
                yield child


def _other_leaf(node, leaves):
    text = ast.unparse(node)
    if text in ("True", "False"):
        yield from _parse(f"not {text}")
    elif text in leaves or text.lstrip("-").isdigit():
        yield from _parse(*leaves, *NUMBERS)


def _other_order(node, leaves):
    is_list = isinstance(node, ast.Call | ast.Tuple | ast.List)
    items = getattr(node, "args", None) or getattr(node, "elts", ()) if is_list else ()
    for i, j in combinations(range(len(items)), 2):
        order = [*items]
        order[i], order[j] = order[j], order[i]
        changed = copy(node)
        vars(changed).update(args=order, elts=order)
        yield changed
    if isinstance(node, ast.BinOp):
        left, op, right = node.left, node.op, node.right
        yield ast.BinOp(right, op, left)
        if isinstance(left, ast.BinOp):  # a / b * c, a / (b * c)
            yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))
        if isinstance(right, ast.BinOp):
            yield ast.BinOp(ast.BinOp(left, op, right.left), right.op, right.right)


def _wrapped(node, leaves):
    if not isinstance(node, ast.Constant | ast.Tuple | ast.Slice):
        yield from _parse(*(text.format(f"({ast.unparse(node)})") for text in WRAPPED))


def _combined(node, leaves):
    if not isinstance(node, ast.Constant | ast.Tuple | ast.Slice):
        old = ast.unparse(node)
        others = [leaf for leaf in leaves if leaf != old]
        yield from _parse(
            *(f"({old}) {op} {leaf}" for leaf in others for op in "*/+-&")
        )


RULES = [_own_part, _other_operator, _other_leaf, _other_order, _wrapped, _combined]
