"""Slips that can happen in any exercise, beside one of its wrong forms or alone.

`returned`: what comes out is turned round, cut, joined, of another type, or times a
number. `read`: a step takes the wrong variable, one too many, the order turned round.
They are forms, made for the case and the steps at hand.
"""

from functools import cache, partial

import torch

from utils.checks.steps import Form, State, texts_of
from utils.checks.values import agrees, alike, factor_of, number

TEXTS = texts_of(__file__)
AXES = {int(axis): words for axis, words in TEXTS.pop("AXES").items()}
ALONG = {  # what is done along an axis, by key and what else the text says
    ("reversed", ""): lambda x, axis: x.flip(axis),
    ("one-taken", "first"): lambda x, axis: x.select(axis, 0),
    ("one-taken", "last"): lambda x, axis: x.select(axis, -1),
    ("one-lost", "first"): lambda x, axis: x.narrow(axis, 1, x.shape[axis] - 1),
    ("one-lost", "last"): lambda x, axis: x.narrow(axis, 0, x.shape[axis] - 1),
    ("added-up", ""): lambda x, axis: x.sum(axis),
    ("averaged", ""): lambda x, axis: x.mean(axis),
    ("rolled", ""): lambda x, axis: x.roll(1, axis),
    ("rolled", "back"): lambda x, axis: x.roll(-1, axis),
    ("axis-added", ""): lambda x, axis: x.unsqueeze(axis),
    ("axes-exchanged", "the next"): lambda x, axis: x.swapaxes(axis, axis + 1),
    ("axes-exchanged", "the last"): lambda x, axis: x.swapaxes(axis, -1),
    ("axes-joined", ""): lambda x, axis: x.flatten(axis),
    ("axes-joined", "two"): lambda x, axis: x.flatten(axis, axis + 1),
}
PLAIN = {
    ("other-kind", "a float tensor"): torch.Tensor.float,
    ("other-kind", "a tensor of integers"): torch.Tensor.long,
    ("other-kind", "a tensor of True and False"): torch.Tensor.bool,
    ("other-kind", "a list of tensors"): list,
    ("other-kind", "a list of numbers"): torch.Tensor.tolist,
    ("axis-dropped", ""): torch.squeeze,
    ("inverted", ""): torch.logical_not,
    ("logarithm", ""): torch.log,
}
CHANGES = [  # key, words and function
    *((key, {"which": which}, change) for (key, which), change in PLAIN.items()),
    *(
        (key, {"which": which, "axis": AXES[axis]}, partial(change, axis=axis))
        for (key, which), change in ALONG.items()
        for axis in AXES
    ),
]
TIMES = {  # what the text says of a size: the factor
    "divided by": lambda n: 1 / n,
    "multiplied by": lambda n: n,
    "divided by the root of": lambda n: n**-0.5,
    "multiplied by the root of": lambda n: n**0.5,
}


def factors(names, args):
    """Yield the words of a factor that depends on a size, and how it is found."""
    weights = max(0, len(args) - len(names))  # of a module, which come first
    for i, name in enumerate(names[: len(args)], weights):
        sizes = {name: lambda args, i=i: args[i]} if type(args[i]) is int else {}
        for axis in (-1, -2, 0)[: 3 * (getattr(args[i], "ndim", 0) > 1)]:
            size = f"{name}.shape[{axis}]"
            sizes[size] = lambda args, i=i, axis=axis: args[i].shape[axis]
        for size, found in sizes.items():
            for by, factor in TIMES.items():
                yield (
                    {"by": by, "size": f"`{size}`"},
                    (lambda s, factor=factor, found=found: factor(found(s.args))),
                )


# --- what is returned: `change(state, part)` at some paths of the result ------------
def leaves(value, names, path=()):
    """Yield the parts of a value: where each stands, what it is called."""
    if not isinstance(value, tuple):
        yield path, f"the {names or 'result'}"
        return
    fitting = isinstance(names, tuple) and len(names) == len(value)
    for i, part in enumerate(value):
        yield from leaves(part, names[i] if fitting else f"part {i}", (*path, i))


