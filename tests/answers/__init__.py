"""Answers with the diagnoses they must get; most authors had never seen the checks.

For each exercise that four authors were asked, a right answer in an unusual style, and
often one with two mistakes or with a single one, from the 635 that they wrote. (The
six sets of which the README reports are by two others, and are not here.)
Above a wrong answer its author says what is wrong. An answer has the name of its
exercise. Only those in `corrected` were written with the checks in view.
"""

from importlib import import_module

ANSWERS = []  # (answer, names of its diagnoses), in the order of the exercises


def right(answer):
    """Register the decorated function or class as a right answer."""
    return wrong()(answer)


def wrong(*names):
    """Register the decorated function or class as one that gets these diagnoses."""

    def register(answer):
        ANSWERS.append((answer, names))
        return answer

    return register


for _name in ("first_half", "second_half", "corrected"):
    import_module(f"{__name__}.{_name}")
