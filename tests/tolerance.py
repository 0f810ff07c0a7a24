"""Compare what a cell prints with what is stored, its numbers within a tolerance.

A cell that trains says in its metadata how far its numbers may move elsewhere, and why:
`"tolerance": 0.05` is absolute, `"tolerance": "10%"` is a share of the stored number.
"""

import re

# With the spaces before it, because a column moves when a number gets a digit more.
NUMBER = re.compile(r" *[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


def value(number):
    """Return the number that a text such as ` −1,024.5` stands for."""
    return float(number.strip().replace("−", "-").replace(",", ""))


def allowed(stored, tolerance):
    """Return how far a number may lie from the stored one."""
    if isinstance(tolerance, str):
        return abs(stored) * float(tolerance.removesuffix("%")) / 100
    return tolerance


def agree(new, stored, tolerance=None):
    """Return whether two texts say the same; numbers may differ by the tolerance.

    >>> agree("loss 1.12", "loss 1.08", 0.05), agree("loss 1.14", "loss 1.08", 0.05)
    (True, False)
    >>> agree("loss   9.9", "loss  10.1", "10%"), agree("loss nan", "loss 1.08", 10)
    (True, False)
    >>> agree("loss 1.09", "loss 1.08"), agree("Loss 1.08", "loss 1.08", 10)
    (False, False)
    """
    if tolerance is None:
        return new == stored
    if NUMBER.split(new) != NUMBER.split(stored):
        return False
    values = [value(number) for number in NUMBER.findall(new)]
    targets = [value(number) for number in NUMBER.findall(stored)]
    # Allow a hair more, because the decimals have binary roundings.
    near = [abs(a - b) <= allowed(b, tolerance) + 1e-9 for a, b in zip(values, targets)]
    return all(near)


def printed(cell):
    """Return what nbval compares of a cell: its texts, without figures."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    texts = [o.get("text", o.get("data", {}).get("text/plain")) for o in cell.outputs]
    return "\n".join(text for text in texts if text is not None)


def settled(new, stored, tolerance):
    """Return new outputs; a text that agrees with the stored one is replaced by it.

    nbval then compares as usual: numbers too far away and other words still differ, and
    its message shows both.
    """
    outputs = []
    # The cover of a folded output has HTML alone.
    stored = [out for out in stored if [*out.get("data", {})] != ["text/html"]]
    for i, output in enumerate(new):
        twin = stored[i] if i < len(stored) else {}
        if "text" in output and agree(output["text"], twin.get("text", ""), tolerance):
            output = type(output)(output, text=twin["text"])
        outputs.append(output)
    return outputs