def put(value, paths, change, here=()):
    """Return the value with what stands at these paths changed."""
    if here in paths or not isinstance(value, tuple):
        return change(value) if here in paths else value
    return tuple(put(part, paths, change, (*here, i)) for i, part in enumerate(value))


def end(key, words, paths, change):
    """Return the form in which some parts of what is returned are changed."""
    way = {"returned": lambda s: put(s.result, paths, partial(change, s))}
    return Form(key.split()[0], TEXTS["RETURNED"][key], way, words)


@cache
def ends(parts):
    """Return the groups of paths that are changed, one part or all, and the forms."""
    groups = {(path,): {"part": part} for path, part in parts}
    if len(parts) > 1:
        groups[tuple(path for path, _ in parts)] = {"part": "every part"}
    return groups, [
        end(key, part | words, paths, lambda s, x, change=change: change(x))
        for paths, part in groups.items()
        for key, words, change in CHANGES
    ]


def returned(got, base, names, inputs, args):
    """Yield the forms of the end that make of a result, at a glance, what came."""
    groups, likely = ends((*leaves(base, names),))
    state, factor = State(result=base, args=args), factor_of(got, base)
    times = [] if factor is None else [("multiplied", {}, lambda s: factor)]
    for words, find in factors(inputs, args) if times else ():
        if abs(find(state) - factor) < 1e-4 * abs(factor):
            times.insert(0, ("multiplied 2", words, find))
    for key, words, find in times:
        words |= {"factor": number(factor)}
        change = lambda s, x, find=find: x * find(s)  # noqa: E731
        likely = [*likely, *(end(key, words, paths, change) for paths in groups)]
    for one in likely:
        try:
            made = one.ways["returned"](state)
            if alike(got, made) and not agrees(made, base):
                yield one
        except Exception:  # there is no such axis, or type
            continue


# --- what is read: `change(state, variable)` before a step --------------------------
def others(name, state, words, inputs):
    """Yield key, words and function of what is read in place of a variable."""
    value = getattr(state, name)
    numbers = isinstance(value, torch.Tensor) and value.is_floating_point()
    for other, said in words.items():
        known = getattr(state, other, None)
        same = type(known) is type(value) and not agrees(known, value)
        if same and getattr(known, "shape", 0) == getattr(value, "shape", 0):
            change = lambda s, x, other=other: getattr(s, other)  # noqa: E731
            yield "other-variable", {"other": said}, change
    if type(value) is int:
        yield "off-by-one", {"much": "many"}, lambda s, x: x + 1
        yield "off-by-one", {"much": "few"}, lambda s, x: x - 1
    for axis in {-1, -min(2, value.dim())} if numbers else ():
        along = {"axis": AXES[axis]}
        yield "order-reversed", along, lambda s, x, axis=axis: x.flip(axis)
        yield "centred", along, lambda s, x, axis=axis: x - x.mean(axis, True)
    if numbers:
        yield "sign-flipped", {}, lambda s, x: -x
        yield "part-transposed", {}, lambda s, x: x.mT
        for by, find in factors(inputs, state.args):
            yield "part-scaled", by, lambda s, x, find=find: x * find(s)


def instead(way, name, change):
    """Return the step that takes something else for what the state holds."""
    return lambda s: way(State(**vars(s) | {name: change(s, getattr(s, name))}))


def read(pipeline, trial, inputs):
    """Yield the forms in which a step takes something else than it should."""
    states, made = pipeline.seen(trial), []
    given = [*zip(inputs, trial.args[len(trial.args) > len(inputs) :])]
    start = vars(states[0]).items()
    words = TEXTS["VARIABLES"] | {
        k: f"`{n}`" for k, x in start for n, v in given if v is x
    }
    for (step, way), state in zip(pipeline.steps.items(), states):
        for name in (
            {*getattr(way, "__code__", read.__code__).co_names}
            & {*words}
            & {*vars(state)}
            if isinstance(state, State)
            else ()
        ):
            if isinstance(getattr(state, name), (int, torch.Tensor)):
                for key, more, change in others(name, state, words, inputs):
                    ways = {step: instead(way, name, change)}
                    text = TEXTS["READ"][key]
                    made.append(Form(key, text, ways, {"name": words[name]} | more))
    return sorted(made[::-1], key=lambda one: one.slug == "part-scaled")
