"""What is wrong with an answer: its name, and what the reader is told."""

from typing import NamedTuple


class Diagnosis(NamedTuple):
    """A name, as in `tests/answers`, and the text for the reader."""

    name: str
    text: str


class Mistake:
    """A mistake that the check knows: its diagnosis, and the lines that it changes.

    name, text: of its diagnosis; in braces, variables of the wrong function, or {returns}
    variants: each is one line of the right answer written wrong, or several with
        semicolons between; what readers may get wrong needs a line of its own there
    """

    def __init__(self, name: str, text: str, *variants: str):
        self.name, self.text, self.variants = name, text, variants
