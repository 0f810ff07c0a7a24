"""The order of axes, and how it goes wrong."""

from itertools import permutations
from operator import ne


def to(*order):
    """Return the step that says in which order the axes go on."""
    return lambda s: order


def wrong_orders(right, forms):
    """Return the orders that exchange two axes too many, or two alone, or none.

    What some forms have as their order is left out.
    """
    none = (*range(len(right)),)
    known = {right, *(one.ways["order"](None) for one in forms if "order" in one.ways)}

    def moved(order):
        return min(sum(map(ne, order, other)) for other in (none, right))

    return [one for one in permutations(none) if moved(one) < 3 and one not in known]


def named(axes, order):
    """Return the names of axes in this order, as a word for a text."""
    return {"axes": ", ".join(axes[i] for i in order)}
