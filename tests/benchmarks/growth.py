"""Time and extra memory of each form of attention against T, with fitted exponents.

The forms are those of notebook 10: one head of width 64, float32, no gradients. An
exponent is the slope on logarithmic axes, fitted to the longer half of the lengths.
"""

import statistics
from functools import partial

import torch

from tests.benchmarks import race
from tests.seeds import definitions


def measure(book, num_tokens):
    """Return form -> (milliseconds, MiB), after showing that the forms agree."""
    heads = book["random_heads"](num_tokens)
    forms = book["ALL_FORMS"]
    runs = {name: partial(form, *heads) for name, form in forms.items()}
    for name in ("blocks", "fused"):
        torch.testing.assert_close(runs[name](), runs["plain"](), atol=1e-4, rtol=1e-4)
    if num_tokens <= 2048:  # the mask alone grows with the square
        expected = book["masked_attention"](*heads, 128)
        torch.testing.assert_close(runs["window of 128"](), expected)
    seconds = race(runs, rounds=3 if num_tokens > 4096 else 9)
    return {
        name: (
            1000 * statistics.median(seconds[name]),
            book["extra_bytes"](form, *heads) / 2**20,
        )
        for name, form in forms.items()
    }


def main():
    """Print a table of milliseconds and one of MiB."""
    book = definitions("10_attention_at_speed")
    lengths = book["LENGTHS"]
    found = [measure(book, num_tokens) for num_tokens in lengths]
    for place, unit in enumerate(("ms", "MiB")):
        heading = "".join(f"{num_tokens:>10,}" for num_tokens in lengths)
        print(f"{unit + ' at T =':14}{heading}  exponent")
        for name in found[0]:
            costs = [row[name][place] for row in found]
            shown = "".join(f"{cost:10,.2f}" for cost in costs)
            print(f"{name:14}{shown} {book['exponent'](lengths, costs):9.2f}")
