"""The reader's own tests of a layer, tried on three whose code stays out of sight."""

from functools import partial

import torch

from utils.attention import (
    MultiHeadAttention,
    causal_mask,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)


class HidesTooMuch(MultiHeadAttention):
    """A token sees only itself and the three before it."""

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        heads = [split_heads(layer(x), self.num_heads) for layer in layers]
        mask = causal_mask(x.shape[1]).triu(-3)
        output, _ = scaled_dot_product_attention(*heads, mask)
        return self.out_proj(merge_heads(output))


SIZES = 64, 64, 8, 0.0, 4  # d_in, d_out, context_length, dropout, num_heads
LAYERS = {  # and whether leak_test and permute_tokens should find a fault
    "A": (MultiHeadAttention, [False, False]),
    "B": (HidesTooMuch, [False, True]),
    "C": (partial(MultiHeadAttention, causal=False), [True, False]),
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
    for name, (build, has_fault) in LAYERS.items():
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            layer = build(*SIZES).eval()
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
