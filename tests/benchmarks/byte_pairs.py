"""Byte-pair training: counts kept up to date against counting anew.

The text is the source of Python's standard library, its modules in alphabetical order.
"""

import sysconfig
import time
from collections import Counter
from pathlib import Path

from utils.tokenizer import WORD, count_pairs, merge, train_bpe


def library(size):
    """Return the first `size` bytes of the source of Python's library as text."""
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"".join(module.read_bytes() for module in modules)
    return text[:size].decode("utf-8", errors="ignore")


def train_plainly(text, num_merges):
    """Learn the same merges, and count all pairs anew before each one."""
    words = Counter(tuple(word.encode("utf-8")) for word in WORD.findall(text))
    merges = {}
    for new_id in range(256, 256 + num_merges):
        counts = count_pairs(words)
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        merges[pair] = new_id
        words = {tuple(merge(ids, pair, new_id)): n for ids, n in words.items()}
    return merges


def timed(trainer, text, num_merges):
    """Return the merges in their order, and the seconds that learning them took."""
    start = time.perf_counter()
    merges = trainer(text, num_merges)
    return list(merges.items()), time.perf_counter() - start


def main():
    """Print a row for a text that both can learn from, and one for a megabyte."""
    print("    bytes  words  merges  anew s  kept s")
    for size, num_merges, both in ((100_000, 300, True), (1_000_000, 1000, False)):
        text = library(size)
        merges, kept = timed(train_bpe, text, num_merges)
        anew = ""
        if both:
            expected, seconds = timed(train_plainly, text, num_merges)
            assert merges == expected
            anew = f"{seconds:.1f}"
        words = len(set(WORD.findall(text)))
        print(f"{size:9,} {words:6,} {len(merges):7,} {anew:>7} {kept:7.1f}")
