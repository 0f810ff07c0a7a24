"""Time and extra memory of each form of attention against T, with fitted exponents.

The forms are those of the notebook *Counting memory*: one head of width 64, float32,
no gradients. On a GPU 64 such heads keep the card busy, in 16 bits, up to fewer tokens.
An exponent is the slope on logarithmic axes, fitted to the longer half of the lengths.
"""

import statistics
from functools import partial

import torch

from tests.benchmarks import place, race
from tests.seeds import definitions

DEVICE, DTYPE = place()
HEADS, LARGEST = (1, 14) if DEVICE == "cpu" else (64, 12)
TOLERANCE = (
    {"atol": 1e-4, "rtol": 1e-4} if DEVICE == "cpu" else {"atol": 2e-2, "rtol": 0}
)


def measure(book, num_tokens):
    """Return form -> (milliseconds, MiB), after showing that the forms agree."""
    heads = [t.to(DEVICE, DTYPE) for t in book["random_heads"](num_tokens, HEADS)]
    forms = book["ALL_FORMS"]
    runs = {name: partial(form, *heads) for name, form in forms.items()}
    for name in ("blocks", "fused"):
        torch.testing.assert_close(runs[name](), runs["plain"](), **TOLERANCE)
    if num_tokens <= 2048:  # the mask alone grows with the square
        expected = book["masked_attention"](*heads, 128)
        torch.testing.assert_close(runs["window of 128"](), expected, **TOLERANCE)
    seconds = race(runs, rounds=3 if num_tokens > 4096 else 9)
    return {
        name: (
            1000 * statistics.median(seconds[name]),
            book["extra_bytes"](form, *heads) / 2**20,
        )
        for name, form in forms.items()
    }


@torch.no_grad()
def main():
    """Print a table of milliseconds and one of MiB."""
    book = definitions("deeper/counting_memory")
    lengths = [2**n for n in range(7, LARGEST + 1)]
    found = [measure(book, num_tokens) for num_tokens in lengths]
    for number, unit in enumerate(("ms", "MiB")):
        heading = "".join(f"{num_tokens:>10,}" for num_tokens in lengths)
        print(f"{unit + ' at T =':14}{heading}  exponent")
        for name in found[0]:
            costs = [row[name][number] for row in found]
            shown = "".join(f"{cost:10,.2f}" for cost in costs)
            print(f"{name:14}{shown} {book['exponent'](lengths, costs):9.2f}")
