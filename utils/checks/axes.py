"""The order of axes, and how it goes wrong."""

from itertools import combinations


def to(*order):
    """Return the step that says in which order the axes go on."""
    return lambda s: order


def wrong_orders(right):
    """Return the orders that exchange two axes too many, or two alone, or none."""
    before = (*range(len(right)),)
    return sorted({before, *exchanged(before), *exchanged(right)} - {right})


def exchanged(order):
    """Yield the order of axes with two of them exchanged, in every way."""
    for i, j in combinations(range(len(order)), 2):
        other = [*order]
        other[i], other[j] = other[j], other[i]
        yield (*other,)


def named(axes, order):
    """Return the names of axes in this order, as a word for a text."""
    return {"axes": ", ".join(axes[i] for i in order)}


def taken(forms):
    """Return the orders of these forms."""
    return [one.ways["order"](None) for one in forms if "order" in one.ways]
