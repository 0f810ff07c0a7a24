"""What is wrong with a result as a whole, whatever the exercise.

Looked at where no wrong form of a step, and no two of them, give what the answer gave.
Each function takes the trials that are wrong and returns the slug and the text of what
it finds, or None.
"""

import torch

from utils.checks import search
from utils.checks.guard import attempt, quietly
from utils.checks.steps import texts_of
from utils.checks.values import LARGEST_TENSOR, agrees, all_finite, close, number

TEXTS = texts_of(__file__)["GENERAL"]


def explain(exercise, trials):
    """Return the `Found` of the first of these explanations that fits, or None."""
    usual = [trial for trial in trials if trial.comparable and not trial.special]
    wrong = [trial for trial in usual if not trial.right]
    if not wrong or not all(map(plain, wrong)):
        return None
    for look in (constant_factor, right_numbers_elsewhere, samples_mixed):
        found = attempt(look, exercise, usual, wrong, tidy=lambda found: found)
        if found.error and search.STRICT:
            raise found.error
        if found.value:
            name, shown = found.value
            known = name.slug != "numbers-in-other-places"  # which says what, not why
            return search.Found((name.slug,) * known, shown, str(name))
    return None


def plain(trial):
    """Say whether a result has the right form and holds finite numbers alone."""
    return trial.same_form and not trial.observed and all_finite(trial.outcome.value)


def leaves(value, names=""):
    """Yield the tensors in a value, each with the name of its part."""
    if isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from leaves(part, names[i] if names else "")
    elif isinstance(value, torch.Tensor) and value.numel() <= LARGEST_TENSOR:
        yield names, value


def pairs(exercise, trial):
    """Return for each tensor of a result its name, what came and what is expected."""
    came = leaves(trial.outcome.value)
    right = leaves(trial.expected.value, exercise.parts)
    return [(name, got, wanted) for (_, got), (name, wanted) in zip(came, right)]


def factor(got, expected):
    """Return the number that times `expected` is `got`, or None."""
    got, expected = got.double(), expected.double()
    size = expected.square().sum()
    if size == 0 or not got.isfinite().all():
        return None
    found = (got * expected).sum() / size
    fits = found != 0 and close((got / found).float(), expected.float()).all()
    return found.item() if fits else None


def constant_factor(exercise, usual, wrong):
    """Name a result that is right but for one factor on all of it, or on a part."""
    found = {}
    for trial in usual:
        for name, got, expected in pairs(exercise, trial):
            if not expected.is_floating_point():
                return None
            if expected.numel() < 3:  # as good as any number fits
                continue
            times = factor(got, expected)
            if times is None and not agrees(got, expected):
                return None
            if times is not None:
                found.setdefault(name, []).append(times)
    off = {name for name, some in found.items() if max(abs(t - 1) for t in some) > 1e-4}
    shown = [t for name in off for t in found[name]]
    if not off or len(shown) < 2:
        return None
    here = factor(*next(p[1:] for p in pairs(exercise, wrong[0]) if p[0] in off))
    if here is None:
        return None
    same = max(shown) - min(shown) < 1e-4 * abs(max(shown))
    of = f" of the {off.pop()}" if len(found) > 1 and len(off) == 1 else ""
    key = "constant-factor" if same else "constant-factor changing"
    return TEXTS.say(key, of=of, factor=number(here)), wrong[0]


def right_numbers_elsewhere(exercise, usual, wrong):
    """Name a result that holds the expected numbers in other places."""
    reshaped = True
    for trial in wrong:
        off = [(g, e) for _, g, e in pairs(exercise, trial) if not agrees(g, e)]
        if not off:
            return None
        for got, expected in off:
            numbers = [t.double().flatten().sort().values for t in (got, expected)]
            if len(numbers[0].unique()) < 4 or not close(*numbers).all():
                return None
            reshaped &= is_reshaped(got, expected)
    key = "reshape-for-transpose" if reshaped else "numbers-in-other-places"
    return (TEXTS.say(key), wrong[0]) if len(wrong) > 1 else None


def is_reshaped(got, expected):
    """Say whether `got` is what a reshape gives in the place of a transpose."""
    axes = range(expected.dim())
    for one, other in ((i, j) for i in axes for j in axes if i < j):
        turned = expected.transpose(one, other)
        if torch.equal(got, turned.reshape(expected.shape)):
            return True
        if torch.equal(got, expected.reshape(turned.shape).transpose(one, other)):
            return True
    return False


def samples_mixed(exercise, usual, wrong):
    """Name an answer that is right for each sample alone and wrong for a batch."""
    for trial in wrong:
        if not alone_all_are_right(trial):
            return None
    return TEXTS.say("samples-mixed"), wrong[0]


def alone_all_are_right(trial):
    """Say whether each sample of a batch gets the right result when it is alone."""
    inputs = trial.case.args
    tensors = [arg for arg in inputs if isinstance(arg, torch.Tensor)]
    count = len(tensors[0]) if tensors and tensors[0].dim() > 2 else 0
    parts = [expected for _, expected in leaves(trial.expected.value)]
    if count < 2 or any(len(part) != count for part in parts):
        return False
    widest = max(tensor.dim() for tensor in tensors)
    for i in range(count):

        def sample(arg, i=i):
            batched = isinstance(arg, torch.Tensor) and arg.dim() == widest
            return arg[i : i + 1] if batched and len(arg) == count else arg

        came = quietly(trial.call, [sample(arg) for arg in inputs]).value
        got = [part for _, part in leaves(came)]
        if not agrees(got, [part[i : i + 1] for part in parts]):
            return False
    return True
