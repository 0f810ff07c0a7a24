"""The reader's own tests of a layer, tried on three whose code stays out of sight."""

import torch

from utils.attention import MultiHeadAttention

SIZES = 64, 64, 8, 0.0, 4  # d_in, d_out, context_length, dropout, num_heads
KINDS = {"A": {}, "B": {"window": 4}, "C": {"causal": False}}  # B hides too much
FINDS = {"leak_test": "C", "permute_tokens": "B"}  # which layer each test finds
RIGHT = "Right: each test finds one layer, and the third is healthy."
NOT_YET = "Not yet: each test should find one layer, and the third is healthy."


def try_tests(leak_test, permute_tokens):
    """Run the reader's two tests on three layers, and say whether they find the faults.

    Each is a function of a layer, (1, 8, 64) to (1, 8, 64), that returns how far its
    outputs move, 0 where the layer is right.

    >>> try_tests(lambda layer: 0.0, lambda layer: 0.0)
    layer         leak_test  permute_tokens
    A                  0.00            0.00
    B                  0.00            0.00
    C                  0.00            0.00
    Not yet: each test should find one layer, and the third is healthy.
    """
    tests = {"leak_test": leak_test, "permute_tokens": permute_tokens}
    try:
        found = {one: [_moved(t, one) for t in tests.values()] for one in KINDS}
    except NotImplementedError:
        print("Write both tests first, then run this cell again.")
        return
    print(f"{'layer':12}{'leak_test':>11}{'permute_tokens':>16}")
    for one, numbers in found.items():
        print(f"{one:12}{numbers[0]:11.2f}{numbers[1]:16.2f}")
    seen = {one: [n > 0.005 for n in numbers] for one, numbers in found.items()}
    right = {one: [one == wrong for wrong in FINDS.values()] for one in KINDS}
    print(RIGHT if seen == right else NOT_YET)


def _moved(test, kind):
    """Return as a number what a test says of a layer."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        layer = MultiHeadAttention(*SIZES, **KINDS[kind]).eval()
    return abs(float(torch.as_tensor(test(layer)).detach()))
