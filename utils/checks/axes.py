"""The order of axes, and how it goes wrong."""

from itertools import permutations
from operator import ne


def to(*order):
    """Return the step that says in which order the axes go on."""
    return lambda s: order


def wrong_orders(right):
    """Return the orders that exchange two axes too many, or two alone, or none."""

    none = (*range(len(right)),)

    def moved(order):
        return min(sum(map(ne, order, other)) for other in (none, right))

    return [
        order for order in permutations(none) if moved(order) < 3 and order != right
    ]


def named(axes, order):
    """Return the names of axes in this order, as a word for a text."""
    return {"axes": ", ".join(axes[i] for i in order)}


def taken(forms):
    """Return the orders of these forms."""
    return [one.ways["order"](None) for one in forms if "order" in one.ways]
