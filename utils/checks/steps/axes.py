"""The order of axes, and how it goes wrong."""

from itertools import permutations
from operator import ne

from utils.checks.pipeline import variants


def to(*order):
    """Return the step that says in which order the axes go on."""
    return lambda s: order


def misplaced(text, axes, right, known):
    """Return a variant of the step `order` for each wrong order that `known` lacks.

    The orders exchange two axes too many, or only two, or none. Braces in the text
    stand for the names of the axes.
    """
    unmoved = (*range(len(right)),)
    known = {v.overrides["order"](None) for v in known if "order" in v.overrides}
    found = []
    for order in permutations(unmoved):
        moved = min(sum(map(ne, order, other)) for other in (unmoved, right))
        if moved < 3 and order not in {right, *known}:
            names = ", ".join(axes[i] for i in order)
            found += variants(text.replace("{}", names), {"order": to(*order)})
    return found
