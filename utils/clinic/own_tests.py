"""The reader's own tests of a layer, tried on three whose code stays out of sight."""

import torch

from utils.attention import MultiHeadAttention

SIZES = 64, 64, 8, 0.0, 4  # d_in, d_out, context_length, dropout, num_heads
LAYERS = {  # options, and whether leak_test and permute_tokens should find a fault
    "A": ({}, [False, False]),
    "B": ({"window": 4}, [False, True]),  # hides too much
    "C": ({"causal": False}, [True, False]),
}


def try_tests(leak_test, permute_tokens) -> None:
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
    lines, is_right = [f"{'layer':12}{'leak_test':>11}{'permute_tokens':>16}"], True
    for name, (options, has_fault) in LAYERS.items():
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            layer = MultiHeadAttention(*SIZES, **options).eval()
        try:
            moved = [torch.as_tensor(t(layer)) for t in (leak_test, permute_tokens)]
        except NotImplementedError:
            print("Write both tests first, then run this cell again.")
            return
        moved = [abs(number.item()) for number in moved]
        lines.append(f"{name:12}{moved[0]:11.2f}{moved[1]:16.2f}")
        is_right = is_right and [m > 0.005 for m in moved] == has_fault
    start = "Right: each test finds" if is_right else "Not yet: each test should find"
    print(*lines, f"{start} one layer, and the third is healthy.", sep="\n")
